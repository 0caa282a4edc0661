"""Caches the API server's reviews for a limited time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from cachetools import LRUCache, TTLCache

from apiservice.auth.caller import Lane, ReviewUnavailable
from apiservice.auth.cluster_settings import ClusterUnreachable

Key = TypeVar("Key")
Answer = TypeVar("Answer")

MOST_KEPT = 4096  # answers of one kind


class ReviewCache(Generic[Key, Answer]):
    """Callers with the same question share one review. Positive answers are cached separately, so that negative ones
    cannot evict them."""

    def __init__(
        self,
        is_good: Callable[[Answer], bool],
        kept_seconds: tuple[float, float],
        clock: Callable[[], float],
        first_lane: Lane,
    ) -> None:
        good_seconds, bad_seconds = kept_seconds
        self._is_good = is_good
        self._good: TTLCache[Key, Answer] = TTLCache(MOST_KEPT, good_seconds, clock)
        self._bad: TTLCache[Key, Answer] = TTLCache(MOST_KEPT, bad_seconds, clock)
        self._seen_good: LRUCache[Key, None] = LRUCache(MOST_KEPT)
        self._first_lane = first_lane
        self._under_way: dict[Key, asyncio.Task[Answer]] = {}

    async def ask(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        """Returns the cached answer or asks. ReviewUnavailable is not cached."""
        for kept in (self._good, self._bad):
            with contextlib.suppress(KeyError):
                return kept[key]
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._review(key, review, is_kept=is_kept))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        # Shielded: a client that disconnects must not cancel the review for the others.
        return await asyncio.shield(task)

    async def _review(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        try:
            answer = await review(Lane.RENEWALS if key in self._seen_good else self._first_lane)
        except ClusterUnreachable as error:
            raise ReviewUnavailable(str(error)) from error
        if is_kept and self._is_good(answer):
            self._good[key] = answer
            self._seen_good[key] = None
        elif is_kept:
            self._bad[key] = answer
            self._seen_good.pop(key, None)
        return answer

    def _finish(self, key: Key, done: asyncio.Task[Answer]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # retrieve it, or asyncio complains if every client disconnected
