"""What is answered: choosing by labels, folding, and which error says what."""

import pytest

from adapter.errors import MetricUnknown
from adapter.lag.snapshot import State
from adapter.metrics.problems import NoMatch, Problem, Reason, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import hint
from adapter.metrics.store import Store, silent_view
from tests.support import samples
from tests.support.kafka.questions import BILLING, SHIPPING, SILENCE, WITHOUT_ROWS, answers, items
from tests.support.samples import EPOCH, NEVER_READ, NOW, Answers, SteppedClock, row, store_of, view, wants, without

# -- folds ---------------------------------------------------------------------------------------------


def test_lag_is_one_item_per_group_and_topic_a_caught_up_one_an_explicit_0() -> None:
    reading = answers(BILLING | SHIPPING).read("lag")

    assert items(reading.values) == [
        ({"cluster": "main", "group": "billing", "topic": "orders"}, 3),
        ({"cluster": "main", "group": "billing", "topic": "refunds"}, 10),
        ({"cluster": "main", "group": "shipping", "topic": "orders"}, 0),
    ]
    assert reading.warnings == ()


def test_records_lag_max_is_one_item_for_all_that_is_chosen() -> None:
    everything = answers(BILLING | SHIPPING)

    assert items(everything.read("records_lag_max").values) == [({"cluster": "main"}, 10)]
    assert items(everything.read("records_lag_max", wants(group="billing", topic="orders")).values) == [
        ({"cluster": "main", "group": "billing", "topic": "orders"}, 3)
    ]


def test_a_group_that_lead_min_leaves_out_takes_part_in_the_labels_and_the_time() -> None:
    rows = {("billing", "orders", 0): row(7, 10), ("shipping", "orders", 0): row(None, 10).aged(5)}
    reading = answers(rows).read("lead_min", wants(topic="orders"))

    assert items(reading.values) == [({"cluster": "main", "topic": "orders"}, 7)]
    assert reading.values[0].measured_at == EPOCH - 5


def test_lead_min_of_a_group_without_any_commit_is_not_found() -> None:
    refusal = answers({("shipping", "orders", 0): row(None, 20)}).refusal("lead_min", group="shipping")

    assert refusal.problems[0].reason is Reason.NO_COMMIT
    assert str(refusal) == "no selected partition has a commit, so there is no lead"


@pytest.mark.parametrize("name", ["records-lag-max", "kafka_consumer_fetch_manager_records_lag_max"])
def test_the_names_known_from_jmx_are_aliases(name: str) -> None:
    assert answers(BILLING).value(name, wants(group="billing")) == 10


def test_names_match_in_any_case() -> None:
    settings = samples.settings(metrics=[{"name": "Billing-Backlog", "value": "lag", "group": "billing"}])
    everything = Answers([view(BILLING, settings=settings)], settings)

    assert everything.value("KAFKA_consumergroup_Records_Lag_Max") == 10
    assert everything.read("billing-backlog").metric == "Billing-Backlog"


def test_an_unknown_metric_is_refused_with_the_names_that_are_served() -> None:
    with pytest.raises(MetricUnknown, match=r"no metric 'lag' is served; the metrics are kafka_consumergroup_lag, "):
        Metrics(samples.settings(), store_of(), SteppedClock()).read("lag", ())


def test_discovery_lists_the_table_the_aliases_and_the_named_metrics() -> None:
    settings = samples.settings(metrics=[{"name": "Backlog", "value": "lag", "group": "billing"}])

    assert Metrics(settings, store_of(), SteppedClock()).names == (
        "kafka_consumergroup_lag",
        "kafka_consumergroup_records_lag_max",
        "kafka_consumergroup_lead_min",
        "kafka_consumergroup_uncommitted_partitions",
        "kafka_consumergroup_replicas",
        "kafka_consumergroup_required_replicas",
        "kafka_consumergroup_required_replicas_forecast",
        "kafka_consumergroup_capacity",
        "kafka_consumergroup_lag_seconds",
        "kafka_consumergroup_production_rate",
        "kafka_consumergroup_consumption_rate",
        "kafka_consumergroup_members",
        "kafka_consumergroup_seconds_to_data_loss",
        "records-lag-max",
        "kafka_consumer_fetch_manager_records_lag_max",
        "Backlog",
    )


