"""The upstream of the settings in force: reads are passed on to it, and its metrics are listed beside ours.

read ──► access review ──► ours? ──► MetricReads
                             └ no ──► circuit ──► a thread of the upstream ──► its reply, or 503"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from fastapi import Response

from adapter import clock
from adapter.conditions import Conditions, Definition
from adapter.repeating import Repeating
from adapter.settings import models as settings
from apiservice.api_group import ApiGroup
from apiservice.http.read_paths import Read
from apiservice.http.status import UpstreamUnavailable
from apiservice.upstream.circuit import PAUSE_SECONDS, Circuit
from apiservice.upstream.client import ANSWER_SECONDS, MOST_AT_ONCE, UpstreamClient
from apiservice.upstream.documents import merged, names_in, path_of, response_of

THREADS = "upstream"
LOOK_SECONDS = 1.0
LIST_SECONDS = 30.0
"""kube-apiserver asks for the list every 60 s."""


class Upstream:
    """`listed`: the version of the API group whose list of metrics is read."""

    def __init__(
        self,
        listed: ApiGroup,
        wanted: settings.UpstreamSettings,
        authorization: Callable[[], str],
        threads: ThreadPoolExecutor,
        monotonic: Callable[[], float],
    ) -> None:
        self.names: tuple[str, ...] = ()
        """The metrics of its last known list."""
        self.client = UpstreamClient(wanted, authorization)
        self._group = listed
        self._threads = threads
        self._circuit = Circuit(monotonic)
        self._list_problem = ""

    @property
    def problem(self) -> str:
        """Returns why its metrics are unavailable; empty: they are not."""
        return self._circuit.problem or self._list_problem

    async def answer(self, group: ApiGroup, read: Read, query: bytes) -> Response:
        """Returns its values or its Status; raises UpstreamUnavailable, or what a read of our own metrics raises."""
        path = path_of(group, read, query)
        if not self._circuit.admits():
            raise UpstreamUnavailable(f"{self._circuit.reason}; it is asked again every {PAUSE_SECONDS:g} s")
        before = self._circuit.answers
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await asyncio.get_running_loop().run_in_executor(self._threads, self._asked, group, path)
        except TimeoutError:
            error = self.client.unavailable("does not answer in time")
            self._circuit.fail(str(error), before)
            raise error from None
        except UpstreamUnavailable as error:
            self._circuit.fail(str(error), before)
            raise
        self._circuit.succeed()
        if isinstance(response, str):
            raise self.client.unavailable(response)
        return response

    def list_metrics(self) -> None:
        """Renews the list, and the authority in its file; a failure keeps the last one."""
        try:
            self.client.trust()
            listed = names_in(self._group, self.client.get(self._group.path))
            if isinstance(listed, str):
                raise self.client.unavailable(listed)
            self.names, self._list_problem = listed, ""
        except UpstreamUnavailable as error:
            self._list_problem = str(error)

    def _asked(self, group: ApiGroup, path: str) -> Response | str:
        return response_of(group, self.client.get(path))


class Upstreams(Repeating):
    """Follows the settings: `wanted` returns those in force. A thread renews the list and the condition.

    `groups`: the versions of the API group that the upstream is asked for."""

    def __init__(
        self,
        groups: tuple[ApiGroup, ...],
        condition: Definition,
        wanted: Callable[[], settings.UpstreamSettings | None],
        authorization: Callable[[], str],
        conditions: Conditions,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        super().__init__(f"{condition.name}-list")
        self.groups = groups
        self._condition = condition
        self._conditions = conditions
        self._wanted = wanted
        self._monotonic = monotonic
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, THREADS)
        self._of = lru_cache(1)(lambda wanted: Upstream(groups[0], wanted, authorization, self._threads, monotonic))
        self._listed: Upstream | None = None
        self._due = 0.0

    @property
    def current(self) -> Upstream | None:
        wanted = self._wanted()
        return None if wanted is None else self._of(wanted)

    def names_beside(self, ours: tuple[str, ...]) -> tuple[str, ...]:
        """Returns what discovery lists."""
        upstream = self.current
        return ours if upstream is None else merged(ours, upstream.names)

    def stop(self, timeout_seconds: float) -> None:
        super().stop(timeout_seconds)
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def is_hanging(self) -> bool:
        """After `stop`: whether a thread still waits, as for a name server or for a reply that comes byte by byte."""
        return any(thread.name.startswith(f"{THREADS}_") for thread in threading.enumerate())

    def turn(self) -> float:
        upstream = self.current
        if upstream is not None and (upstream is not self._listed or self._monotonic() >= self._due):
            self._listed, self._due = upstream, self._monotonic() + LIST_SECONDS
            upstream.list_metrics()
        if upstream is None:
            self._conditions.forget(name=self._condition.name)
        elif upstream.problem:
            self._conditions.fails(self._condition, "Unavailable", "requests to it fail", details=upstream.problem)
        else:
            self._conditions.holds(self._condition)
        return LOOK_SECONDS
