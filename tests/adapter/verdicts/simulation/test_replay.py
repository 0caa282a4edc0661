from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from adapter.verdicts.assignment import UNKNOWN
from adapter.verdicts.controllers import ControllerFlags
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Demand, Promise
from adapter.verdicts.owners import Assignor
from adapter.verdicts.required import following_a_rise, quick_window_of, required
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.load import NO_EVENTS, Events, Load
from adapter.verdicts.simulation.promised import Promised, sharing_of
from adapter.verdicts.simulation.replay import replayed
from adapter.verdicts.simulation.scalers import Lane, Ruled, Served
from adapter.verdicts.simulation.sights import Sight, Views
from adapter.verdicts.waits import beyond_flight
from tests.support.hpas import external, hpa, rules

TEN = Consumers(10.0, (4,), commit_seconds=1.0, interval_seconds=15.0)
"""Members that read 10 messages/s each."""
AT_ONCE = {"scaleUp": rules("Pods 9 15"), "scaleDown": rules()}


def given(load: Load, *members: int, consumers: Consumers = TEN) -> Lane:
    return Lane(load, consumers, members=np.array(members))


def test_what_members_cannot_read_waits_for_as_long_as_it_takes() -> None:
    """30/s arrive and 20/s are read, for ten minutes: a third of all messages waits, for a third of the time."""
    (it,) = replayed([given(Load(np.full(10, 1800.0)), *[2] * 10)])

    assert it.lag == pytest.approx(600.0 * np.arange(1, 11))
    assert it.wait_seconds == pytest.approx(20.0 * np.arange(1, 11))


def test_a_backlog_is_as_old_as_it_was_at_the_start_and_is_worked_off() -> None:
    """1,200 messages, the oldest of which came five minutes ago, are gone after a minute of four members."""
    (it,) = replayed([given(Load(np.full(3, 600.0), lag=1200.0, wait_seconds=300.0), 1, 4, 4)])

    assert it.wait_seconds == pytest.approx([300 - 300 / 2 + 60, 0, 0], abs=1)
    assert it.lag == pytest.approx([1200, 0, 0], abs=1)


def test_the_busiest_partition_waits_while_the_others_do_not() -> None:
    """It gets 15/s, and one member reads it."""
    (it,) = replayed([given(Load(np.full(4, 1800.0), np.full(4, 0.5)), *[4] * 4)])

    assert it.wait_seconds == pytest.approx(20.0 * np.arange(1, 5))


def test_a_replica_reads_once_it_has_started_and_joined() -> None:
    """Wanted after 15 s, and a member 40 s later: the third step of 15 s after that is the first."""
    starting = Consumers(10.0, (4,), start_seconds=30.0, join_seconds=10.0, pause_seconds=0.0, commit_seconds=1.0)
    load = Load(np.full(2, 1200.0))
    (it,) = replayed([Lane(load, starting, hpa(external(average="1"), most=2, behavior=AT_ONCE))])

    assert it.replicas.tolist() == [2, 2]
    assert it.lag[0] == 600  # one member alone in the whole first minute
    assert it.lag[1] == 600  # then as much is read as arrives
    assert it.changes == 1


def test_an_hpa_holds_its_replicas_while_it_gets_no_value() -> None:
    load, known = Load(np.array([1200.0, 0, 0, 0, 0])), np.array([True, False, False, False, True])
    follows = hpa(external(average="1"), most=4, behavior=AT_ONCE)
    blind, seeing = replayed([Lane(load, TEN, follows, lag_is_known=known), Lane(load, TEN, follows)])

    assert blind.replicas.tolist() == [4, 4, 4, 4, 1]
    assert seeing.replicas.tolist() == [4, 1, 1, 1, 1]


def test_an_hpa_sees_what_the_adapter_sampled_last() -> None:
    rarely = Consumers(10.0, (4,), commit_seconds=1.0, interval_seconds=120.0)
    load, follows = Load(np.full(2, 1200.0)), hpa(external(average="1"), most=4, behavior=AT_ONCE)
    often, seldom = replayed([Lane(load, each, follows) for each in (TEN, rarely)])

    assert (often.replicas.tolist(), seldom.replicas.tolist()) == ([4, 4], [1, 4])


def test_unknown_minutes_are_as_busy_as_those_around_them() -> None:
    (it,) = replayed([given(Load(np.array([600.0, np.nan, 1800.0])), 0, 0, 0)])

    assert it.lag == pytest.approx([600, 1800, 3600])


def test_replays_beside_one_another_are_as_those_alone() -> None:
    random = np.random.default_rng(7)
    loads = [Load(random.uniform(0, 3000, 120), np.full(120, 0.3), lag=500.0) for _ in range(3)]
    hpas = [hpa(external(average=number), most=4) for number in ("100", "400")]
    lanes = [Lane(load, TEN, it) for load in loads for it in hpas] + [given(loads[0], *[2] * 120)]
    lanes.append(Lane(loads[1], Consumers(30.0, (9, 2)), hpas[0], replicas=3))

    for together, lane in zip(replayed(lanes), lanes, strict=True):
        (alone,) = replayed([lane])
        assert together.lag == pytest.approx(alone.lag)
        assert together.wait_seconds == pytest.approx(alone.wait_seconds)
        assert (together.replicas.tolist(), together.changes) == (alone.replicas.tolist(), alone.changes)


