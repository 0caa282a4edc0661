"""What the settings give for a group, which topics still count as committed, which rows are stale."""

import pytest

from adapter.lag.rules import NO_RULE, Absences, Watching, still_committed
from adapter.settings.models import Isolation
from tests.support import samples

RULES = [
    {"group": "billing", "topics": ["orders"], "offsetReset": "earliest"},
    {"groups": "bill.*", "topics": ["refunds"], "isolation": "read_committed"},
    {"groups": ".*"},
]


def watching(**parts: object) -> Watching:
    return samples.watching(samples.settings(**parts))


def backlog(**more: object) -> dict[str, object]:
    return {"name": "backlog", "value": "lag", "group": "billing", **more}


def test_the_first_rule_that_fits_counts() -> None:
    rules = watching(rules=RULES)

    assert rules.isolation_of("billing") is Isolation.READ_UNCOMMITTED
    assert rules.isolation_of("bills") is Isolation.READ_COMMITTED
    assert rules.given("billing").topics == {"orders"}
    assert rules.given("bills").topics == {"refunds"}
    assert rules.given("other").topics == frozenset()


def test_a_pattern_matches_the_whole_name() -> None:
    assert watching(rules=[{"groups": "bill"}]).given("billing").rule is NO_RULE


def test_without_a_rule_groups_are_read_uncommitted() -> None:
    assert watching().isolation_of("billing") is Isolation.READ_UNCOMMITTED


def test_groups_that_a_rule_names_with_topics_are_known_without_kafka() -> None:
    rules = [*RULES, {"group": "audit", "topics": ["trail"]}, {"group": "no-topics"}]

    assert watching(rules=rules).named_groups == {"billing", "audit"}


def test_groups_of_named_metrics_are_known_without_kafka_and_their_topics_add_up() -> None:
    metrics = [backlog(topics=["orders"]), {**backlog(topics=["refunds"]), "name": "more"}]

    assert watching(metrics=metrics).named_groups == {"billing"}
    assert watching(metrics=metrics).given("billing").topics_by_name == {"orders", "refunds"}


def test_a_named_metric_belongs_to_its_cluster_alone() -> None:
    settings = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")], metrics=[backlog(cluster="eu", topics=["orders"])]
    )

    assert Watching(settings, "main").named_groups == frozenset()
    assert Watching(settings, "eu").given("billing").topics_by_name == {"orders"}


def test_topics_of_a_rule_by_pattern_are_not_given_by_name() -> None:
    assert watching(rules=RULES).given("bills").topics_by_name == frozenset()


# -- still committed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        ({}, ["orders"], {"orders": 0}),
        ({"orders": 0}, ["orders", "refunds"], {"orders": 0, "refunds": 0}),
        ({"orders": 0}, [], {"orders": 1}),
        ({"orders": 1}, [], {"orders": 2}),
        ({"orders": 2}, [], {}),
        ({"orders": 2, "refunds": 0}, ["orders"], {"orders": 0, "refunds": 1}),
    ],
)
def test_a_topic_is_dropped_after_three_answers_without_it(
    known: Absences, seen: list[str], expected: Absences
) -> None:
    assert still_committed(known, seen, can_vanish=True) == expected


def test_answers_for_a_group_that_is_not_listed_drop_nothing() -> None:
    known: Absences = {"orders": 0}
    for _ in range(9):
        known = still_committed(known, [], can_vanish=False)

    assert known == {"orders": 1}
