"""Rows, where they stand, and how they move to another layout."""

from collections.abc import Collection, Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapter.columns import NEVER
from adapter.lag.layout import Layout, layout_of
from adapter.lag.snapshot import NO_CAUSE, Cause, Causes, State, moved_to
from tests.support import samples
from tests.support.samples import row

TWO_GROUPS = {"shipping": {"orders"}, "billing": {"refunds", "orders"}, "idle": set[str]()}


def two_groups(partitions: int = 2, **generations: str) -> Layout:
    return layout_of(TWO_GROUPS, samples.topology({"orders": [1] * partitions, "refunds": [2]}, generations))


def names(layout: Layout) -> list[tuple[str, str]]:
    return [(layout.groups[layout.group[at]], layout.name(at)) for at in range(len(layout))]


def test_spans_and_pairs_point_at_a_groups_rows_and_a_group_without_rows_has_an_empty_span() -> None:
    layout = two_groups()

    assert {group: (span.start, span.stop) for group, span in layout.spans.items()} == {
        "billing": (0, 3),
        "idle": (3, 3),
        "shipping": (3, 5),
    }
    assert (layout.pairs["shipping", "orders"].start, layout.pairs["shipping", "orders"].stop) == (3, 5)


KNOWN = samples.snapshot({("billing", "orders", 0): row(7, 10, 2), ("billing", "orders", 1): row(8, 20, 3)})


def test_rows_keep_what_is_known_of_them_in_a_wider_layout() -> None:
    moved = moved_to(KNOWN, two_groups(3))

    assert moved.committed.tolist()[:3] == [7, 8, -1]
    assert moved.log_end.tolist()[:3] == [10, 20, -1]
    assert moved.log_start.tolist()[:3] == [2, 3, -1]
    assert moved.received.tolist()[2:] == [NEVER] * 5
    assert moved.state.tolist()[:3] == [State.OK, State.OK, State.UNKNOWN]


def test_rows_of_a_topic_that_was_made_again_begin_with_nothing_known() -> None:
    first = moved_to(samples.snapshot({}), two_groups(orders="A", refunds="R"))
    first.received[:] = samples.NOW
    again = moved_to(first, two_groups(orders="B", refunds="R"))

    assert again.received.tolist() == [NEVER, NEVER, samples.NOW, NEVER, NEVER]


def test_each_cause_occurs_once_and_number_0_means_none() -> None:
    causes = Causes()
    silence = Cause(State.UNKNOWN, "broker 2 does not answer")

    assert [causes.code(one) for one in (silence, None, silence, Cause(State.ERROR, "x"))] == [1, 0, 1, 2]
    assert tuple(causes.known) == (NO_CAUSE, silence, Cause(State.ERROR, "x"))


@given(
    st.dictionaries(st.sampled_from("abcd"), st.sets(st.sampled_from("wxyz"))),
    st.dictionaries(st.sampled_from("wxy"), st.lists(st.just(1), min_size=1, max_size=3)),
)
def test_a_layout_has_every_partition_of_every_wanted_topic_once(
    wanted: Mapping[str, Collection[str]], leaders: Mapping[str, Sequence[int]]
) -> None:
    layout = layout_of(wanted, samples.topology(leaders))

    assert names(layout) == [
        (group, f"{topic}/{index}")
        for group in sorted(wanted)
        for topic in sorted(wanted[group])
        for index in range(len(leaders.get(topic, ())))
    ]
    for at in range(len(layout)):
        group, topic = layout.groups[layout.group[at]], layout.topics[layout.topic[at]]
        assert at in range(layout.spans[group].start, layout.spans[group].stop)
        assert layout.pairs[group, topic].start + layout.partition[at] == at
        assert layout.bases[topic].start + layout.partition[at] == layout.place[at]
