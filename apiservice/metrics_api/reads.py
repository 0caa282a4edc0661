"""Reads of the metrics in one API group: parses them, queries the metrics, replies.

Encoded replies are cached while they are current. Expensive ones are made in a separate thread."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from cachetools import LRUCache
from fastapi import Response

from adapter.metrics.access import Audience
from adapter.metrics.query import CHEAP_EFFORT, Metrics
from adapter.metrics.requirement import Requirement
from apiservice.api_group import ApiGroup
from apiservice.auth.caller import Scope
from apiservice.http.negotiation import check_read, is_for_people
from apiservice.http.query_parameters import label_selector
from apiservice.http.replies import json_reply, pretty
from apiservice.http.worker import SharedWork
from apiservice.metrics_api.encoding import metric_values, warning_header
from apiservice.metrics_api.label_selector import parse

_MOST_BYTES_KEPT = 32 * 1024 * 1024
_LONGEST_KEPT = 2000
"""Bytes of a query. Replies to longer ones are not cached, which bounds the memory."""
_LONGEST_SELECTOR_KEPT = 500
"""Characters of a selector; a parsed one takes about thirty times as many bytes."""
_MOST_AT_ONCE = CHEAP_EFFORT
"""Below that, handing over to a thread costs more."""


class Question(NamedTuple):
    """The key of a cached reply."""

    metric: str
    query: bytes
    is_indented: bool
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
        self._kept: LRUCache[Question, _Kept] = LRUCache(_MOST_BYTES_KEPT, getsizeof=_Kept.size)
        self._large: SharedWork[_Kept] = SharedWork("large-reads")

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

    async def answer(self, namespace: str, metric: str, scope: Scope) -> Response:
        agent, query = check_read(scope), scope["query_string"]
        metrics = self._metrics()
        version = metrics.version
        question = Question(metric, query, is_for_people(query, agent), metrics.audience_of(namespace))
        kept = self._kept.get(question)
        if kept is None or kept.version != version or self._monotonic() >= kept.valid_until:
            kept = await self._made(metrics, question, version, namespace)
            if kept.version == version and len(query) <= _LONGEST_KEPT and kept.size() <= _MOST_BYTES_KEPT:
                self._kept[question] = kept
        return kept.response

    def close(self) -> None:
        self._large.close()

    async def _made(self, metrics: Metrics, question: Question, version: int, namespace: str) -> _Kept:
        """Makes the reply at once if that is cheap; otherwise once for all concurrent readers, in the thread."""
        make = partial(self._make, metrics, question, namespace)
        # Parsing a very long query may take longer than answering it.
        if len(question.query) <= _LONGEST_KEPT:
            asked = _asked(question.query, self.group)
            if metrics.effort(question.metric, asked, namespace) <= _MOST_AT_ONCE:
                return make()
        return await self._large.result((question, version, namespace), make)

    def _make(self, metrics: Metrics, question: Question, namespace: str) -> _Kept:
        reading = metrics.read(question.metric, _asked(question.query, self.group), namespace)
        headers = {"warning": warning_header(reading.warnings)} if reading.warnings else {}
        response = json_reply(metric_values(self.group, reading.metric, reading.values), headers=headers)
        return _Kept(pretty(response) if question.is_indented else response, reading.version, reading.valid_until)


def _asked(query: bytes, group: ApiGroup) -> tuple[Requirement, ...]:
    selector = label_selector(query, group)
    return _parse_and_keep(selector) if len(selector) <= _LONGEST_SELECTOR_KEPT else parse(selector)


_parse_and_keep = lru_cache(maxsize=1000)(parse)
