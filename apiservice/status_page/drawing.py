"""Pure: the lag of the last hour as a small line, which breaks where the lag was not known."""

from dataclasses import dataclass

import numpy as np

from adapter.columns import Seconds
from adapter.overview.cells import duration
from adapter.overview.trends import KEPT_SECONDS, LOOK_SECONDS

WIDTH, HEIGHT, MARGIN = 120, 28, 2
SHORTEST_SECONDS = 5 * LOOK_SECONDS
MOST_APART_SECONDS = 2.5 * LOOK_SECONDS
"""Looks that are farther apart are not joined: nobody looked in between."""


@dataclass(frozen=True, slots=True)
class Drawing:
    path: str
    """What an SVG path draws; empty if no lag was known."""
    words: str


def span_of(at: Seconds, now: float) -> float:
    """Returns the seconds that all lines of a page cover: an hour, or since the first look if that is less."""
    followed = now - float(at[0]) if len(at) else 0.0
    # The oldest look of a whole hour is up to a look younger.
    return KEPT_SECONDS if followed >= KEPT_SECONDS - LOOK_SECONDS else max(followed, SHORTEST_SECONDS)


def drawn(at: Seconds, lags: Seconds, now: float, span: float = KEPT_SECONDS) -> Drawing:
    """Returns the lag at each time, in monotonic seconds and in order; NaN: not known."""
    known = np.flatnonzero(~np.isnan(lags))
    if not len(known):
        return Drawing("", "not known")
    highest = float(lags[known].max())
    across = WIDTH - MARGIN - (now - at) / span * (WIDTH - 2 * MARGIN)
    down = HEIGHT - MARGIN - lags / max(highest, 1.0) * (HEIGHT - 2 * MARGIN)
    is_apart = np.append(True, (np.diff(known) > 1) | (np.diff(at[known]) > MOST_APART_SECONDS))
    strokes = (
        f"M{_points(across[stroke], down[stroke])}" + ("h.1" if len(stroke) == 1 else "")  # a lag alone is a dot
        for stroke in np.split(known, np.flatnonzero(is_apart)[1:])
    )
    followed = f"at most {highest:,.0f} in {duration(now - float(at[known[0]]))}"
    return Drawing("".join(strokes), followed if len(known) > 1 else "known once, so far")


def _points(across: Seconds, down: Seconds) -> str:
    return " ".join(f"{x:.1f} {y:.1f}" for x, y in zip(across.tolist(), down.tolist(), strict=True))
