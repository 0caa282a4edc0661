"""What is asked cycle after cycle: encoded once; each question keeps the shape of its last response.

Questions are kept while groups, leaders and coordinators do not change. As long as responses have the same shape, what
was derived from it (where their rows belong) is not derived again.
"""

from __future__ import annotations

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
    """Everything that some groups have committed, as `node` knows it."""

    node: int
    groups: Sequence[str]
    _body: bytes = field(init=False)
    _shape: Shape | None = None

    def __post_init__(self) -> None:
        self._body = offset_requests.offset_fetch(self.groups).body

    def request(self) -> RawRequest:
        return RawRequest(offset_requests.OFFSET_FETCH, offset_requests.OFFSET_FETCH_VERSION, self._body)

    def columns(self, body: bytes) -> Columns:
        """The response's columns; raises MalformedResponse."""
        columns = commits_in(body, self._shape)
        self._shape = columns.shape
        return columns


@dataclass(slots=True, eq=False)
class OffsetQuestion:
    """One offset of each partition (LATEST or EARLIEST), as their leader `node` knows it."""

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
        """The response's columns; raises MalformedResponse."""
        columns = offsets_in(body, self._shape)
        self._shape = columns.shape
        return columns
