"""The cost of a command with all processes that it starts: wall time, CPU, and peak memory."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.samples import cpu_ticks, status_bytes
from local.processes import RigError

LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds and bytes. CPU is what was last seen of each process, at most LOOK_SECONDS before its end."""

    wall: float
    cpu: float
    peak: int
    said: str
    """Standard output."""


def spent_by(command: Sequence[str], log: Path, timeout: float, env: Mapping[str, str] | None = None) -> Spent:
    """Raises RigError if the command fails or takes longer. `env` is added to this process's environment."""
    began = time.monotonic()
    ticks: dict[int, int] = {}
    peak = 0
    out = log.with_suffix(".out")
    with log.open("w") as errors, out.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=errors, env={**os.environ, **(env or {})})
        try:
            while process.poll() is None:
                peak = max(peak, _look(process.pid, ticks))
                if time.monotonic() - began > timeout:
                    raise RigError(f"{' '.join(command)} takes longer than {timeout:.0f} s")
                time.sleep(LOOK_SECONDS)
        finally:
            process.kill()
            process.wait()
    wall = time.monotonic() - began
    if process.returncode:
        raise RigError(f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    return Spent(wall, sum(ticks.values()) / os.sysconf("SC_CLK_TCK"), peak, out.read_text())


def _look(root: int, ticks: dict[int, int]) -> int:
    """Records each process's CPU; returns the resident memory of all."""
    resident = 0
    for pid in _tree(root):
        try:
            ticks[pid] = sum(cpu_ticks(Path(f"/proc/{pid}/stat").read_text()))
            resident += status_bytes(Path(f"/proc/{pid}/status").read_text(), "VmRSS")
        except (OSError, ValueError):
            continue  # ended meanwhile: it has no files, or no memory any more
    return resident


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue  # ended meanwhile
    return found
