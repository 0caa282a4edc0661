"""Leaders, coordinators and topics that move on a real Kafka while cycles run: never a wrong number, never for long."""

import contextlib
import itertools
from contextlib import AbstractContextManager
from functools import partial

import pytest

from adapter.errors import NothingChosen
from local.broker import Kafka
from local.kafka_admin import admin
from local.kafka_tools import commit, create_topic, delete_topic, produce
from local.processes import wait_until
from tests.end_to_end.in_process import settings_for
from tests.end_to_end.placing import (
    OFFSETS_TOPIC,
    coordinates,
    group_names,
    make_offsets_topic,
    move,
    offsets_partition,
    placed_topic,
)
from tests.end_to_end.truth import Truth
from tests.served import Served, Watcher, served

MAX_AGE = 5.0
MOVES = 10
LEADERS = 5


@pytest.fixture(scope="module", autouse=True)
def _offsets_topic(three_brokers: Kafka) -> None:
    create_topic(three_brokers, "moves-first")
    make_offsets_topic(three_brokers, "moves-first")


def reading(cluster: Kafka) -> AbstractContextManager[Served]:
    """Begun after what is to be read was committed: new groups are looked for every 30 s only."""
    groups = {"include": ["moves-.*"]}
    return served(settings_for(cluster, collection={"interval": "1s", "maxAge": f"{MAX_AGE:g}s", "groups": groups}))


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
            wait_until(partial(coordinates, client, first, group), f"{first} to coordinate {group}", 20)
            truth.commit(group, 2 + number)
        running.wait_for_lag(100 - 2 - MOVES + 1, group, seconds=MAX_AGE + 4)
    watcher.check()
    assert watcher.numbers[group] > 0


def test_leadership_that_moves_while_cycles_run_is_followed(three_brokers: Kafka) -> None:
    placed_topic(three_brokers, "moves-leader", three_brokers.brokers)
    truth = Truth(three_brokers, MAX_AGE, {"moves-reader": "moves-leader"})
    truth.produce("moves-leader", 10)
    truth.commit("moves-reader", 3)
    nodes = itertools.cycle([2, 3, 1])
    with reading(three_brokers) as running, admin(three_brokers.bootstrap_servers) as client:
        running.wait_for_lag(7, "moves-reader")
        with Watcher(running, ["moves-reader"], truth.is_true) as watcher:
            for number in range(LEADERS):
                first = next(nodes)
                move(client, "moves-leader", 0, [first, *({1, 2, 3} - {first})])
                truth.produce("moves-leader", 1)
                running.wait_for_lag(8 + number, "moves-reader", seconds=MAX_AGE + 4)
    watcher.check()
    assert watcher.refusals["moves-reader"] == []


def test_a_topic_deleted_and_made_again_within_a_cycle_has_no_number_of_before(three_brokers: Kafka) -> None:
    group, topic = "moves-renewed", "moves-again"
    create_topic(three_brokers, topic)
    produce(three_brokers, topic, 100)
    commit(three_brokers, group, {(topic, 0): 40})
    seen: list[int] = []

    def is_new() -> bool:
        with contextlib.suppress(NothingChosen):  # between the two topics there is none, and no commit
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
