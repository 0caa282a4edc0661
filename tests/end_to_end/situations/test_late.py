"""Real brokers that answer late, freeze or throttle, while a group keeps up with 5,000 messages a second."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.lag.states import MOST_SECONDS_APART
from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from local.kafka.late_broker import FAR_TOPIC, PARTITIONS, TOPIC, LateBroker, late_broker
from local.kafka.level_group import LevelGroup, level_group
from local.processes import wait_until
from tests.support.kubernetes.served import Served, served
from tests.support.real.changes import WAIT_SECONDS, quota
from tests.support.real.versions import needs_quota_requests

LATE_SECONDS = 2.0
ANSWER_SECONDS = 0.5
"""What the coordinator and the leader take to answer comes on top, and the time of the slowest batch meanwhile."""
MUTE_SECONDS = 1.0
"""Kafka's longest wait for a request quota that is used up, by its default window."""
TINY = ("kafka-lag-adapter", "request_percentage", 0.01)
MAX_AGE = 60.0
CYCLES = 4
GAP = "kafka_lag_adapter_commit_to_end_seconds_bucket"


@pytest.fixture(scope="module")
def brokers(rig_home: Path) -> Iterator[LateBroker]:
    with late_broker(rig_home / "late") as found:
        yield found


@pytest.fixture
def load(brokers: LateBroker) -> Iterator[LevelGroup]:
    with level_group(brokers.cluster.bootstrap_servers, brokers.group, TOPIC, PARTITIONS) as running:
        running.wait_for_steps(50)
        yield running


@pytest.fixture
def running(brokers: LateBroker, load: LevelGroup) -> Iterator[Served]:
    """Only brokers of the outside listener are known to the adapter."""
    cluster = {"name": "main", "bootstrapServers": brokers.cluster.outside_servers.split(",")}
    groups = {"include": [brokers.group, brokers.far_group]}
    collection = {"interval": "1s", "maxAge": f"{MAX_AGE:g}s", "groups": groups}
    with served(parse({"clusters": [cluster], "collection": collection}, SERVED)) as running:
        running.wait_for(
            lambda: running.lag(brokers.group) >= 0 and running.lag(brokers.far_group, topic=FAR_TOPIC) == 0
        )
        running.wait_for_cycles(2)
        load.wait_for_steps(100)
        yield running


def worst_excess(running: Served, load: LevelGroup, group: str, cycles: int = CYCLES) -> tuple[float, float]:
    """The largest overstatement that is served during so many cycles, in seconds of production; and how large it may
    be where the brokers are as slow as the load found them meanwhile."""
    began, ends, worst = time.monotonic(), running.cycles() + cycles, 0.0
    while running.cycles() < ends:
        answer, now = running.answer(group), time.monotonic()
        assert isinstance(answer, int), answer
        worst = max(worst, load.excess(answer, now, since=now - MAX_AGE))
        time.sleep(0.02)
    load.wait_for_steps(2)  # the batch that was under way at the end counts as well
    return worst, MOST_SECONDS_APART + ANSWER_SECONDS + load.slowest_step(began)


def test_an_unrelated_broker_that_answers_late_adds_no_lag(
    brokers: LateBroker, load: LevelGroup, running: Served
) -> None:
    seen: list[tuple[float, float]] = []

    def is_measured() -> bool:
        """Where a busy machine makes the load slow, no number may be too large for some cycles."""
        seen.append(worst_excess(running, load, brokers.group))
        return seen[-1][0] > 0

    brokers.door.delay = LATE_SECONDS
    try:
        wait_until(is_measured, "a number that is too large at all", WAIT_SECONDS)
    finally:
        brokers.door.delay = 0.0

    assert [worst for worst, limit in seen if worst > limit] == []


def test_a_frozen_broker_adds_no_lag(brokers: LateBroker, load: LevelGroup, running: Served) -> None:
    frozen = brokers.cluster.brokers[-1]
    frozen.freeze()
    try:
        worst, limit = worst_excess(running, load, brokers.group)
    finally:
        frozen.thaw()
        frozen.wait_until_ready({1, 2, 3})

    assert worst <= limit


@needs_quota_requests
def test_a_quota_adds_no_lag_beyond_its_mute(brokers: LateBroker, load: LevelGroup, running: Served) -> None:
    with quota(brokers.cluster, *TINY):
        worst, limit = worst_excess(running, load, brokers.group)

    assert worst <= limit + MUTE_SECONDS


def test_the_time_between_commits_and_the_request_for_their_ends_is_in_the_metrics(
    running: Served, brokers: LateBroker
) -> None:
    def all_were_within() -> bool:
        """In three cycles; a machine that is too busy exceeds the limit in one of them, or has no answer in time."""
        before = gaps(running)
        running.wait_for_cycles(3)
        within, of = (now - then for now, then in zip(gaps(running), before, strict=True))
        return within == of >= 3 * 2  # an answer of each coordinator in each cycle

    running.wait_for(all_were_within)
    assert running.lag(brokers.far_group, topic=FAR_TOPIC) == 0


def gaps(running: Served) -> tuple[int, int]:
    """How many were within the limit, of how many."""
    found = {
        sample.labels["le"]: int(sample.value)
        for metric in running.telemetry.registry.collect()
        for sample in metric.samples
        if sample.name == GAP
    }
    return found[str(MOST_SECONDS_APART)], found["+Inf"]
