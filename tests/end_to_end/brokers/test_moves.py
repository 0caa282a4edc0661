"""Leaders, coordinators and topics that move on a real Kafka while cycles run: never a wrong number, never for long."""

import contextlib
import itertools
from contextlib import AbstractContextManager
from functools import partial

import pytest
from kafka import TopicPartition

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.collector import members
from adapter.collector.inventory import LOG_END_SECONDS
from adapter.metrics.problems import NoMatch, ValueUnavailable
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, delete_topic, produce
from local.processes import wait_until
from tests.support.kubernetes.served import Served, Watcher, served
from tests.support.real.changes import member, state_of
from tests.support.real.in_process import in_process, settings_for
from tests.support.real.placing import (
    coordinates,
    group_names,
    make_offsets_topic,
    move,
    offsets_partition,
    placed_topic,
)
from tests.support.real.truth import Truth
from tests.support.real.versions import needs_kafka

MAX_AGE = 10.0
MOVES, MOST_MOVES = 10, 60
"""A machine that is busy elsewhere may be too slow to see anything of a handover, so some tests go on until they do."""
LEADERS = 5
MOST_WRONG = 1
"""Answers of adapters that have just started. A coordinator applies what its followers confirm a moment after the
leader shows it, or misses it: docs/lag.md. An adapter that did not wait for the leader would be wrong more often."""


@pytest.fixture(scope="module", autouse=True)
def _offsets_topic(three_brokers: Kafka) -> None:
    create_topic(three_brokers, "moves-first")
    make_offsets_topic(three_brokers, "moves-first")


def reading(cluster: Kafka, max_age: float = MAX_AGE) -> AbstractContextManager[Served]:
    """Begun after what is to be read was committed: new groups are looked for every 30 s only."""
    groups = {"include": ["moves-.*"]}
    return served(settings_for(cluster, collection={"interval": "1s", "maxAge": f"{max_age:g}s", "groups": groups}))


def test_a_coordinator_that_moves_ten_times_is_followed(three_brokers: Kafka) -> None:
    placed_topic(three_brokers, "moves-coordinator", three_brokers.brokers)
    group = next(group_names(three_brokers, "moves-led", three_brokers.brokers[0], 2))
    truth = Truth(three_brokers, MAX_AGE, {group: "moves-coordinator"})
    truth.produce("moves-coordinator", 100)
    truth.commit(group, 1)
    nodes = itertools.cycle([2, 3, 1])
    partition = offsets_partition(group)
    with (
        reading(three_brokers) as running,
        admin(three_brokers.bootstrap_servers) as client,
        Watcher(running, [group], truth.is_true) as watcher,
    ):
        running.wait_for_lag(99, group)
        for number in range(MOVES):
            first = next(nodes)
            move(client, OFFSETS_TOPIC, partition, [first, *({1, 2, 3} - {first})])
            wait_until(partial(coordinates, client, first, group), f"{first} to coordinate {group}", 180)
            truth.commit(group, 2 + number)
        running.wait_for_lag(100 - 2 - MOVES + 1, group)
    watcher.check()
    assert watcher.numbers[group] > 0


def test_a_new_coordinator_s_old_commits_are_not_served(three_brokers: Kafka) -> None:
    """It reports them, or none, without an error, until its followers have confirmed the newest: about 0.3 s, or, if it
    misses that, until something is committed.
    """
    topic = "moves-taken-over"
    placed_topic(three_brokers, topic, three_brokers.brokers)
    produce(three_brokers, topic, 100)
    group = next(group_names(three_brokers, topic, three_brokers.brokers[0], 4))
    where, nodes = TopicPartition(OFFSETS_TOPIC, offsets_partition(group)), itertools.cycle([2, 3, 1])
    beside_the_truth: set[int] = set()
    with (
        in_process(three_brokers, collection={"groups": {"include": [group]}}) as rig,
        admin(three_brokers.bootstrap_servers) as client,
    ):

        def is_read(node: int, lag: int) -> bool:
            """From that broker, and believed."""
            outcome = rig.run_once()
            beside_the_truth.add(rig.lag(group) - lag)
            return outcome.completeness == "complete" and rig.cycle._commits.directory.coordinators[group] == node

        for number in range(MOVES):
            commit(three_brokers, group, {(topic, 0): 10 + number})
            rig.put_forward(LOG_END_SECONDS)
            rig.read_all()
            first = next(nodes)
            client.alter_partition_reassignments({where: [first, *({1, 2, 3} - {first})]})
            client.elect_leaders(0, {OFFSETS_TOPIC: [where.partition]}, raise_errors=False)
            wait_until(partial(is_read, first, 90 - number), f"group {group} to be read from {first}", 180)

    assert beside_the_truth == {0}


