"""Runs work that would block the event loop in one thread, once for all who wait for the same result."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

Made = TypeVar("Made")


class SharedWork(Generic[Made]):
    """Runs one task at a time. For one event loop."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._under_way: dict[Hashable, asyncio.Future[Made]] = {}

    async def result(self, key: Hashable, work: Callable[[], Made]) -> Made:
        """Returns or raises the result for this key, shared with work in progress. Cancellation only stops waiting."""
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._under_way[key] = future
            future.add_done_callback(partial(self._forget, key))
        await asyncio.wait((future,))
        return future.result()

    def close(self) -> None:
        """Ends the thread: work in progress finishes, queued work is dropped."""
        self._thread.shutdown(cancel_futures=True)

    def _forget(self, key: Hashable, future: asyncio.Future[Made]) -> None:
        del self._under_way[key]
        if not future.cancelled():
            # Retrieve the error, or asyncio complains if nobody waits for it any more.
            future.exception()
