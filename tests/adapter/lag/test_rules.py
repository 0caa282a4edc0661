"""What the settings give for a group, which topics still count as committed, which rows are stale."""

import pytest

from adapter.lag.rules import Absences, Watching, still_committed, treatment_of
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
    assert rules.given_topics("billing") == {"orders"}
    assert rules.given_topics("bills") == {"refunds"}
    assert rules.given_topics("other") == frozenset()


def test_a_pattern_matches_the_whole_name() -> None:
    assert watching(rules=[{"groups": "bill"}]).rule_for("billing") is None


def test_without_a_rule_groups_are_read_uncommitted() -> None:
    assert watching().isolation_of("billing") is Isolation.READ_UNCOMMITTED


def test_groups_that_a_rule_names_with_topics_are_known_without_kafka() -> None:
    rules = [*RULES, {"group": "audit", "topics": ["trail"]}, {"group": "no-topics"}]

    assert watching(rules=rules).named_groups == {"billing", "audit"}


def test_groups_of_named_metrics_are_known_without_kafka_and_their_topics_add_up() -> None:
    metrics = [backlog(topics=["orders"]), {**backlog(topics=["refunds"]), "name": "more"}]

    assert watching(metrics=metrics).named_groups == {"billing"}
    assert watching(metrics=metrics).topics_given_by_name("billing") == {"orders", "refunds"}


def test_a_named_metric_belongs_to_its_cluster_alone() -> None:
    settings = samples.settings(
        clusters=[samples.cluster("main"), samples.cluster("eu")], metrics=[backlog(cluster="eu", topics=["orders"])]
    )

    assert Watching(settings, "main").named_groups == frozenset()
    assert Watching(settings, "eu").topics_given_by_name("billing") == {"orders"}


def test_topics_of_a_rule_by_pattern_are_not_given_by_name() -> None:
    assert watching(rules=RULES).topics_given_by_name("bills") == frozenset()


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


def test_a_response_that_changes_nothing_returns_the_same_object() -> None:
    known = {"orders": 0}

    assert still_committed(known, ["orders"], can_vanish=True) is known


# -- treatment -----------------------------------------------------------------------------------------

LAYOUT = samples.layout([("billing", "orders", 0), ("billing", "refunds", 0), ("other", "orders", 0)])


def test_only_groups_of_an_earliest_rule_count_from_the_start() -> None:
    treatment = treatment_of(LAYOUT, watching(rules=RULES), {})

    assert treatment.counts_from_start.tolist() == [True, True, False]


def test_rows_beside_the_rules_topics_are_outside() -> None:
    assert treatment_of(LAYOUT, watching(rules=RULES), {}).is_outside.tolist() == [False, True, False]


def test_rows_that_no_member_reads_are_abandoned_where_members_are_known() -> None:
    members_read = {"billing": frozenset({"refunds"})}

    assert treatment_of(LAYOUT, watching(), members_read).is_abandoned.tolist() == [True, False, False]


@pytest.mark.parametrize(
    "given", [{"rules": [{"group": "billing", "topics": ["orders"]}]}, {"metrics": [backlog(topics=["orders"])]}]
)
def test_topics_given_by_name_are_never_abandoned(given: dict[str, object]) -> None:
    members_read = {"billing": frozenset[str]()}

    assert treatment_of(LAYOUT, watching(**given), members_read).is_abandoned.tolist() == [False, True, False]


def test_topics_of_a_rule_by_pattern_can_be_abandoned() -> None:
    rules = [{"groups": "bill.*", "topics": ["orders"]}]

    assert treatment_of(LAYOUT, watching(rules=rules), {"billing": frozenset()}).is_abandoned.tolist() == [
        True,
        True,
        False,
    ]
