"""A large day has the rows it promises, and the report's demo ends with the command that fails."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyarrow import compute as pc
from pyarrow import dataset

from local.demo import report
from local.histories import large_day
from local.histories.plausible_history import write_large_day
from local.processes import wait_until


def test_a_large_day_has_a_row_for_every_partition_and_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_day, "FLUSH_SECONDS", 21_600)
    written = write_large_day(tmp_path, partitions=20, interval=3600, days=1)
    rows = dataset.dataset(tmp_path / "samples", partitioning=None).to_table()

    assert (written.rows, written.files, rows.num_rows) == (20 * 24, 4, 20 * 24)
    assert len(set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True))) == 20
    assert pc.all(pc.less_equal(rows["committed"], rows["log_end"])).as_py()


class Commands:
    """Runs none of them, and says that they ended with `status`."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.ran: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> int:
        self.ran.append(list(command))
        return self.status


def test_the_demo_compacts_the_whole_week_and_then_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Commands(status=0)
    assert report.show(tmp_path / "demo", run) == 0

    assert [command[1:4] for command in run.ran] == [["-m", "spark", "compact"], ["-m", "spark", "report"]]
    assert run.ran[0][-1] == "2026-11-16T00:00:00Z"
    assert capsys.readouterr().out.splitlines()[-1] == f"the report: {tmp_path}/demo/report/report.html"


def test_the_demo_ends_with_the_command_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Commands(status=3)
    assert report.show(tmp_path / "demo", run) == 3

    assert len(run.ran) == 1
    assert capsys.readouterr().err == "compacting failed with status 3\n"


def test_the_demos_command_ends_with_it(tmp_path: Path) -> None:
    """Stopped by SIGTERM, as `make` is by whatever runs it."""
    mark = tmp_path / "runs"
    child = f"import pathlib, os, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys\n"
        "from local.processes import exit_on_sigterm\n"
        "from local.demo.report import _run\n"
        f"with exit_on_sigterm():\n    _run([sys.executable, '-c', {child!r}])\n"
    )
    demo = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_until(lambda: mark.exists() and bool(mark.read_text()), "the command to run", 60)
        demo.terminate()
        assert demo.wait(30) == 128 + signal.SIGTERM
    finally:
        demo.kill()
        demo.wait()

    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
