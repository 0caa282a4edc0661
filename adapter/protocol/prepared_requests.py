"""Requests that are encoded once and sent in every cycle.

They are kept while groups, leaders and coordinators do not change. Each keeps the shape of its last response, and what
was derived from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapter.protocol import offset_requests
from adapter.protocol.offset_requests import RawRequest
from adapter.protocol.offset_responses import Columns, Shape, commits_in, offsets_in
from adapter.settings.models import Isolation

LATEST, EARLIEST = -1, -2


@dataclass(slots=True, eq=False)
class CommitQuestion:
    """All commits of some groups, as known by `node`."""

    node: int
    groups: Sequence[str]
    _body: bytes = field(init=False)
    _shape: Shape | None = None

    def __post_init__(self) -> None:
        self._body = offset_requests.offset_fetch(self.groups).body

    def request(self) -> RawRequest:
        return RawRequest(offset_requests.OFFSET_FETCH, offset_requests.OFFSET_FETCH_VERSION, self._body)

    def columns(self, body: bytes) -> Columns:
        columns = commits_in(body, self._shape)
        self._shape = columns.shape
        return columns


@dataclass(slots=True, eq=False)
class OffsetQuestion:
    """One offset (LATEST or EARLIEST) of each partition, as known by the leader `node`."""

    node: int
    topics: Mapping[str, NDArray[np.integer]]
    timestamp: int
    isolation: Isolation
    _body: bytes = field(init=False)
    _shape: Shape | None = None

    def __post_init__(self) -> None:
        committed_only = self.isolation is Isolation.READ_COMMITTED
        self._body = offset_requests.list_offsets(self.topics, self.timestamp, committed_only=committed_only).body

    def request(self) -> RawRequest:
        return RawRequest(offset_requests.LIST_OFFSETS, offset_requests.LIST_OFFSETS_VERSION, self._body)

    def columns(self, body: bytes) -> Columns:
        columns = offsets_in(body, self._shape)
        self._shape = columns.shape
        return columns
