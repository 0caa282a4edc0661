"""Events about HPAs: which HPA gets which, from metrics as they are, and which replica posts them."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapter.metrics.definitions import SERVED
from adapter.metrics.query import Metrics
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from apiservice.events import Events
from apiservice.hpa_events.poster import AT_ONCE, HANDOVER_SECONDS, LOOK_SECONDS, HpaEvents
from apiservice.hpa_events.states import SETTLED_SECONDS
from tests.support.kubernetes.fakes import FixedClock
from tests.support.kubernetes.hpas import external, hpa
from tests.support.samples import Key, Row, SteppedClock, row, settings, store_of, view

ROWS = {("billing", "orders", 0): row(0, 12_000), ("mail", "orders", 0): row(1, 10)}
Posted = list[tuple[str, str]]
"""Name of the HPA and reason, in order."""


def consumer(name: str, group: str, namespace: str = "shop", uid: str = "u-1", most: int = 1) -> Autoscaler:
    document: dict[str, Any] = hpa(name, external(group=group), namespace=namespace)
    document["metadata"]["uid"] = f"{name}-{uid}"
    document["spec"]["maxReplicas"] = most
    made = autoscaler_of(document, SERVED)
    assert made is not None
    return made


@dataclass
class World:
    """Replicas of the adapter at one kube-apiserver, which keeps their Events."""

    hpas: Sequence[Autoscaler]
    rows: Mapping[Key, Row] = field(default_factory=lambda: ROWS)
    parts: Mapping[str, object] = field(default_factory=dict)
    is_allowed: bool = True
    leader: int | None = 0
    """The number of the replica that holds the Lease; None: nobody does."""
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    clock: FixedClock = field(default_factory=FixedClock)
    again: list[str] = field(default_factory=list)
    """The reasons of Events that came another time."""
    running: dict[int, tuple[HpaEvents, Events]] = field(default_factory=dict)
    """The replicas, by their number."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self, number: int = 0) -> None:
        """Starts a process, which remembers nothing."""
        events = Events(self.create, f"pod-{number}", self.clock, merged=self.merged, wall=self.clock)
        states = HpaEvents(
            lambda: self.hpas,
            self.metrics,
            lambda _: None,
            lambda: self.is_allowed,
            lambda: self.leader == number,
            events,
            self.clock,
        )
        self.running[number] = states, events

    def end(self, number: int) -> None:
        """The replica ends without a trace, and the others have not noticed yet."""
        del self.running[number]
        self.leader = None

    def metrics(self) -> Metrics:
        given = settings(**self.parts)
        return Metrics(given, store_of(view(self.rows, settings=given)), SteppedClock())

    def create(self, path: str, document: dict[str, Any]) -> bool:
        assert path == f"/apis/events.k8s.io/v1/namespaces/{document['regarding']['namespace']}/events"
        document["metadata"]["resourceVersion"] = "1"
        name = document["metadata"]["name"]
        return self.kept.setdefault(name, document) is document

    def merged(self, path: str, change: dict[str, Any]) -> dict[str, Any]:
        kept = self.kept[path.rpartition("/")[2]]
        if change:
            kept["series"] = change["series"]
            self.again.append(kept["reason"])
        return copy.deepcopy(kept)

    def pass_time(self, seconds: float = SETTLED_SECONDS + 2 * LOOK_SECONDS) -> Posted:
        """Returns all that has been posted so far."""
        end = self.clock.seconds + seconds
        while self.clock.seconds < end:
            self.clock.seconds += min(self._turn(*each) for each in self.running.values())
        return [(each["regarding"]["name"], each["reason"]) for each in self.kept.values()]

    def _turn(self, states: HpaEvents, events: Events) -> float:
        pause = states.turn()
        while events.turn() == 0:
            pass
        return pause


def test_an_hpa_on_an_unknown_group_gets_one_event_that_is_about_it() -> None:
    world = World([consumer("fine", "billing"), consumer("wrong", "biling")])
    world.pass_time(600)

    (document,) = world.kept.values()
    assert (document["type"], document["reason"]) == ("Warning", "GroupUnknown")
    assert document["regarding"]["uid"] == "wrong-u-1"
    assert "no group 'biling' is known" in document["note"]
    assert world.again == []


def test_a_value_that_comes_back_and_goes_again_is_told_each_time() -> None:
    world = World([consumer("one", "late")])
    assert world.pass_time() == [("one", "GroupUnknown")]

    world.rows = {**ROWS, ("late", "orders", 0): row(0, 5)}
    assert world.pass_time() == [("one", "GroupUnknown"), ("one", "ValueServed")]

    world.rows = ROWS
    world.pass_time()
    assert world.again == ["GroupUnknown"]


