"""Who is asked in a cycle, and whose steps backward are not believed."""

from dataclasses import dataclass, field

from adapter.kafka.answers import Answer, Failure, FailureCause
from adapter.kafka.liveness import DISTRUST_SECONDS, Liveness
from tests.support.samples import NOW, SteppedClock

SILENCE = Failure(FailureCause.TIMED_OUT, "broker 2 at kafka-2:9092 does not answer")
REFUSAL = Failure(FailureCause.REFUSED, "broker 2 at kafka-2:9092 refuses the connection")
ANSWER = Answer("anything", NOW)


@dataclass
class Sign:
    is_done: bool = False
    was_answered: bool = False

    def succeeded(self) -> bool:
        return self.was_answered


@dataclass
class Signs:
    """The probes that were sent."""

    sent: list[tuple[int, Sign]] = field(default_factory=list)

    def __call__(self, node: int) -> Sign:
        self.sent.append((node, Sign()))
        return self.sent[-1][1]

    def fail(self) -> None:
        self.sent[-1][1].is_done = True


def silent_broker_2() -> tuple[Liveness, Signs, SteppedClock]:
    signs, clock = Signs(), SteppedClock()
    liveness = Liveness(signs, clock.monotonic)
    liveness.begin_cycle()
    liveness.note({1: ANSWER, 2: SILENCE})
    return liveness, signs, clock


def test_a_probe_that_failed_is_sent_again_and_one_that_is_on_its_way_is_not() -> None:
    liveness, signs, _ = silent_broker_2()
    liveness.begin_cycle()
    signs.fail()
    liveness.begin_cycle()

    assert len(signs.sent) == 2
    assert liveness.present([2]) == ()


def test_a_brokers_first_failure_is_kept_until_the_cycle_ends() -> None:
    liveness = Liveness(Signs(), SteppedClock().monotonic)
    liveness.note({2: REFUSAL})
    liveness.note({2: SILENCE})
    assert liveness.failed == {2: REFUSAL}

    liveness.begin_cycle()
    assert liveness.failed == {}


def test_a_broker_that_refused_is_asked_again_in_the_next_cycle() -> None:
    signs = Signs()
    liveness = Liveness(signs, SteppedClock().monotonic)
    liveness.note({2: REFUSAL})

    assert liveness.present([2]) == (2,)
    assert signs.sent == []


def test_a_new_client_asks_every_broker_and_distrusts_who_was_silent_until_after_its_next_answer() -> None:
    liveness, _, clock = silent_broker_2()
    liveness.forget_probes()
    clock.seconds += 100

    assert liveness.present([1, 2]) == (1, 2)
    assert liveness.is_doubtful(2)
    liveness.note({2: ANSWER})
    assert liveness.is_doubtful(2)
    clock.seconds += DISTRUST_SECONDS
    assert not liveness.is_doubtful(2)


def test_a_broker_that_the_cluster_no_longer_has_is_not_probed_and_distrusted_should_it_come_back() -> None:
    liveness, signs, clock = silent_broker_2()
    liveness.forget_others([1, 3])
    signs.fail()
    liveness.begin_cycle()

    assert len(signs.sent) == 1
    assert not liveness.is_somebody_absent
    clock.seconds += 100
    liveness.note({2: ANSWER})
    assert liveness.is_doubtful(2)
