"""Work that is counted instead of timed: the calls that the product's own code makes, the same on every machine."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

PACKAGES = tuple(f"{Path(__file__).parents[2] / package}/" for package in ("adapter", "apiservice"))
TEN_TIMES = 10
SLACK = 1.2
"""Work that is done once per run makes up a different share at each size."""


class Name(str):
    """A text whose comparisons are calls, so that searching a list or a tuple of names counts each comparison."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def work(act: Callable[[], object]) -> int:
    """Calls made by `adapter` and `apiservice`, calls of built-in functions included, and comparisons of names."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        # A comparison is the work of the code that asks for it.
        asking = frame.f_back if frame.f_code is Name.__eq__.__code__ else frame
        if event in {"call", "c_call"} and asking is not None and asking.f_code.co_filename.startswith(PACKAGES):
            calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return calls


def is_linear(prepared: Callable[[int], Callable[[], object]], size: int = 150) -> bool:
    """Whether ten times as many entries cost at most about ten times the work; preparing them is not counted."""
    few, many = work(prepared(size)), work(prepared(TEN_TIMES * size))
    # What is done without a call per entry is cheap enough to be taken for one.
    return many <= SLACK * TEN_TIMES * max(few, size)
