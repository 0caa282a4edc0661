"""Reads of the metrics in one version of an API group: parses them, queries the metrics, replies.

Encoded replies are cached while they are current. Expensive ones are made in a separate thread."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache
from fastapi import Response

from adapter.errors import MetricUnknown
from adapter.metrics.access import Audience
from adapter.metrics.aggregation import total_of
from adapter.metrics.members import MemberReading
from adapter.metrics.query import CHEAP_EFFORT, Metrics, Reading
from adapter.metrics.requirement import Requirement
from apiservice.api_group import ApiGroup
from apiservice.http.query_parameters import selectors_in
from apiservice.http.read_paths import ALL, KINDS, PODS, Handle, Kind, Read, reads_of
from apiservice.http.replies import json_reply
from apiservice.metrics_api.discovery import resources_of
from apiservice.metrics_api.encoding import metric_values, object_values, warning_header
from apiservice.metrics_api.label_selector import document_of, parse
from apiservice.pods.values import PodQuery, PodsOf, effort_of, values_of_pods
from apiservice.single_flight import SingleFlight
from apiservice.work_thread import WorkThread

_MOST_BYTES_KEPT = 32 * 1024 * 1024
_LONGEST_KEPT = 2000
"""Bytes of a query. Replies to longer ones are not cached, which bounds the memory."""


KindOf = Callable[[str], Awaitable[Kind | None]]
"""Returns the kind of a resource; None if it is not known."""


async def _no_kind(_: str) -> None:
    return None


class ReplyKey(NamedTuple):
    """The key of a cached reply."""

    place: str | tuple[str, Handle]
    """The path of the group's version, with the object that the reply describes."""
    metric: str
    query: bytes
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class _Kept:
    response: Response
    version: int
    valid_until: float

    def size(self) -> int:
        """Bytes in memory, roughly."""
        return len(self.response.body) + 2 * _LONGEST_KEPT


class _Asked(NamedTuple):
    metric: tuple[Requirement, ...]
    """Over the labels of the metric."""
    objects: tuple[Requirement, ...] = ()
    """Over those of objects, of which only pods are looked up."""