def test_more_replicas_than_partitions_are_told() -> None:
    assert World([consumer("one", "billing", most=2)]).pass_time() == [("one", "MaxReplicasAbovePartitions")]


def test_after_a_restart_nothing_is_posted_again() -> None:
    world = World([consumer("one", "biling")])
    world.pass_time()
    before = dict(world.kept)
    world.begin()
    world.pass_time()

    assert (world.kept, world.again) == (before, [])


def test_without_a_leader_nothing_is_posted() -> None:
    world = World([consumer("one", "biling")], leader=None)

    assert world.pass_time() == []


def replicas(*hpas: Autoscaler) -> World:
    """Two replicas of the adapter; replica 0 is the leader."""
    world = World(hpas)
    world.begin(1)
    return world


def test_the_successor_repeats_nothing_that_the_leader_has_posted() -> None:
    world = replicas(consumer("one", "late"))
    world.pass_time()
    world.rows = {**ROWS, ("late", "orders", 0): row(0, 5)}
    world.pass_time()
    world.rows = ROWS
    posted = world.pass_time()
    assert (posted, world.again) == ([("one", "GroupUnknown"), ("one", "ValueServed")], ["GroupUnknown"])

    world.end(0)
    world.leader = 1

    assert world.pass_time(HANDOVER_SECONDS) == posted
    assert world.again == ["GroupUnknown"]


def test_the_successor_posts_what_has_changed_while_there_was_no_leader() -> None:
    world = replicas(consumer("one", "late"))
    world.end(0)
    assert world.pass_time() == []
    world.rows = {**ROWS, ("late", "orders", 0): row(0, 5)}
    world.leader = 1

    assert world.pass_time() == [("one", "GroupUnknown"), ("one", "ValueServed")]
    assert world.again == []


def test_the_successor_counts_what_has_come_back_while_there_was_no_leader() -> None:
    world = replicas(consumer("one", "late"))
    world.pass_time()
    world.rows = {**ROWS, ("late", "orders", 0): row(0, 5)}
    world.pass_time()
    world.end(0)
    world.rows = ROWS
    world.pass_time()
    assert world.again == []
    world.leader = 1
    world.pass_time()

    assert world.again == ["GroupUnknown"]


def test_the_successor_counts_each_time_that_has_come_while_there_was_no_leader() -> None:
    world = replicas(consumer("one", "late"))
    world.pass_time()
    world.end(0)
    for rows in ({**ROWS, ("late", "orders", 0): row(0, 5)}, ROWS) * 2:
        world.rows = rows
        world.pass_time()
    world.leader = 1
    world.pass_time()

    assert world.again == ["GroupUnknown", "ValueServed", "GroupUnknown"]


def test_a_successor_leaves_out_what_is_long_past() -> None:
    """The leader has posted it, and kube-apiserver may have dropped it since."""
    world = replicas(consumer("one", "biling"))
    world.pass_time(2 * HANDOVER_SECONDS)
    world.kept.clear()
    world.end(0)
    world.leader = 1

    assert world.pass_time() == []


def test_a_successor_posts_nothing_about_an_hpa_that_was_deleted() -> None:
    world = replicas(consumer("one", "biling"))
    world.end(0)
    world.pass_time()
    world.hpas = []
    world.pass_time(2 * LOOK_SECONDS)
    world.leader = 1

    assert world.pass_time() == []


def test_nothing_is_posted_where_it_is_not_allowed() -> None:
    world = World([consumer("one", "biling")], is_allowed=False)
    assert world.pass_time() == []

    world.is_allowed = True
    assert world.pass_time() == [("one", "GroupUnknown")]


def test_another_hpa_of_the_same_name_is_told_of_anew() -> None:
    world = World([consumer("one", "biling")])
    world.pass_time()
    world.hpas = [consumer("one", "biling", uid="u-2")]

    assert world.pass_time() == [("one", "GroupUnknown")] * 2


def test_an_hpa_learns_nothing_of_a_group_that_its_namespace_may_not_read() -> None:
    rules = [{"group": "billing", "namespaces": ["shop"]}]
    world = World([consumer("other", "billing", namespace="mall", most=5)], parts={"rules": rules})
    world.pass_time()

    assert [each["note"] for each in world.kept.values()] == ["no group 'billing' is known; known groups are mail"]


def test_every_hpa_of_many_is_looked_at() -> None:
    hpas = [consumer(f"hpa-{number}", "biling") for number in range(3 * AT_ONCE + 1)]

    assert len(World(hpas).pass_time(300)) == len(hpas)