@pytest.mark.parametrize(
    ("served", "average", "replicas"),
    [
        (Served(), "1000", 12),
        (Served(most=3000.0), "1000", 3),
        (Served(replica=10_000.0), "1", 9),
        (Served(most=50_000.0, replica=10_000.0), "1", 5),
    ],
)
def test_what_is_served_decides_what_the_hpa_asks_for(served: Served, average: str, replicas: int) -> None:
    """90,000 messages wait, and members read hardly anything."""
    load = Load(np.zeros(30), lag=90_000.0, wait_seconds=3600.0)
    lane = Lane(load, Consumers(0.001, (12,)), hpa(external(average=average), most=12), served=served)
    (result,) = replayed([lane])

    assert result.replicas[-1] == replicas


def test_lanes_of_different_lengths_and_kinds_are_replayed_as_if_alone() -> None:
    of = hpa(external(average="1000"), most=12)
    lanes = [
        Lane(Load(np.full(length, 6000.0)), Consumers(50.0, (12,)), of if is_scaled else None, members=members)
        for length, is_scaled, members in ((30, True, None), (20, True, None), (20, False, np.full(20, 2)))
    ]

    for together, lane in zip(replayed(lanes), lanes, strict=True):
        (alone,) = replayed([lane])
        assert together.lag.tolist() == alone.lag.tolist()


def test_a_message_that_comes_after_a_pause_is_not_as_old_as_the_pause() -> None:
    (it,) = replayed([given(Load(np.array([600.0, 0, 0, 0, 600.0])), 1, 1, 1, 1, 0)])

    assert it.wait_seconds == pytest.approx([0, 0, 0, 0, 60], abs=1)


def test_events_take_effect_in_their_minutes() -> None:
    """Half the capacity in the second minute, and half a minute without reading in the third."""
    load = Load(np.full(4, 600.0))
    events = Events(capacity=np.array([1, 0.5, 1, 1]), stopped_seconds=np.array([0, 0, 30.0, 0]))
    (it,) = replayed([Lane(load, TEN, members=np.ones(4, int), events=events)])

    assert it.lag == pytest.approx([0, 300, 600, 600])


def test_partitions_that_are_added_let_more_members_read() -> None:
    load, events = Load(np.full(4, 2400.0)), Events(partitions=(2, 2))
    (it,) = replayed([Lane(load, TEN, members=np.full(4, 4), events=events)])

    assert it.lag[:2] == pytest.approx([1200, 2400])
    assert it.lag[3] - it.lag[2] == pytest.approx(0, abs=1)


def test_a_partition_gets_what_its_weight_says() -> None:
    """3/4 of 20/s go to the first one, whose member reads 10/s; the other one keeps up."""
    load = Load(np.full(3, 1200.0), weights=np.array([3.0, 1, 0, 0]))
    (it,) = replayed([given(load, 4, 4, 4)])

    assert it.lag == pytest.approx([300, 600, 900])


class Watching:
    """A metric that asks for two replicas and remembers what it saw."""

    def __init__(self) -> None:
        self.seen: list[Views] = []

    def scaler(self, lanes: Sequence[Lane], flags: ControllerFlags) -> Ruled:
        assert [lane.rule for lane in lanes] == [self]
        return Ruled(lanes, flags, self)

    def values(self, sight: Sight) -> Messages:
        self.seen.append(sight.views())
        return np.array([2.0])


def test_a_rule_sees_a_rise_over_as_many_seconds_as_the_adapter_does() -> None:
    """Two samples of 2 s would be shorter than its 15 s. When the load has been twice as large for 15 s, the latest
    sample is a second old: it has seen that for 14 s, and one second of the load before."""
    watching, often = Watching(), replace(TEN, interval_seconds=2.0)
    load = Load(np.array([600.0, 1200.0]))
    replayed([Lane(load, often, hpa(external(average="1"), most=4, behavior=AT_ONCE), rule=watching)])

    assert watching.seen[4].lately.sum() == pytest.approx((14 * 20 + 10) / 15)


def test_a_rule_sees_rates_lag_members_and_owners_and_decides() -> None:
    watching, load = Watching(), Load(np.full(4, 600.0), np.full(4, 0.4), lag=100.0)
    behaving = hpa(external(average="1"), most=4, behavior=AT_ONCE)
    by_lag, it = replayed([Lane(load, TEN, behaving), Lane(load, TEN, behaving, rule=watching)])

    assert (by_lag.replicas.tolist(), it.replicas.tolist()) == ([4, 4, 4, 4], [2, 2, 2, 2])
    first, last = watching.seen[0], watching.seen[-1]
    assert [column.tolist() for column in (first.members, first.replicas)] == [[1], [1]]
    assert [column.tolist() for column in (last.members, last.replicas)] == [[2], [2]]
    assert last.arriving[0] == pytest.approx([4, 2, 2, 2])
    assert first.lag[0] == pytest.approx([40, 20, 20, 20])
    assert [first.read[0], last.read[0]] == pytest.approx([10, 10])
    assert sorted(np.bincount(last.owners[0]).tolist()) == [2, 2]


