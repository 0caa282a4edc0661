"""One cluster's cycles, from what brokers answer to what a question gets."""

import pytest

from adapter.errors import NothingChosen, ValueUnavailable
from adapter.settings import Settings
from adapter.snapshot import State
from tests import samples
from tests.fake_brokers import NOBODY, Kafka, Rig
from tests.samples import EPOCH, NOW, wants

ORDERS_0, ORDERS_1, ORDERS_2 = ("orders", 0), ("orders", 1), ("orders", 2)
SILENT_2 = "broker 2 at kafka-2:9092 does not answer"
BILLING = wants(group="billing")


def kafka() -> Kafka:
    """Three brokers that lead a partition each; billing, coordinated by broker 2, is 3 + 10 + 0 behind."""
    return Kafka(
        topics={"orders": [1, 2, 3]},
        commits={"billing": {ORDERS_0: 7, ORDERS_1: 10, ORDERS_2: 5}},
        coordinators={"billing": 2},
        ends={ORDERS_0: 10, ORDERS_1: 20, ORDERS_2: 5},
    )


def running(cluster: Kafka | None = None, settings: Settings | None = None) -> Rig:
    """After its first cycle."""
    rig = Rig(cluster or kafka(), settings)
    rig.run()
    return rig


def refusal(rig: Rig, metric: str = "lag", group: str = "billing") -> str:
    with pytest.raises(ValueUnavailable) as caught:
        rig.read(metric, wants(group=group))
    return str(caught.value)


def given(**rule: object) -> Settings:
    return samples.settings(rules=[{"group": "billing", "topics": ["orders"], **rule}])


# -- the first cycles --------------------------------------------------------------------------------------


def test_the_first_cycle_gives_values() -> None:
    rig = Rig(kafka())
    outcome = rig.run()

    assert (outcome.word, outcome.read, outcome.rows) == ("complete", 3, 3)
    assert rig.lag() == 13
    assert rig.read("lead_min", BILLING).values[0].value == 5


def test_before_the_first_cycle_every_question_is_refused() -> None:
    assert refusal(Rig(kafka())) == ("groups of cluster main are not known yet: its brokers have not been asked yet")


def test_values_carry_the_time_of_the_cycle_that_read_them() -> None:
    rig = running()
    rig.run(3)

    assert rig.clock.seconds == NOW + 30
    assert [item.measured_at for item in rig.read("lag", BILLING).values] == [EPOCH + 30]


def test_until_every_broker_has_listed_its_groups_once_selectors_are_refused() -> None:
    cluster = kafka()
    cluster.loading = {3}
    rig = running(cluster)
    words = "broker 3 at kafka-3:9092 has not listed its groups yet: it is still loading them"

    assert refusal(rig) == f"groups of cluster main are not known yet: {words}"
    reading = rig.read("lag")
    assert [item.value for item in reading.values] == [13]
    assert reading.warnings == (f"groups of cluster main may be missing: {words}",)

    cluster.loading.clear()
    rig.run()
    assert rig.lag() == 13


def test_a_broker_that_is_silent_from_the_start_is_named() -> None:
    cluster = kafka()
    cluster.silent = {3}
    rig = running(cluster)

    words = "broker 3 at kafka-3:9092 has not listed its groups yet: broker 3 at kafka-3:9092 does not answer"
    assert refusal(rig) == f"groups of cluster main are not known yet: {words}"
    rig.run(2)
    assert words in refusal(rig)


def test_a_broker_that_was_heard_once_may_be_silent_later() -> None:
    rig = running()
    rig.kafka.silent = {3}
    rig.run()

    assert rig.lag() == 13


def test_no_bootstrap_server_is_told_and_what_was_known_stands_until_it_is_too_old() -> None:
    cluster = kafka()
    rig = Rig(cluster)
    cluster.unreachable = "bootstrap server kafka:9092 refuses the connection"
    rig.run()
    assert refusal(rig) == f"groups of cluster main are not known yet: {cluster.unreachable}"

    cluster.unreachable = None
    rig.run()
    rig.brokers.close()
    cluster.unreachable = "bootstrap server kafka:9092 refuses the connection"
    assert rig.run().word == "failed"
    assert rig.lag() == 13
    rig.run(6)
    assert refusal(rig) == f"lag of group billing is 70 s old, limit 60 s: orders/0: {cluster.unreachable}"


