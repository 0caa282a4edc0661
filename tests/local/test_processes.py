"""Nothing that was started outlives its owner, and a wait says what it waited for."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from local import processes
from local.processes import Process, RigError, free_port, scratch, start, wait_until

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


def told_pids(process: Process) -> list[int]:
    wait_until(lambda: process.log.exists() and process.log.read_text().endswith("\n"), "its numbers", 60)
    return [int(word) for word in process.log.read_text().split()]


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


@pytest.mark.skipif(sys.platform != "linux", reason="only there does the kernel do it")
def test_the_kernel_ends_a_process_where_owner_and_watchdog_are_killed(tmp_path: Path) -> None:
    owner_code = f"""
        import os, signal
        from pathlib import Path
        from local import processes
        log = Path({str(tmp_path)!r}, "log")
        process = processes.start("one", {WITH_CHILD!r}, log=log)
        processes.wait_until(lambda: log.read_text().endswith("\\n"), "it to run", 60)
        print(log.read_text(), flush=True)
        processes._owner._watchdog.kill()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(owner_code)]
    owner = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    process, child = (int(word) for word in owner.stdout.split())

    try:
        wait_until(lambda: not is_alive(process), "the process to be gone", 60)
    finally:
        os.kill(child, signal.SIGKILL)  # without the watchdog nobody ends it


def test_a_process_that_ends_takes_its_children_along(tmp_path: Path) -> None:
    process = start("parent", WITH_CHILD, log=tmp_path / "log")
    pids = told_pids(process)
    os.kill(process.pid, signal.SIGKILL)

    assert process.wait(60) == -signal.SIGKILL
    wait_until(lambda: none_alive(pids), "the group to be gone", 60)


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="broker: no program 'no-such-program' on this machine"):
        start("broker", ["no-such-program"], log=tmp_path / "log")


def test_a_wait_ends_with_the_process_and_shows_the_end_of_its_log(tmp_path: Path) -> None:
    process = start("broker", [sys.executable, "-c", "import sys; sys.exit('no such disk')"], log=tmp_path / "log")

    with pytest.raises(RigError, match=r"(?s)broker ended with status 1 while waiting for it to answer.*no such disk"):
        wait_until(lambda: False, "it to answer", 60, alive=[process])


def test_two_processes_never_get_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port()
    monkeypatch.setattr(processes, "PORTS", range(first, first + 1))
    other = "from local import processes; processes.PORTS = range({0}, {0} + 1); processes.free_port()"

    done = subprocess.run([sys.executable, "-c", other.format(first)], capture_output=True, text=True, check=False)

    assert "no free port" in done.stderr
    with pytest.raises(RigError, match="no free port"):
        free_port()


def test_the_scratch_of_a_killed_owner_is_removed_by_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = """
        import os, signal
        from local.processes import scratch
        with scratch("test"):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert len(list(tmp_path.iterdir())) == 1

    with scratch("test") as mine, scratch("test") as mine_too:
        assert set(tmp_path.iterdir()) == {mine, mine_too}
