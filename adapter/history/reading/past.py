"""What the history has of a cluster's offsets from before this process started."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa

from adapter.columns import Flags, Seconds
from adapter.history.clock_mark import TOLERANCE_SECONDS, ClockMark, to_epoch_of
from adapter.history.contract import SAMPLES_FOLDER
from adapter.history.files import Files
from adapter.history.reading.choice import RECENT_SECONDS, SampleFile, chosen, contradicted, sample_file_at
from adapter.history.reading.cycles import Damaged, FileOfSamples
from adapter.lag.earlier import EarlierCycle, Wanted, ring_of
from adapter.lag.ring import Ring
from adapter.verdicts.writers import Chosen, Count, chosen_of

DENSITY = 0.2
"""Two cycles are no closer together than this share of their age, unless they are recent."""
HOUR = 3600.0
DAMAGE = (Damaged, pa.ArrowException, OSError)
"""Of a file whose content has been read; one that was deleted meanwhile has none."""


@dataclass(frozen=True, slots=True)
class Start:
    """When this process started, by both clocks."""

    monotonic: float
    mark: ClockMark

    @property
    def time(self) -> float:
        """In seconds since the epoch."""
        return self.monotonic + self.mark.to_epoch


def past_of(files: Files, wanted: Wanted, start: Start, depth: float) -> Ring:
    """Returns how offsets moved in the `depth` seconds before the start. Files that are damaged, or whose clock cannot
    be related to this one, do not count. Raises HistoryUnwritable if the location cannot be read."""
    listed = list(_listed(files, start.time, depth))
    wrong, picked = contradicted(listed, start.time + TOLERANCE_SECONDS), chosen(listed, start.time, depth)
    writers = _writers(files, picked, wanted.cluster)
    return ring_of(wanted.layout, _cycles(files, picked, wanted, start, wrong, writers))


def _listed(files: Files, now: float, depth: float) -> Iterator[SampleFile]:
    """Yields the files of the hours that matter; the next hour is that of a clock that was ahead."""
    at = now - depth - HOUR
    while at <= now + HOUR:
        folder = f"{SAMPLES_FOLDER}/{datetime.fromtimestamp(at, UTC):date=%Y-%m-%d/hour=%H}"
        paths = (f"{folder}/{name}" for name in files.names(folder))
        yield from (file for path in paths if (file := sample_file_at(path)) is not None)
        at += HOUR


def _writers(files: Files, picked: list[SampleFile], cluster: str) -> Chosen | None:
    """Returns which writer counts in each minute; None if there is only one."""
    if len({file.writer for file in picked}) < 2:
        return None
    counts = list[Count]()
    for file in picked:
        with contextlib.suppress(*DAMAGE):
            known = FileOfSamples(files.read(file.path) or b"").known_by_minute(cluster)
            counts += [Count(cluster, minute, file.writer, rows) for minute, rows in known.items()]
    return chosen_of(counts, {})


def _cycles(
    files: Files, picked: list[SampleFile], wanted: Wanted, start: Start, wrong: frozenset[str], writers: Chosen | None
) -> Iterator[EarlierCycle]:
    """Yields cycles, those of each writer by time."""
    for file in picked:
        with contextlib.suppress(*DAMAGE):
            samples = FileOfSamples(files.read(file.path) or b"")
            to_epoch = to_epoch_of(samples.mark, start.mark, is_contradicted=file.process in wrong)
            if to_epoch is not None:
                yield from samples.cycles(wanted, partial(_is_wanted, start, wanted, file, to_epoch, writers), to_epoch)


def _is_wanted(
    start: Start, wanted: Wanted, file: SampleFile, to_epoch: float, writers: Chosen | None, times: Seconds
) -> Flags:
    minutes = (times // 60).astype(int).tolist()
    is_chosen = [writers is None or writers.get((wanted.cluster, minute)) == file.writer for minute in minutes]
    return np.array(is_chosen, dtype=bool) & _is_apart(start.monotonic - (times - to_epoch))


def _is_apart(ages: Seconds) -> Flags:
    """Returns which of the cycles to keep: all recent ones from before the start, and of the older ones the first, the
    last and some between them."""
    is_kept, newest = np.zeros(len(ages), dtype=bool), -np.inf
    for place, age in reversed(list(enumerate(ages.tolist()))):
        is_kept[place] = age > 0 and (age <= RECENT_SECONDS or not place or age - newest >= DENSITY * age)
        newest = age if is_kept[place] else newest
    return is_kept