# -- requests ----------------------------------------------------------------------------------------------


def test_a_cycle_costs_one_request_for_commits_per_coordinator_and_one_for_ends_per_leader() -> None:
    rig = running()
    rig.run()

    assert rig.counted() == {"OffsetFetch": 1, "ListOffsets read_uncommitted": 3}


def test_five_hundred_groups_are_one_request_per_coordinator() -> None:
    cluster = kafka()
    for number in range(500):
        cluster.commits[f"group-{number}"] = {ORDERS_0: 1}
        cluster.coordinators[f"group-{number}"] = 1 + number % 3
    rig = running(cluster)
    rig.run()

    assert rig.counted() == {"OffsetFetch": 3, "ListOffsets read_uncommitted": 3}
    assert len(rig.read("lag").values) == 501


def test_a_cycle_that_needs_nothing_asks_for_nothing() -> None:
    rig = running(Kafka(topics={"orders": [1, 2, 3]}))
    rig.run()

    assert rig.counted() == {}


def test_every_isolation_level_in_use_costs_one_request_per_leader() -> None:
    cluster = kafka()
    cluster.commits["audit"] = {ORDERS_0: 1}
    cluster.stable_ends = {ORDERS_0: 4}
    rig = running(cluster, samples.settings(rules=[{"group": "audit", "isolation": "read_committed"}]))
    rig.run()

    assert rig.counted() == {"OffsetFetch": 2, "ListOffsets read_uncommitted": 3, "ListOffsets read_committed": 3}
    assert (rig.lag("audit"), rig.lag("billing")) == (3, 13)


def test_a_minute_costs_four_requests_per_broker_and_eight_more_beside_the_cycles_own() -> None:
    cluster = kafka()
    cluster.members = {"billing": {"orders"}, "audit": {"orders"}}
    cluster.commits["audit"] = {ORDERS_0: 1}
    cluster.kip_848 = {"audit"}
    rig = running(cluster)
    others = 0
    for _ in range(30):
        rig.run()
        others += sum(n for kind, n in rig.counted().items() if kind not in CYCLES_OWN)

    assert others <= 5 * (4 * 3 + 8)
    assert others > 0


CYCLES_OWN = {"OffsetFetch", "ListOffsets read_uncommitted"}


def test_starts_are_read_at_once_and_every_minute_after() -> None:
    rig = Rig(kafka())
    asked = []
    for _ in range(13):
        rig.run()
        asked.append(rig.counted()["ListOffsets earliest"])

    assert asked == [3, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 3]


# -- trouble -----------------------------------------------------------------------------------------------


def test_a_silent_coordinator_costs_freshness_and_then_an_error_in_words() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.kafka.ends[ORDERS_0] = 1000
    assert rig.run().word == "failed"
    assert rig.lag() == 13
    rig.run(5)
    assert rig.lag() == 13
    rig.run()

    assert refusal(rig) == f"lag of group billing is 70 s old, limit 60 s: orders/0: {SILENT_2}"
    assert refusal(rig, "uncommitted_partitions").endswith(f"is 70 s old, limit 60 s: orders/0: {SILENT_2}")


def test_a_silent_leader_keeps_only_its_own_partitions_back() -> None:
    cluster = kafka()
    cluster.coordinators["billing"] = 1
    rig = running(cluster)
    cluster.silent = {2}
    cluster.commits["billing"] = {ORDERS_0: 10, ORDERS_1: 20, ORDERS_2: 5}
    outcome = rig.run()

    # Partition 1 keeps its commit of the cycle that read its end.
    assert (outcome.word, outcome.read, rig.lag()) == ("partial", 2, 10)
    assert rig.view.snapshot.state.tolist() == [State.OK, State.UNKNOWN, State.OK]
    rig.run(6)
    assert refusal(rig) == f"lag of group billing is 70 s old, limit 60 s: orders/1: {SILENT_2}"


def test_a_broker_that_missed_its_deadline_is_not_asked_until_its_probe_is_answered() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()
    assert rig.brokers.requests.count(("probe", 2)) == 1

    rig.run(2)
    assert [kind for kind, node in rig.brokers.requests if node == 2] == []

    rig.kafka.silent.clear()
    rig.run()
    assert ("OffsetFetch", 2) in rig.brokers.requests
    assert rig.run().word == "complete"


