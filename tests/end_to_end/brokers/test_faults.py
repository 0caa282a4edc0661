"""Real brokers that freeze, die and come back while somebody asks all the time: never a wrong number."""

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adapter.cluster.groups import Kind
from adapter.collector import members
from adapter.metrics.definitions import SERVED
from adapter.metrics.problems import ValueUnavailable
from adapter.settings.file import parse
from local.kafka.broker import Broker, Kafka, kafka
from local.kafka.settings import session_settings
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.kubernetes.served import Watcher, served
from tests.support.real.changes import member, state_of
from tests.support.real.in_process import in_process, settings_for
from tests.support.real.placing import group_names, make_offsets_topic, offsets_partition, placed_topic
from tests.support.real.truth import Truth, connecting_to

MAX_AGE = 10.0
"""A broker that is not frozen may miss the deadline of a call on a busy machine, even twice in a row."""
SESSION_SECONDS = 30.0
"""After this time the others no longer count a frozen broker, which is then named no more. Its last heartbeat may be a
second old when it freezes, so a refusal names it for 19 s at least, and a busy machine reads it meanwhile."""
SOON: dict[str, Any] = {"interval": "1s", "maxAge": f"{MAX_AGE:g}s"}
RECOVERY_SECONDS = 120.0


@pytest.fixture(scope="module")
def cluster(rig_home: Path) -> Iterator[Kafka]:
    """Of its own, as all its brokers die in turn."""
    with kafka(rig_home / "faults", brokers=3, properties=session_settings(SESSION_SECONDS)) as brokers:
        create_topic(brokers, "first")
        make_offsets_topic(brokers, "first")
        yield brokers


class Scene:
    """Three groups: one that the victim has no part in, one whose partition it leads, one that it coordinates."""

    def __init__(self, cluster: Kafka, victim: Broker, name: str) -> None:
        self.victim = victim
        self.others = [broker for broker in cluster.brokers if broker is not victim]
        self.near, self.led = f"{name}-near", f"{name}-led"
        placed_topic(cluster, self.near, self.others[:1])
        placed_topic(cluster, self.led, [victim])
        names = group_names(cluster, name, self.others[0], 1)
        self.untouched, self.reader = next(names), next(names)
        self.kept = next(group_names(cluster, f"{name}-kept", victim, 0))
        self.neighbour = next(group for n in itertools.count() if offsets_partition(group := f"beside-{n}") == 0)
        topics = {self.untouched: self.near, self.reader: self.led, self.kept: self.near}
        self.truth = Truth(cluster, MAX_AGE, topics)
        self.truth.produce(self.near, 100)
        self.truth.produce(self.led, 50)
        for group in topics:
            self.truth.commit(group, 10)
        self.groups = list(topics)
        self.settings = settings_for(cluster, collection={**SOON, "groups": {"include": [f"{name}.*"]}})


def test_a_frozen_broker_costs_only_what_it_has_and_only_until_it_thaws(cluster: Kafka) -> None:
    """It leads one partition alone and coordinates one group; after a while the others no longer count it."""
    scene = Scene(cluster, cluster.brokers[2], "frozen")
    truth, victim, other = scene.truth, scene.victim, scene.others[0]
    with served(scene.settings) as running:
        running.wait_for_lag(90, scene.untouched)
        running.wait_for_lag(40, scene.reader)
        running.wait_for_lag(90, scene.kept)
        with Watcher(running, scene.groups, truth.is_true) as watcher:
            victim.freeze()
            try:
                truth.produce(scene.near, 3, through=other)
                running.wait_for_lag(93, scene.untouched)
                running.wait_for_refusal("frozen-led/0", scene.reader)
                # On a busy machine, the first refusals may say that no cycle has ended.
                name = f"broker {victim.node_id} at"
                wait_until(
                    lambda: any(name in said for said in watcher.refusals[scene.reader]),
                    "a refusal that names the broker",
                    RECOVERY_SECONDS,
                )
                # A new coordinator may report old commits until another record is written to the group's partition.
                commit(connecting_to(cluster, other), scene.neighbour, {(scene.near, 0): 1})
                running.wait_for_lag(93, scene.kept)
                truth.commit(scene.kept, 60, through=other)
                running.wait_for_lag(43, scene.kept)
                running.wait_for_refusal("the partition has no leader", scene.reader)
                asked = watcher.numbers[scene.untouched]
            finally:
                victim.thaw()
            back: list[int | str] = []
            until = running.cycles() + 3
            while running.cycles() < until:
                back.append(running.answer(scene.kept))
                time.sleep(0.01)
            running.wait_for_lag(43, scene.kept)
            running.wait_for_lag(40, scene.reader)
    victim.wait_until_ready({1, 2, 3})
    watcher.check()
    assert {answer for answer in back if isinstance(answer, int)} <= {43}, "a step backward after the thaw"
    assert watcher.refusals[scene.untouched] == []
    assert asked > 100, "reads waited for the frozen broker"


