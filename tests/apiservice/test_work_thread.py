"""The thread for work beside the event loop: its end waits for work in progress, but no longer than it may."""

import asyncio
import threading
from functools import partial

import pytest

from apiservice.work_thread import WorkThread
from local.processes import wait_until

WAIT_SECONDS = 60.0


class Work:
    """Begins, and ends once it may."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def do(self) -> str:
        self.begun.set()
        assert self.may_end.wait(WAIT_SECONDS)
        return threading.current_thread().name


async def stopped_during(work: Work, thread: WorkThread, timeout_seconds: float) -> bool:
    """Returns whether the thread hangs after a stop during this work, which ends later."""
    result = thread.result(work.do)
    await asyncio.to_thread(work.begun.wait, WAIT_SECONDS)
    await asyncio.to_thread(thread.stop, timeout_seconds)
    is_hanging = thread.is_hanging
    work.may_end.set()
    assert (await result).startswith("readings")
    await asyncio.to_thread(wait_until, lambda: not thread.is_hanging, "the end of the thread", WAIT_SECONDS)
    return is_hanging


def test_work_that_outlasts_the_time_of_the_end_hangs() -> None:
    assert asyncio.run(stopped_during(Work(), WorkThread("readings"), 0.01))


def test_the_end_waits_for_work_in_progress() -> None:
    work = Work()
    threading.Timer(0.05, work.may_end.set).start()

    assert not asyncio.run(stopped_during(work, WorkThread("readings"), WAIT_SECONDS))


def test_work_that_has_not_begun_is_dropped_at_the_end() -> None:
    thread, first, done = WorkThread("readings"), Work(), list[str]()

    async def stop_with_two() -> None:
        in_progress, waiting = thread.result(first.do), thread.result(partial(done.append, "second"))
        await asyncio.to_thread(first.begun.wait, WAIT_SECONDS)
        await asyncio.to_thread(thread.stop, 0.01)
        first.may_end.set()
        await in_progress
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(stop_with_two())

    assert done == []


def test_a_thread_without_work_ends_at_once() -> None:
    thread = WorkThread("readings")
    thread.stop(WAIT_SECONDS)

    assert not thread.is_hanging
