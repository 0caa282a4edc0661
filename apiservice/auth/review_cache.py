"""Caches the API server's reviews for a limited time."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from cachetools import LRUCache, TTLCache

from apiservice.auth.caller import Lane
from apiservice.single_flight import SingleFlight

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
        self._reviews: SingleFlight[Key, Answer] = SingleFlight()

    async def ask(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        """Returns the cached answer or asks. Errors are not cached."""
        for kept in (self._good, self._bad):
            with contextlib.suppress(KeyError):
                return kept[key]
        return await self._reviews.result(key, lambda: self._review(key, review, is_kept=is_kept))

    async def _review(self, key: Key, review: Callable[[Lane], Awaitable[Answer]], *, is_kept: bool) -> Answer:
        answer = await review(Lane.RENEWALS if key in self._seen_good else self._first_lane)
        if is_kept and self._is_good(answer):
            self._good[key] = answer
            self._seen_good[key] = None
        elif is_kept:
            self._bad[key] = answer
            self._seen_good.pop(key, None)
        return answer
