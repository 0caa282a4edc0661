"""The rows of a cluster: one per group, topic and partition that may count."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from adapter.cluster.topics import Topology, is_same_generation
from adapter.columns import Codes, Indexes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Columns = TypeVar("Columns", bound="DataclassInstance")
"""A dataclass whose arrays have one entry per row, or per place of the table."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Layout:
    """The rows, sorted by group, topic and partition. The same object until they change."""

    groups: tuple[str, ...]
    topics: tuple[str, ...]
    generations: Mapping[str, str | None]
    """Topic -> topic id."""
    group: Codes
    topic: Codes
    partition: Codes
    pair: Indexes
    """Row -> the place of its group and topic in `pairs`."""
    pairs: Mapping[tuple[str, str], slice]
    """(group, topic) -> its rows, one per partition in order."""
    spans: Mapping[str, slice]
    """Group -> its rows; empty for a group without any."""
    bases: Mapping[str, slice]
    """Topic -> its slice of the table of partitions, which has each partition once, however many groups read it."""
    place: Indexes
    """Row -> its partition's index in that table."""
    codes: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def table_size(self) -> int:
        return self.bases[self.topics[-1]].stop if self.topics else 0

    def name(self, row: int) -> str:
        return f"{self.topics[self.topic[row]]}/{self.partition[row]}"


def layout_of(wanted: Mapping[str, Collection[str]], topology: Topology) -> Layout:
    """Returns the rows of `wanted` (group -> topics): all existing partitions of those topics."""
    groups = tuple(sorted(wanted))
    chosen = [
        (code, group, topic)
        for code, group in enumerate(groups)
        for topic in sorted(wanted[group])
        if topic in topology.topics
    ]
    topics = tuple(sorted({topic for _, _, topic in chosen}))
    topic_codes = {topic: code for code, topic in enumerate(topics)}
    sizes = np.array([len(topology.topics[topic].leaders) for _, _, topic in chosen], dtype=np.int64)
    ends = np.cumsum(sizes)
    pairs = {
        (group, topic): slice(int(end - size), int(end))
        for (_, group, topic), size, end in zip(chosen, sizes, ends, strict=True)
    }
    pair = np.repeat(np.arange(len(chosen)), sizes)
    group_column = np.array([code for code, _, _ in chosen], dtype=np.int32)[pair]
    bounds = np.searchsorted(group_column, np.arange(len(groups) + 1))
    topic_column = np.array([topic_codes[topic] for _, _, topic in chosen], dtype=np.int32)[pair]
    partition_column = (np.arange(len(pair)) - (ends - sizes)[pair]).astype(np.int32)
    stops = np.cumsum([len(topology.topics[topic].leaders) for topic in topics], dtype=np.intp).astype(np.intp)
    begins = np.concatenate([np.zeros(1, dtype=np.intp), stops])
    return Layout(
        groups=groups,
        topics=topics,
        generations={topic: topology.topics[topic].generation for topic in topics},
        group=group_column,
        topic=topic_column,
        partition=partition_column,
        pair=pair,
        pairs=pairs,
        spans={group: slice(int(bounds[code]), int(bounds[code + 1])) for code, group in enumerate(groups)},
        bases={topic: slice(int(begins[code]), int(begins[code + 1])) for code, topic in enumerate(topics)},
        place=(begins[topic_column] + partition_column).astype(np.intp),
        codes={group: code for code, group in enumerate(groups)},
    )


NO_LAYOUT = layout_of({}, Topology())


def same_rows(layout: Layout, old: Layout) -> tuple[Indexes, Indexes]:
    """Returns the rows that both layouts have, as indexes into each."""
    both = (pair for pair in layout.pairs if pair in old.pairs)
    kept = [pair for pair in both if is_same_generation(old.generations[pair[1]], layout.generations[pair[1]])]
    return _both([(layout.pairs[pair], old.pairs[pair]) for pair in kept])


def same_places(layout: Layout, old: Layout) -> tuple[Indexes, Indexes]:
    """Returns the partitions that both layouts have, as indexes into each table; a topic created again is another."""
    if old is layout:
        every = np.arange(layout.table_size)
        return every, every
    both = (topic for topic in layout.bases if topic in old.bases)
    kept = [topic for topic in both if is_same_generation(old.generations[topic], layout.generations[topic])]
    return _both([(layout.bases[topic], old.bases[topic]) for topic in kept])


def carried(former: Columns, fresh: Columns, rows: tuple[Indexes, Indexes]) -> Columns:
    """Fills `rows` of the columns of `fresh` from `former`, and returns it; `rows` has the indexes into each."""
    here, there = rows
    for name in (field.name for field in fields(fresh)):
        if isinstance(column := getattr(fresh, name), np.ndarray):
            column[here] = getattr(former, name)[there]
    return fresh


def _both(slices: Sequence[tuple[slice, slice]]) -> tuple[Indexes, Indexes]:
    """Returns the indexes of each two slices, as far as both go."""
    both = [(new.start, old.start, min(new.stop - new.start, old.stop - old.start)) for new, old in slices]
    starts, olds, counts = np.array(both, dtype=np.intp).reshape(-1, 3).T
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + number, np.repeat(olds, counts) + number
