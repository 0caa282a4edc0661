"""Who counts, of samples as columns in the driver's memory; the same as `writers_by_spark` finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spark.rules.deltas import is_known
from spark.rules.writers import Chosen, Count
from spark.tables.columns import Flags, Ints, Rows, numbered
from spark.tables.contract import SERIES

MINUTE = 60_000_000


def counts_of(samples: Rows, writer: Ints, writers: Sequence[str]) -> list[Count]:
    """`writer`: of each row its place in `writers`. A row that is there twice counts once."""
    number = numbered(writer, *(samples[name] for name in SERIES), samples["sampled_at"])
    rows = np.empty(int(number.max(initial=-1)) + 1, np.int64)
    rows[number] = np.arange(len(number))
    is_told = np.zeros(len(rows), np.bool_)
    is_told[number[is_known(samples)]] = True
    once, of = samples.taken(rows), writer[rows]
    minute = once["sampled_at"] // MINUTE
    place = numbered(once["cluster"], minute, of)
    known = np.bincount(place, is_told).astype(np.int64)
    first = np.empty(len(known), np.int64)
    first[place] = np.arange(len(place))
    clusters = samples.texts["cluster"].to_pylist()
    return [
        Count(clusters[once["cluster"][row]], int(minute[row]), writers[of[row]], int(known[number]))
        for number, row in enumerate(first.tolist())
    ]


def is_chosen(samples: Rows, writer: Ints, writers: Sequence[str], chosen: Chosen) -> Flags:
    """Whether a row is one of the writer that counts."""
    clusters = samples.texts["cluster"].to_pylist()
    minute = samples["sampled_at"] // MINUTE
    number = numbered(samples["cluster"], minute)
    first = np.empty(int(number.max(initial=-1)) + 1, np.int64)
    first[number] = np.arange(len(number))
    places = {name: place for place, name in enumerate(writers)}
    wanted = [places[chosen[clusters[samples["cluster"][row]], int(minute[row])]] for row in first.tolist()]
    is_one: Flags = np.array(wanted, np.int64)[number] == writer
    return is_one


def clusters_at(totals: Rows, minute: int) -> list[str]:
    """The clusters that have a sample in this minute."""
    clusters = totals.texts["cluster"].to_pylist()
    return sorted(clusters[code] for code in np.unique(totals["cluster"][totals["sampled_at"] // MINUTE == minute]))
