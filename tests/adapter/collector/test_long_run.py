"""A thousand cycles, faults among them, leave nothing behind: no memory, threads, sockets or file descriptors."""

import gc
import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.settings.models import Settings
from tests.support.kafka.spoilt_cluster import CALL_SECONDS, fake, nothing_unforeseen, settings
from tests.support.kafka.wire_fake import LIST_OFFSETS, OFFSET_FETCH, Spoilt, WireFake
from tests.support.kubernetes.served import Served, hurried, served

__all__ = ["fake", "nothing_unforeseen"]

CYCLES = 1000
WARM_UP = 200
GROWTH_BLOCKS = 800
"""Of Python's memory, over 800 cycles: what each cycle left behind, be it one object, would be more than that. The
library's and Python's own caches move by some hundred."""
GROWTH_KILOBYTES = 8_000
"""Of the process, over the same: arrays live outside Python's blocks. Less than 10 kB a cycle, which is a snapshot."""


def fast(fake: WireFake) -> Settings:
    """As fast as it goes: a cycle follows a cycle."""
    return hurried(settings(fake.cluster()), interval=0.0001, max_age=60.0)


def other_files(fake: WireFake) -> int:
    """Open files but those of both sides of the connections: one that is not needed may be made sooner or later."""
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a path for each would be one more thing to count
    return files - 2 * fake.connections


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def resident_kilobytes() -> int:
    """Without pages of files: those of libraries that other tests have used leave memory and come back by chance."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("RssAnon:"))
    return int(kilobytes)


@pytest.fixture
def _without_log() -> Iterator[None]:
    """As pytest keeps every record."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_without_log")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="file descriptors are counted as Linux shows them")
def test_a_thousand_cycles_with_faults_among_them_leave_nothing_behind(fake: WireFake) -> None:
    with served(fast(fake), call_seconds=CALL_SECONDS) as running:
        running.wait_for_lag(13, "billing")
        files = 0
        for number in range(WARM_UP // 50):
            _disturbed(fake, running, number)
            running.wait_for_cycles(40, seconds=300)
            files = max(files, other_files(fake))
        held, resident = blocks(), resident_kilobytes()
        threads, begun = threading.active_count(), running.cycles()
        for number in range((CYCLES - WARM_UP) // 100):
            _disturbed(fake, running, number)
            running.wait_for_cycles(100, seconds=300)
        held, resident = blocks() - held, resident_kilobytes() - resident

        assert running.cycles() - begun >= CYCLES - WARM_UP
        assert running.lag("billing") == 13
        assert held < GROWTH_BLOCKS
        assert resident < GROWTH_KILOBYTES
        assert threading.active_count() == threads
        # A connection that is just being made has a file that is not counted as one of a connection yet.
        running.wait_for(lambda: other_files(fake) <= files)
        assert fake.connections <= len(fake.kafka.nodes) + 1


def _disturbed(fake: WireFake, running: Served, number: int) -> None:
    """Some cycles with a fault, each time another, until it is mended."""
    if number % 4 == 0:
        fake.cut_all()
    elif number % 4 == 1:
        fake.faults[2, OFFSET_FETCH] = lambda frame: Spoilt(frame[: len(frame) // 2], then_close=True)
    elif number % 4 == 2:
        fake.faults[2, LIST_OFFSETS] = lambda frame: Spoilt(frame[:4] + b"\xff" * len(frame[4:]))
    else:
        fake.kafka.commit_errors["billing"] = 12_345
        fake.kafka.refusing.add(3)
    running.wait_for_cycles(10, seconds=300)
    fake.faults.clear()
    fake.kafka.commit_errors.clear()
    fake.kafka.refusing.clear()
    running.wait_for(lambda: not running.causes("billing"))
