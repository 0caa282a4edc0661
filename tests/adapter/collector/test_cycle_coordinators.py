"""Which groups a broker that cannot be reached may know: these are refused, and what was read is answered.

Groups belong to the partitions of the offsets topic by their names, as in Kafka. Node 4 of these clusters is the one
that is away.
"""

import contextlib
import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.errors import NothingChosen, ValueUnavailable
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED
from tests.support import samples
from tests.support.kafka.fake_brokers import NOBODY, Kafka, Rig
from tests.support.kafka.small_cluster import ORDERS_0
from tests.support.samples import wants, without

NODES = (1, 2, 3, 4)
PARTITIONS = 8
SILENT_4 = "broker 4 at kafka-4:9092 does not answer"
UNHEARD_4 = f"broker 4 at kafka-4:9092 has not listed its groups yet: {SILENT_4}"


def named(partition: int, number: int = 0) -> str:
    """A group that belongs to the partition."""
    names = (name for name in (f"group-{n}" for n in range(1000)) if partition_of(name, PARTITIONS) == partition)
    return [next(names) for _ in range(number + 1)][number]


def cluster(leaders: Sequence[int], *groups: str) -> Kafka:
    """One topic, at broker 1; each group is 3 behind."""
    return Kafka(
        topics={"orders": [1], OFFSETS_TOPIC: list(leaders)},
        generations={OFFSETS_TOPIC: "a", "orders": "b"},
        epochs={OFFSETS_TOPIC: [0] * len(leaders)},
        commits={group: {ORDERS_0: 7} for group in groups},
        ends={ORDERS_0: 10},
        nodes=NODES,
    )


def move(kafka: Kafka, partition: int, node: int) -> None:
    kafka.topics[OFFSETS_TOPIC][partition] = node
    kafka.epochs[OFFSETS_TOPIC][partition] += 1


def rig_of(kafka: Kafka, cycles: int = 1, **settings: object) -> Rig:
    rig = Rig(kafka, samples.settings(**settings))
    rig.run(cycles)
    return rig


def refusal(rig: Rig, **labels: str) -> str:
    with pytest.raises(ValueUnavailable) as caught:
        rig.read("lag", wants(**labels))
    return str(caught.value)


def is_absent(rig: Rig, group: str) -> bool:
    try:
        rig.lag(group)
    except NothingChosen:
        return True
    except ValueUnavailable:
        pass
    return False


LEADERS = [1, 2, 3, 1, 2, 3, 4, 4]
READ, UNREAD = named(0), named(6)


def test_a_broker_that_joins_and_leads_nothing_matters_to_no_group() -> None:
    kafka = cluster([1, 2, 3] * 2 + [1, 2], READ)
    kafka.nodes = (1, 2, 3)
    rig = rig_of(kafka, 3)
    kafka.nodes, kafka.silent = NODES, {4}
    for _ in range(20):
        rig.run()

        assert rig.lag(READ) == 3
        assert rig.read("records_lag_max", wants(topic="orders")).values[0].value == 3
        assert rig.read("lag").warnings == ()
        assert is_absent(rig, "nobody")


def test_after_a_start_beside_a_silent_broker_only_its_groups_are_refused() -> None:
    kafka = cluster(LEADERS, READ, UNREAD)
    kafka.silent = {4}
    rig = rig_of(kafka)
    for _ in range(8):
        assert rig.lag(READ) == 3
        assert refusal(rig, group=UNREAD) == f"not all groups of cluster main are known: {UNHEARD_4}"
        assert refusal(rig, topic="orders") == f"not all groups of cluster main are known: {UNHEARD_4}"
        assert is_absent(rig, named(0, 1))
        with pytest.raises(ValueUnavailable):
            rig.read("lag", without(group=READ))
        with pytest.raises(ValueUnavailable):
            rig.read("lag", wants(group=[READ, named(7)]))
        assert rig.read("lag").warnings == (f"groups of cluster main may be missing: {UNHEARD_4}",)
        rig.run()

    kafka.silent.clear()
    rig.run(2)
    assert rig.lag(UNREAD) == 3
    assert rig.read("records_lag_max", wants(topic="orders")).values[0].value == 3


def test_a_group_that_a_rule_names_is_refused_while_only_a_silent_broker_can_know_it() -> None:
    kafka = cluster(LEADERS, READ)
    kafka.silent = {4}
    rules = [{"group": group, "topics": ["orders"], "offsetReset": "earliest"} for group in (named(0, 1), UNREAD)]
    rig = rig_of(kafka, 5, rules=rules)

    assert rig.lag(named(0, 1)) == 10
    assert SILENT_4 in refusal(rig, group=UNREAD)


