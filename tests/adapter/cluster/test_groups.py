"""When a group is stable, and when one that no broker lists is gone."""

import pytest

from adapter.cluster.groups import (
    Directory,
    GroupStatus,
    Kind,
    Listing,
    Phase,
    with_coordinators,
    with_listings,
)

BROKERS = (1, 2, 3)
EMPTY = Listing(frozenset(), loading=False)
LOADING = Listing(frozenset(), loading=True)
BILLING_AT_2 = {1: EMPTY, 2: Listing(frozenset({"billing"}), loading=False), 3: EMPTY}
NOBODY_LISTS = dict.fromkeys(BROKERS, EMPTY)
NO_OFFSETS = frozenset({"billing"})


def after(*rounds: dict[int, Listing], without_offsets: frozenset[str] = NO_OFFSETS) -> Directory:
    known = Directory()
    for listings in rounds:
        known = with_listings(known, listings, BROKERS, without_offsets)
    return known


STABLE = {"billing": GroupStatus(Kind.CLASSIC, Phase.STABLE)}
STABLE_AT_2 = {**BILLING_AT_2, 2: Listing(frozenset({"billing"}), False, STABLE)}


def test_a_group_is_stable_while_the_newest_listing_of_its_coordinator_says_so() -> None:
    assert after(STABLE_AT_2).statuses == STABLE
    assert after(STABLE_AT_2, BILLING_AT_2).statuses == {}
    assert after(STABLE_AT_2, NOBODY_LISTS).statuses == {}


@pytest.mark.parametrize("answered", [{1: EMPTY, 3: EMPTY}, {**NOBODY_LISTS, 2: LOADING}])
def test_a_coordinator_that_does_not_report_leaves_its_groups_unchanged(
    answered: dict[int, Listing],
) -> None:
    assert after(STABLE_AT_2, answered).statuses == STABLE


def test_a_group_that_another_broker_lists_is_as_stable_as_that_one_says() -> None:
    moved = {1: EMPTY, 3: Listing(frozenset({"billing"}), loading=False)}

    assert after(STABLE_AT_2, moved).statuses == {}


def test_a_group_is_gone_though_a_broker_that_never_coordinated_it_is_silent() -> None:
    known = after(BILLING_AT_2)
    for _ in range(2):
        known = with_listings(known, {1: EMPTY, 2: EMPTY}, BROKERS, NO_OFFSETS, leader_of=lambda _: 2)
    assert known.groups == {"billing"}

    assert with_listings(known, {1: EMPTY, 2: EMPTY}, BROKERS, NO_OFFSETS, leader_of=lambda _: 2).groups == frozenset()


def test_a_group_is_not_gone_where_another_broker_should_coordinate_it() -> None:
    known = after(BILLING_AT_2)
    for _ in range(5):
        known = with_listings(known, {1: EMPTY, 2: EMPTY}, BROKERS, NO_OFFSETS, leader_of=lambda _: 3)

    assert known.groups == {"billing"}


def test_a_group_is_not_gone_while_its_coordinator_is_silent_or_loading() -> None:
    assert after(BILLING_AT_2, *[{1: EMPTY, 3: EMPTY}] * 5).groups == {"billing"}
    assert after(BILLING_AT_2, *[{1: EMPTY, 2: LOADING, 3: EMPTY}] * 5).groups == {"billing"}


def test_a_group_whose_coordinator_is_not_known_is_gone_only_where_every_broker_lists_its_groups() -> None:
    moved = with_coordinators(after(BILLING_AT_2), answered={}, refused={"billing"})
    for _ in range(5):
        moved = with_listings(moved, {1: EMPTY, 2: EMPTY}, BROKERS, NO_OFFSETS, leader_of=lambda _: 2)

    assert moved.groups == {"billing"}
