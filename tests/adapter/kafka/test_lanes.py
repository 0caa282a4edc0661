"""Of many requests to one broker, only some wait for their answers at a time."""

from collections.abc import Coroutine
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, ThrottlingQuotaExceededError

from adapter import clock
from adapter.kafka.failures import failure_of
from adapter.kafka.lanes import LANE_SECONDS, WIDTH, Lane, LaneTooSlow


def has_entered(turn: Coroutine[Any, Any, None]) -> bool:
    """Runs it as far as it goes."""
    try:
        turn.send(None)
    except StopIteration:
        return True
    return False


def waiting(lane: Lane) -> Coroutine[Any, Any, None]:
    for _ in range(WIDTH):
        assert has_entered(lane.enter())
    turn = lane.enter()
    assert not has_entered(turn)
    return turn


def test_the_next_request_is_sent_when_one_has_its_answer() -> None:
    lane = Lane()
    turn = waiting(lane)
    lane.leave(None)

    assert has_entered(turn)
    assert not has_entered(lane.enter()), "it has taken the place"


def test_after_a_failure_no_request_is_sent_that_would_fail_as_well() -> None:
    lane = Lane()
    turn = waiting(lane)
    lane.leave(ConnectionResetError("it is gone"))

    with pytest.raises(ConnectionResetError):
        turn.send(None)
    lane.leave(None)
    with pytest.raises(ConnectionResetError):
        lane.enter().send(None)


def test_no_request_is_sent_after_the_lane_s_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane()
    turn = waiting(lane)
    ends = clock.monotonic() + LANE_SECONDS
    monkeypatch.setattr(clock, "monotonic", lambda: ends)
    lane.leave(None)

    with pytest.raises(LaneTooSlow):
        turn.send(None)


@pytest.mark.parametrize(
    ("error", "was_sent"),
    [(LaneTooSlow(), False), (ThrottlingQuotaExceededError(), False), (KafkaConnectionError(), True)],
)
def test_a_failure_tells_whether_the_request_was_sent(error: Exception, *, was_sent: bool) -> None:
    assert failure_of(error, "broker 1").was_sent == was_sent
