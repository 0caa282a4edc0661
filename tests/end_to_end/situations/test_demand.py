"""Ages, rates and members on a real broker, against the timestamps that it gave the messages."""

import time
from contextlib import closing
from itertools import pairwise

import pytest
from kafka import KafkaProducer

from adapter.lag import saturation
from adapter.metrics.problems import Reason, Refused
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_as_member, member
from tests.support.real.in_process import in_process

SECONDS, RATE_SECONDS = 68, 60.0
"""A rate covers one minute or more."""
PER_SECOND, BEHIND = 2, 9
EACH, BACKLOG = 10, 30_000
"""Messages that are read between two cycles, and all."""


def until(moment: float) -> None:
    """Waits for a time of the monotonic clock, which sets the pace of messages and cycles."""
    wait_until(lambda: time.monotonic() >= moment, "the next second", WAIT_SECONDS)


def rates_by_second(read: list[tuple[float, int]]) -> list[float]:
    """Messages per second in each stretch of a second or a little more, by the times and offsets."""
    ends = (next((later for later in read[at:] if later[0] - read[at][0] >= 1.0), None) for at in range(len(read)))
    pairs = [(begin, end) for begin, end in zip(read, ends, strict=True) if end is not None]
    return [(end[1] - begin[1]) / (end[0] - begin[0]) for begin, end in pairs]


def rates_to_the_end(written: list[float], least_seconds: float) -> list[float]:
    """Messages per second from each message to the last one, where that is so long."""
    return [
        (len(written) - 1 - at) / (written[-1] - one)
        for at, one in enumerate(written)
        if written[-1] - one >= least_seconds
    ]


def test_ages_and_rates_are_those_of_the_messages(one_broker: Kafka) -> None:
    """Two messages come and go in each second, and a cycle reads; the group stays nine messages behind."""
    topic = group = "demand"
    create_topic(one_broker, topic)
    servers = one_broker.bootstrap_servers.split(",")
    written: list[float] = []
    """When each message was, in seconds since the epoch."""
    cycles: list[float] = []
    """When each cycle ended."""
    with (
        closing(KafkaProducer(bootstrap_servers=servers)) as producer,
        member(one_broker, group, topic) as consumer,
        in_process(one_broker) as rig,
    ):
        commit_as_member(consumer, topic, 0)
        rig.wait_for_lag(0, group)
        begin = time.monotonic()
        for second in range(SECONDS):
            sent = [producer.send(topic, value=b"message", partition=0) for _ in range(PER_SECOND)]
            written += [message.get(timeout=WAIT_SECONDS).timestamp / 1000 for message in sent]
            commit_as_member(consumer, topic, max(0, len(written) - BEHIND))
            rig.run_once()
            cycles.append(time.monotonic())
            until(begin + second + 1)
        rig.run_once()
        cycles.append(time.monotonic())
        (age,) = rig.read("lag_seconds", group=group).values

        # The time of the message is known to a cycle, which is a second, or more on a busy machine.
        longest = max(later - one for one, later in pairwise(cycles))
        assert age.labels["bound"] == "exact"
        assert age.milli / 1000 == pytest.approx(age.measured_at - written[-BEHIND], abs=1 + longest)
        # The rate is that of the last minute, or of a little more, in which a busy machine catches up.
        rates = rates_to_the_end(written, RATE_SECONDS - longest)
        for metric in ("production_rate", "consumption_rate"):
            (rate,) = rig.read(metric, group=group, topic=topic).values
            assert 0.9 * min(rates) <= rate.milli / 1000 <= 1.1 * max(rates)
        assert rig.value("members", group=group) == 1


def test_messages_from_before_the_first_cycle_are_only_older_than_it(one_broker: Kafka) -> None:
    topic = group = "demand-from-before"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    with in_process(one_broker) as rig:
        rig.wait_for_lag(6, group)
        rig.run_once()
        refusal = rig.refusal("lag_seconds", group=group)
        assert isinstance(refusal, Refused)
        assert [problem.reason for problem in refusal.problems] == [Reason.LOWER_BOUND]

        produce(one_broker, topic, 5)
        rig.run_once()
        commit(one_broker, group, {(topic, 0): 12})
        rig.run_once()
        (age,) = rig.read("lag_seconds", group=group).values

        assert 0 < age.milli / 1000 < WAIT_SECONDS
        assert age.labels["bound"] == "exact"


def test_the_capacity_of_a_member_is_learned_while_it_always_has_something_to_read(
    one_broker: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With windows of a second instead of a minute, because ten of them must have passed."""
    monkeypatch.setattr(saturation, "WINDOW_SECONDS", 1.0)
    monkeypatch.setattr(saturation, "WINDOW_INTERVALS", 1)
    topic = group = "demand-busy"
    create_topic(one_broker, topic)
    produce(one_broker, topic, BACKLOG)
    rule = {"group": group, "topics": [topic], "objective": {"maxWait": "30s"}}
    only = {"groups": {"include": [group]}}
    with (
        member(one_broker, group, topic) as consumer,
        in_process(one_broker, rules=[rule], collection=only) as rig,
    ):
        commit_as_member(consumer, topic, 0)
        # The cycles' clock must not be put forward: times of receipt are by the machine's.
        rig.read_all()
        refusal = rig.refusal("capacity", group=group)
        assert isinstance(refusal, Refused)
        assert [problem.reason for problem in refusal.problems] == [Reason.CAPACITY_UNKNOWN]

        read = [(time.monotonic(), 0)]
        while rig.refusal("capacity", group=group) is not None and read[-1][1] < BACKLOG - EACH:
            offset = read[-1][1] + EACH
            commit_as_member(consumer, topic, offset)
            rig.run_once()
            rig.metrics.look()
            read.append((time.monotonic(), offset))
        (capacity,) = rig.read("capacity", group=group).values

        # On a busy machine, no two seconds are alike.
        rates = rates_by_second(read)
        assert capacity.labels["source"] == "learned"
        assert 0.9 * min(rates) <= capacity.milli / 1000 <= 1.1 * max(rates)
