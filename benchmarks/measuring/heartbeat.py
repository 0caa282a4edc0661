"""A server of the adapter's whose event loop is watched from inside, and the stretches in which it was blocked."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rig.cluster import Rig
from local.adapter import Adapter, own_kubeconfig, process
from local.processes import wait_until

READY_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Watched:
    """The running server and the file that its late beats go to."""

    adapter: Adapter
    heartbeats: Path

    def late_beats(self) -> list[tuple[float, float]]:
        """(When it was due, how late it came), seconds of the monotonic clock; the last half second may be missing."""
        return beats_in(self.heartbeats.read_text().splitlines())


@contextlib.contextmanager
def watched(rig: Rig, home: Path, settings: Mapping[str, Any], *, without_pause: bool = False) -> Iterator[Watched]:
    """Run an adapter that whoever the control plane lets may ask directly; ended with the block."""
    home.mkdir(parents=True, exist_ok=True)
    heartbeats = home / "heartbeats"
    options = ["--without-pause"] if without_pause else []
    program = [sys.executable, "-m", "benchmarks.rig.measured_server", *options, str(heartbeats)]
    with process(home, settings, own_kubeconfig(rig.plane), program=program) as running:
        wait_until(running.is_ready, "the server to be ready", READY_TIMEOUT_SECONDS, alive=[running.process])
        yield Watched(running, heartbeats)


def beats_in(lines: Iterable[str]) -> list[tuple[float, float]]:
    """The last line may be written in part."""
    fields = (line.split() for line in lines)
    return [(float(parts[0]), float(parts[1])) for parts in fields if len(parts) == 2]


def longest_stretch(beats: Iterable[tuple[float, float]], begin: float, end: float) -> float:
    """The most that a beat was late between two moments; 0 where none was."""
    return max((late for due, late in beats if due + late >= begin and due <= end), default=0.0)
