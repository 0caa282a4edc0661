"""`make report-demo`: a week of plausible history, and the report that Spark makes of it. Needs Java, but no Kafka."""

from __future__ import annotations

import datetime
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from local.histories.plausible_history import Written, write_week
from local.processes import exit_on_sigterm

TREE = Path(__file__).resolve().parents[2]
FOLDER = TREE / "report-demo"
ZONE = "Europe/Berlin"
"""A time zone with daylight saving: the page's hours and weekdays are local."""
MAX_WAIT = "2m"
"""The week has one sample per minute, so an HPA on this lag cannot react faster."""
GROUPS = Path(__file__).with_name("groups.yaml")
INTERRUPTED = 130

Run = Callable[[Sequence[str]], int]
"""A command line -> its exit status; its output goes to the terminal."""


def commands(history: Path, output: Path, written: Written) -> list[tuple[str, list[str]]]:
    """Returns the steps with their command lines."""
    spark = [sys.executable, "-m", "spark"]
    until = f"{written.until.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    report = [*spark, "report", "--history", str(history), "--output", str(output)]
    return [
        ("compacting", [*spark, "compact", "--history", str(history), "--until", until]),
        ("reporting", [*report, "--to", until, "--timezone", ZONE, "--max-wait", MAX_WAIT, "--groups", str(GROUPS)]),
    ]


def show(folder: Path, run: Run) -> int:
    """Returns 0, or the status of the command that failed; recreates `folder`."""
    history, output = folder / "history", folder / "report"
    shutil.rmtree(folder, ignore_errors=True)
    written = write_week(history)
    print(f"a week of plausible history: {written.rows:,} rows in {written.files} files, {written.size / 1e6:.1f} MB")
    for doing, command in commands(history, output, written):
        print(f"{doing}: {' '.join(command[1:])}", flush=True)
        status = run(command)
        if status:
            print(f"{doing} failed with status {status}", file=sys.stderr)
            return status
    print(f"the report: {output / 'report.html'}")
    return 0


def _run(command: Sequence[str]) -> int:
    """Ctrl-C also reaches the command, so we wait for it to end; any other end of this process ends it."""
    with subprocess.Popen(command, cwd=TREE) as process:
        while True:
            try:
                status = process.wait()
            except KeyboardInterrupt:
                continue
            except SystemExit:
                process.terminate()
                raise
            return status if status >= 0 else 128 - status


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with exit_on_sigterm():
            return show(FOLDER, _run)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
