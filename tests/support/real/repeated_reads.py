"""Reads that a test repeats while something changes."""

import threading
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

from local.processes import wait_until

Reply = TypeVar("Reply")


@contextmanager
def repeated(read: Callable[[], Reply]) -> Iterator[list[Reply]]:
    """Repeats the read in a thread of its own; yields the replies so far."""
    replies: list[Reply] = []
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(0.05):
            replies.append(read())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield replies
    finally:
        is_over.set()
        thread.join()


def wait_for_more(replies: Sized, count: int = 20) -> None:
    wanted = len(replies) + count
    wait_until(lambda: len(replies) >= wanted, f"{count} more reads", 60.0)
