"""Reads of the metrics in one API group: parses them, queries the metrics, replies.

Encoded replies are cached while they are current. Expensive ones are made in a separate thread."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache
from fastapi import Response

from adapter.metrics.access import Audience
from adapter.metrics.query import CHEAP_EFFORT, Metrics
from adapter.metrics.requirement import Requirement
from apiservice.api_group import ApiGroup
from apiservice.http.query_parameters import label_selector
from apiservice.http.replies import json_reply
from apiservice.metrics_api.encoding import metric_values, warning_header
from apiservice.metrics_api.label_selector import parse
from apiservice.single_flight import SingleFlight

_MOST_BYTES_KEPT = 32 * 1024 * 1024
_LONGEST_KEPT = 2000
"""Bytes of a query. Replies to longer ones are not cached, which bounds the memory."""


class ReplyKey(NamedTuple):
    """The key of a cached reply."""

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


class MetricReads:
    """Answers reads from memory. `monotonic` is the clock of `Reading.valid_until`, in seconds."""

    def __init__(self, group: ApiGroup, metrics: Callable[[], Metrics], monotonic: Callable[[], float]) -> None:
        self.group = group
        self._namespaces = f"{group.path}/namespaces/"
        self._metrics = metrics
        self._monotonic = monotonic
        self._names: tuple[str, ...] = ()
        self._spelled: dict[str, str] = {}
        self._kept: LRUCache[ReplyKey, _Kept] = LRUCache(_MOST_BYTES_KEPT, getsizeof=_Kept.size)
        self._large: SingleFlight[tuple[ReplyKey, int, str], _Kept] = SingleFlight()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-reads")

    @property
    def names(self) -> tuple[str, ...]:
        return self._metrics().names

    def read_of(self, path: str) -> tuple[str, str] | None:
        """Returns the namespace and the metric's name from the path of a read; None for other paths."""
        if not path.startswith(self._namespaces):
            return None
        namespace, _, metric = path.removeprefix(self._namespaces).removesuffix("/").partition("/")
        return (namespace, metric) if namespace and metric and "/" not in metric else None

    def spelled(self, metric: str) -> str | None:
        """Returns the metric's name as discovery lists it; None if it is not served."""
        names = self.names
        if names is not self._names:
            self._names, self._spelled = names, {name.lower(): name for name in names}
        return self._spelled.get(metric.lower())

    async def answer(self, namespace: str, metric: str, query: bytes) -> Response:
        metrics = self._metrics()
        version = metrics.version
        key = ReplyKey(metric, query, metrics.audience_of(namespace))
        kept = self._kept.get(key)
        if kept is None or kept.version != version or self._monotonic() >= kept.valid_until:
            kept = await self._made(metrics, key, version, namespace)
            if kept.version == version and len(query) <= _LONGEST_KEPT and kept.size() <= _MOST_BYTES_KEPT:
                self._kept[key] = kept
        return kept.response

    def close(self) -> None:
        """Ends the thread: work in progress finishes, queued work is dropped."""
        self._thread.shutdown(cancel_futures=True)

    async def _made(self, metrics: Metrics, key: ReplyKey, version: int, namespace: str) -> _Kept:
        """Makes the reply at once if that is cheap; otherwise once for all concurrent readers, in the thread."""
        # Parsing a very long query may take longer than answering it.
        if len(key.query) <= _LONGEST_KEPT:
            asked = self._asked(key.query)
            if metrics.effort(key.metric, asked, namespace) <= CHEAP_EFFORT:
                return self._make(metrics, key.metric, asked, namespace)

        def make() -> _Kept:
            return self._make(metrics, key.metric, self._asked(key.query), namespace)

        return await self._large.result(
            (key, version, namespace), lambda: asyncio.get_running_loop().run_in_executor(self._thread, make)
        )

    def _make(self, metrics: Metrics, metric: str, asked: Sequence[Requirement], namespace: str) -> _Kept:
        reading = metrics.read(metric, asked, namespace)
        headers = {"warning": warning_header(reading.warnings)} if reading.warnings else {}
        response = json_reply(metric_values(self.group, reading.metric, reading.values), headers=headers)
        return _Kept(response, reading.version, reading.valid_until)

    def _asked(self, query: bytes) -> tuple[Requirement, ...]:
        return parse(label_selector(query, self.group))
