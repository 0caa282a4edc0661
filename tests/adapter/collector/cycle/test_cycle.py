"""One cluster's cycles, from what brokers answer to what a question gets."""

import itertools

import pytest

from adapter.cluster.groups import Kind
from adapter.metrics.problems import NoMatch, Reason
from tests.support import samples
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import BILLING, ORDERS_0, given, kafka, running
from tests.support.samples import EPOCH, NOW, wants

Commits = dict[tuple[str, int], int]

# -- the first cycles --------------------------------------------------------------------------------------


def test_the_first_cycle_has_values() -> None:
    rig = Rig(kafka())
    outcome = rig.run()

    assert (outcome.completeness, outcome.read, outcome.rows) == ("complete", 3, 3)
    assert rig.lag() == 13
    assert rig.read("lead_min", BILLING).values[0].milli // 1000 == 5


def test_before_the_first_cycle_every_question_is_refused() -> None:
    assert Rig(kafka()).reasons(group="billing") == [Reason.GROUP_MAY_EXIST]


def test_values_carry_the_time_of_the_cycle_that_read_them() -> None:
    rig = running()
    rig.run(3)

    assert rig.clock.seconds == NOW + 30
    assert [item.measured_at for item in rig.read("lag", BILLING).values] == [EPOCH + 30]


