"""The age of the oldest message that waits, by the log ends around the commit: against plain Python."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.verdicts.waits import LogEnds, waited

LAST_OFFSET = 2**52
Log = list[tuple[int, int]]
"""(microseconds, log end), in order of time."""


@dataclass(frozen=True)
class Question:
    """What the newest log end but `back` says of the offset that is `lag` before it."""

    log: Log
    back: int
    lag: int


def answer(question: Question) -> tuple[float, bool]:
    """The seconds, and whether they are a lower bound."""
    log = question.log[: len(question.log) - question.back]
    now, passed = log[-1][0], log[-1][1] - question.lag
    before = [number for number, (_, end) in enumerate(log) if end <= passed]
    if not before:
        return (now - log[0][0]) / 1e6, True
    (low_at, low), (high_at, high) = log[before[-1]], log[before[-1] + 1]
    return (now - low_at - (passed - low) / (high - low) * (high_at - low_at)) / 1e6, False


def asked(questions: list[Question]) -> list[tuple[float, bool]]:
    at = np.array([at for each in questions for at, _ in each.log], dtype=np.int64)
    end = np.array([end for each in questions for _, end in each.log], dtype=np.int64)
    run = np.repeat(np.arange(len(questions)), [len(each.log) for each in questions])
    place = np.cumsum([len(each.log) for each in questions]) - 1 - np.array([each.back for each in questions])
    seconds, is_bound = waited(LogEnds(at, end, run), place, end[place] - [each.lag for each in questions])
    return list(zip(seconds.tolist(), is_bound.tolist(), strict=True))


@st.composite
def some_question(draw: st.DrawFn) -> Question:
    steps = draw(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 50)), min_size=2, max_size=12))
    at, end = draw(st.integers(0, 10**15)), draw(st.sampled_from([0, 7, LAST_OFFSET - 1000]))
    log: Log = []
    for seconds, messages in steps:
        at, end = at + seconds, end + messages
        log.append((at, end))
    return Question(log, draw(st.integers(0, len(log) - 1)), draw(st.integers(1, 200)))


@given(st.lists(some_question(), min_size=1, max_size=6))
def test_every_age_is_that_of_one_log_in_plain_python(questions: list[Question]) -> None:
    found, expected = zip(*asked(questions), strict=True), zip(*map(answer, questions), strict=True)
    (seconds, is_bound), (expected_seconds, is_expected_bound) = found, expected

    assert seconds == pytest.approx(expected_seconds, abs=1e-5)
    assert is_bound == is_expected_bound


def test_the_age_is_interpolated_between_the_log_ends_around_the_commit() -> None:
    log = [(0, 0), (10_000_000, 100), (20_000_000, 200)]

    assert asked([Question(log, back=0, lag=50)]) == [(5.0, False)]


def test_before_the_first_log_end_there_is_only_a_lower_bound() -> None:
    log = [(0, 100), (10_000_000, 110)]

    assert asked([Question(log, back=0, lag=60)]) == [(10.0, True)]
