"""The lag of every group over the last hour, one value per minute.

The collector's ring does not reach that far: it keeps about ten minutes of commits. So all groups are read once a
minute, by the same rules as any other read, and the results are kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapter import clock
from adapter.columns import Seconds
from adapter.metrics.query import Known, Metrics
from adapter.overview import figures
from adapter.overview.figures import parts_of
from adapter.repeating import Repeating
from adapter.settings.models import Level

LOOK_SECONDS = 60.0
KEPT_SECONDS = 3600.0

Place = tuple[str, str]
"""Cluster and group."""


@dataclass(frozen=True, slots=True, eq=False)
class LagTrends:
    """A group takes 8 bytes for each look, so 480 for an hour."""

    rows: Mapping[Place, int] = field(default_factory=dict)
    at: Seconds = field(default_factory=lambda: np.empty(0))
    """When each look was, in monotonic seconds."""
    lags: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """A row for each group, and a column for each look; NaN if the lag was not known."""

    def of(self, place: Place) -> Seconds:
        """Returns the lag at each look."""
        row = self.rows.get(place)
        return np.full(len(self.at), np.nan) if row is None else self.lags[row]

    def followed_by(self, at: float, places: Sequence[Place], lags: Seconds) -> "LagTrends":
        """Returns the trends with one more look. A group is forgotten once no lag of it is left."""
        is_kept = self.at > at - KEPT_SECONDS
        before = self.lags[:, is_kept]
        left = [place for place, row in self.rows.items() if not np.isnan(before[row]).all()]
        rows = {place: row for row, place in enumerate(dict.fromkeys([*left, *places]))}
        joined = np.full((len(rows), before.shape[1] + 1), np.nan)
        joined[: len(left), :-1] = before[[self.rows[place] for place in left]]
        joined[[rows[place] for place in places], -1] = lags
        return LagTrends(rows, np.append(self.at[is_kept], at), joined)


class TrendsFollower(Repeating):
    """Any thread may read `current`."""

    def __init__(self, metrics: Callable[[], Metrics], monotonic: Callable[[], float] = clock.monotonic) -> None:
        super().__init__("trends", is_nice=True)
        self._metrics, self._monotonic = metrics, monotonic
        self.current = LagTrends()
        """Replaced as a whole."""

    def turn(self) -> float:
        at = self._monotonic()
        places, lags = lags_of(self._metrics().known())
        self.current = self.current.followed_by(at, places, lags)
        return LOOK_SECONDS


def lags_of(known: Known) -> tuple[list[Place], Seconds]:
    """Returns the groups whose lag is known, and the lag of each."""
    places: list[Place] = []
    columns: list[Seconds] = [np.empty(0)]
    for part in parts_of(known):
        layout, starts = part.view.layout, part.starts(Level.GROUP)
        places += [(part.view.cluster, layout.groups[code]) for code in layout.group[part.rows[starts]].tolist()]
        columns.append(figures.LAG.of(part, Level.GROUP))
    return places, np.concatenate(columns)
