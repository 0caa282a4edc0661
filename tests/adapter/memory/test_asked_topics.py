"""Topics that the selector of an HPA names: they count for a selector that names them, and for nobody else."""

from dataclasses import replace

import pytest

from adapter.errors import AdapterError, StateNotPersistable
from adapter.lag.snapshot import State
from adapter.metrics.problems import Reason
from adapter.metrics.query import Metrics
from adapter.metrics.store import Store
from tests.support import samples
from tests.support.kafka.remembering import (
    BILLING_ORDERS,
    CYCLES_UNTIL_GONE,
    EXACT,
    Adapter,
    Shelf,
    gone,
    hpa,
    kafka,
    restarted,
)
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, ORDERS_2
from tests.support.samples import wants

AUDIT = hpa("audit", "trail", "other")


def test_a_gone_group_counts_from_its_last_commit_for_a_selector_that_names_group_and_topic() -> None:
    adapter = gone()

    assert adapter.value(**EXACT) == 13
    assert adapter.value("uncommitted_partitions", **EXACT) == 3
    assert adapter.value("records_lag_max", **EXACT) == 10

    adapter.kafka.ends[ORDERS_2] += 4
    adapter.run()
    assert adapter.value(**EXACT) == 17


@pytest.mark.parametrize("topics", [None, ["orders", "other"]])
def test_a_rule_with_a_regular_expression_hides_no_gone_group_that_an_hpa_names(topics: list[str] | None) -> None:
    shelf = Shelf()
    rules = [{"groups": "bill.*"} if topics is None else {"groups": "bill.*", "topics": topics}]
    adapter = gone(samples.settings(rules=rules), shelf)

    assert adapter.value(**EXACT) == restarted(adapter, shelf).value(**EXACT) == 13


def test_the_first_cycle_reads_what_was_never_committed() -> None:
    adapter = Adapter(kafka(), None, None, AUDIT)
    adapter.run()

    assert adapter.value(group="audit", topic=["trail", "other"]) == 3 + 8
    assert adapter.value(group="audit") == 3


def test_no_other_query_sees_it() -> None:
    adapter = gone(None, None, BILLING_ORDERS, AUDIT)

    assert adapter.reasons(group="billing") == [Reason.NOTHING_SELECTED]
    assert adapter.reasons(topic="orders") == [Reason.NOTHING_SELECTED]
    assert adapter.value(group=["billing", "audit"], topic=["orders", "trail", "other"]) == 3
    assert [item.labels["group"] for item in adapter.read("lag").values] == ["audit"]
    assert adapter.value("records_lag_max") == 3


def test_trouble_with_it_matters_to_no_other_query() -> None:
    adapter = gone()
    adapter.kafka.commit_errors = {"billing": 30}
    adapter.clock.seconds += 120
    adapter.run()

    assert adapter.reasons(**EXACT) == [Reason.NOT_READ_SINCE]
    assert adapter.value("records_lag_max") == 3
    assert adapter.read("lag").warnings == ()


@pytest.mark.parametrize(("rule", "lag"), [({"offsetReset": "latest"}, 0), ({"namespaces": ["shop"]}, 8)])
def test_what_was_never_committed_counts_whole_unless_the_rule_says_latest(rule: dict[str, object], lag: int) -> None:
    adapter = Adapter(kafka(), samples.settings(rules=[{"groups": "aud.*", **rule}]), None, AUDIT)
    adapter.run()

    assert adapter.value(group="audit", topic="other") == lag


@pytest.mark.parametrize("name", [{"group": "audit"}, {"groups": "aud.*"}])
def test_a_rule_that_lists_topics_decides_alone(name: dict[str, str]) -> None:
    adapter = Adapter(kafka(), samples.settings(rules=[{**name, "topics": ["trail"]}]), None, AUDIT)
    adapter.run()

    assert adapter.reasons(group="audit", topic="other") == [Reason.NOTHING_SELECTED]


@pytest.mark.parametrize(("rules", "lag"), [([], 0), ([{"group": "audit", "offsetReset": "earliest"}], 8)])
def test_a_named_metric_that_lists_the_topic_decides_what_was_never_committed_counts(
    rules: list[dict[str, object]], lag: int
) -> None:
    metric = {"name": "backlog", "value": "lag", "group": "audit", "topics": ["other"]}
    adapter = Adapter(kafka(), samples.settings(rules=rules, metrics=[metric]), None, AUDIT)
    adapter.run()

    assert adapter.value(group="audit", topic="other") == lag
    assert [item.milli // 1000 for item in adapter.read("backlog").values] == [lag]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"group": "adit", "topic": "other"}, Reason.GROUP_UNKNOWN),
        ({"group": "audit", "topic": "othr"}, Reason.TOPIC_UNKNOWN),
    ],
)
def test_a_typo_in_an_hpa_is_not_found_and_costs_no_row(labels: dict[str, str], reason: Reason) -> None:
    adapter = Adapter(kafka(), None, Shelf(), hpa(labels["group"], labels["topic"]))
    adapter.remember()

    assert adapter.reasons(**labels) == [reason]
    assert set(adapter.view.layout.pairs) == {("billing", "orders"), ("audit", "trail")}