def test_a_coordinator_that_restarts_brings_no_stale_topic_back(
    cluster: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops between the group's commits and its description, and others load the group; then it comes back."""
    # Cycles are a minute apart by their clock alone: a new coordinator is wrong about the group for several of them.
    monkeypatch.setattr(members, "EMPTY_SECONDS", 1e6)
    victim, other = cluster.brokers[0], cluster.brokers[1]
    read, left = "restarted-read", "restarted-left"
    for topic in (read, left):
        placed_topic(cluster, topic, [other])
        produce(cluster, topic, 10)
    group = next(group_names(cluster, "restarted", victim, 2))
    commit(cluster, group, {(read, 0): 4, (left, 0): 1})
    seen: set[int] = set()
    with (
        member(cluster, group, read),
        in_process(cluster, collection={"groups": {"include": [group]}}) as rig,
        ThreadPoolExecutor(1) as pool,
    ):
        rig.wait_for_lag(6, group)
        describe = rig.brokers.described

        def described(plan: Mapping[int, Sequence[str]], kind: Kind) -> object:
            victim.stop()
            return describe(plan, kind)

        with monkeypatch.context() as patched:
            patched.setattr(rig.brokers, "described", described)
            failed = rig.run_full_cycle().failures
        seen.add(rig.lag(group))
        wait_until(lambda: state_of(cluster, group) == "Stable", f"{group} to be Stable", RECOVERY_SECONDS)
        rig.wait_for_lag(6, group)
        changing = pool.submit(victim.start)
        while not changing.done():
            rig.run_full_cycle()
            with contextlib.suppress(ValueUnavailable):
                seen.add(rig.lag(group))
        changing.result()
        rig.wait_for_lag(6, group)

    assert [failure.text for failure in failed if f"broker {victim.node_id} " in failure.text]
    assert seen == {6}


def test_a_killed_broker_is_read_again_when_it_is_back(cluster: Kafka) -> None:
    scene = Scene(cluster, cluster.brokers[1], "killed")
    truth, victim, other = scene.truth, scene.victim, scene.others[0]
    with served(scene.settings) as running:
        running.wait_for_lag(90, scene.untouched)
        running.wait_for_lag(40, scene.reader)
        running.wait_for_lag(90, scene.kept)
        with Watcher(running, scene.groups, truth.is_true) as watcher:
            victim.kill()
            truth.produce(scene.near, 3, through=other)
            running.wait_for_lag(93, scene.untouched)
            running.wait_for_refusal("killed-led/0", scene.reader)
            running.wait_for_lag(93, scene.kept, seconds=RECOVERY_SECONDS)
            victim.start()
            running.wait_for_lag(40, scene.reader, seconds=RECOVERY_SECONDS)
            truth.produce(scene.led, 2)
            running.wait_for_lag(42, scene.reader)
    watcher.check()
    assert watcher.refusals[scene.untouched] == []


def test_all_brokers_gone_for_long_are_refused_and_read_again_when_they_are_back(
    cluster: Kafka, one_broker: Kafka
) -> None:
    """Three times maxAge; another cluster of the same process is read all along."""
    scene = Scene(cluster, cluster.brokers[0], "gone")
    create_topic(one_broker, "gone-elsewhere")
    produce(one_broker, "gone-elsewhere", 9)
    commit(one_broker, "gone-far", {("gone-elsewhere", 0): 2})
    clusters: list[dict[str, Any]] = [
        {"name": name, "bootstrapServers": each.bootstrap_servers.split(",")}
        for name, each in (("main", cluster), ("other", one_broker))
    ]
    collection: dict[str, Any] = {**SOON, "groups": {"include": ["gone.*"]}}
    settings = parse({"clusters": clusters, "collection": collection}, SERVED)

    def is_true(group: str, lag: int, asked: float) -> bool:
        return lag == 7 if group == "gone-far" else scene.truth.is_true(group, lag, asked)

    with served(settings) as running:
        running.wait_for_lag(7, "gone-far")
        running.wait_for_lag(40, scene.reader)
        running.wait_for_lag(90, scene.untouched)
        with Watcher(running, scene.groups, is_true) as watcher:
            for broker in cluster.brokers:
                broker.freeze()
            try:
                before = running.cycles("other")
                for group in scene.groups:
                    running.wait_for_refusal("does not answer", group, cluster="main")
                while running.cycles("other") - before < 2 * MAX_AGE:
                    assert running.lag("gone-far", cluster="other") == 7
                    time.sleep(0.05)
            finally:
                for broker in cluster.brokers:
                    broker.kill()
            for group in scene.groups:
                running.wait_for_refusal("refuses the connection", group, cluster="main")
            for broker in cluster.brokers:
                broker.launch()
            for broker in cluster.brokers:
                broker.wait_until_ready({1, 2, 3})
            running.wait_for_lag(40, scene.reader, seconds=RECOVERY_SECONDS)
            running.wait_for_lag(90, scene.untouched, seconds=RECOVERY_SECONDS)
            running.wait_for_lag(90, scene.kept, seconds=RECOVERY_SECONDS)
    watcher.check()
