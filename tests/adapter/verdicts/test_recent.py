from hypothesis import given
from hypothesis.strategies import floats, integers, lists, tuples

from adapter.verdicts.recent import (
    HIGHEST,
    LOWEST,
    NONE,
    changed_within,
    changes_of,
    extreme,
    make_room_for_changes,
    make_room_for_counts,
    note,
    remember,
    windows_of,
)


@given(
    rows=lists(tuples(floats(0.5, 40), integers(-1, 9), integers(-1, 9)), min_size=1, max_size=200),
    seconds=floats(1, 300),
)
def test_a_window_has_the_extremes_of_all_younger_counts(rows: list[tuple[float, int, int]], seconds: float) -> None:
    sides = [windows_of([seconds, seconds], side) for side in (HIGHEST, LOWEST)]
    past: list[tuple[float, list[int]]] = []
    now = 0.0
    for pause, *counts in rows:
        now += pause
        past.append((now, counts))
        sides = [(windows, make_room_for_counts(windows, counts, 1)) for windows, counts in sides]
        younger = [of for at, of in past if at > now - seconds]
        for at in (0, 1):
            known = [of[at] for of in younger if of[at] >= 0]
            for side, of_all in zip(sides, (max, min), strict=True):
                remember(*side, at, now, counts[at])
                assert extreme(*side, at, now) == of_all(known, default=NONE)


@given(changes=lists(tuples(floats(0.5, 40), integers(1, 9)), min_size=1, max_size=40))
def test_changes_count_as_long_as_a_period_of_their_direction_needs_them(changes: list[tuple[float, int]]) -> None:
    lists_of_two, past, now = changes_of([90.0, 10.0]), [], 0.0
    for pause, size in changes:
        now += pause
        past.append((now, size))
        lists_of_two = lists_of_two[0], make_room_for_changes(*lists_of_two, 1)
        note(*lists_of_two, 0, now, size)

        for seconds in (15.0, 90.0):
            younger = sum(size for at, size in past if at > now - seconds)
            assert changed_within(*lists_of_two, 0, now, seconds) == younger
        assert changed_within(*lists_of_two, 1, now, 90.0) == 0


def test_a_change_takes_the_place_of_one_that_is_older_than_its_own_direction_needs() -> None:
    """As in the controller, also where a policy of the other direction would still count that one."""
    of_one = changes_of([10.0])
    for now in (0.0, 20.0):
        note(*of_one, 0, now, 3)

    assert changed_within(*of_one, 0, 20.0, 100.0) == 3
