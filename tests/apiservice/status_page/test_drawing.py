"""The small line of the last hour."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from adapter.overview.trends import KEPT_SECONDS, LOOK_SECONDS, LagTrends
from apiservice.status_page.drawing import HEIGHT, SHORTEST_SECONDS, WIDTH, Drawing, drawn, span_of

MINUTE = 60.0
UNKNOWN = np.nan


def line(*lags: float, ages: Sequence[float] | None = None) -> Drawing:
    """Of lags each minute, the last one of now."""
    at = [-age for age in (ages or [MINUTE * number for number in reversed(range(len(lags)))])]
    return drawn(np.array(at, dtype=np.float64), np.array(lags, dtype=np.float64), 0.0)


def points(drawing: Drawing) -> list[list[tuple[float, float]]]:
    """Of each stroke."""
    strokes = [re.findall(r"(-?[\d.]+) (-?[\d.]+)", stroke) for stroke in drawing.path.split("M")[1:]]
    return [[(float(x), float(y)) for x, y in stroke] for stroke in strokes]


def test_the_largest_lag_is_at_the_top_and_0_at_the_bottom() -> None:
    (stroke,) = points(line(0, 50, 100))

    assert [y for _, y in stroke] == [HEIGHT - 2, HEIGHT / 2, 2]


def test_now_is_at_the_right_and_an_hour_ago_at_the_left() -> None:
    drawing = line(1, 1, ages=[3600, 0])

    assert [x for stroke in points(drawing) for x, _ in stroke] == [2, WIDTH - 2]


def test_the_line_breaks_where_the_lag_was_not_known() -> None:
    assert [len(stroke) for stroke in points(line(1, 2, UNKNOWN, 3, 4, 5))] == [2, 3]


def test_the_line_breaks_where_nobody_looked() -> None:
    assert [len(stroke) for stroke in points(line(1, 2, 3, 4, ages=[900, 840, 60, 0]))] == [2, 2]


def test_a_lag_alone_is_a_dot() -> None:
    assert line(7).path.endswith("h.1")
    assert line(7).words == "known once, so far"


def test_a_group_that_was_always_caught_up_is_a_line_at_the_bottom() -> None:
    assert {y for _, y in points(line(0, 0, 0))[0]} == {HEIGHT - 2}


def test_what_was_never_known_has_no_line() -> None:
    assert line(UNKNOWN, UNKNOWN) == Drawing("", "not known")


def test_the_words_are_of_the_time_that_is_known() -> None:
    assert line(UNKNOWN, 3, 12_000, 1).words == "at most 12,000 in 2m"


@pytest.mark.parametrize("since_look", [0.0, 30.0, LOOK_SECONDS])
@pytest.mark.parametrize("between_looks", [LOOK_SECONDS, LOOK_SECONDS + 0.01])
def test_once_the_adapter_has_looked_for_an_hour_all_lines_cover_one(between_looks: float, since_look: float) -> None:
    trends = LagTrends()
    for number in range(100):
        trends = trends.followed_by(number * between_looks, [], np.empty(0))

    assert span_of(trends.at, 99 * between_looks + since_look) == KEPT_SECONDS


def test_all_lines_cover_the_time_since_the_first_look_an_hour_at_most() -> None:
    def span(*ages: float) -> float:
        return span_of(np.array([-age for age in ages], dtype=np.float64), 0.0)

    assert (span(), span(60), span(1800, 60), span(3660, 60)) == (SHORTEST_SECONDS, SHORTEST_SECONDS, 1800.0, 3600.0)
    assert points(Drawing(drawn(np.array([-600.0, 0.0]), np.array([1.0, 1.0]), 0.0, 1200.0).path, ""))[0][0][0] == 60.0