def test_until_the_memory_has_been_read_an_unknown_group_is_not_called_absent() -> None:
    shelf = Shelf(error=AdapterError("the API server does not answer"))
    adapter = Adapter(kafka(), None, shelf, hpa("refunds", "orders"))
    adapter.remember()
    assert adapter.reasons(group="refunds", topic="orders") == [Reason.NOT_READ_YET]
    assert adapter.value(group="audit") == 3

    shelf.error = None
    adapter.remember(2)
    assert adapter.reasons(group="refunds", topic="orders") == [Reason.GROUP_UNKNOWN]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_topic_that_is_deleted_or_asked_for_no_longer_is_not_found(is_deleted: bool) -> None:  # noqa: FBT001
    adapter = gone()
    if is_deleted:
        del adapter.kafka.topics["orders"]
    else:
        adapter.ask()
    adapter.remember(CYCLES_UNTIL_GONE)

    assert adapter.reasons(**EXACT) == [Reason.GROUP_UNKNOWN]
    assert ("billing", "orders") not in adapter.view.layout.pairs


@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize("rounds", [0, 10])
def test_a_sleeping_group_whose_hpa_is_deleted_and_created_again_is_read_at_once(
    *, has_text: bool, rounds: int
) -> None:
    adapter = gone(None, Shelf(error=None if has_text else StateNotPersistable("403")))
    adapter.ask()
    adapter.run()
    adapter.remember(rounds)
    assert adapter.reasons(**EXACT) == [Reason.GROUP_UNKNOWN]

    adapter.ask(BILLING_ORDERS)
    adapter.run()
    assert adapter.value(**EXACT) == 13


def test_a_group_that_was_known_and_never_committed_counts_after_it_is_gone_and_after_a_restart() -> None:
    shelf, asked = Shelf(), hpa("billing", "other")
    cluster = kafka()
    cluster.commits["billing"] = {}
    before = Adapter(cluster, None, shelf, asked)
    before.remember()
    cluster.commits.pop("billing")
    before.remember(CYCLES_UNTIL_GONE)
    restarted = Adapter(cluster, None, shelf, asked)
    restarted.remember()

    assert before.value(group="billing", topic="other") == restarted.value(group="billing", topic="other") == 8


def test_from_its_first_commit_for_the_topic_on_the_group_counts_as_any_other() -> None:
    """A rule that names group and topic counts its other partitions on."""
    values = []
    for rules in ([], [{"group": "audit", "topics": ["trail", "orders"]}]):
        adapter = Adapter(kafka(), samples.settings(rules=rules), None, hpa("audit", "orders"))
        adapter.run()
        assert adapter.value(group="audit", topic="orders") == 35
        adapter.kafka.commits["audit"][ORDERS_0] = 10
        adapter.run()
        values.append(adapter.value(group="audit", topic="orders"))

    assert values == [0, 25]


@pytest.mark.parametrize(("rules", "lag"), [([], 0), ([{"group": "billing", "offsetReset": "earliest"}], 990)])
@pytest.mark.parametrize("others", [{}, {("trail", 0): 4}], ids=["group", "topic"])
def test_a_partition_that_was_never_committed_counts_the_same_after_the_commits_of_others_expired(
    rules: list[dict[str, object]], lag: int, others: dict[tuple[str, int], int]
) -> None:
    cluster = kafka()
    cluster.commits["billing"] = {ORDERS_0: 10, ORDERS_2: 5, **others}
    cluster.ends[ORDERS_1], cluster.starts[ORDERS_1] = 1000, 10
    shelf = Shelf()
    adapter = Adapter(cluster, samples.settings(rules=rules), shelf, BILLING_ORDERS)
    adapter.remember(3)
    values = {adapter.value(**EXACT)}
    cluster.commits = {**cluster.commits, "billing": others} if others else {"audit": cluster.commits["audit"]}
    adapter.remember(CYCLES_UNTIL_GONE)

    assert values | {adapter.value(**EXACT), restarted(adapter, shelf).value(**EXACT)} == {lag}


def test_a_partition_whose_log_lost_its_last_commit_counts_from_its_start() -> None:
    adapter = gone()
    adapter.kafka.ends[ORDERS_1] = 8
    adapter.run(2)

    assert adapter.value(**EXACT) == 3 + 8


def test_a_group_that_wakes_up_counts_with_and_without_its_topic() -> None:
    adapter = gone()
    adapter.kafka.coordinators["billing"] = 2
    adapter.kafka.commits["billing"] = {ORDERS_0: 9, ORDERS_1: 20, ORDERS_2: 5}
    adapter.run()

    assert adapter.value(**EXACT) == adapter.value(group="billing") == 1


