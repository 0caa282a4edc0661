"""What only samples can tell of a topic, as values: `told_in_memory` and `told_by_spark` find the same.

Also how to sort a table's rows by their names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapter.arrow_arrays import array_of
from spark.figures.model import Jumps, Lag, Pace, Windows
from spark.tables.contract import NAMES

EVENTS = ("resets", "rewinds", "skips", "recreations")
"""After any of them a sample's rates say nothing about a capacity."""
COLUMNS = (
    *NAMES,
    "sampled_at",
    "interval_seconds",
    "lag",
    "partitions",
    "members",
    "seconds",
    "produced",
    "consumed",
    "is_after_gap",
    *EVENTS,
)
"""Of `totals`, those that are read."""
END_OF_EPISODE = 5
"""Intervals without a known lag, after which nobody can say that an episode went on."""
WINDOW_INTERVALS = 4
COVERED = 0.75
"""Of a window's time, at least."""

Ints = NDArray[np.int64]
Key = tuple[str, str, str]
"""Cluster, group, topic."""
Pair = tuple[str, str]
"""Cluster, group."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Over all samples of a topic's lag."""

    lag: Lag
    seconds_above: float
    known_seconds: float
    pace: Pace


@dataclass(frozen=True, slots=True)
class Episodes:
    """Above the threshold: each from its first sample above to one interval after its last."""

    number: int
    longest_seconds: float
    began: datetime
    """The longest; the first of several."""


@dataclass(frozen=True, slots=True)
class Told:
    measured: Mapping[Key, Measured] = field(default_factory=dict)
    episodes: Mapping[Key, Episodes] = field(default_factory=dict)
    windows: Mapping[Pair, Windows] = field(default_factory=dict)
    jumps: Mapping[Pair, Jumps] = field(default_factory=dict)


def series_of(table: pa.Table) -> tuple[list[Key], Ints]:
    """The keys that occur, and for each row the place of its key among them."""
    if not table.num_rows:
        return [], np.empty(0, np.int64)
    encoded = [table[name].combine_chunks().dictionary_encode() for name in NAMES]
    code = np.zeros(table.num_rows, np.int64)
    for part in encoded:
        code = code * len(part.dictionary) + part.indices.to_numpy()
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    names = [
        part.dictionary.take(part.indices.take(array_of(pa.int64(), first, is_nullable=False))).to_pylist()
        for part in encoded
    ]
    return list(zip(*names, strict=True)), place


def runs(sorted_column: Ints) -> Iterator[slice]:
    """Where one value after the other stands."""
    bounds = [0, *(np.flatnonzero(np.diff(sorted_column)) + 1).tolist(), len(sorted_column)]
    return (slice(*bound) for bound in itertools.pairwise(bounds) if bound[0] < bound[1])


def time_of_micros(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
