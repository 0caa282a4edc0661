"""What is learned of views that follow one another: of which groups, and over which changes."""

from dataclasses import replace

import numpy as np

from adapter.cluster.groups import Owned
from adapter.lag.owners import Owners
from adapter.lag.ring import empty_ring, followed_by
from adapter.metrics.capacities import Capacities
from adapter.metrics.store import ClusterView
from tests.support import samples
from tests.support.kafka.small_cluster import BILLING, given, kafka, running
from tests.support.samples import EPOCH, SteppedClock, observed, row, view

INTERVAL = 10.0


class Following:
    """A group of two members with a partition each, whose backlog of 100,000 shrinks by 50 messages/s of each."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.capacities = Capacities(self.clock)
        self.layout = samples.layout([("billing", "orders", 1)])
        self.ring = empty_ring(self.layout)
        self.committed = 0
        self.owners = Owners(("a", "b"), np.array([0, 1], np.int32))

    def view(self) -> ClusterView:
        rows = {
            ("billing", "orders", at): replace(row(self.committed, 100_000), received=self.clock.seconds)
            for at in (0, 1)
        }
        made = view(rows)
        made = replace(made, snapshot=replace(made.snapshot, layout=self.layout))
        seen = observed(rows, self.layout)
        starts = np.full(2, self.clock.seconds)
        self.ring = followed_by(self.ring, seen, made.snapshot, starts, self.clock.seconds)
        return replace(made, ring=self.ring, owners=self.owners)

    def go_on(self, cycles: int, *groups: str) -> None:
        wants = self.wants = getattr(self, "wants", groups.__contains__)
        for _ in range(cycles):
            self.capacities.look([self.view()], wants, INTERVAL)
            self.clock.seconds += INTERVAL
            self.committed += 500


def test_windows_of_a_minute_are_learned_and_dated() -> None:
    following = Following()
    following.go_on(14, "billing")

    windows = following.capacities.windows["main", "billing"]
    assert [(window.rate, window.seconds) for window in windows] == [(50.0, 60.0)] * 2
    assert windows[0].begin == EPOCH


def test_ten_windows_show_the_capacity() -> None:
    following = Following()
    following.go_on(61, "billing")
    learned = following.capacities.of("main", "billing")

    assert learned is not None
    assert (learned.capacity.advised, learned.newest) == (50.0, EPOCH + 540)


def test_nothing_is_held_of_a_cluster_that_is_no_longer_read() -> None:
    following = Following()
    following.go_on(2, "billing")
    following.capacities.look([], following.wants, INTERVAL)

    assert following.capacities._followed == {}


def test_nothing_is_learned_of_groups_that_do_not_matter() -> None:
    following = Following()
    following.go_on(20, "mail")

    assert following.capacities.windows == {}


def test_a_window_in_which_partitions_change_hands_shows_nothing() -> None:
    following = Following()
    following.go_on(3, "billing")
    following.owners = Owners(("a", "c"), np.array([0, 1], np.int32))
    following.go_on(4)

    (window,) = following.capacities.windows["main", "billing"]
    assert window.messages == 3000


def test_what_another_process_has_learned_is_taken_over() -> None:
    one, other = Following(), Following()
    one.go_on(61, "billing")

    other.capacities.recall("main", {"billing": one.capacities.windows["main", "billing"]})

    assert other.capacities.of("main", "billing") == one.capacities.of("main", "billing")


def test_a_group_is_forgotten_once_kafka_does_not_know_it_and_nothing_is_remembered_of_it() -> None:
    following = Following()
    following.go_on(8, "billing")
    learned = following.capacities.windows["main", "billing"]

    following.capacities.recall("main", {})
    in_view = {**following.capacities.windows}
    following.capacities.look([view({("mail", "orders", 0): row(1, 1)})], following.wants, INTERVAL)
    following.capacities.recall("main", {"billing": learned})
    in_memory = {**following.capacities.windows}
    following.capacities.recall("eu", {})
    following.capacities.recall("main", {})

    assert in_view == in_memory == {("main", "billing"): learned}
    assert following.capacities.windows == {}
    assert following.capacities.of("main", "billing") is None


def test_a_group_that_is_first_read_while_others_are_forgotten_disturbs_nothing() -> None:
    capacities, reads = Capacities(SteppedClock()), iter(range(100))

    class Name(str):
        """Whenever it is looked up, a reader asks for a group that nobody has asked for."""

        __slots__ = ()

        def __hash__(self) -> int:
            capacities.of("main", f"mail-{next(reads)}")
            return super().__hash__()

    capacities.of("main", Name("billing"))
    before = next(reads)
    capacities.recall("main", {})

    assert next(reads) > before + 1
    assert capacities.of("main", "billing") is None


def test_cycles_over_a_cluster_teach_what_a_member_can_read() -> None:
    """It reads 100 messages of each of its three partitions between two cycles, ten seconds apart."""
    cluster = kafka()
    cluster.members["billing"] = {"orders"}
    cluster.owned["billing"] = (Owned("member", "orders", (0, 1, 2)),)
    cluster.ends |= dict.fromkeys(cluster.ends, 1_000_000)
    rig = running(cluster, given(objective={"maxWait": "30s"}))
    for _ in range(80):
        cluster.commits["billing"] = {place: offset + 100 for place, offset in cluster.commits["billing"].items()}
        rig.run()
        rig.metrics.look()

    (capacity,) = rig.read("capacity", BILLING).values
    assert (capacity.milli, capacity.labels["source"]) == (30_000, "learned")
