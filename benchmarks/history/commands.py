"""Runs the two commands as whole processes and measures them."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measuring.process_tree import Spent, spent_by
from benchmarks.measuring.tables import Row, row

TIMEOUT_SECONDS = 900


def compact(location: Path, log: Path, options: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Spent:
    command = [sys.executable, "-m", "spark", "compact", "--history", str(location)]
    return spent_by([*command, "--until", "2027-01-01T00:00Z", *options], log, TIMEOUT_SECONDS, env)


def report(location: Path, home: Path, options: Sequence[str] = ()) -> Spent:
    command = [sys.executable, "-m", "spark", "report", "--history", str(location), "--output", str(home / "report")]
    return spent_by([*command, *options], home / "report.log", TIMEOUT_SECONDS)


def rows_of(
    who: str, spent: Spent, most_seconds: float | None = None, most_megabytes: float | None = None
) -> list[Row]:
    wall = row(f"{who}, wall time", spent.wall, most_seconds, " s", ".1f")
    memory = row(f"{who}, peak memory of all processes", spent.peak / 1e6, most_megabytes, " MB", ",.0f")
    return [Row(wall.what, f"{wall.figure} ({spent.cpu:.1f} s of CPU)", wall.goal, wall.verdict), memory]
