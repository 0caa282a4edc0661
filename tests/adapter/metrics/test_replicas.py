"""Reads of the number of replicas: by which settings, of which partitions, and why there is none."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from adapter.lag.snapshot import State
from adapter.metrics.problems import NoMatch, Reason, ValueUnavailable
from adapter.metrics.requirement import Requirement
from adapter.metrics.store import ClusterView
from adapter.settings.models import Settings
from adapter.verdicts.assignment import Sharing
from tests.support import samples
from tests.support.samples import EPOCH, NEVER_READ, NOW, Answers, Key, Row, row, view, wants

ORDERS: dict[Key, Row] = {("billing", "orders", number): row(0, 100 * number) for number in range(4)}
"""A lag of 600 in four partitions, of which three have some."""
REFUNDS: dict[Key, Row] = {("billing", "refunds", number): row(0, 100) for number in range(3)}
BILLING = wants(group="billing")


def named(**keys: object) -> Settings:
    """A named metric `r` of the topic orders."""
    metric = {"name": "r", "value": "replicas", "group": "billing", "topics": ["orders"]}
    return samples.settings(metrics=[metric | {"replicas": {"lagPerReplica": 100, **keys}}])


def by_rule(**keys: object) -> Settings:
    rule = {"group": "billing", "topics": ["orders", "refunds"]}
    return samples.settings(rules=[rule | {"replicas": {"lagPerReplica": 100, **keys}}])


def answers(settings: Settings, rows: Mapping[Key, Row] = ORDERS, **parts: object) -> Answers:
    return Answers([replace(view(rows, settings=settings), **parts)], settings)  # type: ignore[arg-type]


def watched(settings: Settings, seconds: float, moved: Mapping[int, float]) -> ClusterView:
    """Partitions of orders, watched for so long; those in `moved` have moved so many seconds ago."""
    made = view(ORDERS, settings=settings)
    made.snapshot.watched_since[:] = NOW - seconds
    for partition, ago in moved.items():
        made.snapshot.moved_at[partition] = NOW - ago
    return made


def test_a_rule_and_a_named_metric_give_one_item_with_whole_replicas_and_the_oldest_time() -> None:
    rows = ORDERS | {("billing", "orders", 1): row(0, 100).aged(7)}
    (item,) = answers(named(), rows).read("r").values
    (of_rule,) = answers(by_rule(), rows | REFUNDS).read("replicas", BILLING).values

    assert item == ({"cluster": "main", "group": "billing", "topic": "orders"}, 4000, EPOCH - 7)
    assert of_rule == ({"cluster": "main", "group": "billing"}, 4000, EPOCH - 7)


def test_all_topics_are_added_up_and_limited_together() -> None:
    together = answers(by_rule(), ORDERS | REFUNDS, sharing_of=lambda _: Sharing.TOGETHER)

    assert together.value("replicas", BILLING) == 7
    assert answers(by_rule(), ORDERS | REFUNDS).value("replicas", BILLING) == 4


def test_a_selector_chooses_among_the_topics_and_partitions_of_the_rule() -> None:
    both = answers(by_rule(), ORDERS | REFUNDS)

    assert both.value("replicas", wants(group="billing", topic="refunds")) == 3
    assert both.value("replicas", wants(group="billing", topic="orders", partition=["0", "1"])) == 1


def test_other_partitions_than_the_listed_ones_do_not_count_even_if_they_are_unknown() -> None:
    rows = ORDERS | {("billing", "orders", 3): NEVER_READ}

    assert answers(named(partitions="0 - 1, 2"), rows).value("r") == 3
    assert isinstance(answers(named(partitions="2-3"), rows).refusal("r"), ValueUnavailable)


def test_partitions_that_do_not_exist_are_not_found() -> None:
    assert isinstance(answers(named(partitions="7-9")).refusal("r"), NoMatch)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (NEVER_READ, Reason.NOT_READ_YET),
        (row(0, 300).aged(61), Reason.NOT_READ_SINCE),
        (row(500, 300, state=State.AHEAD), Reason.COMMIT_BEYOND_END),
    ],
)
def test_what_is_not_known_well_enough_for_the_lag_is_not_known_for_the_replicas(changed: Row, reason: Reason) -> None:
    rows = ORDERS | {("billing", "orders", 3): changed}

    assert answers(named(), rows).reasons("r") == answers(named(), rows).reasons("lag", BILLING) == [reason]
    assert str(answers(named(), rows).refusal("r")).startswith(
        "number of replicas of group billing is not known: orders/3"
    )


@pytest.mark.parametrize(("reset", "replicas"), [("latest", 0), ("earliest", 4)])
def test_a_partition_that_was_never_committed_counts_by_its_rule(reset: str, replicas: int) -> None:
    rule = {"group": "billing", "topics": ["orders"], "offsetReset": reset, "replicas": {"lagPerReplica": 100}}
    settings = samples.settings(rules=[rule])
    rows = {key: row(None, one.log_end) for key, one in ORDERS.items()}

    assert answers(settings, rows).value("replicas", BILLING) == replicas


def test_records_that_retention_has_deleted_are_no_lag() -> None:
    rows = {("billing", "orders", 0): row(0, 1000, log_start=950, state=State.TRUNCATED)}

    assert answers(named(allowIdleConsumers=True), rows).value("r") == 1


# -- why there is none ---------------------------------------------------------------------------------


def test_a_group_without_settings_is_refused_with_what_to_configure() -> None:
    refusal = answers(samples.settings()).refusal("replicas", BILLING)

    assert isinstance(refusal, NoMatch)
    assert refusal.problems[0].reason is Reason.NOT_CONFIGURED
    assert str(refusal) == (
        "no number of replicas is defined for group billing: add `replicas` to its rule in the adapter's settings, or"
        " use a named metric with `value: replicas`"
    )


@pytest.mark.parametrize("selector", [(), wants(topic="orders"), wants(group=["billing", "shipping"])])
def test_a_selector_that_does_not_name_one_group_is_refused(selector: tuple[Requirement, ...]) -> None:
    refusal = answers(by_rule()).refusal("replicas", selector)

    assert refusal.problems[0].reason is Reason.NOT_ONE_GROUP
    assert str(refusal) == "the selector must name one group, as group=billing does: replicas are of a single group"


def test_a_group_of_two_clusters_needs_the_cluster_in_the_selector() -> None:
    rules = [{"group": "billing", "topics": ["orders"], "replicas": {"lagPerReplica": 100}}]
    settings = samples.settings(clusters=[samples.cluster("eu"), samples.cluster("us")], rules=rules)
    both = Answers([view(ORDERS, name, settings) for name in ("eu", "us")], settings)

    assert str(both.refusal("replicas", BILLING)) == (
        "the group is in the clusters eu, us: the selector must name one of them as cluster"
    )
    assert both.value("replicas", wants(group="billing", cluster="us")) == 4


def test_nothing_shows_that_a_group_is_configured_that_the_reader_may_not_see() -> None:
    rule = {"group": "billing", "namespaces": ["payments"], "replicas": {"lagPerReplica": 100}}
    hidden = answers(samples.settings(rules=[rule]))
    hidden.namespace = "shop"

    assert str(hidden.refusal("replicas", BILLING)) == "no group 'billing' is known"


# -- movement ------------------------------------------------------------------------------------------


def excluding(**parts: object) -> Settings:
    return named(excludePersistentLag=True, **parts)


def test_partitions_whose_commit_stands_still_count_only_for_the_activation() -> None:
    settings = excluding()

    assert Answers([watched(settings, 1000, {1: 5, 2: 5})], settings).value("r") == 3
    assert Answers([watched(settings, 1000, {})], settings).value("r") == 1
    assert Answers([watched(named(), 1000, {})], named()).value("r") == 4


def test_the_number_is_refused_while_it_depends_on_movement_that_was_not_watched_for_long_enough() -> None:
    settings = excluding()
    refusal = Answers([watched(settings, 30, {1: 5, 2: 5})], settings).refusal("r")

    assert isinstance(refusal, ValueUnavailable)
    assert refusal.problems[0].reason is Reason.MOVEMENT_UNKNOWN
    assert str(refusal) == (
        "number of replicas of group billing is not known: orders/3 has not been watched for 80 s, so whether its"
        " commit moves is not known yet"
    )


def test_movement_that_makes_no_difference_need_not_be_known() -> None:
    settings = excluding(lagPerReplica=1000)

    assert Answers([watched(settings, 0, {})], settings).value("r") == 1


def test_a_group_whose_members_change_keeps_its_number() -> None:
    """For 200 s no commit moves."""
    settings = excluding()
    before, during = watched(settings, 1000, {1: 5, 2: 5}), watched(settings, 1200, {1: 205, 2: 205})
    resting = replace(during, judged_at={"billing": NOW - 200})

    assert Answers([before], settings).value("r") == Answers([resting], settings).value("r") == 3
    assert Answers([during], settings).value("r") == 1
