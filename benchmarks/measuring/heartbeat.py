"""A server of the adapter whose event loop is watched from inside, and the times in which the loop was blocked."""

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
    """The running server, and the file with its late beats."""

    adapter: Adapter
    heartbeats: Path

    def late_beats(self) -> list[tuple[float, float]]:
        """Returns when each late beat was due and how late it was, in monotonic seconds; the last half second may be
        missing."""
        return beats_in(self.heartbeats.read_text().splitlines())


@contextlib.contextmanager
def watched(rig: Rig, home: Path, settings: Mapping[str, Any], *, without_pause: bool = False) -> Iterator[Watched]:
    """Runs an adapter that can be asked directly by callers that the control plane allows; ends with the block."""
    home.mkdir(parents=True, exist_ok=True)
    heartbeats = home / "heartbeats"
    options = ["--without-pause"] if without_pause else []
    program = [sys.executable, "-m", "benchmarks.rig.measured_server", *options, str(heartbeats)]
    with process(home, settings, own_kubeconfig(rig.plane), program=program) as running:
        wait_until(running.is_ready, "the server to be ready", READY_TIMEOUT_SECONDS, alive=[running.process])
        yield Watched(running, heartbeats)


def beats_in(lines: Iterable[str]) -> list[tuple[float, float]]:
    """The last line may be incomplete."""
    fields = (line.split() for line in lines)
    return [(float(parts[0]), float(parts[1])) for parts in fields if len(parts) == 2]


def longest_stretch(beats: Iterable[tuple[float, float]], begin: float, end: float) -> float:
    """Returns the longest delay of a beat between two moments; 0 if there was none."""
    return max((late for due, late in beats if due + late >= begin and due <= end), default=0.0)
