"""Commits that move and commits that stand still, while groups change, brokers fail and settings change."""

import pytest

from adapter.cluster.groups import Kind
from adapter.collector.resting import LONGEST_SECONDS
from adapter.metrics.problems import Reason
from adapter.settings.models import Settings
from adapter.verdicts.assignment import Sharing
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.samples import wants

STUCK, MOVING = ("orders", 0), ("orders", 1)
BILLING = wants(group="billing")
MINUTE = 6
"""In cycles."""


def excluding(**keys: object) -> Settings:
    replicas = {"lagPerReplica": 100, "excludePersistentLag": True, **keys}
    return samples.settings(rules=[{"group": "billing", "topics": ["orders"], "replicas": replicas}])


def kafka(**parts: object) -> Kafka:
    """billing is stuck in the first of four partitions, 1,000 messages behind the end, and 120 behind in the second."""
    return Kafka(
        topics={"orders": [1, 2, 3, 1]},
        commits={"billing": {("orders", number): 0 for number in range(4)}},
        ends={STUCK: 1000, MOVING: 120, ("orders", 2): 0, ("orders", 3): 0},
        members={"billing": {"orders"}},
        **parts,  # type: ignore[arg-type]
    )


def move(rig: Rig, by: int = 10) -> None:
    """The group reads some messages of the second partition, and as many are written."""
    rig.kafka.commits["billing"][MOVING] += by
    rig.kafka.ends[MOVING] += by


def replicas(rig: Rig) -> int:
    (item,) = rig.read("replicas", BILLING).values
    return item.milli // 1000


def after(rig: Rig, cycles: int, every: int = 1) -> list[int]:
    """Cycles in each `every`th of which the second partition's commit moves -> what was answered after each."""
    found = []
    for number in range(cycles):
        if number % every == 0:
            move(rig)
        rig.run()
        found.append(replicas(rig))
    return found


def watched(kafka: Kafka, settings: Settings | None = None, every: int = 1) -> Rig:
    """After two minutes."""
    rig = Rig(kafka, settings or excluding())
    for number in range(2 * MINUTE):
        if number % every == 0:
            move(rig)
        rig.run()
    return rig


def test_right_after_a_start_it_is_not_known_which_commits_stand_still() -> None:
    rig = Rig(kafka(), excluding())
    reasons: list[object] = []
    for _ in range(9):
        move(rig)
        rig.run()
        reasons.append(rig.reasons("replicas", BILLING)[0] if len(reasons) < 8 else replicas(rig))

    assert reasons == [Reason.MOVEMENT_UNKNOWN] * 8 + [2]


@pytest.mark.parametrize("every", [1, 3, 6])
def test_the_number_does_not_change_between_cycles_of_a_stable_group_that_commits_once_a_minute(
    every: int,
) -> None:
    assert set(after(watched(kafka(), every=every), 4 * MINUTE, every)) == {2}


def test_a_partition_that_stands_still_is_recognised_where_listings_tell_no_states() -> None:
    assert set(after(watched(kafka(lists_phases=False)), 4 * MINUTE)) == {2}


def test_a_partition_that_gets_stuck_counts_until_that_is_certain() -> None:
    rig = watched(kafka())
    found = []
    for _ in range(10):
        rig.run()
        found.append(replicas(rig))

    assert found == [2] * 8 + [1] * 2


def test_a_partition_that_moves_again_counts_at_once() -> None:
    rig = watched(kafka())
    rig.kafka.commits["billing"][STUCK] += 1

    assert after(rig, 1) == [4]


@pytest.mark.parametrize("change", ["moving", "undescribed"])
def test_a_group_whose_members_change_keeps_its_number_for_a_limited_time(change: str) -> None:
    rig = watched(kafka())
    getattr(rig.kafka, change).add("billing")
    found = []
    for _ in range(int(LONGEST_SECONDS / 10) + 2 * MINUTE):
        rig.run()
        found.append(replicas(rig))

    kept = found.index(1)
    assert set(found[:kept]) == {2}
    assert 300 <= 10 * kept <= 390
    assert set(found[kept:]) == {1}


def test_what_stood_still_before_a_rebalance_stands_still_after_it_and_what_moved_still_moves() -> None:
    rig = watched(kafka())
    rig.kafka.moving = {"billing"}
    rig.run(2 * MINUTE)
    rig.kafka.moving = set()
    found = []
    for _ in range(7):
        rig.run()
        found.append(replicas(rig))

    assert set(found) == {2}
    assert set(after(rig, 3 * MINUTE)) == {2}


def test_a_group_without_members_counts_as_standing_still_and_is_woken_by_its_lag() -> None:
    rig = watched(kafka())
    rig.kafka.members = {}
    rig.run(7 * MINUTE)

    assert replicas(rig) == 1


def test_a_group_that_sleeps_when_the_adapter_starts_is_woken_at_once_whatever_its_lag() -> None:
    sleeping = kafka()
    sleeping.members = {}
    rig = Rig(sleeping, excluding())
    rig.run()
    assert replicas(rig) == 1

    assert after(rig, 3)[1:] == [2, 2], "somebody commits without joining"


def test_commits_that_cannot_be_read_do_not_stand_still() -> None:
    rig = watched(kafka(coordinators={"billing": 2}))
    rig.kafka.silent = {2}
    rig.run(5)

    assert replicas(rig) == 2


def test_movement_survives_a_change_of_the_settings() -> None:
    former = watched(kafka())
    made = Rig(former.kafka, excluding(activation=5))
    made.clock.seconds = former.clock.seconds
    made.cycle.recall(former.cycle.remembered(everything=True))
    made.cycle.follow(former.cycle)
    made.run()

    assert replicas(made) == 2
    assert after(made, 5) == [2] * 5


def test_movement_is_followed_only_of_groups_whose_number_depends_on_it() -> None:
    rig = watched(kafka(), excluding(excludePersistentLag=False))
    rig.kafka.moving = {"billing"}
    rig.run(MINUTE)

    assert rig.view.judged_at == {}


@pytest.mark.parametrize(
    ("kind", "sharing"),
    [
        (Kind.CLASSIC, Sharing.BY_TOPIC),
        (Kind.CONSUMER, Sharing.TOGETHER),
        (Kind.SHARE, Sharing.SEVERAL_READERS),
        (Kind.STREAMS, Sharing.BY_TOPIC),
    ],
)
def test_until_its_members_are_described_a_group_shares_topics_as_those_of_its_kind_do(
    kind: Kind, sharing: Sharing
) -> None:
    rig = Rig(kafka(kinds={"billing": kind}, undescribed={"billing"}))
    rig.run(2)

    assert rig.view.sharing_of("billing") is sharing
