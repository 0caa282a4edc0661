"""What a worker of Spark's cluster has started, caught in the middle of compacting hours."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.processes import POLL_SECONDS, Process, wait_until

LIMIT_SECONDS = 300
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class TaskProcesses:
    """Stopped by SIGSTOP: a Python process with a task, and every other process of its worker."""

    task: int
    others: tuple[int, ...]
    staged: frozenset[int]
    """Inodes of the files that the attempt at the task had staged or begun. They are deleted at the end of the run, so
    until then no other file has one of them."""

    def kill(self) -> None:
        _send(signal.SIGKILL, (self.task, *self.others))

    def thaw_task(self) -> None:
        _send(signal.SIGCONT, (self.task,))

    def thaw(self) -> None:
        _send(signal.SIGCONT, (self.task, *self.others))

    def has_files(self, root: Path) -> bool:
        """Whether the task's process has files of a folder open, or files that were deleted from it."""
        return bool(_open_files(self.task, root))

    def has_ended(self) -> bool:
        """The task's process alone."""
        return _state_of(self.task) in {"", "Z", "X"}


def stopped_halfway(workers: Sequence[Process], root: Path, driver: Process) -> TaskProcesses:
    """Stops all processes of the first worker with a task that has staged an hour of the history and is staging the
    next one. Nothing moves in them until they are thawed. Raises RigError if the driver ends before."""
    found: list[TaskProcesses] = []

    def is_stopped() -> bool:
        for tree in [_tree(worker.pid) for worker in workers]:
            for pid in tree:
                if _staged_by_halfway(pid, root) and (processes := _stopped(pid, tree, root)):
                    found.append(processes)
                    return True
        return False

    # Its file is open for a moment only.
    what = "a task to be staging its second hour"
    wait_until(is_stopped, what, LIMIT_SECONDS, alive=[driver], longest_pause_seconds=POLL_SECONDS)
    return found[0]


def _stopped(pid: int, tree: Sequence[int], root: Path) -> TaskProcesses | None:
    """None: the task went on before it stopped."""
    others = tuple(other for other in tree if other != pid)
    _send(signal.SIGSTOP, (pid, *others))
    wait_until(lambda: _state_of(pid) in {"T", "", "Z", "X"}, "a task to stop", LIMIT_SECONDS)
    staged = _staged_by_halfway(pid, root)
    if staged:
        return TaskProcesses(pid, others, staged)
    _send(signal.SIGCONT, (pid, *others))
    return None


def _staged_by_halfway(pid: int, root: Path) -> frozenset[int]:
    """Inodes of what an attempt has staged; none unless its process writes into an hour that is not its first one."""
    folders = {path.parent for path in _open_files(pid, root) if "hours" in path.parts}
    staged = [path for path in folders if path.relative_to(root).parts[0].startswith(".compacting-")]
    halfway = [path.parents[1] for path in staged if len(list(path.parents[1].glob("*/*"))) > 1]
    return frozenset(file.stat().st_ino for hours in halfway for file in hours.glob("*/*/*"))


def _open_files(pid: int, root: Path) -> list[Path]:
    """Those below the root. As text, because a JVM has hundreds of others: with a path for each, a look took longer
    than the pause after it."""
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(PROC / str(pid) / "fd") as descriptors:  # it has ended meanwhile
        for descriptor in descriptors:
            with contextlib.suppress(OSError):  # it was closed meanwhile
                found.append(os.readlink(descriptor))  # noqa: PTH115 -- see above
    return [Path(name) for name in found if name.startswith(f"{root}/")]


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            threads = list((PROC / str(pid) / "task").iterdir())
            found += [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return found


def _state_of(pid: int) -> str:
    """One letter; empty: there is no such process."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