class AskedAlone:
    """The number that keeps a promise, asked for one group after another as the adapter does, in plain Python."""

    def __init__(self, promised: Promised, lanes: Sequence[Lane] = ()) -> None:
        self._promised, self._groups = promised, [lane.consumers for lane in lanes]
        self._courses: list[Course | None] = [None for _ in lanes]

    def scaler(self, lanes: Sequence[Lane], flags: ControllerFlags) -> Ruled:
        return Ruled(lanes, flags, AskedAlone(self._promised, lanes))

    def values(self, sight: Sight) -> Messages:
        views = sight.views()
        return np.array([self._value(views, at, group) for at, group in enumerate(self._groups)])

    def _value(self, views: Views, at: int, group: Consumers) -> float:
        width, sharing = int(views.widths[at]), sharing_of(group)
        arriving, lately, lag = (column[at, :width] for column in (views.arriving, views.lately, views.lag))
        arriving = following_a_rise(arriving, lately, quick_window_of(group.interval_seconds))
        demand = Demand(
            arriving=arriving,
            lag=lag,
            beyond=beyond_flight(lag, arriving, group.interval_seconds + group.commit_seconds),
            capacity=group.capacity,
            partitions=group.partitions if width == group.width else (width,),
            sharing=sharing,
            read=float(views.read[at]),
            members=None if views.members[at] == UNKNOWN else int(views.members[at]),
            expected_members=int(views.replicas[at]),
            owners=views.owners[at, :width],
        )
        promise = Promise.of(self._promised.max_wait, sharing, group.interval_seconds)
        found, self._courses[at] = required(views.now, demand, promise, self._courses[at])
        return float(found.members)


def test_a_promise_asks_for_as_many_as_the_adapter_would_for_each_group() -> None:
    """Groups of several assignors that keep up, fall behind, rest, are slow for some minutes, become so slow that more
    members do not help, do not commit for minutes, and get more partitions. In two of them, the partitions of a topic
    get the same."""
    random, minutes = np.random.default_rng(3), 240
    more = Events(partitions=(6, 90))
    slow = Events(capacity=np.where(np.arange(minutes) % 60 < 10, 0.6, 1.0))
    fading = Events(capacity=np.linspace(1.0, 0.05, minutes))
    kinds = [
        ((9,), Assignor.UNIFORM, 5.0, False, more),
        ((9,), Assignor.UNIFORM, 5.0, False, fading),
        ((4, 5), Assignor.RANGE, 60.0, False, NO_EVENTS),
        ((9,), Assignor.STICKY, 300.0, False, slow),
        ((5,), None, 5.0, False, NO_EVENTS),
        ((8, 4), Assignor.RANGE, 5.0, True, NO_EVENTS),
        ((8, 4), Assignor.UNIFORM, 5.0, True, slow),
    ]
    lanes = []
    for partitions, assignor, commit, are_alike, events in kinds:
        width = sum(partitions)
        produced = 1500.0 * width * random.lognormal(0, 0.6, minutes) * (random.random(minutes) > 0.2)
        weights = random.uniform(0.5, 2, width)
        weights = np.repeat(weights[: len(partitions)], partitions) if are_alike else weights
        load = Load(produced, np.full(minutes, 1.5 / width), lag=4000.0, weights=weights)
        consumers = Consumers(50.0, partitions, assignor, commit_seconds=commit)
        follows = hpa(external(average="1"), most=width, behavior=AT_ONCE)
        lanes.append(Lane(load, consumers, follows, events=events))
    promised = Promised(30.0)

    together, alone = (
        replayed([replace(lane, rule=rule) for lane in lanes]) for rule in (promised, AskedAlone(promised))
    )

    assert [it.replicas.tolist() for it in together] == [it.replicas.tolist() for it in alone]
    assert all(len(set(it.replicas.tolist())) > 2 for it in together)
    assert together[0].replicas[:90].max() <= 6 < together[0].replicas[90:].max()


def test_replicas_that_start_at_once_are_ready_at_once() -> None:
    """A `Value` counts with those that are ready: no start, or one that takes next to no time, makes no difference."""
    target = hpa(external(value="1000"), most=12, behavior=AT_ONCE)
    lanes = [
        Lane(Load(np.full(30, 3000.0)), replace(TEN, start_seconds=seconds), target, replicas=2)
        for seconds in (0.0, 1e-6)
    ]

    at_once, nearly = replayed(lanes)

    assert at_once.replicas.tolist() == nearly.replicas.tolist()
    assert at_once.replicas.max() > 2