@pytest.mark.parametrize(("collection", "excluded"), [("groups", "audit"), ("topics", "other")])
def test_what_the_settings_exclude_is_not_read(collection: str, excluded: str) -> None:
    adapter = Adapter(kafka(), samples.settings(collection={collection: {"exclude": [excluded]}}), None, AUDIT)
    adapter.run()

    assert excluded not in {*adapter.view.layout.groups, *adapter.view.layout.topics}


def test_an_hpa_asks_for_no_group_that_its_namespace_may_not_read() -> None:
    rules = [{"group": "billing", "namespaces": ["payments"]}]
    adapter = gone(samples.settings(rules=rules), None, hpa("billing", "orders", namespace="security"))
    assert adapter.reasons(**EXACT) == [Reason.GROUP_UNKNOWN]

    adapter = gone(samples.settings(rules=rules), None, hpa("billing", "orders", namespace="payments"))
    adapter.namespace = "payments"
    assert adapter.value(**EXACT) == 13
    adapter.namespace = "security"
    assert adapter.reasons(**EXACT) == [Reason.GROUP_UNKNOWN]


def test_a_topic_of_others_is_shown_to_no_namespace_that_reads_only_the_group() -> None:
    rules = [{"group": "audit", "namespaces": ["security"]}]
    settings = samples.settings(rules=rules, tenancy="closed")
    adapter = Adapter(kafka(), settings, None, hpa("audit", "other", namespace="security"))
    adapter.run()

    assert adapter.value(group="audit", topic="other") == 8
    adapter.namespace = "security"
    assert adapter.reasons(group="audit", topic="other") == [Reason.TOPIC_UNKNOWN]
    assert str(adapter.refusal(topic="others")).endswith("known topics are trail")


def test_the_history_does_not_count_it() -> None:
    (sample,) = gone().samples
    rows = sample.layout.pairs["billing", "orders"]

    assert {State(state).name for state in sample.state[rows].tolist()} == {"STALE"}


@pytest.mark.parametrize("labels", [{"group": "billing"}, {}])
def test_an_hpa_reveals_not_even_by_an_error_whether_a_hidden_topic_exists(labels: dict[str, str]) -> None:
    rules = [{"group": "audit", "namespaces": ["security"]}, {"group": "billing", "namespaces": ["shop"]}]
    adapter = gone(samples.settings(rules=rules, tenancy="closed"))
    adapter.namespace = "shop"
    errors = []
    for topic in ("trail", "absent"):
        adapter.ask(hpa("billing", topic))
        adapter.run()
        errors.append(str(adapter.refusal(**labels)))

    assert errors[0] == errors[1]


def test_a_topic_that_the_members_of_the_group_do_not_read_is_left_out() -> None:
    adapter = Adapter(kafka(), None, None, AUDIT)
    adapter.kafka.members["audit"] = {"trail"}
    adapter.run(8)

    assert adapter.reasons(group="audit", topic="other") == [Reason.NOTHING_SELECTED]


def test_a_topic_that_the_last_members_of_a_gone_group_did_not_read_counts() -> None:
    adapter = Adapter(kafka(), None, Shelf(), BILLING_ORDERS)
    adapter.kafka.members["billing"] = {"orders"}
    adapter.remember(8)
    del adapter.kafka.members["billing"], adapter.kafka.commits["billing"]
    adapter.ask(hpa("billing", "orders", "other"))
    adapter.remember(CYCLES_UNTIL_GONE)

    assert adapter.value(group="billing", topic=["orders", "other"]) == 13 + 8


def test_of_several_clusters_the_one_counts_where_the_group_once_committed() -> None:
    one, other = gone(), Adapter(kafka(), None, None, BILLING_ORDERS)
    other.kafka.commits["billing"] = {}
    other.clock.seconds = one.clock.seconds
    other.run()
    assert other.value(**EXACT) == 35
    store = Store(["main", "eu"])
    store.feeds[one.view.cluster].replace(one.view)
    store.feeds["eu"].replace(replace(other.view, cluster="eu"))
    (item,) = Metrics(one.settings, store, one.clock).read("kafka_consumergroup_lag", wants(**EXACT)).values

    assert (item.labels["cluster"], item.milli // 1000) == ("main", 13)


def test_new_topics_are_read_without_another_request_for_each() -> None:
    adapter = Adapter(kafka())
    adapter.run(2)
    before = adapter.counted()["commits"]
    adapter.ask(*(hpa("audit", topic) for topic in ("orders", "other")))
    adapter.run()

    assert adapter.counted()["commits"] == before
    assert adapter.value(group="audit", topic=["orders", "other"]) == 35 + 8


def test_a_gone_group_that_cannot_be_read_after_a_restart_matters_to_no_other_query() -> None:
    shelf = Shelf()
    before = gone(None, shelf)
    before.kafka.commit_errors = {"billing": 30}
    adapter = Adapter(before.kafka, None, shelf, BILLING_ORDERS)
    adapter.remember()

    assert set(adapter.reasons(**EXACT)) == {Reason.NOT_READ_YET}
    assert adapter.value("records_lag_max") == 3
