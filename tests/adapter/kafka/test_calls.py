"""Requests under way: who waits gets the first answers soon, and late ones later."""

import time
from threading import Condition, Thread

from kafka.errors import KafkaTimeoutError

from adapter.kafka.answers import Answer, Failure, FailureCause
from adapter.kafka.calls import Calls
from adapter.kafka.client import Brokers
from tests.support import samples

TOGETHER = 0.05
LONG = 60.0
SILENCE = Failure(FailureCause.TIMED_OUT, "broker 1 does not answer")


def read(_: int, outcome: object, received: float) -> Answer[object] | Failure:
    if isinstance(outcome, KafkaTimeoutError):
        return SILENCE
    return outcome if isinstance(outcome, Failure) else Answer(outcome, received)


def brokers() -> Brokers:
    return Brokers(samples.settings().clusters[0], lambda _: None)


def calls(count: int, of: Brokers | None = None, seconds: float = LONG) -> Calls[object]:
    return Calls(range(count), of._changed if of else Condition(), seconds, read)


def test_every_answer_is_taken_once_in_any_order_of_arrival() -> None:
    under_way = calls(3)
    under_way.settle(2, "third", 7.0)
    assert under_way.take() == {2: Answer("third", 7.0)}

    under_way.settle(0, "first", 8.0)
    under_way.settle(1, SILENCE, 9.0)
    assert under_way.take() == {0: Answer("first", 8.0), 1: SILENCE}
    assert under_way.are_taken


def test_the_first_outcome_of_a_request_counts() -> None:
    under_way = calls(1)
    under_way.settle(0, "in time", 7.0)
    under_way.settle(0, "again", 8.0)

    assert under_way.take() == {0: Answer("in time", 7.0)}


def test_requests_without_an_outcome_fail_when_their_time_is_over() -> None:
    under_way = calls(2, seconds=0.0)
    under_way.settle(1, "just in time", 7.0)

    assert under_way.take() == {0: SILENCE, 1: Answer("just in time", 7.0)}


def test_an_answer_that_was_received_after_its_time_is_none() -> None:
    """A machine that was suspended receives it hours after it was sent."""
    under_way = calls(1)
    under_way.settle(0, "of an hour ago", under_way.expires + 1)

    assert under_way.take() == {0: SILENCE}


def test_the_first_answer_waits_a_moment_for_the_others_and_no_longer() -> None:
    client = brokers()
    quick, late = calls(2, client), calls(1, client)
    begun = time.monotonic()
    quick.settle(0, "quick", begun)

    assert client.wait(quick, late, together=TOGETHER)
    assert TOGETHER <= time.monotonic() - begun < LONG / 2
    assert (list(quick.take()), list(late.take())) == ([0], [])


def test_nothing_waits_once_everything_has_arrived() -> None:
    client = brokers()
    one, other = calls(1, client), calls(1, client)
    threads = [Thread(target=each.settle, args=(0, "answer", time.monotonic())) for each in (one, other)]
    for thread in threads:
        thread.start()

    assert client.wait(one, other, together=LONG)
    assert (list(one.take()), list(other.take())) == ([0], [0])
    assert not client.wait(one, other, together=LONG)
    for thread in threads:
        thread.join()


def test_a_failure_is_no_answer_to_wait_for_company_with() -> None:
    under_way = calls(2)
    under_way.settle(0, SILENCE, 7.0)
    assert under_way.first_response() is None

    under_way.settle(1, "answer", 8.0)
    assert under_way.first_response() == 8.0
