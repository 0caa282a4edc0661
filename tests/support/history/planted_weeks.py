"""Histories of two weeks with one planted trouble for each group, written as columns: what is produced and what can be
read, minute by minute or in longer steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapter.history.contract import VERSION, VERSION_KEY
from tests.support.history.written_history import SCHEMA

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
DAYS = 14
END = MONDAY + timedelta(days=DAYS)
DAY = 86_400
OF_A_FILE = 3600
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Clock:
    """The samples of a group."""

    days: int
    """Up to END."""
    interval: int
    """Seconds."""

    @property
    def at(self) -> NDArray[np.int64]:
        """Seconds since MONDAY."""
        return np.arange((DAYS - self.days) * DAY, DAYS * DAY, self.interval)

    @property
    def minute(self) -> NDArray[np.int64]:
        """Of the hour."""
        return self.at // 60 % 60

    @property
    def hour(self) -> NDArray[np.int64]:
        """Of the day."""
        return self.at // 3600 % 24

    @property
    def day(self) -> NDArray[np.int64]:
        """0 is MONDAY."""
        return self.at // DAY


MINUTES, STEPS = Clock(days=3, interval=60), Clock(days=14, interval=600)


@dataclass(frozen=True, eq=False)
class Read:
    """One partition as a group reads it. Rates are in messages per second, one for each sample or the same for all."""

    group: str
    clock: Clock
    produced: Numbers | float = 10.0
    able: Numbers | float = 100.0
    """What can be read at most; what waits is worked off."""
    topic: str = "orders"
    partition: int = 0
    members: NDArray[np.int64] | int = 2
    owner: Iterable[str | None] | str | None = None
    """Of each sample."""
    commits_every: int = 1
    """Samples."""
    rewinds: dict[int, int] = field(default_factory=dict)
    """Messages by which the commit goes back, by the number of the sample."""
    late_samples: int = 0
    """What is read now came so many samples ago; 0: as soon as it can."""
    is_committed: bool = True
    is_seen: NDArray[np.bool_] | bool = True
    """In which samples the history has it."""
    is_read_committed: bool = False
    """At rest, a transaction's marker is left behind the commit."""
    is_marker_told: bool = True
    """Whether the adapter recognised the marker."""
    in_hand: int = 0
    """Messages that were read and not committed, at each commit."""
    cluster: str = "main"
    writer: str = "adapter-0"
    clock_ahead: int = 0
    """Of its writer, in seconds."""
    taken_after: int = 0
    """Seconds from the clock's time to each sample. Only where both rates are the same all the time."""

    def columns(self) -> dict[str, Any]:
        at = self.clock.at
        size = len(at)
        end = 1000 + np.cumsum(np.broadcast_to(self.produced, size) * self.clock.interval).astype(np.int64)
        committed = self._committed(end)
        if self.taken_after:
            end, committed = (
                offset + int(self.taken_after * np.broadcast_to(self.produced, size)[0]) for offset in (end, committed)
            )
        owners = [self.owner] * size if self.owner is None or isinstance(self.owner, str) else list(self.owner)
        is_at_rest = committed == end
        fixed = {"cluster": self.cluster, "group": self.group, "topic": self.topic, "topic_id": f"{self.topic}-1"}
        columns: dict[str, Any] = {
            **{name: [value] * size for name, value in fixed.items()},
            "sampled_at": (MONDAY.timestamp() + at + self.taken_after + self.clock_ahead) * 1e6,
            "received_at": [None] * size,
            "interval_seconds": np.full(size, float(self.clock.interval)),
            "partition": np.full(size, self.partition),
            "committed": committed if self.is_committed else [None] * size,
            "log_end": end + (is_at_rest if self.is_read_committed else 0),
            "log_start": np.zeros(size, np.int64),
            "state": ["ok" if self.is_committed else "no_commit"] * size,
            "members": np.broadcast_to(self.members, size),
            "isolation": ["read_committed" if self.is_read_committed else "read_uncommitted"] * size,
            "owner": owners,
            "offset_reset": ["latest"] * size,
            "last_commit": [None] * size,
            "has_marker": is_at_rest & self.is_read_committed & self.is_marker_told,
        }
        return columns

    def _committed(self, end: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.late_samples:
            return np.concatenate([np.full(self.late_samples, 1000), end[: -self.late_samples]])
        able = np.broadcast_to(self.able, len(end)) * self.clock.interval
        read, reached = np.empty(len(end), np.int64), 1000
        for place, (log_end, can) in enumerate(zip(end.tolist(), able.astype(np.int64).tolist(), strict=True)):
            reached = min(log_end, max(1000, reached - self.rewinds.get(place, 0)) + can)
            read[place] = max(1000, reached - self.in_hand)
        return read[np.arange(len(end)) // self.commits_every * self.commits_every]


def write_weeks(root: Path, reads: Iterable[Read]) -> None:
    """A file for each hour and writer."""
    for writer, of_writer in groupby(sorted(reads, key=lambda read: read.writer), key=lambda read: read.writer):
        _write(root, writer, [_table(read) for read in of_writer])


def _write(root: Path, writer: str, tables: Sequence[pa.Table]) -> None:
    whole = pa.concat_tables(tables).sort_by("sampled_at")
    hours = whole["sampled_at"].cast(pa.int64()).to_numpy() // (OF_A_FILE * 1_000_000)
    begins = np.flatnonzero(np.diff(hours, prepend=-1))
    for begin, until in zip(begins.tolist(), [*begins[1:].tolist(), len(hours)], strict=True):
        start = datetime.fromtimestamp(int(hours[begin]) * OF_A_FILE, UTC)
        folder = root / "samples" / f"{start:date=%Y-%m-%d/hour=%H}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(whole.slice(begin, until - begin), folder / f"{writer}-{start:%Y%m%dT%H%M%S.%fZ}.parquet")


def _table(read: Read) -> pa.Table:
    columns = read.columns()
    is_seen = pa.array(np.broadcast_to(read.is_seen, len(read.clock.at)))
    arrays = [_array(columns[column.name], column.type) for column in SCHEMA]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    return table.filter(is_seen).replace_schema_metadata({VERSION_KEY: str(VERSION)})


def _array(values: Any, type_: pa.DataType) -> pa.Array:  # noqa: ANN401 - a column's values
    if pa.types.is_dictionary(type_):
        return pa.array(values, pa.string()).dictionary_encode().cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array([None if value is None else int(value) for value in values], pa.int64()).cast(type_)
    return pa.array(values).cast(type_)
