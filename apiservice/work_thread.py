"""A thread for work that would delay the event loop. Its end is bounded, however long the work takes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


class WorkThread:
    """Does one piece of work after the other. It starts with the first piece; `initializer` runs in it before that."""

    def __init__(self, name: str, initializer: Callable[[], None] | None = None) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=initializer)
        self._ending: Thread | None = None

    def result(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Returns what the work will return. To cancel it is to drop work that has not begun."""
        return asyncio.get_running_loop().run_in_executor(self._pool, work)

    def stop(self, timeout_seconds: float) -> None:
        """Drops work that has not begun, and waits at most so long for the piece that has."""
        # The pool itself waits either without a limit or not at all.
        self._ending = Thread(target=partial(self._pool.shutdown, cancel_futures=True), daemon=True)
        self._ending.start()
        self._ending.join(timeout_seconds)

    @property
    def is_hanging(self) -> bool:
        """After `stop`: whether a piece of work is still in progress, for which the interpreter's exit would wait."""
        return self._ending is not None and self._ending.is_alive()
