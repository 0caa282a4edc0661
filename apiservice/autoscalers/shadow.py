"""Pure: what an HPA on the required number of replicas would have done beside another one, look by look."""

from dataclasses import dataclass, replace
from typing import NamedTuple

STABLE_SECONDS = 300.0
"""An HPA's default window for scaling down."""
START_SECONDS = 40.0
"""From a replica that is wanted to a member that reads."""


class Look(NamedTuple):
    """What is known at one time; None: it is not."""

    at: float
    """In monotonic seconds."""
    replicas: int
    """Of the target, by its real HPA."""
    required: int | None
    arriving: float | None
    """Messages per second."""
    capacity: float | None
    """Messages per second of one replica."""
    wait: float | None
    """Seconds for which the oldest message has waited."""
    lag: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """Of the real HPA, or of the one that would be."""

    replicas: int
    changes: int = 0
    replica_seconds: float = 0.0

    def at(self, replicas: int, seconds: float) -> "Course":
        """Returns the course after so many seconds with the former replicas."""
        return Course(
            replicas, self.changes + (replicas != self.replicas), self.replica_seconds + seconds * self.replicas
        )


@dataclass(frozen=True, slots=True)
class Shadow:
    at: float
    actual: Course
    would_be: Course
    observed_wait: float | None
    expected_wait: float | None
    """What would wait, divided by what the members that would be there read in a second."""
    backlog: float | None = None
    """Messages that would wait; None: not known, so the expectation begins anew with what really waits."""
    wanted: tuple[tuple[float, int], ...] = ()
    """When which number was required, of the last minutes."""


def looked(before: Shadow | None, look: Look) -> Shadow:
    """Returns the shadow after a look. It begins with the replicas that are there, and with the first known lag."""
    if before is None:
        start = Course(look.replicas)
        return Shadow(look.at, start, start, look.wait, look.wait, look.lag, ((look.at, look.replicas),))
    seconds = look.at - before.at
    # An HPA keeps its replicas while it gets no value.
    required = before.wanted[-1][1] if look.required is None else look.required
    recent = tuple(each for each in before.wanted if each[0] > look.at - STABLE_SECONDS)
    wanted = (*recent, (look.at, required))
    replicas = max(number for _, number in wanted)
    backlog, wait = _waiting(before, look, seconds)
    return replace(
        before,
        at=look.at,
        actual=before.actual.at(look.replicas, seconds),
        would_be=before.would_be.at(replicas, seconds),
        observed_wait=look.wait,
        expected_wait=wait,
        backlog=backlog,
        wanted=wanted,
    )


def _waiting(before: Shadow, look: Look, seconds: float) -> tuple[float | None, float | None]:
    if look.arriving is None or look.capacity is None:
        return None, None
    if before.backlog is None:
        return look.lag, look.wait
    starting = [number for at, number in before.wanted if at > look.at - START_SECONDS]
    reading = min([before.would_be.replicas, *starting])
    backlog = max(before.backlog + (look.arriving - reading * look.capacity) * seconds, 0.0)
    return backlog, backlog / (max(reading, 1) * look.capacity)
