"""A broker that takes one group per request has as many under way as it answers in a moment."""

from collections.abc import Mapping, Sequence
from threading import Condition

import pytest
from kafka.errors import KafkaConnectionError, ThrottlingQuotaExceededError

from adapter.kafka.answers import Answer, Failure, FailureCause
from adapter.kafka.calls import Calls
from adapter.kafka.failures import failure_of
from adapter.kafka.paced_calls import MOST_UNDER_WAY, WIDEST, BrokerTooSlow, PacedCalls

SECONDS = 15.0
CLOSED = Failure(FailureCause.CONNECTION, "broker 1 closed the connection")
MALFORMED = Failure(FailureCause.MALFORMED, "broker 1 sent a malformed response")
TOO_SLOW = Failure(FailureCause.OTHER, "broker 1 is too slow")


class Wire:
    """Sends waves, and answers them when told."""

    def __init__(self, nodes: Mapping[int, int]) -> None:
        self.now = 100.0
        self.waves: list[Calls[str]] = []
        self.calls = PacedCalls(nodes, self._send, lambda _: TOO_SLOW, lambda: self.now, SECONDS)

    def _send(self, numbers: Sequence[int]) -> Calls[str]:
        wave = Calls[str](numbers, Condition(), float("inf"), read)
        wave.sent = dict.fromkeys(numbers, self.now)
        self.waves.append(wave)
        return wave

    def answer(self, wave: Calls[str], pace: float, outcome: object = "answer") -> None:
        for place, number in enumerate(wave.keys, start=1):
            wave.settle(number, outcome, self.now + place * pace)
        self.now += len(wave.keys) * pace

    def widths(self, paces: Sequence[float]) -> list[int]:
        """Returns how many requests follow after answers of this pace."""
        widths = []
        for pace in paces:
            self.answer(self.waves[-1], pace)
            self.calls.advance()
            widths.append(len(self.waves[-1].keys))
        return widths


def read(_: int, outcome: object, received: float) -> Answer[str] | Failure:
    return outcome if isinstance(outcome, Failure) else Answer(str(outcome), received)


def wire(requests: int = 100) -> Wire:
    return Wire(dict.fromkeys(range(requests), 1))


def test_a_broker_is_asked_for_one_group_first_and_in_the_order_of_the_requests() -> None:
    its = wire()
    its.widths([0.001])

    assert [list(wave.keys) for wave in its.waves] == [[0], [1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("pace", "widths"), [(0.0, [4, 16, WIDEST, WIDEST]), (0.045, [4, 4]), (0.15, [1, 1]), (2.9, [1, 1])]
)
def test_as_much_is_under_way_as_the_broker_answers_in_a_moment(pace: float, widths: list[int]) -> None:
    assert wire().widths([pace] * len(widths)) == widths


def test_a_broker_that_becomes_slow_gets_less_and_one_that_becomes_quick_gets_more() -> None:
    assert wire().widths([0.001, 0.001, 0.1, 0.5, 0.001]) == [4, 16, 2, 1, 4]


def test_less_is_under_way_at_each_of_many_brokers() -> None:
    its = Wire({number: number % 12 for number in range(1000)})
    for _ in range(30):
        its.answer(its.waves[-1], 0.0)
        its.calls.advance()

    assert max(len(wave.keys) for wave in its.waves) == MOST_UNDER_WAY // 12


def test_no_more_arrives_than_a_wave_until_the_waiting_thread_comes_back() -> None:
    its = wire()
    its.answer(its.waves[0], 0.001)
    assert list(its.calls.take()) == [0]
    assert len(its.waves) == 1

    its.calls.advance()
    assert len(its.waves) == 2


def test_a_broker_that_is_late_holds_up_no_wave_of_another_one() -> None:
    its = Wire({number: 1 + number % 2 for number in range(40)})
    late, quick = its.waves
    its.answer(quick, 0.001)
    its.calls.advance()

    assert not late.are_settled
    assert [list(wave.keys) for wave in its.waves] == [[0], [1], [3, 5, 7, 9]]


def test_every_outcome_is_taken_once() -> None:
    its = wire(10)
    taken: list[int] = []
    while not its.calls.are_taken:
        its.answer(its.waves[-1], 0.001)
        its.calls.advance()
        taken += its.calls.take()

    assert taken == list(range(10))
    assert its.calls.are_settled


def test_the_first_answer_counts_until_it_is_taken_although_it_was_read_for_the_next_wave() -> None:
    its = wire()
    its.widths([0.001, 0.001])
    assert its.calls.first_response() == 100.001

    its.calls.take()
    assert its.calls.first_response() is None


def test_after_a_failure_no_request_is_sent_that_would_fail_as_well() -> None:
    its = wire(3)
    its.answer(its.waves[0], 0.001, CLOSED)
    its.calls.advance()

    assert len(its.waves) == 1
    assert its.calls.take() == {0: CLOSED, 1: CLOSED, 2: CLOSED}
    assert (its.calls.unsent, its.calls.are_taken) == ({1, 2}, True)


def test_a_response_that_cannot_be_read_fails_no_other_request() -> None:
    its = wire(3)
    its.answer(its.waves[0], 0.001, MALFORMED)
    its.calls.advance()

    assert its.calls.take() == {0: MALFORMED}
    assert list(its.waves[-1].keys) == [1, 2]


def test_no_request_is_sent_after_the_time_for_all() -> None:
    its = wire(20)
    its.widths([SECONDS / 3, SECONDS / 3, SECONDS / 2])

    assert len(its.waves) == 3
    assert {number for number, each in its.calls.take().items() if each == TOO_SLOW} == set(range(3, 20))
    assert its.calls.unsent == set(range(3, 20))


@pytest.mark.parametrize(
    ("error", "was_sent"),
    [(BrokerTooSlow(SECONDS), False), (ThrottlingQuotaExceededError(), False), (KafkaConnectionError(), True)],
)
def test_a_failure_tells_whether_the_request_was_sent(error: Exception, *, was_sent: bool) -> None:
    assert failure_of(error, "broker 1").was_sent == was_sent