def test_a_group_that_came_to_be_after_its_coordinator_fell_silent_is_not_taken_for_none() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 4)
    assert is_absent(rig, UNREAD)
    kafka.silent = {4}
    kafka.commits[UNREAD] = {ORDERS_0: 0}
    rig.run(3)
    for _ in range(12):
        rig.run()

        assert not is_absent(rig, UNREAD)
        assert rig.lag(READ) == 3


def test_sums_are_refused_when_a_list_of_groups_is_old_and_not_before() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 4)
    kafka.silent = {4}
    rig.run(8)
    assert rig.read("records_lag_max", wants(topic="orders")).values[0].value == 3
    rig.run(2)

    assert refusal(rig, topic="orders").startswith(
        "not all groups of cluster main are known: broker 4 at kafka-4:9092 has not listed its groups for 100 s"
    )


def test_a_deleted_group_is_gone_though_a_broker_cannot_be_reached() -> None:
    kafka = cluster(LEADERS, READ, named(1))
    kafka.silent = {4}
    rig = rig_of(kafka, 2)
    del kafka.commits[READ]
    rig.run(12)

    assert is_absent(rig, READ)


def test_a_group_whose_coordinator_became_unreachable_by_a_move_is_not_lost() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 4)
    move(kafka, 0, 4)
    kafka.silent = {4}
    for _ in range(20):
        rig.run()
        assert not is_absent(rig, READ)

    assert SILENT_4 in refusal(rig, group=READ)
    kafka.silent.clear()
    rig.run(3)
    assert rig.lag(READ) == 3


def test_a_group_that_moves_away_from_an_unreachable_coordinator_is_read_again() -> None:
    """The old one stays in Metadata: only we cannot reach it."""
    kafka = cluster([4, 2, 3, 1, 2, 3, 1, 2], READ)
    rig = rig_of(kafka, 4)
    assert rig.lag(READ) == 3
    kafka.silent = {4}
    rig.run()
    move(kafka, 0, 2)
    kafka.ends[ORDERS_0] = 11
    rig.run(4)

    assert rig.lag(READ) == 4


@pytest.mark.parametrize("kind", ["ListGroups", "OffsetFetch", "ListOffsets read_uncommitted"])
def test_a_partition_that_moves_in_the_middle_of_the_first_cycle_hides_no_group(kind: str) -> None:
    """Its leader of before lists nothing any more, and its leader of now cannot be reached."""
    kafka = cluster([1] * PARTITIONS, READ)
    rig = Rig(kafka)

    def moved() -> None:
        move(kafka, 0, 4)
        kafka.silent = {4}

    rig.brokers.before = {kind: moved}
    for _ in range(12):
        rig.run()
        with contextlib.suppress(ValueUnavailable):
            assert rig.lag(READ) == 3
        with contextlib.suppress(ValueUnavailable):
            assert rig.read("lag", wants(topic="orders")).values


def test_metadata_of_a_broker_that_is_behind_does_not_make_a_group_absent() -> None:
    kafka = cluster(LEADERS)
    rig = rig_of(kafka, 4)
    kafka.believed = {2: {OFFSETS_TOPIC: (list(kafka.topics[OFFSETS_TOPIC]), list(kafka.epochs[OFFSETS_TOPIC]))}}
    move(kafka, 0, 4)
    rig.run(4)
    kafka.silent = {4}
    kafka.commits[READ] = {ORDERS_0: 0}
    rig.run(3)
    for _ in range(12):
        rig.run()

        assert not is_absent(rig, READ)


def test_a_partition_without_leader_may_have_unknown_groups() -> None:
    kafka = cluster([1, 2, 3, 1, 2, 3, -1, 3], READ, UNREAD)
    kafka.coordinators[UNREAD] = -1
    rig = rig_of(kafka)

    assert rig.lag(READ) == 3
    words = f"not all groups of cluster main are known: partition 6 of {OFFSETS_TOPIC} has no leader"
    assert refusal(rig, group=UNREAD) == words
    assert refusal(rig, topic="orders") == words


def hide(kafka: Kafka) -> None:
    kafka.hidden = {OFFSETS_TOPIC}


def place_otherwise(kafka: Kafka) -> None:
    """As after the number of partitions was changed while the brokers ran."""
    kafka.coordinators[READ] = 2


