"""Which states of an HPA are told: those that last, once for each change."""

from typing import Any

import pytest

from adapter.metrics.definitions import SERVED
from adapter.overview.lines import Attention, GroupLine
from apiservice.autoscalers.arithmetic import HpaValue
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.hpa_events.states import SETTLED_SECONDS, Course, State, next_of, states_of
from tests.support.kubernetes.hpas import external, hpa

WRONG, FINE = State("GroupUnknown", "no group", is_wrong=True), State("ValueServed", "7", is_wrong=False)
STUCK, MOVES = State("GroupStuck", "no commit moves", is_wrong=True), State("GroupMoves", "again", is_wrong=False)


def told(*states: tuple[float, State]) -> list[tuple[float, str]]:
    """What is told, and when; each state is seen at its time, in seconds."""
    course: Course | None = None
    found: list[tuple[float, str]] = []
    for at, state in states:
        course, has_to_be_told = next_of(course, state, at)
        if has_to_be_told:
            found.append((at, state.reason))
    return found


def test_what_is_wrong_is_told_once_when_it_has_lasted() -> None:
    looks = [(seconds, WRONG) for seconds in (0.0, 15.0, SETTLED_SECONDS, 45.0, 3600.0)]

    assert told(*looks) == [(SETTLED_SECONDS, "GroupUnknown")]


def test_what_does_not_last_is_not_told() -> None:
    assert told((0.0, FINE), (40.0, WRONG), (60.0, FINE), (80.0, WRONG), (100.0, FINE), (200.0, FINE)) == []


def test_each_change_is_told_once() -> None:
    states = [
        (each, state) for start, state in ((0.0, WRONG), (100.0, FINE), (200.0, WRONG)) for each in (start, start + 40)
    ]

    assert told(*states) == [(40.0, "GroupUnknown"), (140.0, "ValueServed"), (240.0, "GroupUnknown")]


def test_that_nothing_is_wrong_is_told_only_after_something_was() -> None:
    assert told((0.0, MOVES), (40.0, MOVES), (80.0, STUCK), (120.0, STUCK), (160.0, MOVES), (200.0, MOVES)) == [
        (120.0, "GroupStuck"),
        (200.0, "GroupMoves"),
    ]


def consumer(most: int = 9, current: int = 1) -> Autoscaler:
    document: dict[str, Any] = hpa("consumer", external(group="billing"), currentReplicas=current)
    document["spec"]["maxReplicas"] = most
    made = autoscaler_of(document, SERVED)
    assert made is not None
    return made


def states(one: Autoscaler, value: HpaValue, most: int | None, *lines: GroupLine) -> dict[str, tuple[str, bool]]:
    found = states_of(one, [value], most, lines)
    return {subject: (state.reason, state.is_wrong) for subject, state in found.items()}


def line(attention: Attention) -> GroupLine:
    return GroupLine("main", "billing", "stable", attention, lag=7)


def test_a_refused_value_has_the_reason_and_the_words_of_its_refusal() -> None:
    found = states_of(consumer(), [HpaValue(None, "no group 'billing' is known", "GroupUnknown")], None, ())

    assert found == {"metric 0": State("GroupUnknown", "no group 'billing' is known", is_wrong=True)}


@pytest.mark.parametrize(
    ("current", "most", "reason"),
    [
        (7, 9, "MoreReplicasThanPartitions"),
        (6, 9, "MaxReplicasAbovePartitions"),
        (6, 6, "ReplicasFitPartitions"),
    ],
)
def test_replicas_are_compared_with_those_that_can_have_a_partition(current: int, most: int, reason: str) -> None:
    found = states(consumer(most, current), HpaValue(7000), 6)

    assert found["replicas"] == (reason, reason != "ReplicasFitPartitions")


def test_what_is_not_known_is_no_state() -> None:
    assert states(consumer(), HpaValue(7000), None, line(Attention.UNKNOWN)) == {"metric 0": ("ValueServed", False)}


@pytest.mark.parametrize("attention", [each for each in Attention if each is not Attention.UNKNOWN])
def test_a_group_is_stuck_where_it_is_so_in_the_table_of_groups(attention: Attention) -> None:
    found = states(consumer(), HpaValue(7000), None, line(attention))

    is_stuck = attention is Attention.STUCK
    assert found["group main/billing"] == ("GroupStuck" if is_stuck else "GroupMoves", is_stuck)
