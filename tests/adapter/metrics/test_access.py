"""A group that a namespace may not read does not exist for it."""

import pytest

from adapter.errors import MetricUnknown
from adapter.lag.snapshot import State
from adapter.metrics.access import Access
from adapter.metrics.problems import Reason
from tests.support import samples
from tests.support.samples import NEVER_READ, Answers, Key, Row, row, view, without

ROWS: dict[Key, Row] = {
    ("billing", "orders", 0): row(7, 10),
    ("shipping", "parcels", 0): row(5, 9),
    ("audit", "trail", 0): row(1, 2),
}
RULES: list[dict[str, object]] = [
    {"group": "billing", "namespaces": ["payments", "team-.*"]},
    {"groups": "ship.*", "namespaces": ["logistics"]},
]
BACKLOG = {"name": "backlog", "value": "lag", "group": "billing"}


def read_from(namespace: str, rows: dict[Key, Row] | None = None, **parts: object) -> Answers:
    settings = samples.settings(**{"rules": RULES, **parts})
    return Answers([view(ROWS if rows is None else rows, settings=settings)], settings, namespace=namespace)


def groups(answers: Answers) -> list[str]:
    return sorted(item.labels["group"] for item in answers.read("lag").values)


@pytest.mark.parametrize(
    ("namespace", "tenancy", "expected"),
    [
        ("payments", "open", ["audit", "billing"]),
        ("team-a", "open", ["audit", "billing"]),
        ("my-team-a", "open", ["audit"]),
        ("logistics", "open", ["audit", "shipping"]),
        ("logistics", "closed", ["shipping"]),
    ],
)
def test_a_listing_has_the_groups_of_the_namespace(namespace: str, tenancy: str, expected: list[str]) -> None:
    assert groups(read_from(namespace, tenancy=tenancy)) == expected


def test_in_a_closed_tenancy_a_namespace_that_nobody_lists_reads_nothing() -> None:
    assert str(read_from("default", tenancy="closed").refusal()) == "no consumer group is known"


def test_the_first_rule_that_matches_decides_whoever_reads() -> None:
    """`namespaces` is no condition of the match."""
    rules = [{"group": "billing", "namespaces": ["payments"]}, {"groups": ".*", "namespaces": ["default"]}]

    assert groups(read_from("default", rules=rules)) == ["audit", "shipping"]


@pytest.mark.parametrize("metric", ["lag", "records_lag_max", "lead_min", "uncommitted_partitions"])
@pytest.mark.parametrize("labels", [{"group": "shipping"}, {"group": "shipping", "topic": "parcels"}])
def test_a_group_of_others_is_refused_in_the_words_of_one_that_does_not_exist(
    metric: str, labels: dict[str, str]
) -> None:
    there, absent = read_from("payments"), read_from("payments", {k: v for k, v in ROWS.items() if k[0] != "shipping"})

    assert str(there.refusal(metric, **labels)) == str(absent.refusal(metric, **labels))
    assert there.reasons(metric, **labels) == [Reason.GROUP_UNKNOWN]


@pytest.mark.parametrize("labels", [{"topic": "parcels"}, {"group": "billing", "topic": "parcels"}])
def test_a_topic_that_only_others_read_is_not_named(labels: dict[str, str]) -> None:
    assert str(read_from("payments").refusal(**labels)).endswith("known topics are orders, trail")


def test_sums_leave_out_the_groups_of_others() -> None:
    assert read_from("payments").value("records_lag_max") == 3
    assert read_from("logistics").value("records_lag_max") == 4
    assert sum(item.milli // 1000 for item in read_from("payments").read("lag", without(topic="none")).values) == 4


def test_trouble_with_the_groups_of_others_is_not_shown() -> None:
    """Neither in a listing's warnings nor as a reason to refuse a sum."""
    settings = samples.settings(rules=[*RULES, {"group": "secret", "topics": ["gone"], "namespaces": ["logistics"]}])
    troubled = view(
        {**ROWS, ("shipping", "parcels", 0): NEVER_READ},
        settings=settings,
        problems=[samples.unread("shippers"), samples.missing("secret", "gone")],
        assumed=frozenset({"secret"}),
    )
    mine, theirs = (Answers([troubled], settings, namespace=name) for name in ("payments", "logistics"))

    assert mine.read("lag").warnings == ()
    assert mine.value("records_lag_max") == 3
    assert len(theirs.read("lag").warnings) == 3
    assert theirs.reasons("records_lag_max") == [Reason.TOPIC_MISSING, Reason.NOT_READ_YET, Reason.NOT_READ_YET]
    assert {each.group for each in theirs.refusal("records_lag_max").problems} == {"shipping", "shippers", "secret"}
    assert str(mine.refusal(group="secret")).endswith("known groups are audit, billing")


def test_a_commit_beyond_the_end_of_others_is_not_shown() -> None:
    ahead = {**ROWS, ("shipping", "parcels", 0): row(500, 10, state=State.AHEAD)}

    assert read_from("payments", ahead).read("lag").warnings == ()


def test_a_named_metric_without_namespaces_is_read_by_those_who_may_read_its_group() -> None:
    assert read_from("payments", metrics=[BACKLOG]).value("backlog") == 3
    with pytest.raises(MetricUnknown):
        read_from("logistics", metrics=[BACKLOG]).read("backlog")


def test_a_named_metric_with_namespaces_shows_its_group_to_them_and_nothing_else() -> None:
    metrics = [{**BACKLOG, "namespaces": ["logistics"]}]
    logistics = read_from("logistics", metrics=metrics, tenancy="closed")

    assert logistics.value("backlog") == 3
    assert groups(logistics) == ["shipping"]
    assert str(logistics.refusal("backlog", topic="trail")).endswith("known topics are orders")
    with pytest.raises(MetricUnknown) as unknown:
        read_from("payments", metrics=metrics).read("backlog")
    assert str(unknown.value).count("backlog") == 1, "as it was asked for, but not among those there are"


def test_a_named_metric_with_topics_names_no_other_topics_of_its_group() -> None:
    rows = {**ROWS, ("billing", "salaries", 0): row(1, 2)}
    metrics = [{**BACKLOG, "topics": ["orders"], "namespaces": ["logistics"]}]
    refusal = read_from("logistics", rows, metrics=metrics).refusal("backlog", topic="salary")

    assert str(refusal).endswith("known topics are orders")


def test_without_namespaces_in_the_settings_nothing_is_restricted() -> None:
    assert Access(samples.settings()).audience_of("default") is None
    assert Access(samples.settings(tenancy="closed")).audience_of("default") == frozenset()


def test_the_first_read_after_a_change_of_groups_costs_more_the_more_rules_there_are() -> None:
    """So that with thousands of them, another thread than the one that answers makes the view."""
    efforts = []
    for count in (1, 10_000):
        rules = [{"groups": f"team-{number}-.*", "namespaces": ["shop"]} for number in range(count)]
        settings = samples.settings(rules=rules)
        access = Access(settings)
        efforts.append(access.effort([view(ROWS, settings=settings)], access.audience_of("shop"), None))

    assert efforts[1] > 50 * efforts[0] > 0