@pytest.mark.parametrize("make", [hide, place_otherwise])
def test_without_known_placement_a_silent_broker_matters_to_every_unknown_group(
    make: Callable[[Kafka], None],
) -> None:
    kafka = cluster([1, 2, 3] * 2 + [1, 2], READ)
    make(kafka)
    kafka.silent = {4}
    rig = rig_of(kafka, 3)

    assert rig.lag(READ) == 3
    assert UNHEARD_4 in refusal(rig, group="nobody")
    assert UNHEARD_4 in refusal(rig, topic="orders")


def test_a_lost_group_is_found_by_asking_any_broker_who_coordinates_it() -> None:
    """Metadata hides the offsets topic, and two brokers are silent: one of them is named."""
    kafka = cluster([1] * PARTITIONS, READ, named(1))
    hide(kafka)
    kafka.coordinators[READ] = 1
    rig = rig_of(kafka, 4)
    kafka.silent, kafka.coordinators[READ] = {3, 4}, 4
    rig.run(8)

    assert SILENT_4 in refusal(rig, group=READ)
    assert rig.lag(named(1)) == 3
    kafka.coordinators[READ] = 2
    rig.run(4)
    assert rig.lag(READ) == 3


def test_a_group_is_found_although_a_broker_names_the_wrong_coordinator() -> None:
    kafka = cluster([1] * PARTITIONS, READ)
    rig = rig_of(kafka, 4)
    kafka.misplaced[READ] = 3
    move(kafka, 0, 2)
    rig.run(4)

    assert rig.lag(READ) == 3


def test_coordinators_are_not_looked_up_while_no_offsets_topic_is_known() -> None:
    """The question would make the topic: an adapter writes nothing."""
    kafka = Kafka(topics={"orders": [1]}, ends={ORDERS_0: 10}, coordinators={"billing": NOBODY})
    rig = Rig(kafka, samples.settings(rules=[{"group": "billing", "topics": ["orders"]}]))
    for _ in range(6):
        rig.run()
        assert rig.counted()["FindCoordinator"] == 0

    kafka.topics[OFFSETS_TOPIC] = [1]
    rig.run(6)
    rig.run()
    assert "no broker coordinates group billing" in refusal(rig, group="billing")


# -- whatever happens ----------------------------------------------------------------------------

WORLDS, CYCLES = 60, 60


class World:
    """Groups come and go while partitions of the offsets topic move and brokers fall silent, also in mid-cycle."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same worlds every time, no secret
        self.groups = [named(partition, number) for partition in range(PARTITIONS) for number in range(2)]
        self.kafka = cluster([self.random.choice(NODES) for _ in range(PARTITIONS)])
        for group in self.groups:
            if self.happens(2):
                self.kafka.commits[group] = {ORDERS_0: 7}
        self.since = dict.fromkeys(self.kafka.commits, float("-inf"))
        """Group -> since when it has existed."""
        self.rig = Rig(self.kafka)

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def break_something(self) -> None:
        kafka = self.kafka
        if self.happens(3):
            # Beside a broker that is behind there is always one that is not: of itself it could not be distinguished.
            kafka.silent = {node for node in NODES[2:] if self.happens(3)}
            kafka.loading = {node for node in NODES if self.happens(6)}
        if self.happens(4):
            leaders, epochs = list(kafka.topics[OFFSETS_TOPIC]), list(kafka.epochs[OFFSETS_TOPIC])
            kafka.believed = {self.random.choice(NODES): {OFFSETS_TOPIC: (leaders, epochs)}} if self.happens(2) else {}
        for partition in range(PARTITIONS):
            if self.happens(10):
                move(kafka, partition, self.random.choice(NODES))

    def groups_come_and_go(self) -> None:
        for group in self.groups:
            if group in self.kafka.commits and self.happens(40):
                del self.kafka.commits[group], self.since[group]
            elif group not in self.kafka.commits and self.happens(20):
                self.kafka.commits[group] = {ORDERS_0: 7}
                self.since[group] = self.rig.clock.seconds

    def run(self) -> None:
        self.groups_come_and_go()
        kinds = ("Metadata", "ListGroups", "OffsetFetch")
        self.rig.brokers.before = {kind: partial(self._interrupt, kind) for kind in kinds if self.happens(3)}
        self.rig.run()

    def _interrupt(self, kind: str) -> None:
        """Before the first request of that kind, or between two of them."""
        if self.happens(2):
            self.break_something()
        else:
            self.rig.brokers.before[kind] = partial(self._interrupt, kind)

    def old_groups(self, seconds: float) -> list[str]:
        return [group for group, since in self.since.items() if self.rig.clock.seconds - since > seconds]


def test_whatever_moves_or_falls_silent_no_group_is_absent_or_missing_in_a_sum() -> None:
    """A group may be overlooked as long as any new one is; a sum may lack what its lists of groups are too old for."""
    answered = refused = 0
    for seed in range(WORLDS):
        world = World(seed)
        for cycle in range(CYCLES):
            world.run()
            for group in world.old_groups(seconds=80):
                assert not is_absent(world.rig, group), (seed, cycle, group)
            try:
                values = world.rig.read("lag", wants(topic="orders")).values
            except ValueUnavailable:
                refused += 1
            except NothingChosen:
                assert not world.old_groups(seconds=120), (seed, cycle)
            else:
                answered += 1
                reported = {value.labels["group"] for value in values}
                assert reported >= set(world.old_groups(seconds=120)), (seed, cycle)

    assert answered > WORLDS * CYCLES / 20, (answered, refused)


NEW_LEADER = 78
"""Kafka's error while a new leader does not know how far its followers are."""


