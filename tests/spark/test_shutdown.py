import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.history.written_history import read, sample, write

pytestmark = pytest.mark.spark


def asked_to_compact(root: Path) -> subprocess.Popen[str]:
    """A process of its own, for it is to be ended."""
    return subprocess.Popen(
        [sys.executable, "-m", "spark", "compact", "--history", str(root), "--master", "local[1]"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_staged(root: Path, process: subprocess.Popen[str]) -> None:
    """Until a task has begun its first hour, of so many that it is still at work when a busy machine sees that."""
    deadline = time.monotonic() + 600
    while not list(root.glob(".compacting-*/attempt-*/hours")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no table was begun"
        time.sleep(0.02)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    times = [hour * 3600 + at for hour in range(300) for at in range(0, 3600, 600)]
    write(tmp_path, [sample(at, at, at + 3) for at in times])
    return tmp_path


def test_an_interrupted_run_ends_with_its_status_and_leaves_no_half_written_table(history: Path) -> None:
    process = asked_to_compact(history)
    try:
        wait_for_staged(history, process)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()

    assert process.returncode == 130, errors
    assert errors.splitlines()[-1] == "kafka-lag-report: interrupted; the next run goes on from here"
    assert "Traceback" not in errors
    assert "Exception" not in errors
    assert [each.name for each in history.iterdir()] == ["samples"]
    assert read(history, "deltas") == []