# -- choosing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requirements", "reason", "sentence"),
    [
        (wants(group="biling"), Reason.GROUP_UNKNOWN, "no group 'biling' is known; known groups are billing, …"),
        (wants(topic="order"), Reason.TOPIC_UNKNOWN, "no topic 'order' is known; known topics are orders, …"),
        (wants(cluster="mein"), Reason.CLUSTER_UNKNOWN, "no cluster 'mein' is known; known clusters are main"),
        (
            wants(group="shipping", topic="refunds"),
            Reason.NOTHING_SELECTED,
            f"the selector matches nothing of group 'shipping' {WITHOUT_ROWS}",
        ),
        (
            wants(group="billing", namespace="x"),
            Reason.NOTHING_SELECTED,
            f"the selector matches nothing of group 'billing' {WITHOUT_ROWS}",
        ),
        (
            wants(partition="7"),
            Reason.NOTHING_SELECTED,
            f"the selector matches nothing {WITHOUT_ROWS}",
        ),
    ],
)
def test_choosing_nothing_is_not_found_and_names_what_exists_nearby(
    requirements: tuple[Requirement, ...], reason: Reason, sentence: str
) -> None:
    refusal = answers(BILLING | SHIPPING).refusal("lag", requirements)

    assert isinstance(refusal, NoMatch)
    assert ([problem.reason for problem in refusal.problems], str(refusal)) == ([reason], sentence)


@pytest.mark.parametrize("metric", ["lag", "records_lag_max", "lead_min", "uncommitted_partitions"])
def test_where_no_group_is_known_nothing_is_found(metric: str) -> None:
    assert answers({}).reasons(metric) == [Reason.GROUP_UNKNOWN]


# -- unknown, too old, contradictory -----------------------------------------------------------------------


def test_a_value_is_served_until_max_age_and_then_refused_with_a_reason() -> None:
    late = answers(
        BILLING | {("billing", "orders", 2): row(1, 2), ("billing", "orders", 3): row(1, 2).aged(95).unknown(SILENCE)}
    )
    refusal = late.refusal("lag", wants(group="billing"))

    assert isinstance(refusal, ValueUnavailable)
    assert refusal.problems[0].reason is Reason.NOT_READ_SINCE
    assert refusal.problems[0].since == EPOCH - 95
    assert str(refusal) == f"lag of group billing is not known: orders/3 is 95 s old, limit 60 s: {SILENCE}"


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("lag", "lag"),
        ("records_lag_max", "largest lag"),
        ("lead_min", "lead"),
        ("uncommitted_partitions", "number of uncommitted partitions"),
    ],
)
def test_one_partition_that_was_never_read_refuses_the_whole_answer(metric: str, words: str) -> None:
    refusal = answers(BILLING | {("billing", "orders", 2): NEVER_READ}).refusal(metric, wants(group="billing"))

    assert refusal.problems == (
        Problem(Reason.NOT_READ_YET, f"orders/2: {SILENCE}", "main", "billing", "orders", partition=2),
    )
    assert str(refusal) == f"{words} of group billing is not known: orders/2: {SILENCE}"


def test_a_selector_beside_the_unknown_partition_has_its_answer() -> None:
    rows = answers(BILLING | {("billing", "orders", 2): NEVER_READ})

    assert rows.value("lag", wants(group="billing", topic="refunds")) == 10


def test_a_log_start_beyond_the_last_known_end_is_refused() -> None:
    refusal = answers({("billing", "orders", 0): row(7, 10, 11)}).refusal(group="billing")

    assert refusal.problems[0].reason is Reason.START_BEYOND_END
    words = "orders/0: its log start is beyond the last known log end"
    assert str(refusal) == f"lag of group billing is not known: {words}"