def taking_over() -> Kafka:
    """Broker 1 has just taken over the group; it does not report all that has been committed."""
    kafka = cluster(LEADERS, READ)
    kafka.end_errors = {(OFFSETS_TOPIC, partition): NEW_LEADER for partition in (0, 3)}
    return kafka


def test_a_start_while_a_coordinator_takes_over_hides_no_group() -> None:
    """Until its followers have confirmed what it read, it lists none of its groups, without an error."""
    kafka = taking_over()
    kafka.unlisted = {READ}
    rig = rig_of(kafka)
    refused = refusal(rig, group=READ)
    kafka.unlisted.clear()
    kafka.end_errors.clear()
    rig.run()

    assert "broker 1 at kafka-1:9092 has not listed its groups yet" in refused
    assert rig.lag(READ) == 3


def test_a_start_while_a_coordinator_takes_over_serves_no_old_commits() -> None:
    kafka = taking_over()
    kafka.commits[READ] = {ORDERS_0: 2}
    rig = rig_of(kafka)
    refused = refusal(rig, group=READ)
    kafka.end_errors.clear()
    kafka.commits[READ] = {ORDERS_0: 7}
    rig.run()

    assert f"broker 1 has just taken over group {READ} and may report old commits" in refused
    assert rig.lag(READ) == 3


def test_the_first_commits_of_a_group_count_only_from_the_leader_that_was_asked_about_the_handover() -> None:
    """The group moves in the middle of the cycle: a rule names it, so that every broker is asked for it."""
    kafka = cluster(LEADERS, READ)
    rig = Rig(kafka, samples.settings(rules=[{"group": READ, "topics": ["orders"]}]))
    kafka.unlisted = {READ}
    kafka.coordinators = {READ: 2}
    kafka.commits[READ] = {ORDERS_0: 2}
    rig.run()
    refused = refusal(rig, group=READ)
    move(kafka, 0, 2)
    kafka.commits[READ] = {ORDERS_0: 7}
    rig.run()

    assert f"broker 2 has just taken over group {READ}" in refused
    assert rig.lag(READ) == 3


def test_old_commits_of_a_new_coordinator_make_no_lag_though_they_are_no_step_backward() -> None:
    """The adapter last read the same ones; newer ones were committed before the group moved."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 2)
    move(kafka, 0, 2)
    kafka.end_errors = {(OFFSETS_TOPIC, 0): NEW_LEADER}
    kafka.ends[ORDERS_0] = 1000
    served = [rig.run() and rig.lag(READ) for _ in range(3)]
    kafka.end_errors.clear()
    kafka.commits[READ] = {ORDERS_0: 998}
    rig.run()

    assert served == [3, 3, 3]
    assert rig.lag(READ) == 2


def test_where_the_end_of_a_handover_cannot_be_asked_for_groups_are_read_as_if_it_were_over() -> None:
    kafka = taking_over()
    kafka.end_errors = dict.fromkeys(kafka.end_errors, TOPIC_NOT_AUTHORIZED)

    assert rig_of(kafka).lag(READ) == 3


def test_a_start_asks_each_leader_of_the_offsets_topic_once_whether_its_handover_is_over() -> None:
    rig = rig_of(cluster(LEADERS, READ))

    asked = {node: set(topics) for plan in rig.asked("ListOffsets read_uncommitted") for node, topics in plan.items()}  # type: ignore[attr-defined]
    assert [node for node, topics in asked.items() if OFFSETS_TOPIC in topics] == [2, 3, 4]
