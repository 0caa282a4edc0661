"""Pure: which writer counts, per cluster and minute: the one with most rows whose commit (or its absence) and end are
known; ties: the writer of the minute before, else the smaller name."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from spark.rules.deltas import is_known
from spark.tables.columns import Flags, Ints, TableRows, numbered, one_of_each
from spark.tables.contract import SERIES

MINUTE_MICROS = 60_000_000


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


def counts_of(samples: TableRows, writer: Ints, writers: Sequence[str]) -> list[Count]:
    """`writer`: of each row its place in `writers`. A row that is there twice counts once."""
    number = numbered(writer, *(samples[name] for name in SERIES), samples["sampled_at"])
    rows = one_of_each(number)
    knows = np.zeros(len(rows), np.bool_)
    knows[number[is_known(samples)]] = True
    once, own_writer = samples.taken(rows), writer[rows]
    minute = once["sampled_at"] // MINUTE_MICROS
    place = numbered(once["cluster"], minute, own_writer)
    rows_known = np.bincount(place, knows).astype(np.int64)
    clusters = samples.texts["cluster"].to_pylist()
    return [
        Count(clusters[once["cluster"][row]], int(minute[row]), writers[own_writer[row]], int(rows_known[number]))
        for number, row in enumerate(one_of_each(place).tolist())
    ]


def summed(counts: Iterable[Count]) -> list[Count]:
    """Counts of different topics, added up."""
    totals: Counter[tuple[str, int, str]] = Counter()
    for count in counts:
        totals[count.cluster, count.minute, count.writer] += count.rows
    return [Count(*key, number) for key, number in totals.items()]


def is_chosen(samples: TableRows, writer: Ints, writers: Sequence[str], chosen: Chosen) -> Flags:
    """Whether a row is one of the writer that counts."""
    clusters = samples.texts["cluster"].to_pylist()
    minute = samples["sampled_at"] // MINUTE_MICROS
    number = numbered(samples["cluster"], minute)
    places = {name: place for place, name in enumerate(writers)}
    wanted = [
        places[chosen[clusters[samples["cluster"][row]], int(minute[row])]] for row in one_of_each(number).tolist()
    ]
    is_one: Flags = np.array(wanted, np.int64)[number] == writer
    return is_one


def clusters_at(totals: TableRows, minute: int) -> set[str]:
    """The clusters that have a sample in this minute."""
    clusters = totals.texts["cluster"].to_pylist()
    is_then = totals["sampled_at"] // MINUTE_MICROS == minute
    return {clusters[code] for code in np.unique(totals["cluster"][is_then])}
