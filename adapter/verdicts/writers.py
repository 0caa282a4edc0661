"""Pure: which writer of a history counts, per cluster and minute: the one with most rows whose commit (or its absence)
and end are known; ties: the writer of the minute before, else the smaller name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True, order=True)
class Count:
    """One writer's known rows of one cluster in one minute (since the epoch)."""

    cluster: str
    minute: int
    writer: str
    rows: int


Chosen = Mapping[tuple[str, int], str]
"""(cluster, minute) -> the writer that counts."""


def chosen_of(counts: Iterable[Count], before: Chosen) -> dict[tuple[str, int], str]:
    """`before`: who counted in the minute before the first one, where that is known."""
    chosen: dict[tuple[str, int], str] = {}
    for (cluster, minute), of_minute in groupby(sorted(counts), key=lambda count: (count.cluster, count.minute)):
        rivals = list(of_minute)
        most = max(rival.rows for rival in rivals)
        best = [rival.writer for rival in rivals if rival.rows == most]
        earlier = (cluster, minute - 1)
        last = chosen.get(earlier, before.get(earlier))
        chosen[cluster, minute] = last if last in best else best[0]
    return chosen
