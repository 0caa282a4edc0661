"""Which groups there are, where to ask for them, and when one is gone."""

import pytest

from adapter.cluster.groups import (
    Directory,
    GroupStatus,
    Kind,
    Listing,
    Phase,
    asked_at,
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


def test_who_lists_a_group_is_asked_for_it() -> None:
    assert asked_at(after(BILLING_AT_2), ["billing"], BROKERS) == {2: ["billing"]}


def test_a_group_whose_coordinator_is_not_known_is_asked_for_everywhere() -> None:
    assert asked_at(Directory(), ["billing"], BROKERS) == {1: ["billing"], 2: ["billing"], 3: ["billing"]}


def test_a_group_whose_coordinator_is_no_broker_any_more_is_asked_for_everywhere() -> None:
    assert asked_at(after(BILLING_AT_2), ["billing"], (1, 3)) == {1: ["billing"], 3: ["billing"]}


def test_a_broker_without_groups_is_not_asked() -> None:
    assert asked_at(after(BILLING_AT_2), [], BROKERS) == {}


def test_who_refuses_a_group_is_not_its_coordinator_any_more() -> None:
    moved = with_coordinators(after(BILLING_AT_2), answered={}, refused={"billing"})

    assert asked_at(moved, ["billing"], BROKERS).keys() == {1, 2, 3}


def test_who_answers_for_a_group_is_its_coordinator_also_when_others_refuse() -> None:
    moved = with_coordinators(after(BILLING_AT_2), answered={"billing": 3}, refused={"billing"})

    assert moved.coordinators == {"billing": 3}


def test_a_coordinator_that_answered_is_believed_more_than_a_listing() -> None:
    moved = with_coordinators(after(BILLING_AT_2), answered={"billing": 3}, refused={"billing"})

    assert with_listings(moved, BILLING_AT_2, BROKERS, ()).coordinators == {"billing": 3}


def test_a_group_is_gone_after_three_complete_rounds_without_it() -> None:
    assert after(BILLING_AT_2, NOBODY_LISTS, NOBODY_LISTS).groups == {"billing"}
    gone = after(BILLING_AT_2, NOBODY_LISTS, NOBODY_LISTS, NOBODY_LISTS)

    assert gone.groups == frozenset()
    assert gone.coordinators == {}


def test_rounds_with_a_loading_or_a_silent_broker_prove_nothing() -> None:
    loading = {**NOBODY_LISTS, 3: LOADING}
    silent = {1: EMPTY, 2: EMPTY}

    assert after(BILLING_AT_2, *[loading, silent] * 5).groups == {"billing"}
    assert after(BILLING_AT_2, NOBODY_LISTS, loading, NOBODY_LISTS, silent).groups == {"billing"}


def test_a_listing_in_between_begins_the_count_anew() -> None:
    assert after(BILLING_AT_2, *[NOBODY_LISTS] * 2, BILLING_AT_2, *[NOBODY_LISTS] * 2).groups == {"billing"}


def test_a_group_whose_coordinator_still_returns_offsets_is_not_gone() -> None:
    assert after(BILLING_AT_2, *[NOBODY_LISTS] * 9, without_offsets=frozenset()).groups == {"billing"}


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


def test_what_is_not_watched_is_not_listed() -> None:
    listing = Listing(frozenset({"billing", "audit"}), loading=True, statuses={**STABLE, "audit": STABLE["billing"]})

    assert listing.only(lambda group: group == "billing") == Listing(frozenset({"billing"}), True, STABLE)
