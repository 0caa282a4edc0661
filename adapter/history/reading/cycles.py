"""The content of a file of samples -> the cycles that it has of one cluster, in the rows of a layout.

Row groups are read one by one, and of each only the cycles that are wanted are kept."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from adapter.cluster.topics import is_same_generation
from adapter.columns import NO_COMMIT, NOT_KNOWN, Flags, Indexes, Offsets, Seconds
from adapter.history.arrow import codes_in, numbers_in
from adapter.history.clock_mark import ClockMark, mark_in
from adapter.history.contract import CLOCK_KEY
from adapter.history.reading.validity import fault_in_footer, fault_of
from adapter.lag.earlier import EarlierCycle, Wanted
from adapter.lag.layout import Layout

NUMBERS: Mapping[str, tuple[pa.DataType, type[np.generic]]] = {
    "sampled_at": (pa.int64(), np.int64),
    "received_at": (pa.int64(), np.int64),
    "partition": (pa.int32(), np.int32),
    "committed": (pa.int64(), np.int64),
    "log_end": (pa.int64(), np.int64),
    "log_start": (pa.int64(), np.int64),
}
TEXTS = ("cluster", "group", "topic", "topic_id", "state", "isolation")
OF_COMMITS = ("ok", "truncated", "stale")
"""States in which a commit belongs to the log end beside it."""
MICROSECONDS = 1e6
MOST_ROWS = 800_000
"""Of cycles that are read at once, to bound the memory: all cycles of the last file are wanted, and the rows of 100,000
partitions take 5 MB a cycle. Each time, the whole file is decoded."""
MINUTE = 60_000_000

IsWanted = Callable[[Seconds], Flags]
"""Of the times of some cycles, in order and in seconds since the epoch, those that are wanted."""


class Damaged(Exception):
    """A file with values that no adapter writes."""


class FileOfSamples:
    """Any method raises ArrowException or Damaged where the content is not sound."""

    def __init__(self, content: bytes) -> None:
        self._file = parquet.ParquetFile(pa.BufferReader(content), read_dictionary=list(TEXTS))
        metadata = self._file.metadata
        if fault := fault_in_footer(metadata):
            raise Damaged(fault)
        self.mark: ClockMark | None = mark_in((metadata.metadata or {}).get(CLOCK_KEY.encode()))

    def known_by_minute(self, cluster: str) -> Counter[int]:
        """Returns how many rows of each minute since the epoch have a known commit, or its absence, and a known end."""
        counts: Counter[int] = Counter()
        for group in self._groups(("sampled_at", "committed", "log_end", "cluster", "state")):
            is_own, is_known = group.is_text("cluster", cluster), group.is_commit_known & (group["log_end"] >= 0)
            minutes, place = np.unique(group["sampled_at"][is_own] // MINUTE, return_inverse=True)
            known = np.bincount(place, is_known[is_own], minlength=len(minutes)).astype(int)
            counts.update(dict(zip(minutes.tolist(), known.tolist(), strict=True)))
        return counts

    def cycles(self, wanted: Wanted, is_wanted: IsWanted, to_epoch: float) -> Iterator[EarlierCycle]:
        """Yields cycles by time; `to_epoch` is subtracted from their times."""
        times = self._times(wanted.cluster)
        times = times[is_wanted(times / MICROSECONDS)]
        at_once = max(1, MOST_ROWS // max(len(wanted.layout), 1))
        for first in range(0, len(times), at_once):
            yield from self._cycles_at(times[first : first + at_once], wanted, to_epoch)

    def _cycles_at(self, times: NDArray[np.int64], wanted: Wanted, to_epoch: float) -> Iterator[EarlierCycle]:
        parts = [_found_in(group, wanted, times) for group in self._groups((*NUMBERS, *TEXTS))]
        if not parts:
            return
        found = _Found._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(found.sampled_at, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(found.sampled_at[order])) + 1):
            if len(own):
                yield _cycle(found.rows(own), wanted, to_epoch)

    def _times(self, cluster: str) -> NDArray[np.int64]:
        own = [
            group["sampled_at"][group.is_text("cluster", cluster)] for group in self._groups(("sampled_at", "cluster"))
        ]
        return np.unique(np.concatenate(own)) if own else np.empty(0, dtype=np.int64)

    def _groups(self, columns: Sequence[str]) -> Iterator["_Group"]:
        for number in range(self._file.num_row_groups):
            table = self._file.read_row_group(number, list(columns))
            if fault := fault_of(table):
                raise Damaged(fault)
            yield _group_of(table)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Some columns of a row group; numbers and codes are negative where there is none."""

    columns: Mapping[str, NDArray[Any]]
    texts: Mapping[str, Sequence[str]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def is_text(self, name: str, *wanted: str) -> Flags:
        """Whether the text is one of `wanted`."""
        is_one = np.array([text in wanted for text in self.texts[name]] + [False], dtype=bool)
        flags: Flags = is_one[self.columns[name]]
        return flags

    @property
    def is_commit_known(self) -> Flags:
        """Whether there is a commit, or known to be none."""
        is_known: Flags = (self["committed"] >= 0) | self.is_text("state", "no_commit")
        return is_known


def _group_of(table: pa.Table) -> _Group:
    columns, texts = dict[str, NDArray[Any]](), dict[str, Sequence[str]]()
    for name in table.column_names:
        values = table[name].combine_chunks()
        if name in NUMBERS:
            arrow, numpy = NUMBERS[name]
            columns[name] = numbers_in(values.cast(arrow), numpy)
        else:
            columns[name], sorted_texts = codes_in(values)
            texts[name] = sorted_texts.to_pylist()
    return _Group(columns, texts)


class _Found(NamedTuple):
    """Samples of the rows that are wanted."""

    sampled_at: NDArray[np.int64]
    row: Indexes
    received_at: NDArray[np.int64]
    committed: Offsets
    log_end: Offsets
    log_start: Offsets
    is_commit: Flags
    is_end: Flags

    def rows(self, places: Indexes) -> "_Found":
        return _Found._make(column[places] for column in self)


def _found_in(group: _Group, wanted: Wanted, times: NDArray[np.int64]) -> _Found:
    is_own = group.is_text("cluster", wanted.cluster) & np.isin(group["sampled_at"], times)
    row = _rows_of(group, wanted.layout, is_own)
    kept = np.flatnonzero(row >= 0)
    row, has_end = row[kept], group["log_end"][kept] >= 0
    is_pair = group.is_text("state", "no_commit", *OF_COMMITS) & group.is_commit_known
    is_level = group.is_text("isolation", "read_committed")[kept] == wanted.is_committed_only[row]
    return _Found(
        group["sampled_at"][kept],
        row,
        group["received_at"][kept],
        group["committed"][kept],
        group["log_end"][kept],
        group["log_start"][kept],
        is_pair[kept] & has_end,
        has_end & is_level,
    )


def _rows_of(group: _Group, layout: Layout, is_own: Flags) -> Indexes:
    """Returns the row of each sample in the layout; -1 where it has none, or the topic has been created again."""
    names = ("group", "topic", "topic_id")
    sizes = [len(group.texts[name]) + 1 for name in names]
    key = np.ravel_multi_index([group[name] + 1 for name in names], sizes)
    keys, number = np.unique(key, return_inverse=True)
    starts, counts = np.full(len(keys), NOT_KNOWN), np.zeros(len(keys), dtype=np.int64)
    for place, codes in enumerate(zip(*np.unravel_index(keys, sizes), strict=True)):
        texts = [group.texts[name][code - 1] if code else None for name, code in zip(names, codes, strict=True)]
        rows = layout.pairs.get((str(texts[0]), str(texts[1])))
        if rows is not None and is_same_generation(texts[2], layout.generations[str(texts[1])]):
            starts[place], counts[place] = rows.start, rows.stop - rows.start
    partition = group["partition"]
    row: Indexes = np.where(is_own & (partition < counts[number]), starts[number] + partition, -1)
    return row


def _cycle(found: _Found, wanted: Wanted, to_epoch: float) -> EarlierCycle:
    begun = found.sampled_at[0] / MICROSECONDS - to_epoch
    received_at = np.where(found.received_at >= 0, found.received_at / MICROSECONDS - to_epoch, begun)
    at = max(begun, float(received_at.max()))
    received = np.full(len(wanted.layout), at)
    received[found.row] = np.where(found.received_at >= 0, received_at, at)
    return EarlierCycle(
        at=at,
        committed=_spread(found.committed, found, wanted, NO_COMMIT),
        log_end=_spread(found.log_end, found, wanted, NOT_KNOWN),
        log_start=_spread(found.log_start, found, wanted, NOT_KNOWN),
        received=received,
        is_commit=_spread(found.is_commit, found, wanted, False),
        is_end=_spread(found.is_end, found, wanted, False),
    )


def _spread(values: NDArray[Any], found: _Found, wanted: Wanted, nothing: int) -> NDArray[Any]:
    """Returns a column of all rows."""
    column = np.full(len(wanted.layout), nothing, dtype=values.dtype)
    column[found.row] = values
    return column