def test_a_broker_that_missed_its_deadline_is_not_asked_again_in_the_same_cycle() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()

    assert [kind for kind, node in rig.brokers.requests if node == 2] == ["OffsetFetch", "probe"]


def test_a_partition_without_leader_keeps_its_last_good_row() -> None:
    rig = running()
    rig.kafka.topics["orders"] = [1, -1, 3]
    rig.run(4)

    assert rig.view.snapshot.state.tolist() == [State.OK, State.LEADERLESS, State.OK]
    assert rig.lag() == 13
    rig.run(5)
    assert "orders/1: the partition has no leader" in refusal(rig)


def test_a_leader_that_moved_is_found_in_the_next_cycle() -> None:
    rig = running()
    rig.kafka.topics["orders"] = [1, 3, 3]
    assert rig.run().word == "partial"
    assert rig.view.snapshot.cause_of(1).text == "its leadership is moving"

    assert rig.run().word == "complete"


def test_a_commit_beyond_the_end_is_refused_in_the_second_cycle() -> None:
    rig = running()
    rig.kafka.commits["billing"][ORDERS_0] = 500
    rig.run()
    assert rig.lag() == 13
    rig.run()

    assert refusal(rig) == "lag of group billing is not known: orders/0: committed 500 is beyond the log end 10"


@pytest.mark.parametrize("absurd", [-5, 2**60])
def test_a_commit_that_can_be_no_offset_is_an_error_of_its_partition(absurd: int) -> None:
    rig = running()
    rig.kafka.commits["billing"][ORDERS_0] = absurd
    rig.run(7)

    assert rig.view.snapshot.state.tolist() == [State.ERROR, State.OK, State.OK]
    assert refusal(rig) == "lag of group billing is 70 s old, limit 60 s: orders/0: its commit cannot be read"


def test_a_truncated_partition_counts_from_its_log_start() -> None:
    cluster = kafka()
    cluster.starts = {ORDERS_1: 15}
    rig = running(cluster)

    assert rig.view.snapshot.state.tolist()[1] == State.TRUNCATED
    assert rig.lag() == 3 + 5
    assert rig.read("lead_min", BILLING).values[0].value == 0


def test_a_group_that_may_not_be_described_is_an_error_of_its_own() -> None:
    rig = running()
    rig.kafka.commits["audit"] = {ORDERS_0: 1}
    rig.kafka.commit_errors["billing"] = 30
    rig.run(8)

    assert "the adapter may not describe group billing (ACL Describe on the group is missing)" in refusal(rig)
    assert rig.lag("audit") == 9


def test_a_group_whose_commits_were_never_read_says_why() -> None:
    cluster = kafka()
    cluster.commit_errors["billing"] = 30
    rig = running(cluster)

    assert refusal(rig) == (
        "lag of group billing is not known: the adapter may not describe group billing"
        " (ACL Describe on the group is missing)"
    )


def test_steps_backward_of_a_broker_that_was_silent_are_not_believed_for_five_seconds() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()
    rig.kafka.silent.clear()
    rig.kafka.stale_commits = {2: {"billing": {ORDERS_0: 1, ORDERS_1: 1, ORDERS_2: 1}}}
    rig.run()

    assert rig.lag() == 13
    assert "older offsets than before" in rig.view.snapshot.cause_of(0).text
    # Ten seconds later it stands by them: someone reset the group.
    rig.run()
    assert rig.lag() == 9 + 19 + 4


def test_after_three_cycles_without_any_answer_everything_begins_anew() -> None:
    rig = running()
    rig.kafka.silent = {1, 2, 3}
    rig.run(2)
    assert (rig.brokers.closes, rig.brokers.connects) == (0, 1)
    rig.run()
    assert (rig.brokers.closes, rig.brokers.connects) == (1, 1)

    rig.kafka.silent.clear()
    assert rig.run().word == "complete"
    assert (rig.brokers.closes, rig.brokers.connects) == (1, 2)


def test_brokers_that_were_all_replaced_are_found_again() -> None:
    rig = running()
    rig.kafka.nodes = (4, 5, 6)
    rig.kafka.topics["orders"] = [4, 5, 6]
    rig.kafka.coordinators["billing"] = 5
    rig.kafka.ends[ORDERS_0] = 11
    rig.run(6)

    assert rig.run().word == "complete"
    assert rig.lag() == 14


# -- groups and topics come and go -------------------------------------------------------------------------