def test_a_refusal_has_the_problems_of_all_that_is_selected_and_the_first_is_its_text() -> None:
    ahead = {("billing", "refunds", 0): row(500, 10, state=State.AHEAD)}
    missing = [samples.missing("billing", "gone"), samples.missing("billing", "unasked")]
    made = Answers([view(BILLING | ahead | {("billing", "orders", 0): NEVER_READ}, problems=missing)])
    refusal = made.refusal("lag", (*wants(group="billing"), *without(topic="unasked")))

    assert [(problem.reason, problem.place) for problem in refusal.problems] == [
        (Reason.TOPIC_MISSING, "cluster=main,group=billing,topic=gone"),
        (Reason.NOT_READ_YET, "cluster=main,group=billing,topic=orders,partition=0"),
        (Reason.COMMIT_BEYOND_END, "cluster=main,group=billing,topic=refunds,partition=0"),
    ]
    assert str(refusal).startswith(refusal.problems[0].text)


def test_a_name_that_is_not_known_is_the_place_of_the_problem() -> None:
    assert answers(BILLING).refusal("lag", wants(topic="order")).problems[0].place == "topic=order"


def test_the_partition_that_a_problem_names_is_one_that_is_selected() -> None:
    rows = {("billing", "orders", number): row(1, 2).aged(70 - number) for number in range(3)}
    (problem,) = answers(rows).refusal("lag", wants(group="billing", partition=["1", "2"])).problems

    assert (problem.partition, problem.since) == (1, EPOCH - 69)


def test_a_commit_beyond_the_end_is_a_commit_all_the_same_and_makes_the_lag_unknown() -> None:
    rows = {("billing", "orders", 0): row(500, 10, state=State.AHEAD), ("billing", "orders", 1): row(None, 10)}
    sentence = "lag of group billing is not known: orders/0: committed 500 is beyond the log end 10"

    assert answers(rows).value("uncommitted_partitions", wants(group="billing")) == 1
    assert str(answers(rows).refusal(group="billing")) == sentence


@pytest.mark.parametrize("metric", ["records_lag_max", "lead_min"])
def test_a_metric_that_is_one_item_is_whole_or_refused_without_selector_too(metric: str) -> None:
    assert answers(BILLING | {("shipping", "orders", 0): NEVER_READ}).reasons(metric) == [Reason.NOT_READ_YET]


def test_a_missing_commit_that_is_too_old_refuses_lead_min() -> None:
    rows = BILLING | {("billing", "orders", 2): row(None, 5).aged(95).unknown(SILENCE)}

    assert answers(rows).reasons("lead_min", group="billing") == [Reason.NOT_READ_SINCE]


def test_an_answer_of_lead_min_ends_when_a_missing_commit_becomes_too_old() -> None:
    rows = BILLING | {("billing", "orders", 2): row(None, 5).aged(50).unknown(SILENCE)}

    assert answers(rows).read("lead_min", wants(group="billing")).valid_until == NOW - 50 + 60


def test_where_no_cycle_ended_since_the_refusal_says_so() -> None:
    one = answers({("billing", "orders", 0): row(7, 10).aged(61)})

    assert str(one.refusal(group="billing")).endswith(": no cycle has ended since")


def test_a_group_whose_commits_were_never_read_is_unknown_not_missing() -> None:
    unread = Answers([view(BILLING, problems=[samples.unread("shipping")])])

    assert unread.reasons("lag", wants(group="shipping")) == [Reason.NOT_READ_YET]
    assert unread.value("records_lag_max", wants(group="billing")) == 10
    assert unread.reasons("records_lag_max", group=["billing", "shipping"]) == [Reason.NOT_READ_YET]


# -- rules, stale rows, named metrics, missing topics --------------------------------------------------------


def named(**more: object) -> dict[str, object]:
    return {"name": "backlog", "value": "lag", "group": "billing", **more}


