"""The API group `external.metrics.k8s.io`: parse what is asked, ask the metrics, reply.

An encoded reply is kept and given again for as long as what it says is the newest that is known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from cachetools import LRUCache
from fastapi import Response

from adapter.choosing import Requirement
from adapter.metrics import Reading
from apiservice.access import Scope
from apiservice.label_selector import LabelRequirement, parse
from apiservice.negotiation import accept_and_agent, accepts_json, is_for_people
from apiservice.query_parameters import list_options
from apiservice.replies import GROUP, VERSION, external_metric_values, json_reply, pretty, warning_header
from apiservice.status import MethodNotAllowed, NotAcceptable, WatchNotAllowed

_NAMESPACES = f"/apis/{GROUP}/{VERSION}/namespaces/"
_MOST_BYTES_KEPT = 32 * 1024 * 1024
_LONGEST_KEPT = 2000
"""Bytes of a query. Longer ones are answered, but their replies not kept: what is kept must stay small."""
_LONGEST_SELECTOR_KEPT = 500
"""Characters of a selector that is kept parsed, which takes some thirty times as many bytes."""


class MetricSource(Protocol):
    """Where the numbers come from: `adapter.metrics.Metrics`."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def version(self) -> int: ...
    def read(self, metric: str, requirements: Sequence[Requirement]) -> Reading: ...


@dataclass(frozen=True, slots=True)
class _Kept:
    response: Response
    version: int
    valid_until: float

    def size(self) -> int:
        """Bytes in memory, roughly."""
        return len(self.response.body) + 2 * _LONGEST_KEPT


class ExternalMetrics:
    """Answers reads of single metrics, from memory. `monotonic` is the clock that readings are valid by, in seconds."""

    def __init__(self, metrics: MetricSource, monotonic: Callable[[], float]) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._spelled = {name.lower(): name for name in metrics.names}
        self._kept: LRUCache[tuple[str, bytes], _Kept] = LRUCache(_MOST_BYTES_KEPT, getsizeof=_Kept.size)

    def spelled(self, metric: str) -> str | None:
        """The metric's name as discovery lists it; None if it is not served."""
        return self._spelled.get(metric.lower())

    def answer(self, metric: str, scope: Scope) -> Response:
        """The reply to a read of `metric`; any AdapterError that `apiservice.status` knows."""
        if scope["method"] != "GET":
            raise MethodNotAllowed
        accept, agent = accept_and_agent(scope)
        if not accepts_json(accept):
            raise NotAcceptable
        query: bytes = scope["query_string"]
        kept = self._kept.get((metric, query))
        is_current = kept is not None and kept.version == self._metrics.version and self._monotonic() < kept.valid_until
        response = kept.response if kept is not None and is_current else self._read(metric, query)
        return pretty(response) if is_for_people(query, agent) else response

    def _read(self, metric: str, query: bytes) -> Response:
        options = list_options(query)
        if options.is_watch:
            raise WatchNotAllowed(GROUP)
        reading = self._metrics.read(metric, _requirements(options.label_selector))
        headers = {"warning": warning_header(reading.warnings)} if reading.warnings else {}
        body = external_metric_values(self.spelled(metric) or metric, reading.values)
        response = json_reply(body, headers=headers)
        self._keep(metric, query, _Kept(response, reading.version, reading.valid_until))
        return response

    def _keep(self, metric: str, query: bytes, kept: _Kept) -> None:
        if len(query) <= _LONGEST_KEPT and kept.size() <= _MOST_BYTES_KEPT:
            self._kept[metric, query] = kept


def metric_of(path: str) -> str | None:
    """The metric that a path asks for, as it is written there; None for any other path."""
    if not path.startswith(_NAMESPACES):
        return None
    namespace, _, metric = path.removeprefix(_NAMESPACES).removesuffix("/").partition("/")
    return metric if namespace and metric and "/" not in metric else None


def _requirements(selector: str) -> tuple[LabelRequirement, ...]:
    return _parse_and_keep(selector) if len(selector) <= _LONGEST_SELECTOR_KEPT else parse(selector)


_parse_and_keep = lru_cache(maxsize=1000)(parse)
