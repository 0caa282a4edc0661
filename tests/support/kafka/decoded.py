"""What the adapter reads from a response's bytes, as dictionaries that a test can look at."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.protocol.offset_responses import Columns, commits_in, offsets_in


@dataclass(frozen=True)
class Offsets:
    """Some partitions of one topic, in the order of the wire."""

    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    error: NDArray[np.int16]

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        return list(zip(self.partition.tolist(), self.offset.tolist(), self.error.tolist(), strict=True))


@dataclass(frozen=True)
class GroupCommits:
    error: int
    topics: dict[str, Offsets]

    @property
    def plain(self) -> tuple[int, dict[str, list[tuple[int, int, int]]]]:
        return self.error, {topic: rows.rows for topic, rows in self.topics.items()}


def commits_in_bytes(body: bytes) -> dict[str, GroupCommits]:
    return by_group(commits_in(body))


def offsets_in_bytes(body: bytes) -> dict[str, Offsets]:
    return by_topic(offsets_in(body))


def by_group(columns: Columns) -> dict[str, GroupCommits]:
    errors = columns.group_error.tolist()
    found = [GroupCommits(error, {}) for error in errors]
    for number, block in zip(columns.shape.group.tolist(), _blocks(columns), strict=True):
        found[number].topics[block[0]] = block[1]
    return dict(zip(columns.shape.groups, found, strict=True))


def by_topic(columns: Columns) -> dict[str, Offsets]:
    return dict(_blocks(columns))


def _blocks(columns: Columns) -> Iterator[tuple[str, Offsets]]:
    begin = 0
    for topic, size in zip(columns.shape.topics, columns.shape.sizes.tolist(), strict=True):
        rows = slice(begin, begin + size)
        yield topic, Offsets(columns.shape.partition[rows], columns.offset[rows], columns.error[rows])
        begin += size