class Replies:
    """Those of all groups: the cached ones, and the thread for expensive ones.

    `monotonic` is the clock of `Reading.valid_until`, in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self.kept: LRUCache[ReplyKey, _Kept] = LRUCache(_MOST_BYTES_KEPT, getsizeof=_Kept.size)
        self.large: SingleFlight[tuple[ReplyKey, int, str], _Kept] = SingleFlight()
        self.thread = WorkThread("large-reads")


class MetricReads:
    """Answers reads from memory. `pods_in` returns the pods of a namespace, for metrics of pods; `kind_of` what the
    cluster knows of a resource."""

    def __init__(
        self,
        group: ApiGroup,
        metrics: Callable[[], Metrics],
        replies: Replies,
        pods_in: PodsOf = lambda _: None,
        kind_of: KindOf = _no_kind,
    ) -> None:
        self.group = group
        self.read_of = reads_of(group)
        """Returns what a path reads; None for other paths."""
        self.path = group.path
        self._metrics = metrics
        self._replies = replies
        self._pods_in = pods_in
        self._kind_of = kind_of
        self._names: tuple[str, ...] = ()
        self._spelled: dict[str, str] = {}

    @property
    def resources(self) -> tuple[str, ...]:
        """Returns what discovery lists."""
        metrics = self._metrics()
        return resources_of(metrics.names, metrics.names_of_members) if self.group.describes_objects else metrics.names

    def spelled(self, metric: str) -> str | None:
        """Returns the metric's name as it is defined; None if it is not served."""
        names = self._metrics().names
        if names is not self._names:
            self._names, self._spelled = names, {name.lower(): name for name in names}
        return self._spelled.get(metric.lower())

    async def answer(self, read: Read, query: bytes) -> Response:
        metrics, replies = self._metrics(), self._replies
        version = metrics.version
        place = self.path if read.handle is None else (self.path, read.handle)
        key = ReplyKey(place, read.metric, query, metrics.audience_of(read.namespace))
        kept = replies.kept.get(key)
        if kept is None or kept.version != version or replies.monotonic() >= kept.valid_until:
            kept = await self._made(metrics, key, version, read)
            is_short = len(query) <= _LONGEST_KEPT and kept.size() <= _MOST_BYTES_KEPT
            # Pods come and go between two cycles.
            if kept.version == version and is_short and not _is_of_pods(read):
                replies.kept[key] = kept
        return kept.response

    async def _made(self, metrics: Metrics, key: ReplyKey, version: int, read: Read) -> _Kept:
        """Makes the reply at once if that is cheap; otherwise once for all concurrent readers, in the thread."""
        kind = await self._kind(read.handle)
        # Parsing a very long query may take longer than answering it.
        if len(key.query) <= _LONGEST_KEPT:
            asked = self._asked(key.query)
            if self._effort(metrics, read, asked) <= CHEAP_EFFORT:
                return self._make(metrics, read, asked, kind)

        def make() -> _Kept:
            return self._make(metrics, read, self._asked(key.query), kind)

        return await self._replies.large.result(
            (key, version, read.namespace),
            lambda: self._replies.thread.result(make),
        )

    async def _kind(self, handle: Handle | None) -> Kind | None:
        return None if handle is None else KINDS.get(handle.resource) or await self._kind_of(handle.resource)

    def _effort(self, metrics: Metrics, read: Read, asked: _Asked) -> int:
        if not _is_of_pods(read):
            return metrics.effort(read.metric, asked.metric, read.namespace)
        of_members = metrics.effort_of_members(read.metric, asked.metric, read.namespace)
        return of_members + effort_of(_pods_asked(read, asked), self._pods_in)

    def _make(self, metrics: Metrics, read: Read, asked: _Asked, kind: Kind | None) -> _Kept:
        if read.handle is None:
            reading = metrics.read(read.metric, asked.metric, read.namespace)
            return _kept(metric_values(self.group, reading.metric, reading.values), reading, reading.warnings)
        selector = document_of(asked.metric)
        if read.handle.resource == PODS:
            members = metrics.read_members(read.metric, asked.metric, read.namespace)
            values = values_of_pods(_pods_asked(read, asked), members, self._pods_in)
            described = [(read.handle.document(kind, pod), value) for pod, value in values.items()]
            return _kept(object_values(self.group, members.metric, selector, described), members)
        reading = _of_object(metrics, read, asked.metric)
        described = [(read.handle.document(kind), total_of(reading.values))]
        return _kept(object_values(self.group, reading.metric, selector, described), reading, reading.warnings)

    def _asked(self, query: bytes) -> _Asked:
        selectors = selectors_in(query, self.group)
        if self.group.describes_objects:
            return _Asked(parse(selectors.metric_labels), parse(selectors.labels))
        return _Asked(parse(selectors.labels))


def _is_of_pods(read: Read) -> bool:
    return read.handle is not None and read.handle.resource == PODS


def _pods_asked(read: Read, asked: _Asked) -> PodQuery:
    name = "" if read.handle is None or read.handle.name == ALL else read.handle.name
    return PodQuery(read.namespace, name, asked.objects)


def _of_object(metrics: Metrics, read: Read, asked: Sequence[Requirement]) -> Reading:
    """An object has one value: the sum of what an external metric would list, and never a part of it."""
    if read.handle is not None and read.handle.name == ALL:
        resource = read.handle.resource
        raise MetricUnknown(f"metric {read.metric[:80]!r} is not served for all {resource[:80]}: name one of them")
    return metrics.read(read.metric, asked, read.namespace, may_list=False)


def _kept(body: bytes, reading: Reading | MemberReading, warnings: Sequence[str] = ()) -> _Kept:
    headers = {"warning": warning_header(warnings)} if warnings else {}
    return _Kept(json_reply(body, headers=headers), reading.version, reading.valid_until)
