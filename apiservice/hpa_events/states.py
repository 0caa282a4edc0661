"""Decides which states of an HPA are worth an Event. Pure: nothing here reads the cluster or posts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from adapter.overview.explanation import decimal
from adapter.overview.lines import Attention, GroupLine
from apiservice.autoscalers.arithmetic import HpaValue
from apiservice.autoscalers.autoscaler import Autoscaler

SETTLED_SECONDS = 30.0
"""How long a state must last before it is reported: longer than a process takes to start, or a failed cycle."""


@dataclass(frozen=True, slots=True)
class State:
    reason: str
    """A word in CamelCase."""
    note: str
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class Course:
    """What is known of the states of one subject."""

    reason: str
    """Of the latest."""
    since: float
    """In seconds of the monotonic clock."""
    reported: str = ""
    """The latest reason that has lasted; empty: none has yet."""
    reported_at: float = 0.0
    """When it had lasted, in the same seconds."""

    @property
    def is_new(self) -> bool:
        return not self.reported


def next_of(before: Course | None, state: State, now: float) -> tuple[Course, bool]:
    """Returns the course with this state, and whether the state must be reported now.

    A state in which nothing is wrong is reported only after one in which something was."""
    course = before or Course(state.reason, now)
    if course.reason != state.reason:
        course = replace(course, reason=state.reason, since=now)
    if course.reported == state.reason or now - course.since < SETTLED_SECONDS:
        return course, False
    reported = replace(course, reported=state.reason, reported_at=now)
    return reported, state.is_wrong or not course.is_new


def states_of(
    hpa: Autoscaler, values: Iterable[HpaValue], most_replicas: int | None, groups: Iterable[GroupLine]
) -> Mapping[str, State]:
    """Returns the state of each subject; one that is absent is not known now.

    `values` are those of the HPA's metrics, `most_replicas` the number that can have a partition (None: not known), and
    `groups` those that its metrics are about."""
    found = dict(_of_values(hpa, values))
    if most_replicas is not None:
        found["replicas"] = _of_replicas(hpa, most_replicas)
    for line in groups:
        if line.attention is not Attention.UNKNOWN:
            found[f"group {line.cluster}/{line.group}"] = _of_group(line)
    return found


def _of_values(hpa: Autoscaler, values: Iterable[HpaValue]) -> Iterator[tuple[str, State]]:
    for at, (metric, value) in enumerate(zip(hpa.metrics, values, strict=True)):
        if value.milli is None:
            state = State(value.reason, value.refusal, is_wrong=True)
        else:
            state = State("ValueServed", f"{metric.name} is served again: {decimal(value.milli)}", is_wrong=False)
        yield f"metric {at}", state


def _of_replicas(hpa: Autoscaler, most: int) -> State:
    limit = f"no more than {most} can have a partition"
    if hpa.current_replicas > most:
        note = f"there are {hpa.current_replicas} replicas, and {limit}"
        return State("MoreReplicasThanPartitions", note, is_wrong=True)
    if hpa.maximum > most:
        return State("MaxReplicasAbovePartitions", f"maxReplicas is {hpa.maximum}, and {limit}", is_wrong=True)
    return State("ReplicasFitPartitions", f"maxReplicas is {hpa.maximum}, and all can have a partition", is_wrong=False)


def _of_group(line: GroupLine) -> State:
    name = f"group {line.group} in cluster {line.cluster}"
    if line.attention is not Attention.STUCK:
        return State("GroupMoves", f"{name} is not stuck any more", is_wrong=False)
    return State("GroupStuck", f"{name} has members and a lag of {line.lag}, and no commit moves", is_wrong=True)
