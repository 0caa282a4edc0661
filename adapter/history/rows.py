"""Samples of cycles -> rows of the history, as columns. Every file has the rows of one hour, sorted by series.

A negative number, or a negative code of a name, is null: valid offsets, times, counts and codes are never negative."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes
from adapter.history.contract import SAMPLES, Type
from adapter.history.sample import Sample
from adapter.lag.layout import Layout
from adapter.lag.owners import Owners
from adapter.lag.snapshot import State

NULL = -1
STATES = tuple(state.name.lower() for state in State)
ISOLATIONS = ("read_uncommitted", "read_committed")
OFFSET_RESETS = ("latest", "earliest")
NAMES = tuple(column.name for column in SAMPLES if column.type is Type.TEXT)
MICROSECONDS = 1e6
HOUR = 3_600_000_000

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of the history, as the columns of the contract by name."""

    columns: Mapping[str, Numbers]
    """Times are microseconds since the epoch; names are indexes into `names`."""
    names: Mapping[str, Sequence[str]]
    """Column -> its names."""

    def __len__(self) -> int:
        return len(self.columns["sampled_at"])

    @property
    def first_sample(self) -> int:
        """Microseconds since the epoch."""
        return int(self.columns["sampled_at"].min())

    def chosen(self, rows: NDArray[Any] | slice) -> "Rows":
        """`rows`: flags, a slice, or indexes in the desired order."""
        return Rows({name: column[rows] for name, column in self.columns.items()}, self.names)


def rows_of(samples: Iterable[Sample]) -> Rows | None:
    """Returns all rows, sorted by cluster, group, topic, partition and time; None if there are none."""
    # Sorted by time as well, because the clock may have been set back.
    ordered = sorted((s for s in samples if len(s.layout)), key=lambda sample: (sample.cluster, sample.sampled_at))
    clusters = [_of_cluster(list(own)) for _, own in groupby(ordered, key=lambda sample: sample.cluster)]
    return joined(clusters) if clusters else None


def _of_cluster(samples: list[Sample]) -> Rows:
    blocks = [_of_layout(list(own)) for _, own in groupby(samples, key=lambda sample: id(sample.layout))]
    if len(blocks) == 1:
        return blocks[0]
    rows = joined(blocks)
    return rows.chosen(by_series(rows))


def by_series(rows: Rows) -> Indexes:
    """Returns the order by series and time; `names` must be sorted."""
    keys = ("sampled_at", "partition", "topic", "group", "cluster")
    return np.lexsort([rows.columns[key] for key in keys])


def _of_layout(samples: list[Sample]) -> Rows:
    """Samples of one layout, which is sorted by series, so the transposed columns are as well."""
    layout, count = samples[0].layout, len(samples)

    def series(values: Numbers) -> Numbers:
        return np.repeat(values, count)

    def cycles(values: Sequence[Numbers]) -> Numbers:
        if all(each is values[0] for each in values):  # what seldom changes is kept from cycle to cycle
            return series(values[0])
        transposed: Numbers = np.stack(values, axis=1)
        return transposed.ravel()

    observed = [sample.observed for sample in samples]
    log_end = cycles([np.where(seen.end_cause == 0, seen.log_end, NULL) for seen in observed])
    received = cycles([_microseconds(s.observed.end_received, s.to_epoch) for s in samples])
    topic_ids, topic_id = _generations(layout)
    owners = _same_names([sample.owners for sample in samples])
    columns = {
        "sampled_at": np.tile(_microseconds(np.array([sample.sampled_at for sample in samples])), len(layout)),
        "received_at": np.where(log_end >= 0, received, NULL),
        "interval_seconds": np.tile(np.array([s.interval_seconds for s in samples], np.float32), len(layout)),
        "cluster": np.zeros(len(log_end), dtype=np.int32),
        "group": series(layout.group),
        "topic": series(layout.topic),
        "topic_id": series(topic_id[layout.topic]),
        "partition": series(layout.partition),
        "committed": cycles([np.where(seen.commit_cause == 0, seen.committed, NULL) for seen in observed]),
        "log_end": log_end,
        "log_start": cycles([seen.log_start for seen in observed]),
        "state": cycles([sample.state for sample in samples]).astype(np.int32),
        "members": cycles([sample.members for sample in samples]),
        "isolation": cycles([sample.is_committed_only for sample in samples]).astype(np.int32),
        "owner": cycles([each.codes for each in owners]),
        "offset_reset": cycles([sample.counts_from_start for sample in samples]).astype(np.int32),
        "last_commit": cycles([sample.last_commit for sample in samples]),
        "has_marker": cycles([sample.has_marker for sample in samples]),
    }
    names = {
        "cluster": (samples[0].cluster,),
        "group": layout.groups,
        "topic": layout.topics,
        "topic_id": topic_ids,
        "state": STATES,
        "isolation": ISOLATIONS,
        "owner": owners[0].names,
        "offset_reset": OFFSET_RESETS,
    }
    return Rows(columns, names)


def _same_names(owners: Sequence[Owners]) -> list[Owners]:
    """Recodes each distinct `Owners` once; they change a few times an hour at most."""
    different = {id(each): each for each in owners}
    if len(different) == 1:
        return list(owners)
    names = tuple(sorted({name for each in different.values() for name in each.names}))
    recoded = {key: Owners(names, _places(each.names, names)[each.codes]) for key, each in different.items()}
    return [recoded[id(each)] for each in owners]


def _microseconds(seconds: NDArray[np.float64], to_epoch: float = 0.0) -> NDArray[np.int64]:
    """Returns NULL where nothing was received."""
    known = np.isfinite(seconds)
    return np.where(known, np.rint((np.where(known, seconds, 0.0) + to_epoch) * MICROSECONDS), NULL).astype(np.int64)


def _generations(layout: Layout) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Returns the topic ids, and the index of each topic's id."""
    ids = sorted({generation for generation in layout.generations.values() if generation is not None})
    code = {generation: at for at, generation in enumerate(ids)}
    codes = [code.get(layout.generations[topic] or "", NULL) for topic in layout.topics]
    return tuple(ids), np.array(codes, dtype=np.int32)


def joined(blocks: Sequence[Rows]) -> Rows:
    """Concatenates the blocks, with one sorted list of names for all."""
    if len(blocks) == 1:
        return blocks[0]
    names = {name: sorted({each for block in blocks for each in block.names[name]}) for name in NAMES}
    coded = {name: [_places(block.names[name], names[name])[block.columns[name]] for block in blocks] for name in NAMES}
    columns = {
        column.name: np.concatenate(coded.get(column.name, [block.columns[column.name] for block in blocks]))
        for column in SAMPLES
    }
    return Rows(columns, names)


def _places(names: Sequence[str], among: Sequence[str]) -> NDArray[np.int32]:
    """Returns the place of each name, then NULL, to which the code of null, -1, refers."""
    places = {each: at for at, each in enumerate(among)}
    return np.array([*(places[each] for each in names), NULL], dtype=np.int32)


def by_hour(samples: Iterable[Sample]) -> dict[int, list[Sample]]:
    """Returns hours since the epoch, in order -> the samples whose cycle began in that hour."""
    hours: dict[int, list[Sample]] = {}
    for sample in samples:
        hours.setdefault(round(sample.sampled_at * MICROSECONDS) // HOUR, []).append(sample)
    return dict(sorted(hours.items()))
