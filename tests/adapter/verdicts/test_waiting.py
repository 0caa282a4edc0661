"""How many messages wait in a partition."""

import numpy as np
import pytest

from adapter.columns import NO_COMMIT
from adapter.verdicts.waiting import lag_behind, lag_without_commit


@pytest.mark.parametrize(
    ("committed", "log_end", "log_start", "lag"),
    [(7, 10, 2, 3), (10, 10, 2, 0), (2, 10, 2, 8), (0, 10, 4, 6), (0, 10, 10, 0)],
)
def test_messages_from_the_commit_to_the_end_wait_unless_they_are_deleted(
    committed: int, log_end: int, log_start: int, lag: int
) -> None:
    assert lag_behind(*(np.array([offset]) for offset in (committed, log_end, log_start))).tolist() == [lag]


def test_without_a_commit_the_whole_log_waits_or_nothing() -> None:
    end, start, never = np.array([10, 10]), np.array([4, 4]), np.array([NO_COMMIT, NO_COMMIT])

    assert lag_without_commit(end, start, np.array([True, False]), never).tolist() == [6, 0]


def test_a_commit_that_has_expired_counts_on() -> None:
    end, start, last = np.array([10, 10, 10]), np.array([4, 4, 4]), np.array([8, 2, 10])

    assert lag_without_commit(end, start, np.array([True, False, False]), last).tolist() == [2, 6, 0]