def test_until_every_broker_has_listed_its_groups_once_sums_over_groups_are_refused() -> None:
    cluster = kafka()
    cluster.loading = {3}
    rig = running(cluster)

    assert rig.lag() == 13
    assert rig.reasons(topic="orders") == rig.reasons(group="audit") == [Reason.GROUP_MAY_EXIST]
    reading = rig.read("lag")
    assert [item.milli // 1000 for item in reading.values] == [13]
    (warning,) = reading.warnings
    assert warning.endswith("broker 3 at kafka-3:9092 has not listed its groups yet: it is still loading them")

    cluster.loading.clear()
    rig.run()
    assert rig.read("records_lag_max", wants(topic="orders")).values[0].milli // 1000 == 10
    with pytest.raises(NoMatch):
        rig.read("lag", wants(group="audit"))


def test_a_broker_that_is_silent_from_the_start_is_named() -> None:
    cluster = kafka()
    cluster.silent = {3}
    rig = running(cluster)

    for _ in range(3):
        assert rig.reasons(group="audit") == [Reason.GROUP_MAY_EXIST]
        assert "broker 3 at kafka-3:9092 does not answer" in str(rig.refusal(group="audit"))
        (problem,) = rig.refusal(group="billing").problems
        assert (problem.reason, problem.partition) == (Reason.NOT_READ_YET, 2)
        rig.run()


def test_a_broker_that_was_heard_once_may_be_silent_later() -> None:
    rig = running()
    rig.kafka.silent = {3}
    rig.run()

    assert rig.lag() == 13


def test_without_a_bootstrap_server_known_values_are_served_until_they_are_too_old() -> None:
    cluster = kafka()
    rig = Rig(cluster)
    cluster.unreachable = "bootstrap server kafka:9092 refuses the connection"
    rig.run()
    assert rig.reasons(group="billing") == [Reason.GROUP_MAY_EXIST]

    cluster.unreachable = None
    rig.run()
    rig.brokers.close()
    cluster.unreachable = "bootstrap server kafka:9092 refuses the connection"
    assert rig.run().completeness == "failed"
    assert rig.lag() == 13
    rig.run(6)
    assert rig.reasons(group="billing") == [Reason.NOT_READ_SINCE]
    assert str(rig.refusal(group="billing")).endswith(cluster.unreachable)


def test_a_group_that_a_rule_names_is_refused_until_a_broker_was_reached() -> None:
    cluster = kafka()
    rig = Rig(cluster, given())
    cluster.unreachable = "bootstrap server kafka:9092 refuses the connection"
    rig.run()

    assert rig.reasons(group="billing") == [Reason.GROUP_MAY_EXIST]


# -- requests ----------------------------------------------------------------------------------------------


def test_a_cycle_costs_one_request_for_commits_per_coordinator_and_one_for_ends_per_leader() -> None:
    rig = running()
    rig.run()

    assert rig.counted() == {"OffsetFetch": 1, "ListOffsets read_uncommitted": 3, "Metadata living": 1}


def test_five_hundred_groups_are_one_request_per_coordinator() -> None:
    cluster = kafka()
    for number in range(500):
        cluster.commits[f"group-{number}"] = {ORDERS_0: 1}
        cluster.coordinators[f"group-{number}"] = 1 + number % 3
    rig = running(cluster)
    rig.run()

    assert rig.counted() == {"OffsetFetch": 3, "ListOffsets read_uncommitted": 3, "Metadata living": 1}
    assert len(rig.read("lag").values) == 501


def test_a_cycle_that_needs_nothing_asks_only_which_brokers_are_alive() -> None:
    rig = running(Kafka(topics={"orders": [1, 2, 3]}))
    rig.run()

    assert rig.counted() == {"Metadata living": 1}


def test_every_isolation_level_in_use_costs_one_request_per_leader() -> None:
    cluster = kafka()
    cluster.commits["audit"] = {ORDERS_0: 1}
    cluster.stable_ends = {ORDERS_0: 4}
    rig = running(cluster, samples.settings(rules=[{"group": "audit", "isolation": "read_committed"}]))
    rig.run()

    ends = {"ListOffsets read_uncommitted": 3, "ListOffsets read_committed": 3}
    assert rig.counted() == {"OffsetFetch": 2, **ends, "Metadata living": 1}
    assert (rig.lag("audit"), rig.lag("billing")) == (3, 13)


def test_a_minute_costs_seven_requests_per_broker_and_eight_more_beside_the_cycles_own() -> None:
    """Two ListGroups, one ListOffsets for log starts, and a description for each kind of groups."""
    cluster = kafka()
    for node, kind in itertools.product(cluster.nodes, Kind):
        group = f"{kind}-{node}"
        cluster.commits[group] = {ORDERS_0: 1}
        cluster.coordinators[group], cluster.kinds[group] = node, kind
        cluster.members[group] = {"orders"}
    rig = running(cluster)
    others = 0
    for _ in range(30):
        rig.run()
        others += sum(n for kind, n in rig.counted().items() if kind not in CYCLES_OWN)

    assert others <= 5 * (7 * 3 + 8)
    assert others > 0


CYCLES_OWN = {"OffsetFetch", "ListOffsets read_uncommitted", "DescribeShareGroupOffsets"}


def test_starts_are_read_at_once_and_every_minute_after() -> None:
    rig = Rig(kafka())
    asked = []
    for _ in range(13):
        rig.run()
        asked.append(rig.counted()["ListOffsets earliest"])

    assert asked == [3, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 3]


# -- groups given by name ----------------------------------------------------------------------------------


def test_a_group_given_by_name_has_a_value_though_kafka_does_not_know_it() -> None:
    cluster = kafka()
    cluster.commits.clear()
    latest, earliest = running(cluster, given(offsetReset="latest")), running(cluster, given())

    assert (latest.lag(), earliest.lag()) == (0, 35)
    assert latest.read("uncommitted_partitions", BILLING).values[0].milli // 1000 == 3


@pytest.mark.parametrize("policy", ["latest", "earliest"])
def test_commits_that_expired_count_from_the_last_one_that_was_seen(policy: str) -> None:
    rig = running(settings=given(offsetReset=policy))
    rig.kafka.commits.clear()
    rig.run(12)
    assert rig.lag() == 13

    rig.kafka.ends[ORDERS_0] += 4
    rig.run()

    assert rig.lag() == 17
    assert rig.read("uncommitted_partitions", BILLING).values[0].milli // 1000 == 3


def test_a_group_given_by_a_named_metric_has_a_value_though_kafka_does_not_know_it() -> None:
    metric = {"name": "backlog", "value": "lag", "group": "Billing Service/eu", "topics": ["orders"]}
    rig = running(settings=samples.settings(metrics=[metric]))

    assert [item.milli // 1000 for item in rig.read("backlog").values] == [0]


def test_a_given_topic_that_is_missing_is_unknown_at_first_and_then_not_found() -> None:
    rig = running(settings=given(topics=["orders", "order"]))
    assert rig.reasons(group="billing") == [Reason.NOT_READ_YET]
    rig.run(2)

    (problem,) = rig.refusal(group="billing").problems
    assert (problem.reason, problem.topic) == (Reason.TOPIC_MISSING, "order")


def test_a_given_topic_that_is_made_later_counts() -> None:
    rig = running(settings=given(topics=["orders", "refunds"], offsetReset="earliest"))
    rig.run(4)
    rig.kafka.topics["refunds"] = [1]
    rig.kafka.ends["refunds", 0] = 100
    rig.run(3)

    assert rig.lag() == 113


def test_while_no_broker_coordinates_groups_a_named_one_has_no_commits_after_three_cycles() -> None:
    cluster = kafka()
    cluster.commits.clear()
    cluster.coordinators["billing"] = NOBODY
    rig = running(cluster, given(offsetReset="latest"))
    assert set(rig.reasons(group="billing")) == {Reason.NOT_READ_YET}
    rig.run(2)

    assert rig.lag() == 0


@pytest.mark.parametrize("others", [{"billing": {ORDERS_0: 7}}, {"audit": {ORDERS_0: 7}}], ids=["itself", "another"])
def test_where_groups_are_coordinated_one_without_coordinator_is_never_a_zero(others: dict[str, Commits]) -> None:
    cluster = kafka()
    cluster.commits = others
    rig = running(cluster, given(offsetReset="latest"))
    cluster.coordinators["billing"] = NOBODY
    rig.run(9)

    assert "no broker coordinates group billing" in str(rig.refusal(group="billing"))


def test_a_given_group_whose_part_of_the_offsets_topic_is_offline_is_never_a_zero() -> None:
    cluster = kafka()
    cluster.topics["__consumer_offsets"] = [1]
    cluster.commits.clear()
    cluster.coordinators["billing"] = NOBODY
    rig = running(cluster, given())
    rig.run(9)

    assert "no broker coordinates group billing" in str(rig.refusal(group="billing"))


def test_groups_and_topics_that_are_not_watched_are_left_out() -> None:
    cluster = kafka()
    cluster.topics["__internal"] = [1]
    cluster.commits["billing"]["__internal", 0] = 0
    cluster.commits["test"] = {ORDERS_0: 1}
    rig = running(cluster, samples.settings(collection={"groups": {"exclude": ["te.*"]}}))

    assert rig.view.layout.groups == ("billing",)
    assert rig.view.layout.topics == ("orders",)
    assert rig.view.topics == {"orders"}


def test_a_group_given_by_name_is_watched_although_it_is_excluded() -> None:
    rules = [{"group": "billing", "topics": ["orders"]}]
    rig = running(settings=samples.settings(collection={"groups": {"exclude": ["bill.*"]}}, rules=rules))

    assert rig.lag() == 13


def test_topics_beside_the_rule_are_stale() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    cluster.ends["refunds", 0] = 100

    assert running(cluster, given()).lag() == 13


def two_topics() -> Kafka:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    cluster.ends["refunds", 0] = 100
    return cluster


def test_topics_that_no_member_of_a_stable_group_reads_are_stale() -> None:
    cluster = two_topics()
    cluster.members["billing"] = {"orders"}
    rig = running(cluster)

    assert rig.lag() == 13
    with pytest.raises(NoMatch):
        rig.read("lag", wants(group="billing", topic="refunds"))


def test_an_empty_group_has_no_stale_topics() -> None:
    cluster = two_topics()
    cluster.members["billing"] = {"orders"}
    rig = running(cluster)
    cluster.members.clear()
    rig.run(6)

    assert rig.lag() == 113


def test_a_topic_that_a_rule_lists_is_not_stale_even_if_no_member_reads_it() -> None:
    cluster = two_topics()
    cluster.members["billing"] = {"orders"}

    assert running(cluster, given(topics=["orders", "refunds"])).lag() == 113


def test_a_silent_coordinator_makes_no_stale_topic_count() -> None:
    cluster = two_topics()
    cluster.members["billing"] = {"orders"}
    rig = running(cluster)
    cluster.silent = {2}
    rig.run(5)

    assert rig.lag() == 13


def test_clusters_are_read_apart() -> None:
    settings = samples.settings(clusters=[samples.cluster("main"), samples.cluster("eu")])
    rig = Rig(kafka(), settings, cluster="eu")
    rig.run()

    assert [item.labels["cluster"] for item in rig.read("lag", wants(cluster="eu")).values] == ["eu"]
    (problem,) = rig.refusal(group="billing").problems
    assert (problem.reason, problem.cluster) == (Reason.GROUP_MAY_EXIST, "main")


def test_a_rule_s_topic_may_be_missing_in_a_cluster_that_does_not_have_the_group() -> None:
    elsewhere = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")],
        rules=[{"group": "billing", "topics": ["payments"]}],
    )
    rig = running(Kafka(topics={"orders": [1, 2, 3]}), elsewhere)
    rig.run(cycles=4)

    assert rig.view.problems == {}


def test_a_rule_s_topic_may_not_be_missing_in_the_cluster_that_has_the_group() -> None:
    elsewhere = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")],
        rules=[{"group": "billing", "topics": ["payments"]}],
    )
    rig = running(kafka(), elsewhere)
    rig.run(cycles=4)

    (problem,) = rig.view.problems["billing"]
    assert (problem.reason, problem.topic) == (Reason.TOPIC_MISSING, "payments")
