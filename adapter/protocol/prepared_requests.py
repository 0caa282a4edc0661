"""Requests that are encoded once and sent in every cycle.

They are kept while groups, leaders and coordinators do not change. Each keeps the shape of its last response."""

from collections.abc import Callable, Mapping, Sequence

from adapter.protocol.offset_requests import Partitions, RawRequest, list_offsets, offset_fetch
from adapter.protocol.offset_responses import Columns, Shape, commits_in, offsets_in
from adapter.settings.models import Isolation

LATEST, EARLIEST = -1, -2


class Question:
    """A request to `node`."""

    def __init__(self, node: int, request: RawRequest, parse: Callable[[bytes, Shape | None], Columns]) -> None:
        self.node = node
        self._encoded = (request.API_KEY, request.API_VERSION, request.body)
        self._parse = parse
        self._shape: Shape | None = None

    def request(self) -> RawRequest:
        return RawRequest(*self._encoded)

    def columns(self, body: bytes) -> Columns:
        columns = self._parse(body, self._shape)
        self._shape = columns.shape
        return columns


class CommitQuestion(Question):
    """All commits of some groups, as known by `node`."""

    def __init__(self, node: int, groups: Sequence[str]) -> None:
        super().__init__(node, offset_fetch(groups), commits_in)
        self.groups = groups


class OffsetQuestion(Question):
    """One offset (LATEST or EARLIEST) of each partition, as known by the leader `node`."""

    def __init__(self, node: int, topics: Mapping[str, Partitions], timestamp: int, isolation: Isolation) -> None:
        super().__init__(node, list_offsets(topics, timestamp, isolation), offsets_in)
