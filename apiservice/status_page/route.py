"""The routes of the HTTPS port: pages are made in a thread of their own, and reused for whoever asks soon after."""

import threading
from functools import partial

from cachetools import TTLCache
from fastapi import APIRouter, Response

from adapter import clock
from adapter.conditions import Conditions
from adapter.metrics.query import LAG
from adapter.overview.trends import TrendsFollower
from adapter.reload.live_metrics import LiveMetrics
from adapter.settings.models import Settings
from apiservice.api_group import EXTERNAL
from apiservice.autoscalers.followed import Autoscalers
from apiservice.http.replies import json_reply
from apiservice.http.status import TooManyReaders
from apiservice.pods.values import PodsOf
from apiservice.single_flight import SingleFlight
from apiservice.status_page.page import Sources, page_of
from apiservice.work_thread import WorkThread

MOST_AT_ONCE = 4
"""Pages that are made or wait for it."""
REST = 2.0
"""How much longer than it has worked the thread rests before the next page: while it works, each read waits for the
interpreter several times."""
LONGEST_REST_SECONDS = 1.0
REUSED_SECONDS = 10.0
"""Numbers change once a cycle, which takes as long by default, and a page says when it was made."""
MOST_REUSED = 16


class StatusPage:
    """From `start` to `stop`, it follows the lags of all groups."""

    def __init__(
        self,
        metrics: LiveMetrics,
        autoscalers: Autoscalers,
        conditions: Conditions,
        replica: str,
        version: str,
        pods_in: PodsOf = lambda _: None,
    ) -> None:
        self._metrics, self._autoscalers, self._conditions = metrics, autoscalers, conditions
        self._replica, self._version, self._pods_in = replica, version, pods_in
        self._trends = TrendsFollower(lambda: metrics.current)
        self._thread, self._stopping = WorkThread("status-page"), threading.Event()
        self._pages: SingleFlight[str | None, Response] = SingleFlight()
        self._reused: TTLCache[str | None, tuple[Settings, Response]] = TTLCache(
            MOST_REUSED, REUSED_SECONDS, timer=clock.monotonic
        )
        """With the settings, which say what a namespace may read."""
        self.under_way = 0
        self._rested_at = 0.0
        """Until then, the thread rests."""
        self.router = APIRouter()
        self.router.add_api_route("/status", self._for_everything, methods=["GET"], response_class=Response)
        below = f"{EXTERNAL.path}/namespaces/{{namespace}}/{LAG}"
        self.router.add_api_route(below, self._in_namespace, methods=["GET"], response_class=Response)

    def start(self) -> None:
        self._trends.start()

    def stop(self, timeout_seconds: float) -> None:
        """Drops pages that have not begun; waits until then for the one that is being made."""
        ends_at = clock.monotonic() + timeout_seconds
        self._stopping.set()
        self._trends.stop(timeout_seconds)
        self._thread.stop(max(ends_at - clock.monotonic(), 0.0))

    @property
    def is_hanging(self) -> bool:
        """After `stop`: whether a page is still being made."""
        return self._thread.is_hanging

    async def _for_everything(self) -> Response:
        return await self._page(None)

    async def _in_namespace(self, namespace: str) -> Response:
        return await self._page(namespace)

    async def _page(self, namespace: str | None) -> Response:
        settings = self._metrics.settings
        made_with, page = self._reused.get(namespace, (None, None))
        if page is None or made_with is not settings:
            page = await self._pages.result(namespace, lambda: self._made(namespace))
            self._reused[namespace] = settings, page
        return page

    async def _made(self, namespace: str | None) -> Response:
        if self.under_way >= MOST_AT_ONCE:
            raise TooManyReaders(f"{MOST_AT_ONCE} other status pages are being made at the moment")
        self.under_way += 1
        try:
            return await self._thread.result(partial(self._make, namespace))
        finally:
            self.under_way -= 1

    def _make(self, namespace: str | None) -> Response:
        if self._stopping.wait(max(self._rested_at - clock.monotonic(), 0.0)):
            raise TooManyReaders("this replica ends")
        began = clock.monotonic()
        response = self._html(namespace)
        worked = clock.monotonic() - began
        self._rested_at = began + worked + min(REST * worked, LONGEST_REST_SECONDS)
        return response

    def _html(self, namespace: str | None) -> Response:
        # Loaded with the first page, because Jinja2 takes 2 MB.
        from apiservice.status_page.rendering import html_of, security_policy  # noqa: PLC0415 - see above

        headers = {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": security_policy(),
            "referrer-policy": "no-referrer",
        }
        return json_reply(html_of(page_of(self._sources(), namespace)), headers=headers)

    def _sources(self) -> Sources:
        return Sources(
            self._metrics.current,
            self._metrics.settings,
            self._conditions,
            self._autoscalers.current,
            self._trends.current,
            clock,
            self._replica,
            self._version,
            self._pods_in,
        )
