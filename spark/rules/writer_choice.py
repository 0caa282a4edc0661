"""Pure: the samples of the writers that count, by the rule of `adapter.verdicts.writers`."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from adapter.verdicts.writers import Chosen, Count
from spark.rules.deltas import is_known
from spark.tables.columns import Flags, Ints, TableRows, numbered, one_of_each
from spark.tables.contract import SERIES

MINUTE_MICROS = 60_000_000


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
