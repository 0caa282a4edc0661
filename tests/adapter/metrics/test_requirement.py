"""Requirements written as a label selector."""

import pytest

from adapter.metrics.requirement import Operator, Requirement, written


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        (Requirement("group", Operator.EQUALS, ("billing",)), "group=billing"),
        (Requirement("group", Operator.NOT_EQUALS, ("billing",)), "group!=billing"),
        (Requirement("topic", Operator.IN, frozenset({"b", "a"})), "topic in (a,b)"),
        (Requirement("topic", Operator.NOT_IN, ("a",)), "topic notin (a)"),
        (Requirement("partition", Operator.EXISTS), "partition"),
        (Requirement("partition", Operator.ABSENT), "!partition"),
        (Requirement("partition", Operator.GREATER, ("3",)), "partition>3"),
    ],
)
def test_each_is_written_as_in_a_query(requirement: Requirement, text: str) -> None:
    assert written([requirement]) == text


def test_several_are_joined_by_commas() -> None:
    asked = [Requirement("group", Operator.EQUALS, ("billing",)), Requirement("topic", Operator.EXISTS)]

    assert written(asked) == "group=billing,topic"
