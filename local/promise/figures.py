"""What a run shows: how long messages waited, by their timestamps, and how many replicas there were."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Seconds
from local.processes import RigError

Replicas = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Of one group, measured or predicted."""

    replicas: Replicas
    """In each second of the load."""
    read_at: Seconds
    """Of each message, or each part of a second's messages, in seconds from the beginning of the load."""
    waits: Seconds
    """From when it was written until its offset was committed."""
    weights: Seconds
    """Messages."""

    def since(self, begin: float) -> "Run":
        """Returns what happened from then on."""
        is_later = self.read_at >= begin
        return Run(self.replicas[int(begin) :], self.read_at[is_later], self.waits[is_later], self.weights[is_later])

    @property
    def replica_seconds(self) -> float:
        return float(self.replicas.sum())

    @property
    def changes(self) -> int:
        return int(np.count_nonzero(np.diff(self.replicas)))

    def wait(self, percent: float) -> float:
        """Returns the wait that so many messages did not exceed."""
        order = np.argsort(self.waits)
        share = np.cumsum(self.weights[order]) / self.weights.sum()
        place = min(int(np.searchsorted(share, percent / 100)), len(order) - 1)
        return float(self.waits[order][place])

    def longest_by_second(self) -> Seconds:
        """Returns the longest wait of the messages of each second; 0 where none was read."""
        longest = np.zeros(len(self.replicas))
        second = np.clip(self.read_at.astype(np.intp), 0, len(longest) - 1)
        np.maximum.at(longest, second, self.waits)
        return longest


def measured(folder: Path, begin: float, replicas: Sequence[int]) -> Run:
    """Reads what the consumers of one group wrote: the time of each commit and of each message before it, in seconds
    since the epoch. A message that two members have read counts with the later commit. Raises RigError if there is
    none."""
    lines = [line.split() for file in sorted(folder.glob("*.waits")) for line in file.read_text().splitlines()]
    latest: dict[tuple[str, str], tuple[float, float]] = {}
    for partition, offset, written, committed in (line for line in lines if len(line) == 4):
        latest[partition, offset] = float(written), float(committed)
    if not latest:
        raise RigError(f"the consumers of group {folder.name} committed no message before the load ended")
    written_at, committed_at = np.array(sorted(latest.values())).reshape(-1, 2).T
    counts = np.array(replicas, np.int64)
    return Run(counts, committed_at - begin, committed_at - written_at, np.ones(len(written_at)))


def median(runs: Sequence[Run], figure: Callable[[Run], float]) -> float:
    return float(np.median([figure(run) for run in runs]))


FIGURES: Mapping[str, tuple[Callable[[Run], float], str]] = {
    "replica-seconds": (lambda run: run.replica_seconds, "{:,.0f}"),
    "wait p50": (lambda run: run.wait(50), "{:.1f} s"),
    "wait p95": (lambda run: run.wait(95), "{:.1f} s"),
    "wait p99": (lambda run: run.wait(99), "{:.1f} s"),
    "longest wait": (lambda run: run.wait(100), "{:.1f} s"),
    "changes of the replicas": (lambda run: run.changes, "{:.0f}"),
}


def table(columns: Sequence[tuple[str, Sequence[Run]]]) -> list[str]:
    """Returns lines for people: a column for each kind of run, with the median of its runs."""
    rows = [("", *(name for name, _ in columns))]
    for name, (figure, form) in FIGURES.items():
        rows.append((name, *(form.format(median(runs, figure)) for _, runs in columns)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
