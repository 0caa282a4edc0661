"""Who was asked for of late."""

from adapter.interest import INTEREST_SECONDS, Interest
from tests.samples import SteppedClock


def test_a_group_is_of_interest_for_five_minutes_after_it_was_asked_for() -> None:
    clock = SteppedClock()
    interest = Interest(clock.monotonic)
    interest.note("main", ["billing"])
    clock.seconds += INTEREST_SECONDS
    interest.note("main", ["audit"])
    assert interest.recent("main") == {"billing", "audit"}

    clock.seconds += 1
    assert interest.recent("main") == {"audit"}


def test_clusters_are_told_apart() -> None:
    interest = Interest(SteppedClock().monotonic)
    interest.note("main", ["billing"])

    assert interest.recent("other") == frozenset()


def test_what_is_no_longer_of_interest_is_forgotten() -> None:
    clock = SteppedClock()
    interest = Interest(clock.monotonic)
    for number in range(1000):
        interest.note("main", [f"group-{number}"])
        clock.seconds += 1
        interest.recent("main")

    assert len(interest._asked["main"]) <= INTEREST_SECONDS + 1
