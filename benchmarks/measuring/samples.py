"""Arithmetic on samples, and what Linux reports about a process: CPU, memory, connections.

Times are seconds, memory is bytes."""

import os
import statistics
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

ESTABLISHED = "01"
KIBIBYTE = 1024


def percentile(samples: Sequence[float], percent: float) -> float:
    """Interpolates between the two nearest samples; raises ValueError if there are none."""
    if not samples:
        raise ValueError("no samples")
    return float(np.percentile(samples, percent))


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Returns the median of the rounds' ratios: a disturbance of a whole round affects both sides of its ratio."""
    return statistics.median(top / bottom for top, bottom in zip(numerators, denominators, strict=True))


def in_turn(names: Iterable[str], round_number: int) -> list[str]:
    """Returns the names in the order of one round; each round starts with a different one."""
    ordered = list(names)
    first = round_number % len(ordered)
    return ordered[first:] + ordered[:first]


def cpu_seconds(pid: int) -> float:
    """Returns the user and system time of all threads since the process began."""
    user, system = cpu_ticks(Path(f"/proc/{pid}/stat").read_text())
    return (user + system) / os.sysconf("SC_CLK_TCK")


def cpu_ticks(stat: str) -> tuple[int, int]:
    """Reads user and system ticks from /proc/PID/stat; the name before them may contain spaces and brackets."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def memory(pid: int) -> tuple[int, int]:
    """Returns the resident memory and its peak."""
    status = Path(f"/proc/{pid}/status").read_text()
    return status_bytes(status, "VmRSS"), status_bytes(status, "VmHWM")


def status_bytes(status: str, key: str) -> int:
    """Reads one size from /proc/PID/status."""
    (line,) = (line for line in status.splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * KIBIBYTE


def connections(pid: int, ports: Collection[int]) -> int:
    """Returns the number of the process's established TCP connections to these local ports."""
    tables = "".join(Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
    return len(established_to(tables.splitlines(), ports) & _socket_inodes(pid))


def established_to(lines: Iterable[str], ports: Collection[int]) -> set[str]:
    """Returns the inodes of established sockets to these ports, from lines of /proc/net/tcp."""
    rows = (line.split() for line in lines)
    return {
        row[9] for row in rows if len(row) > 9 and row[3] == ESTABLISHED and int(row[2].rpartition(":")[2], 16) in ports
    }


def run_on(pid: int, cores: Collection[int]) -> None:
    """Restricts all of the process's current threads to these cores."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)


def _socket_inodes(pid: int) -> set[str]:
    targets = (_target(link) for link in Path(f"/proc/{pid}/fd").iterdir())
    return {target[len("socket:[") : -1] for target in targets if target.startswith("socket:[")}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""  # closed since the folder was listed
