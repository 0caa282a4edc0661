"""Work that would hold up the event loop, done by one thread beside it, once for all who wait for the same."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

Made = TypeVar("Made")


class SharedWork(Generic[Made]):
    """One piece of work at a time; its thread is started with the first. For one event loop at a time."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._under_way: dict[Hashable, asyncio.Future[Made]] = {}

    async def result(self, key: Hashable, work: Callable[[], Made]) -> Made:
        """What the work gives or raises, from the work under way for this key if there is any.

        Whoever is cancelled stops waiting; the work goes on for the others.
        """
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._under_way[key] = future
            future.add_done_callback(partial(self._forget, key))
        await asyncio.wait((future,))
        return future.result()

    def close(self) -> None:
        """End the thread: what is under way is finished, what waits is dropped, nothing more is taken."""
        self._thread.shutdown(cancel_futures=True)

    def _forget(self, key: Hashable, future: asyncio.Future[Made]) -> None:
        del self._under_way[key]
        if not future.cancelled():
            # Whoever still waits gets the error; where nobody does, asyncio would complain that nobody took it.
            future.exception()
