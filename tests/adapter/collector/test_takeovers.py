"""When a group has a new coordinator, whose first answers may be old."""

import numpy as np

from adapter.collector.takeovers import TAKEOVER_SECONDS, Takeovers

GROUPS = ("audit", "billing", "etl")
CODES = {group: code for code, group in enumerate(GROUPS)}
EVERY = np.arange(3, dtype=np.int32)


def answered(by: int = 1, at: float = 100.0) -> Takeovers:
    """All groups had their first answer from that node."""
    takeovers = Takeovers()
    takeovers.follow(GROUPS, CODES)
    takeovers.note_answer(EVERY, by, at)
    return takeovers


def test_the_first_coordinator_of_a_group_has_taken_nothing_over() -> None:
    assert not answered().note_answer(EVERY, 1, 101).any()


def test_another_node_has_taken_the_group_over_for_half_a_minute() -> None:
    takeovers = answered()
    billing = EVERY[1:2]
    assert takeovers.note_answer(billing, 2, 200).all()
    assert takeovers.note_answer(billing, 2, 200 + TAKEOVER_SECONDS - 1).all()

    assert not takeovers.note_answer(billing, 2, 200 + TAKEOVER_SECONDS).any()
    assert not takeovers.note_answer(EVERY[::2], 1, 201).any()


def test_a_node_that_had_lost_a_group_takes_it_over_anew() -> None:
    takeovers = answered()
    takeovers.note_lost(["billing"])

    assert takeovers.note_answer(EVERY, 1, 200).tolist() == [False, True, False]


def test_a_group_that_was_refused_before_anybody_reported_it_is_not_taken_over() -> None:
    takeovers = Takeovers()
    takeovers.follow(GROUPS, CODES)
    takeovers.note_lost(GROUPS)

    assert not takeovers.note_answer(EVERY, 1, 200).any()


def test_what_is_known_follows_the_groups() -> None:
    takeovers = answered()
    takeovers.note_answer(EVERY[1:2], 2, 200)
    groups = ("billing", "etl", "web")
    takeovers.follow(groups, {group: code for code, group in enumerate(groups)})

    assert takeovers.note_answer(EVERY, 2, 201).tolist() == [True, True, False]
