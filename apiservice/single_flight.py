"""One answer for all who ask the same at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class SingleFlight(Generic[Key, Answer]):
    """For one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[Key, asyncio.Future[Answer]] = {}

    async def result(self, key: Key, make: Callable[[], Awaitable[Answer]]) -> Answer:
        """Returns or raises what `make` of the first who asked does. Cancellation only stops waiting."""
        future = self._under_way.get(key)
        if future is None:
            self._under_way[key] = future = asyncio.ensure_future(make())
            future.add_done_callback(partial(self._forget, key))
        await asyncio.wait((future,))
        return future.result()

    def _forget(self, key: Key, future: "asyncio.Future[Answer]") -> None:
        del self._under_way[key]
        if not future.cancelled():
            future.exception()  # retrieve it, or asyncio complains if nobody waits any more
