"""Nothing that was started outlives its owner, and waiting costs little."""

import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from local import processes
from local.processes import wait_until

# Starts a child of its own and tells both numbers.
WITH_CHILD_CODE = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
WITH_CHILD = [sys.executable, "-S", "-c", WITH_CHILD_CODE]


def is_alive(pid: int) -> bool:
    """Running, and not only waiting for a parent to take note of its end."""
    answer = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout != "" and not answer.stdout.startswith("Z")


def none_alive(pids: Sequence[int]) -> bool:
    return not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize(("end", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 128 + 15)])
def test_an_owner_that_is_killed_leaves_no_process_behind(tmp_path: Path, end: signal.Signals, status: int) -> None:
    owner_code = f"""
        import json, sys, time
        from pathlib import Path
        from local.processes import exit_on_sigterm, start, wait_until
        with exit_on_sigterm():
            logs = [Path({str(tmp_path)!r}, name) for name in ("one", "two")]
            started = [start(log.name, {WITH_CHILD!r}, log=log) for log in logs]
            wait_until(lambda: all(log.read_text().endswith("\\n") for log in logs), "all to run", 60)
            print(json.dumps([int(word) for log in logs for word in log.read_text().split()]), flush=True)
            time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(owner_code)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pids = json.loads(owner.stdout.readline())
        assert len(pids) == 4
        assert all(is_alive(pid) for pid in pids)
        owner.send_signal(end)

        wait_until(lambda: none_alive(pids), "the owner's processes to be gone", 60)
    assert owner.returncode == status


class Clock:
    """Stands in for the module `time`: sleeping takes no time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("awaited", "looks_at_most", "late_at_most"), [(0.5, 12, 0.05), (100.0, 550, 0.2)])
def test_the_longer_a_wait_the_rarer_are_its_looks(awaited: float, looks_at_most: int, late_at_most: float) -> None:
    clock, looks = Clock(), list[float]()

    def is_over() -> bool:
        looks.append(clock.now)
        return clock.now >= awaited

    with mock.patch.object(processes, "time", clock):
        wait_until(is_over, "the time", 600)

    assert len(looks) <= looks_at_most
    assert looks[-1] - awaited <= late_at_most + 1e-9
