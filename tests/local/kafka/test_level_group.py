"""How far a lag is overstated, told from when messages were written and committed."""

import pytest

from local.kafka.level_group import LevelGroup, Step


def steady(batches: int = 100) -> LevelGroup:
    """A batch of 10 messages each second: written within 0.1 s, committed after 0.2 s."""
    load = LevelGroup("127.0.0.1:1", "level", "orders", partitions=1, rate=10, batch=10)
    load.steps = [Step(0.0, 0.0, 0.0, 0)]
    load.steps += [Step(float(n), n + 0.1, n + 0.2, 10 * n) for n in range(1, batches + 1)]
    return load


@pytest.mark.parametrize("lag", [0, 3, 10])
def test_a_lag_that_was_true_for_a_moment_is_not_overstated(lag: int) -> None:
    assert steady().excess(lag, asked=50.0, since=40.0) == 0.0


@pytest.mark.parametrize(("lag", "seconds"), [(11, 0.8), (20, 0.8), (30, 1.8), (100, 8.8)])
def test_a_lag_of_an_end_after_the_next_commit_is_overstated_by_the_time_between(lag: int, seconds: float) -> None:
    assert steady().excess(lag, asked=50.0, since=40.0) == pytest.approx(seconds)


def test_only_ends_that_can_have_been_reached_explain_a_lag() -> None:
    load = steady(batches=50)

    assert load.excess(20, asked=50.3, since=40.0) == 0.0, "of the batch that is being written"
    assert load.excess(1_000, asked=50.3, since=0.0) == float("inf")


def test_the_rate_is_that_of_the_time_since_the_first_batch() -> None:
    assert steady().rate == pytest.approx(10.0)
