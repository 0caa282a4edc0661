import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from apiservice.http.worker import SharedWork
from tests.support.kubernetes.fakes import GATE_SECONDS


class Gated:
    """Work that waits to be let through, and counts how often it was begun."""

    def __init__(self, error: Exception | None = None) -> None:
        self.gate = threading.Event()
        self.begun = 0
        self._error = error

    def __call__(self) -> int:
        self.begun += 1
        assert self.gate.wait(GATE_SECONDS), "nobody opened the gate"
        if self._error is not None:
            raise self._error
        return self.begun


@pytest.fixture
def shared() -> Iterator[SharedWork[int]]:
    made: SharedWork[int] = SharedWork("shared-work-test")
    yield made
    made.close()


async def until_all_wait() -> None:
    """Long enough for every task to have come to where it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


def in_a_loop(asking: Callable[[], Awaitable[None]]) -> list[str]:
    """Run it; what asyncio complained about."""
    complaints: list[str] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
        await asking()

    asyncio.run(run())
    return complaints


def test_all_who_wait_for_the_same_get_one_piece_of_work(shared: SharedWork[int]) -> None:
    work, given = Gated(), list[int]()

    async def ask() -> None:
        tasks = [asyncio.create_task(shared.result("listing", work)) for _ in range(25)]
        await until_all_wait()
        work.gate.set()
        given.extend(await asyncio.gather(*tasks))

    assert in_a_loop(ask) == []
    assert (given, work.begun) == ([1] * 25, 1)


def test_callers_after_the_end_get_new_work(shared: SharedWork[int]) -> None:
    work, given = Gated(), list[int]()
    work.gate.set()

    async def ask() -> None:
        given.extend([await shared.result("listing", work), await shared.result("listing", work)])

    in_a_loop(ask)

    assert given == [1, 2]


def test_an_error_goes_to_all_who_wait_and_is_not_kept(shared: SharedWork[int]) -> None:
    failing, fine, given = Gated(ValueError("no number")), Gated(), list[object]()
    failing.gate.set()
    fine.gate.set()

    async def ask() -> None:
        tasks = [shared.result("listing", failing) for _ in range(3)]
        given.extend(await asyncio.gather(*tasks, return_exceptions=True))
        given.append(await shared.result("listing", fine))

    assert in_a_loop(ask) == []
    assert [str(each) for each in given] == ["no number"] * 3 + ["1"]
    assert failing.begun == 1


def test_who_is_cancelled_does_not_take_the_work_from_the_others(shared: SharedWork[int]) -> None:
    work, given = Gated(), list[int]()

    async def ask() -> None:
        first, second = (asyncio.create_task(shared.result("listing", work)) for _ in range(2))
        await until_all_wait()
        first.cancel()
        await asyncio.wait((first,))
        work.gate.set()
        given.append(await second)
        assert first.cancelled()

    assert in_a_loop(ask) == []
    assert (given, work.begun) == ([1], 1)


def test_an_error_without_waiting_callers_causes_no_complaint(shared: SharedWork[int]) -> None:
    failing, fine = Gated(ValueError("no number")), Gated()
    fine.gate.set()

    async def ask() -> None:
        only = asyncio.create_task(shared.result("listing", failing))
        await until_all_wait()
        only.cancel()
        await asyncio.wait((only,))
        failing.gate.set()
        await shared.result("another", fine)

    assert in_a_loop(ask) == []


def test_closing_ends_the_thread() -> None:
    shared: SharedWork[str] = SharedWork("closed-work")
    names: list[str] = []

    async def ask() -> None:
        names.append(await shared.result("listing", lambda: threading.current_thread().name))

    in_a_loop(ask)
    shared.close()

    assert names[0].startswith("closed-work")
    assert names[0] not in [thread.name for thread in threading.enumerate()]
