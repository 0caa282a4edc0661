"""One answer for all who ask the same at the same time."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class SingleFlight(Generic[Key, Answer]):
    """For one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[Key, asyncio.Future[Answer]] = {}
        self._waiting: Counter[asyncio.Future[Answer]] = Counter()

    async def result(self, key: Key, make: Callable[[], Awaitable[Answer]]) -> Answer:
        """Returns or raises what `make` of the first who asked does, which is cancelled when nobody waits any more."""
        future = self._under_way.get(key)
        if future is None:
            self._under_way[key] = future = asyncio.ensure_future(make())
            future.add_done_callback(partial(self._forget, key))
        self._waiting[future] += 1
        try:
            await asyncio.wait((future,))
        finally:
            self._waiting[future] -= 1
            if not self._waiting[future]:
                del self._waiting[future]
                self._forget(key, future)
                future.cancel()  # without effect once it is done
        try:
            return future.result()
        finally:
            del future  # its error refers back to this frame

    def _forget(self, key: Key, future: "asyncio.Future[Answer]") -> None:
        if self._under_way.get(key) is future:
            del self._under_way[key]
        if future.done() and not future.cancelled():
            future.exception()  # retrieve it, or asyncio complains if nobody waits any more
