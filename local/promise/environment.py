"""What the simulator cannot know of a machine or a cluster, and what a run shows of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from local.processes import RigError
from local.promise import scenario


@dataclass(frozen=True, slots=True)
class Environment:
    """Nothing in it depends on who scales, or on what came of it."""

    first_sync: float = scenario.SYNC_SECONDS
    """When the HPA controller looks for the first time, in seconds from the beginning of the load."""
    starts: tuple[float, ...] = (scenario.START_SECONDS + 2.0,)
    """Seconds from the creation of a pod until it has partitions, of several pods, the shortest first."""
    pause: float = 0.1
    """Seconds for which a rebalance stops a member."""


def measured(folders: Sequence[Path], created: Mapping[str, float], first_sync: float) -> Environment:
    """Reads what the consumers of each group wrote about their rebalances. `created`: when each pod was, in seconds
    since the epoch. A file is named after its pod. Raises RigError if none of them got partitions."""
    files = [file for folder in folders for file in folder.glob("*.rebalances")]
    events = {file.name.partition(".")[0]: list(_events(file)) for file in files}
    joined = {pod: next((at for what, at in own if what == "assigned"), None) for pod, own in events.items()}
    starts = [at - created[pod] for pod, at in joined.items() if at is not None and pod in created]
    if not starts:
        raise RigError("no consumer got partitions before the load ended, so there is nothing to compare")
    pauses = [pause for own in events.values() for pause in _pauses(own)]
    return Environment(first_sync, tuple(sorted(starts)), float(np.mean(pauses)) if pauses else 0.0)


def _events(file: Path) -> Iterator[tuple[str, float]]:
    """Yields each loss and each gain of partitions with its time. A process that was killed may leave half a line."""
    for line in file.read_text().splitlines():
        words = line.split()
        if len(words) == 3:
            yield words[0], float(words[2])


def _pauses(events: list[tuple[str, float]]) -> Iterator[float]:
    """Yields for how long the member was without partitions, beyond its first ones."""
    lost_at: float | None = None
    is_member = False
    for what, at in events:
        if what == "revoked" and is_member:
            lost_at = at if lost_at is None else lost_at
        elif what == "assigned":
            if lost_at is not None:
                yield at - lost_at
            lost_at, is_member = None, True
