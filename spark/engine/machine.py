"""How many tasks this machine runs at once: one per core, as long as its memory holds them."""

import contextlib
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
RESERVED_BYTES = 1 << 30
"""For the driver's JVM and Python."""
TASK_BYTES = 600 << 20
"""A task needs about 550 MB, and topics differ in size."""


def tasks_at_once(cgroup: Path = CGROUP) -> int:
    """At least one."""
    return max(1, min(_cores(cgroup), (_memory_bytes(cgroup) - RESERVED_BYTES) // TASK_BYTES))


def _cores(cgroup: Path) -> int:
    quota, _, period = _text(cgroup / "cpu.max").partition(" ")
    allowed = max(1, int(quota) // int(period)) if quota.isdigit() and period.isdigit() else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, allowed) if allowed else cores


def _memory_bytes(cgroup: Path) -> int:
    """Of the machine, or of the container where that has less."""
    limits = [_text(cgroup / name) for name in ("memory.max", "memory/memory.limit_in_bytes")]
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *(int(limit) for limit in limits if limit.isdigit())])


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
