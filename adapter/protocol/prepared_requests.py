"""Requests that are encoded once and sent in every cycle.

They are kept while groups, leaders, coordinators and versions do not change. Each keeps the shape of its last
response."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from adapter.protocol.apis import FIRST_WITH_GROUPS, LIST_OFFSETS, OFFSET_FETCH, Api
from adapter.protocol.offset_requests import Partitions, RawRequest, list_offsets, offset_fetch
from adapter.protocol.offset_responses import Columns, Shape, commits_in, offsets_in
from adapter.settings.models import Isolation

LATEST, EARLIEST = -1, -2


class Question(ABC):
    """A request to `node`, encoded when it is sent: only then is it known which versions the broker offers."""

    api: Api

    def __init__(self, node: int) -> None:
        self.node = node
        self.oldest = self.api.oldest
        """The oldest version in which it can be asked."""
        self._version = -1
        self._body = b""
        self._shape: tuple[int, Shape] | None = None
        """Of the last response, and its version."""

    def request(self, version: int) -> RawRequest:
        if version != self._version:
            self._version, self._body = version, self._encoded(version).body
        return RawRequest(self.api, version, self._body)

    def columns(self, body: bytes, version: int) -> Columns:
        known = self._shape[1] if self._shape is not None and self._shape[0] == version else None
        columns = self._parsed(body, version, known)
        if columns.shape is not known:
            self._shape = version, columns.shape
        return columns

    @abstractmethod
    def _encoded(self, version: int) -> RawRequest: ...

    @abstractmethod
    def _parsed(self, body: bytes, version: int, known: Shape | None) -> Columns: ...


class CommitQuestion(Question):
    """All commits of some groups, of one before version 8, as known by `node`."""

    api = OFFSET_FETCH

    def __init__(self, node: int, groups: Sequence[str]) -> None:
        super().__init__(node)
        self.groups = groups
        if len(groups) > 1:
            self.oldest = FIRST_WITH_GROUPS

    def _encoded(self, version: int) -> RawRequest:
        return offset_fetch(self.groups, version)

    def _parsed(self, body: bytes, version: int, known: Shape | None) -> Columns:
        return commits_in(body, known, version, self.groups[0])


class OffsetQuestion(Question):
    """One offset (LATEST or EARLIEST) of each partition, as known by the leader `node`."""

    api = LIST_OFFSETS

    def __init__(
        self, node: int, partitions: Callable[[], Mapping[str, Partitions]], timestamp: int, isolation: Isolation
    ) -> None:
        """`partitions` returns topic -> partitions whenever the request is encoded; they are not kept beside it."""
        super().__init__(node)
        self._partitions = partitions
        self._timestamp = timestamp
        self._isolation = isolation

    def _encoded(self, version: int) -> RawRequest:
        return list_offsets(self._partitions(), self._timestamp, self._isolation, version)

    def _parsed(self, body: bytes, version: int, known: Shape | None) -> Columns:
        return offsets_in(body, known, version)