def test_a_coordinator_that_moved_is_found_by_asking_everywhere() -> None:
    rig = running()
    rig.kafka.coordinators["billing"] = 3
    rig.kafka.ends[ORDERS_0] = 11
    rig.run()
    assert rig.lag() == 13

    rig.run()
    assert rig.asked("OffsetFetch") == [{1: ("billing",), 2: ("billing",), 3: ("billing",)}]
    assert rig.lag() == 14
    rig.run()
    assert rig.asked("OffsetFetch") == [{3: ("billing",)}]


def test_a_group_of_a_dead_coordinator_is_found_at_another() -> None:
    rig = running()
    rig.kafka.nodes = (1, 3)
    rig.kafka.topics["orders"] = [1, 3, 3]
    rig.kafka.coordinators["billing"] = 3
    rig.run(2)

    assert rig.run().word == "complete"


def test_a_frozen_broker_is_replaced_as_soon_as_the_cluster_says_so() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run(3)
    rig.kafka.nodes = (1, 3)
    rig.kafka.topics["orders"] = [1, 3, 3]
    rig.kafka.coordinators["billing"] = 3

    assert rig.run().word == "complete"


def test_a_new_group_is_seen_within_half_a_minute() -> None:
    rig = running()
    rig.kafka.commits["audit"] = {ORDERS_0: 1}
    rig.run(3)

    assert rig.lag("audit") == 9


def test_a_group_is_gone_only_after_three_complete_rounds_without_it() -> None:
    rig = running()
    rig.kafka.commits["audit"] = {ORDERS_0: 1}
    del rig.kafka.commits["billing"]
    rig.run(8)
    assert "billing" in rig.view.layout.groups

    rig.run(2)
    with pytest.raises(NothingChosen, match="no group 'billing' is known; known groups are audit"):
        rig.read("lag", BILLING)


def test_a_loading_broker_makes_no_group_go() -> None:
    rig = running()
    del rig.kafka.commits["billing"]
    rig.kafka.loading = {3}
    rig.run(30)

    assert "billing" in rig.view.layout.groups


def test_a_listed_group_without_commits_for_a_topic_loses_it_after_three_answers() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    cluster.ends["refunds", 0] = 100
    rig = running(cluster)
    del cluster.commits["billing"]["refunds", 0]
    rig.run(2)
    assert rig.lag() == 113
    rig.run()

    assert rig.lag() == 13


def test_a_deleted_topic_is_dropped_after_three_answers() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    rig = running(cluster)
    del cluster.topics["refunds"]
    rig.run(3)
    assert "refunds" in rig.view.layout.topics
    rig.run(3)

    assert "refunds" not in rig.view.layout.topics
    assert rig.lag() == 13


def test_two_looks_in_one_cycle_count_once_for_a_deletion() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    rig = running(cluster)
    rig.run(2)
    del cluster.topics["refunds"]
    for number in range(2):
        cluster.commits["billing"][f"new-{number}", 0] = 0
        rig.run()
        assert rig.counted()["Metadata"] == 2

    assert "refunds" in rig.view.layout.topics


def test_answers_that_count_for_a_deletion_come_from_different_brokers() -> None:
    rig = running()
    rig.kafka.ignorant = {2: {"orders"}}
    rig.run(12)

    assert rig.run().word == "complete"


def test_a_topic_that_was_made_again_begins_anew() -> None:
    cluster = kafka()
    cluster.generations["orders"] = "A"
    rig = running(cluster)
    cluster.generations["orders"] = "B"
    cluster.commits["billing"] = {ORDERS_0: 0, ORDERS_1: 0, ORDERS_2: 0}
    cluster.ends = {ORDERS_0: 1, ORDERS_1: 1, ORDERS_2: 1}
    rig.run(3)

    assert rig.lag() == 3


def test_new_partitions_are_read_in_the_cycle_that_sees_their_commits() -> None:
    rig = running()
    rig.kafka.topics["orders"] = [1, 2, 3, 1]
    rig.kafka.ends["orders", 3] = 8
    rig.kafka.starts["orders", 3] = 2
    rig.kafka.commits["billing"]["orders", 3] = 4
    rig.run()

    assert rig.lag() == 13 + 4
    assert rig.asked("ListOffsets earliest") == [{1: {"orders": (3,)}}]


