"""Errors of what several callers wait for; that they share it is shown by reviews and large reads."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from apiservice.single_flight import SingleFlight


class Failing:
    """Work that fails once it is let through."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.begun = self.ended = 0

    async def __call__(self) -> int:
        self.begun += 1
        try:
            await self.gate.wait()
        finally:
            self.ended += 1
        raise ValueError("no number")


def complaints_of(asking: Callable[[SingleFlight[str, int], Failing], Awaitable[None]]) -> list[str]:
    """What asyncio complains about meanwhile."""
    complaints: list[str] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
        await asking(SingleFlight(), Failing())
        gc.collect()

    asyncio.run(run())
    return complaints


def test_an_error_goes_to_all_who_wait_and_is_not_kept() -> None:
    async def ask(shared: SingleFlight[str, int], work: Failing) -> None:
        work.gate.set()
        for _ in range(2):
            errors = await asyncio.gather(*(shared.result("one", work) for _ in range(3)), return_exceptions=True)
            assert [str(each) for each in errors] == ["no number"] * 3
        assert work.begun == 2

    assert complaints_of(ask) == []


def test_an_error_without_waiting_callers_causes_no_complaint() -> None:
    async def ask(shared: SingleFlight[str, int], work: Failing) -> None:
        only = asyncio.create_task(shared.result("one", work))
        await asyncio.sleep(0)
        only.cancel()
        await asyncio.wait((only,))
        work.gate.set()
        with pytest.raises(ValueError, match="no number"):
            await shared.result("another", work)

    assert complaints_of(ask) == []


def test_work_for_which_nobody_waits_any_more_is_cancelled_and_begun_again_for_others() -> None:
    async def ask(shared: SingleFlight[str, int], work: Failing) -> None:
        leaving, staying = (asyncio.create_task(shared.result("one", work)) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait((leaving,))
        assert work.ended == 0, "another one waits"

        staying.cancel()
        await asyncio.sleep(0)
        other = asyncio.create_task(shared.result("one", work))
        await asyncio.wait((staying,))
        await asyncio.sleep(0)
        work.gate.set()
        with pytest.raises(ValueError, match="no number"):
            await other
        assert (work.begun, work.ended) == (2, 2)

    assert complaints_of(ask) == []


class NoNumber(Exception):
    """An error that can be weakly referenced, so that a test sees when it is freed."""


def test_an_error_leaves_memory_at_once() -> None:
    """Strangers could otherwise make errors, with all that their requests sent, faster than they are collected."""

    async def fail() -> int:
        raise NoNumber

    async def ask() -> weakref.ref[NoNumber]:
        try:
            await SingleFlight[str, int]().result("one", fail)
        except NoNumber as error:
            return weakref.ref(error)
        raise AssertionError("there is no error")

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(ask())() is None
    finally:
        gc.enable()