@needs_kafka(2, 8, "a leader that an election moves right after a reassignment")
def test_a_start_while_a_coordinator_takes_over_serves_no_old_commits(three_brokers: Kafka) -> None:
    """Adapters start one after another while it reports old commits, or lists no groups."""
    topic = "moves-started"
    placed_topic(three_brokers, topic, three_brokers.brokers)
    produce(three_brokers, topic, 100)
    group = next(group_names(three_brokers, topic, three_brokers.brokers[0], 1))
    where, nodes = TopicPartition(OFFSETS_TOPIC, offsets_partition(group)), itertools.cycle([2, 3, 1])
    answers: list[bool] = []
    refusals: list[str] = []

    def is_served(lag: int) -> bool:
        """By an adapter that has just started, whether it is right or not."""
        with in_process(three_brokers, collection={"groups": {"include": [group]}}) as rig:
            rig.run_once()
            try:
                answers.append(rig.lag(group) == lag)
            except NoMatch:
                answers.append(False)
            except ValueUnavailable as error:
                refusals.append(str(error))
                return False
            return True

    with admin(three_brokers.bootstrap_servers) as client:
        for number in range(MOST_MOVES):
            commit(three_brokers, group, {(topic, 0): 10 + number})
            first = next(nodes)
            client.alter_partition_reassignments({where: [first, *({1, 2, 3} - {first})]})
            client.elect_leaders(0, {OFFSETS_TOPIC: [where.partition]}, raise_errors=False)
            wait_until(partial(is_served, 90 - number), f"group {group} to be served", 120)
            if number >= MOVES - 1 and refusals:
                break

    assert answers.count(False) <= MOST_WRONG
    assert refusals, "no start fell into a handover"


def test_a_coordinator_that_moves_brings_no_stale_topic_back(
    three_brokers: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members are described in every cycle, so also while the one broker stops and the other loads the group."""
    # Cycles are a minute apart by their clock alone: a new coordinator is wrong about the group for several of them.
    monkeypatch.setattr(members, "EMPTY_SECONDS", 1e6)
    read, left = "moves-read", "moves-left"
    for topic in (read, left):
        placed_topic(three_brokers, topic, three_brokers.brokers)
        produce(three_brokers, topic, 10)
    group = next(group_names(three_brokers, "moves-members", three_brokers.brokers[0], 3))
    commit(three_brokers, group, {(read, 0): 4, (left, 0): 1})
    seen: list[int] = []
    with (
        member(three_brokers, group, read),
        in_process(three_brokers, collection={"groups": {"include": [group]}}) as rig,
        admin(three_brokers.bootstrap_servers) as client,
    ):

        def is_followed(node: int) -> bool:
            rig.run_full_cycle()
            with contextlib.suppress(ValueUnavailable):
                seen.append(rig.lag(group))
            return coordinates(client, node, group)

        rig.wait_for_lag(6, group)
        where, nodes = (
            TopicPartition(OFFSETS_TOPIC, offsets_partition(group)),
            itertools.cycle([2, 3, 1]),
        )
        for _ in range(MOVES):
            first = next(nodes)
            client.alter_partition_reassignments({where: [first, *({1, 2, 3} - {first})]})
            client.elect_leaders(0, {OFFSETS_TOPIC: [where.partition]}, raise_errors=False)
            wait_until(partial(is_followed, first), f"{first} to coordinate {group}", 180)
            wait_until(lambda: state_of(three_brokers, group) == "Stable", f"{group} to be Stable", 180)
            rig.run_full_cycle()
            seen.append(rig.lag(group))

    assert set(seen) == {6}


def test_leadership_that_moves_while_cycles_run_is_followed(three_brokers: Kafka) -> None:
    placed_topic(three_brokers, "moves-leader", three_brokers.brokers)
    max_age = 3 * MAX_AGE  # no read may be refused, however busy the machine
    truth = Truth(three_brokers, max_age, {"moves-reader": "moves-leader"})
    truth.produce("moves-leader", 10)
    truth.commit("moves-reader", 3)
    nodes = itertools.cycle([2, 3, 1])
    with reading(three_brokers, max_age) as running, admin(three_brokers.bootstrap_servers) as client:
        running.wait_for_lag(7, "moves-reader")
        with Watcher(running, ["moves-reader"], truth.is_true) as watcher:
            for number in range(LEADERS):
                first = next(nodes)
                move(client, "moves-leader", 0, [first, *({1, 2, 3} - {first})])
                truth.produce("moves-leader", 1)
                running.wait_for_lag(8 + number, "moves-reader")
    watcher.check()
    assert watcher.refusals["moves-reader"] == []


def test_a_topic_deleted_and_made_again_within_a_cycle_has_no_number_of_before(three_brokers: Kafka) -> None:
    group, topic = "moves-renewed", "moves-again"
    create_topic(three_brokers, topic)
    produce(three_brokers, topic, 100)
    commit(three_brokers, group, {(topic, 0): 40})
    seen: list[int] = []

    def is_new() -> bool:
        with contextlib.suppress(NoMatch):  # between the two topics there is none, and no commit
            seen.append(running.lag(group))
        return seen[-1:] == [6]

    with reading(three_brokers) as running:
        running.wait_for_lag(60, group)
        delete_topic(three_brokers, topic)
        create_topic(three_brokers, topic)
        produce(three_brokers, topic, 10)
        commit(three_brokers, group, {(topic, 0): 4})
        running.wait_for(is_new)
        running.wait_for_cycles(3)
        seen.append(running.lag(group))

    assert sorted(set(seen), reverse=True) in ([60, 6], [6])
    assert seen == sorted(seen, reverse=True), "the old topic's number came back"
