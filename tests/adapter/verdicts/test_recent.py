import numpy as np
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, tuples

from adapter.verdicts.recent import RecentCounts, Window

LARGEST = int(np.iinfo(np.int64).max)


@given(
    rows=lists(tuples(floats(0.5, 40), integers(-1, 9), integers(-1, 9)), min_size=1, max_size=200),
    seconds=floats(1, 300),
)
def test_a_window_has_the_extremes_of_all_younger_counts(rows: list[tuple[float, int, int]], seconds: float) -> None:
    recent = RecentCounts(2, 300.0)
    highest, lowest = (Window(recent, seconds, slice(None), side) for side in ("highest", "lowest"))
    past: list[tuple[float, list[int]]] = []
    now = 0.0
    for pause, *counts in rows:
        now += pause
        recent.append(now, np.array(counts))
        past.append((now, counts))
        younger = [of for at, of in past if at > now - seconds]
        for lane in (0, 1):
            known = [of[lane] for of in younger if of[lane] >= 0]
            assert highest.at(now)[lane] == max(known, default=-1)
            assert lowest.at(now)[lane] == min(known, default=LARGEST)
