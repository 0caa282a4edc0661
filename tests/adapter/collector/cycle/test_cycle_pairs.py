"""A row's commit and its log end belong together, however late other brokers answer."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.cluster.groups import Kind
from adapter.collector.cycle import TOGETHER_SECONDS
from adapter.kafka.versions import Versions
from adapter.lag.snapshot import State
from adapter.lag.states import MOST_SECONDS_APART, TOO_FAR_APART
from adapter.metrics.problems import NoMatch, Reason, ValueUnavailable
from tests.support import samples
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.kafka.fake_transit import Exchange
from tests.support.kafka.rig import Rig
from tests.support.samples import NOW

NODES = (1, 2, 3)
RATE = 5_000
"""Messages a second in every partition."""
BACKLOG = 100
"""How far every group is behind, at any time."""
TOPICS = {"orders": [1], "bills": [2], "notes": [3]}
GROUPS = {"billing": 1, "audit": 2, "etl": 3}
"""Group -> its coordinator; every group reads all topics."""
LATE = 2.0


class World(Kafka):
    """Producers and consumers that keep pace, so that the true lag of every group is constant."""

    def __init__(self) -> None:
        super().__init__(nodes=NODES, topics=dict(TOPICS), coordinators=dict(GROUPS), deadline_seconds=3.0)
        self.groups: tuple[str, ...] = tuple(GROUPS)
        self.late_topics: set[str] = set()
        """Topics that no group has committed for yet."""
        self.move_on_to = self.show
        self.show(NOW)

    def show(self, at: float) -> None:
        self.ends = {(topic, 0): produced(at) for topic in self.topics}
        read = {(topic, 0): produced(at) - BACKLOG for topic in self.topics.keys() - self.late_topics}
        self.commits = {group: dict(read) for group in self.groups}

    def delay(self, node: int, there: float, back: float = 0.0) -> None:
        """Everything that the broker answers."""
        for kind in KINDS:
            self.delays[kind, node] = (there, back)


KINDS = ("OffsetFetch", "ListOffsets read_uncommitted", "Metadata", "ListGroups", "Describe")


def produced(at: float) -> int:
    """Into each partition, until then."""
    return 10_000 + round(RATE * (at - NOW))


def true_lag(topics: int = len(TOPICS)) -> int:
    return topics * BACKLOG


def running(world: World) -> Rig:
    rig = Rig(world)
    rig.run(3)
    return rig


def offset_requests(rig: Rig) -> Counter[int]:
    """Node -> how many requests for commits and ends the newest cycle sent to it."""
    return Counter(node for kind, node in rig.brokers.requests if kind in KINDS[:2] and node is not None)


def test_quick_brokers_get_two_offset_requests_in_a_cycle() -> None:
    world = World()
    rig = running(world)
    for node in NODES:
        world.delay(node, 0.0, TOGETHER_SECONDS * node / (NODES[-1] + 1))
    rig.run()

    assert offset_requests(rig) == dict.fromkeys(NODES, 2)
    assert rig.lag("billing") <= true_lag() + 3 * RATE * (TOGETHER_SECONDS * 2)


def test_a_late_coordinator_costs_the_other_groups_the_time_that_is_waited_for_company() -> None:
    world = World()
    rig = running(world)
    world.delays["OffsetFetch", 3] = (LATE, 0.0)
    rig.run()

    waited = RATE * TOGETHER_SECONDS
    assert [rig.lag_of("billing", topic) for topic in ("orders", "bills")] == pytest.approx(
        [BACKLOG + waited] * 2, abs=1
    )
    assert offset_requests(rig) == dict.fromkeys(NODES, 3)


def test_a_late_coordinator_delays_the_ends_of_its_own_partitions_by_its_own_answer_time() -> None:
    """Kafka answers the requests of a connection one after another."""
    world = World()
    rig = running(world)
    world.delays["OffsetFetch", 3] = (LATE, 0.0)
    rig.run()

    assert rig.lag_of("billing", "notes") == pytest.approx(BACKLOG + RATE * LATE, abs=1)


def test_the_groups_of_a_late_coordinator_get_ends_of_their_own() -> None:
    world = World()
    rig = running(world)
    world.delays["OffsetFetch", 2] = (LATE, 0.0)
    rig.run()

    assert rig.lag("audit") == true_lag()


def test_coordinators_that_are_late_together_share_a_request_to_each_leader() -> None:
    world = World()
    rig = running(world)
    world.delays["OffsetFetch", 2], world.delays["OffsetFetch", 3] = (LATE, 0.0), (LATE + TOGETHER_SECONDS / 2, 0.0)
    rig.run()

    assert offset_requests(rig) == dict.fromkeys(NODES, 3)


def test_groups_that_are_asked_one_by_one_each_get_log_ends_with_their_own_answer() -> None:
    """Broker 1 takes 2.4 s for all its groups; the ends of its own partitions wait behind that."""
    world, pace = World(), 0.08
    world.versions = {1: Versions(offset_fetch=7)}
    many = {f"group-{number}": 1 for number in range(30)}
    world.coordinators |= many
    world.groups = (*world.groups, *many)
    world.show(NOW)
    rig = running(world)
    world.pace["OffsetFetch", 1] = pace
    outcome = rig.run()

    assert len(outcome.gaps) == len(many) + 3
    assert max(outcome.gaps) < TOGETHER_SECONDS + 0.001 < MOST_SECONDS_APART
    most = BACKLOG + RATE * (TOGETHER_SECONDS + pace)
    assert all(BACKLOG <= rig.lag_of(group, topic) <= most for group in many for topic in ("bills", "notes"))


def test_log_ends_are_requested_in_time_however_many_groups_are_asked_one_by_one() -> None:
    """Their answers take 1.2 s to be read, and more do not arrive meanwhile."""
    world = World()
    world.versions = dict.fromkeys(NODES, Versions(offset_fetch=7))
    many = {f"group-{number}": NODES[number % 3] for number in range(400)}
    world.coordinators |= many
    world.groups = (*world.groups, *many)
    world.show(NOW)
    rig = running(world)
    world.pace = {("OffsetFetch", node): 0.001 for node in NODES}
    world.reading_seconds = 0.003
    outcome = rig.run()

    assert (outcome.completeness, len(outcome.gaps)) == ("complete", len(many) + 3)
    assert max(outcome.gaps) <= MOST_SECONDS_APART


def test_a_coordinator_too_slow_for_a_cycle_is_asked_first_for_what_it_did_not_come_to() -> None:
    world = World()
    world.versions = {1: Versions(offset_fetch=7)}
    many = {f"group-{number}": 1 for number in range(40)}
    world.coordinators |= many
    world.groups = (*world.groups, *many)
    world.show(NOW)
    rig = running(world)
    world.pace["OffsetFetch", 1] = 0.99
    began = rig.clock.seconds
    outcomes = [rig.run() for _ in range(3)]

    assert {failure.text for outcome in outcomes for failure in outcome.failures} == {
        "broker 1 at kafka-1:9092 did not answer for all its groups, one by one, within 15 s"
    }
    assert all(rig.view.snapshot.received[rows].min() > began for rows in rig.view.layout.spans.values())


@pytest.mark.parametrize("kind", ["Metadata", "ListGroups", "Describe", "DescribeShareGroupOffsets"])
def test_other_requests_never_come_between_the_commit_and_the_end_of_a_row(kind: str) -> None:
    world = World()
    world.kinds["shared"], world.coordinators["shared"] = Kind.SHARE, 3
    world.shares["shared"] = {("orders", 0): (1, 7)}
    world.members = {"billing": {"orders", "bills", "notes"}}
    rig = running(world)
    world.delays |= {(kind, node): (LATE, 0.0) for node in NODES}
    worst = 0
    for cycle in range(8):
        if cycle == 3:
            world.topics["new"] = [1]  # a second look at Metadata
        rig.run()
        worst = max(worst, rig.lag("billing"))

    assert worst <= true_lag(4) + 4 * RATE * MOST_SECONDS_APART


def test_a_frozen_leader_delays_no_end_of_another_one() -> None:
    world = World()
    rig = running(world)
    world.silent = {3}
    rig.run()
    seen = rig.view.snapshot.received[rig.view.layout.pairs["billing", "orders"]]

    assert seen.tolist() == [rig.brokers.transit.exchanges[-1].received]
    assert rig.lag("billing") <= true_lag() + 3 * RATE * MOST_SECONDS_APART


def test_a_row_whose_end_was_asked_for_too_late_keeps_its_last_pair_and_says_why() -> None:
    world = World()
    rig = running(world)
    before = rig.lag("billing")
    world.busy_seconds = MOST_SECONDS_APART + 0.1
    outcome = rig.run()

    assert (outcome.completeness, rig.lag("billing")) == ("failed", before)
    assert {rig.view.snapshot.cause_of(row) for row in range(len(rig.view.layout))} == {TOO_FAR_APART}
    assert outcome.gaps == pytest.approx([MOST_SECONDS_APART + 0.1] * 3)

    rig.run(6)
    assert set(rig.reasons(group="billing")) == {Reason.NOT_READ_SINCE}


def test_a_sample_has_no_commit_whose_end_was_asked_for_too_late() -> None:
    world = World()
    rig = running(world)
    world.busy_seconds = MOST_SECONDS_APART + 0.1
    rig.run()
    (sample,) = rig.samples

    assert set(sample.state.tolist()) == {State.UNKNOWN}
    assert (sample.observed.commit_cause != 0).all()


def test_the_gap_of_every_answer_with_commits_is_measured() -> None:
    world = World()
    rig = running(world)
    world.delays["OffsetFetch", 3] = (LATE, 0.0)
    outcome = rig.run()

    assert sorted(outcome.gaps) == pytest.approx([0.0, TOGETHER_SECONDS, TOGETHER_SECONDS])


@pytest.mark.parametrize("late", [1, 2])
def test_of_two_brokers_that_report_a_group_the_one_that_was_not_silent_is_right(late: int) -> None:
    world = World()
    world.coordinators["billing"], world.unlisted = NOBODY, {"billing"}
    rig = Rig(world, samples.settings(rules=[{"group": "billing", "topics": list(TOPICS)}]))
    world.silent = {1}
    rig.run(2)
    world.silent, world.coordinators["billing"] = set(), 2
    world.stale_commits = {1: {"billing": {(topic, 0): 0 for topic in TOPICS}}}
    world.delays["OffsetFetch", late] = (LATE, 0.0)
    rig.run()

    assert rig.asked("OffsetFetch") == [{1: ("billing",), 2: ("audit", "billing"), 3: ("billing", "etl")}]
    assert BACKLOG <= rig.lag_of("billing", "notes") <= BACKLOG + RATE * MOST_SECONDS_APART


seconds = st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.19, 0.3, 1.0, 2.0, 2.9, 3.5])


@st.composite
def moments(draw: st.DrawFn) -> dict[str, object]:
    """What is slow in one cycle."""
    slow = draw(st.dictionaries(st.tuples(st.sampled_from(KINDS), st.sampled_from(NODES)), st.tuples(seconds, seconds)))
    return {
        "delays": slow,
        "silent": draw(st.sets(st.sampled_from(NODES), max_size=1)),
        "busy_seconds": draw(st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.2, 0.6])),
        "new_topic": draw(st.integers(0, 5)) == 0,
        "moved": draw(st.sampled_from([None, None, None, *NODES])),
    }


@settings(max_examples=75)
@given(st.lists(moments(), min_size=1, max_size=6))
def test_lag_is_overstated_at_most_by_what_was_produced_until_its_end_was_read(cycles: list[dict[str, object]]) -> None:
    """That is: the way back of the coordinator's answer, half a second, and the leader's answer time."""
    world = World()
    rig = running(world)
    for number, moment in enumerate(cycles):
        world.delays, world.silent = moment["delays"], moment["silent"]  # type: ignore[assignment]
        world.busy_seconds = moment["busy_seconds"]  # type: ignore[assignment]
        if moment["new_topic"]:
            world.topics[f"new-{number}"] = [1 + number % 3]
        if moment["moved"] is not None:
            world.coordinators["billing"] = moment["moved"]  # type: ignore[assignment]
        rig.run()
        for group in GROUPS:
            check(rig, world, group)


def check(rig: Rig, world: World, group: str) -> None:
    layout, now = rig.view.layout, rig.clock.seconds
    since = now - rig.settings.collection.max_age
    late = [one for one in rig.brokers.transit.exchanges if one.received >= since]
    for topic, leaders in world.topics.items():
        if (group, topic) not in layout.pairs:
            continue
        try:
            lag = rig.lag_of(group, topic)
        except (NoMatch, ValueUnavailable):
            continue
        most = max(overstatement(one, late, leaders[0]) for one in late if one.kind == "OffsetFetch")
        assert BACKLOG <= lag <= BACKLOG + RATE * most + 1, (group, topic)


def overstatement(commits: Exchange, exchanges: list[Exchange], leader: int) -> float:
    """For how many seconds messages may have been added since a coordinator read its commits."""
    answers = (
        one.received - one.sent
        for one in exchanges
        if one.node == leader and one.kind == KINDS[1] and one.sent >= commits.received
    )
    return commits.received - commits.read + MOST_SECONDS_APART + max(answers, default=0.0)