@pytest.mark.parametrize(
    ("metric", "lag"), [(named(), 3), (named(topics=["refunds"]), 10), (named(topics=["orders"], cluster="main"), 3)]
)
def test_a_named_metrics_own_topics_come_before_the_rules(metric: dict[str, object], lag: int) -> None:
    settings = samples.settings(rules=[{"group": "billing", "topics": ["orders"]}], metrics=[metric])

    assert Answers([view(BILLING | SHIPPING, settings=settings)], settings).value("backlog") == lag


def test_a_named_metric_takes_a_selector_as_well() -> None:
    settings = samples.settings(metrics=[named()])
    made = Answers([view(BILLING, settings=settings)], settings)

    assert made.value("backlog", wants(topic="refunds")) == 10
    assert made.reasons("backlog", group="shipping") == [Reason.GROUP_UNKNOWN]


def test_a_named_metric_is_whole_or_refused() -> None:
    settings = samples.settings(metrics=[named()])
    rows = BILLING | {("billing", "orders", 2): NEVER_READ}

    assert Answers([view(rows, settings=settings)], settings).reasons("backlog") == [Reason.NOT_READ_YET]


def test_a_named_metric_of_one_cluster_does_not_wait_for_another() -> None:
    settings = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")], metrics=[named(cluster="main", topics=["orders"])]
    )
    made = Answers([view(BILLING, settings=settings), silent_view("eu", "nobody answers")], settings)

    assert made.value("backlog") == 3


def test_a_given_topic_that_does_not_exist_is_not_found_and_named_with_its_neighbours() -> None:
    settings = samples.settings(rules=[{"group": "billing", "topics": ["orders", "refund"]}])
    made = Answers([view(BILLING, settings=settings, problems=[samples.missing("billing", "refund")])], settings)
    refusal = made.refusal("lag", wants(group="billing"))

    assert isinstance(refusal, NoMatch)
    assert str(refusal) == ("topic refund of group billing does not exist in cluster main; its topics are refunds, …")
    assert made.value("lag", wants(group="billing", topic="orders")) == 3


def test_a_named_metric_with_topics_answers_although_another_given_topic_is_missing() -> None:
    settings = samples.settings(
        rules=[{"group": "billing", "topics": ["orders", "gone"]}],
        metrics=[named(topics=["orders"]), {**named(topics=["gone"]), "name": "other"}, {**named(), "name": "all"}],
    )
    made = Answers([view(BILLING, settings=settings, problems=[samples.missing("billing", "gone")])], settings)

    assert made.value("backlog") == 3
    for name in ("other", "all"):
        assert made.reasons(name) == [Reason.TOPIC_MISSING]


# -- times and versions ------------------------------------------------------------------------------------


def test_an_item_carries_the_time_of_its_oldest_part_and_an_answer_ends_when_that_is_too_old() -> None:
    rows = BILLING | {("billing", "orders", 1): row(20, 20).aged(25)}
    reading = answers(rows).read("lag", wants(group="billing"))

    assert [item.measured_at for item in reading.values] == [EPOCH - 25, EPOCH]
    assert reading.valid_until == NOW - 25 + 60


def test_the_version_changes_with_every_new_view_and_is_in_the_answer() -> None:
    store = Store(["main"])
    metrics = Metrics(samples.settings(), store, SteppedClock())
    before = metrics.version
    store.feeds["main"].replace(view(BILLING))

    assert metrics.version != before
    assert metrics.read("kafka_consumergroup_lag", ()).version == metrics.version


@pytest.mark.parametrize("typo", ["paymentz-consumer-4711", "payments-consumr-4711", "payments-consumer-47111"])
def test_a_misspelt_name_is_compared_with_all_groups_however_many_there_are(typo: str) -> None:
    names = [f"payments-consumer-{number:04}" for number in range(5000)] + [f"mail-{n}" for n in range(500)]

    assert "payments-consumer-4711" in hint(typo, names, "known groups are")