def test_a_new_partition_without_commit_counts_from_its_start_where_the_rule_says_earliest() -> None:
    rig = running(settings=given(offsetReset="earliest"))
    rig.kafka.topics["orders"] = [1, 2, 3, 1]
    rig.kafka.ends["orders", 3] = 8
    rig.kafka.starts["orders", 3] = 2
    rig.run(3)

    assert rig.lag() == 13 + 6
    assert rig.read("uncommitted_partitions", BILLING).values[0].value == 1


# -- groups given by name ----------------------------------------------------------------------------------


def test_a_group_given_by_name_has_a_value_though_kafka_does_not_know_it() -> None:
    cluster = kafka()
    cluster.commits.clear()
    latest, earliest = running(cluster, given()), running(cluster, given(offsetReset="earliest"))

    assert (latest.lag(), earliest.lag()) == (0, 35)
    assert latest.read("uncommitted_partitions", BILLING).values[0].value == 3


def test_a_group_given_by_name_keeps_its_value_after_its_commits_expired() -> None:
    rig = running(settings=given(offsetReset="earliest"))
    rig.kafka.commits.clear()
    rig.run(12)

    assert rig.lag() == 35


def test_a_group_given_by_a_named_metric_has_a_value_though_kafka_does_not_know_it() -> None:
    metric = {"name": "backlog", "value": "lag", "group": "Billing Service/eu", "topics": ["orders"]}
    rig = running(settings=samples.settings(metrics=[metric]))

    assert [item.value for item in rig.read("backlog").values] == [0]


def test_a_given_topic_that_is_missing_is_unknown_at_first_and_then_not_found() -> None:
    rig = running(settings=given(topics=["orders", "order"]))
    assert refusal(rig) == "lag of group billing is not known: topic order has not been seen yet"
    rig.run(2)
    with pytest.raises(NothingChosen) as caught:
        rig.read("lag", BILLING)

    assert str(caught.value) == "topic order of group billing does not exist in cluster main; its topics are orders"


def test_a_given_topic_that_is_made_later_counts() -> None:
    rig = running(settings=given(topics=["orders", "refunds"], offsetReset="earliest"))
    rig.run(4)
    rig.kafka.topics["refunds"] = [1]
    rig.kafka.ends["refunds", 0] = 100
    rig.run(3)

    assert rig.lag() == 113


def test_while_nobody_coordinates_groups_a_given_one_is_without_commits_after_three_cycles() -> None:
    cluster = kafka()
    cluster.commits.clear()
    cluster.coordinators["billing"] = NOBODY
    rig = running(cluster, given())
    assert refusal(rig) == "lag of group billing is not known: no broker coordinates group billing"
    rig.run(2)

    assert rig.lag() == 0


def test_a_given_group_whose_part_of_the_offsets_topic_is_offline_is_never_a_zero() -> None:
    cluster = kafka()
    cluster.topics["__consumer_offsets"] = [1]
    cluster.commits.clear()
    cluster.coordinators["billing"] = NOBODY
    rig = running(cluster, given())
    rig.run(9)

    assert refusal(rig) == "lag of group billing is not known: no broker coordinates group billing"


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
    with pytest.raises(NothingChosen):
        rig.read("lag", wants(group="billing", topic="refunds"))


def test_an_empty_group_has_no_stale_topics() -> None:
    cluster = two_topics()
    cluster.members["billing"] = {"orders"}
    rig = running(cluster)
    cluster.members.clear()
    rig.run(3)

    assert rig.lag() == 113


def test_a_topic_that_a_rule_gives_is_not_stale_though_no_member_reads_it() -> None:
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
    with pytest.raises(ValueUnavailable, match="groups of cluster main are not known yet"):
        rig.read("lag", BILLING)


def test_a_rule_s_topic_may_be_missing_in_a_cluster_that_does_not_have_the_group() -> None:
    elsewhere = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")],
        rules=[{"group": "billing", "topics": ["payments"]}],
    )
    rig = running(Kafka(topics={"orders": [1, 2, 3]}), elsewhere)
    rig.run(cycles=4)

    assert rig.view.missing == {}


def test_a_rule_s_topic_may_not_be_missing_in_the_cluster_that_has_the_group() -> None:
    elsewhere = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")],
        rules=[{"group": "billing", "topics": ["payments"]}],
    )
    rig = running(kafka(), elsewhere)
    rig.run(cycles=4)

    assert rig.view.missing == {"billing": ("payments",)}
