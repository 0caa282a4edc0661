"""Folds of random rows, against plain Python that looks at one row at a time."""

from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.lag.snapshot import State
from adapter.metrics.problems import NoMatch, ValueUnavailable
from adapter.metrics.requirement import Operator, Requirement
from tests.support.kafka.questions import answers, items
from tests.support.samples import NEVER_READ, NOW, Key, Row, row

NAMES = {"group": ("a", "b", "c"), "topic": ("x", "y"), "partition": ("0", "1", "2")}
GOOD = st.builds(
    lambda committed, more, start, age: row(committed, committed + more, min(start, committed + more)).aged(age),
    st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from([0, 10, 59]),
)  # fmt: skip
UNCOMMITTED = st.builds(lambda end: row(None, end), st.integers(0, 9))
BAD = st.sampled_from([NEVER_READ, row(9, 3, state=State.AHEAD), row(1, 5).aged(61), row(None, 5).aged(61)])
CELL = st.one_of(*[GOOD] * 5, UNCOMMITTED, UNCOMMITTED, BAD)
REQUIREMENT = st.sampled_from(sorted(NAMES)).flatmap(
    lambda key: st.builds(
        lambda values, negated: Requirement(key, Operator.NOT_IN if negated else Operator.IN, values),
        st.frozensets(st.sampled_from((*NAMES[key], "nobody")), min_size=1, max_size=2),
        st.booleans(),
    )
)
Answer = list[tuple[dict[str, str], int]] | type[Exception]


def plain_answer(rows: Mapping[Key, Row], metric: str, requirements: Sequence[Requirement]) -> Answer:
    """The rules of the folds, one row at a time."""
    chosen = {key: one for key, one in sorted(rows.items()) if all(fits(key, one) for one in requirements)}
    refused_state = State.AHEAD if metric != "uncommitted_partitions" else None
    if any(NOW - one.received > 60 or one.state is refused_state for one in chosen.values()):
        return ValueUnavailable
    counted = chosen if metric != "lead_min" else {key: one for key, one in chosen.items() if one.committed >= 0}
    if not counted:
        return NoMatch
    if metric == "lag":
        pairs = sorted({key[:2] for key in counted})
        return [(labels_of([pair]), sum(lag(one) for key, one in counted.items() if key[:2] == pair)) for pair in pairs]
    if metric == "uncommitted_partitions":
        groups = sorted({key[0] for key in counted})
        none = [key[0] for key, one in counted.items() if one.committed < 0]
        return [({"cluster": "main", "group": group}, none.count(group)) for group in groups]
    if metric == "records_lag_max":
        return [(labels_of(chosen), max(lag(one) for one in counted.values()))]
    return [(labels_of(chosen), min(max(one.committed - one.log_start, 0) for one in counted.values()))]


def fits(key: Key, requirement: Requirement) -> bool:
    group, topic, partition = key
    return requirement.matches({"group": group, "topic": topic, "partition": str(partition)}[requirement.key])


def lag(one: Row) -> int:
    return 0 if one.committed < 0 else max(one.log_end - max(one.committed, one.log_start), 0)


def labels_of(keys: Collection[tuple[str, str] | Key]) -> dict[str, str]:
    """The labels that all of them share."""
    shared = {"cluster": {"main"}, "group": {key[0] for key in keys}, "topic": {key[1] for key in keys}}
    return {name: next(iter(values)) for name, values in shared.items() if len(values) == 1}


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(NAMES["group"]), st.sampled_from(NAMES["topic"])),
        st.lists(CELL, min_size=1, max_size=3),
        max_size=5,
    ),
    st.sampled_from(["lag", "lead_min", "records_lag_max", "uncommitted_partitions"]),
    st.lists(REQUIREMENT, min_size=1, max_size=2),
)
def test_folds_say_what_the_rules_say_row_by_row(
    cells: Mapping[tuple[str, str], list[Row]], metric: str, requirements: list[Requirement]
) -> None:
    # The layout has every partition of a topic for all its groups.
    sizes: dict[str, int] = {}
    for (_, topic), partitions in cells.items():
        sizes[topic] = max(sizes.get(topic, 0), len(partitions))
    rows = {
        (group, topic, index): partitions[index] if index < len(partitions) else row(2, 9)
        for (group, topic), partitions in cells.items()
        for index in range(sizes[topic])
    }
    expected = plain_answer(rows, metric, requirements)

    if isinstance(expected, type):
        with pytest.raises(expected):
            answers(rows).read(metric, requirements)
    else:
        assert items(answers(rows).read(metric, requirements).values) == expected
