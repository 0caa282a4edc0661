"""Random worlds in which groups come and go while coordinators move and brokers fall silent."""

import random
from functools import partial

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.metrics.problems import NoMatch, ValueUnavailable
from tests.support.kafka.coordinators import NODES, PARTITIONS, cluster, is_absent, move, named
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0
from tests.support.samples import wants

WORLDS, CYCLES = 24, 60


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
            except NoMatch:
                assert not world.old_groups(seconds=120), (seed, cycle)
            else:
                answered += 1
                reported = {value.labels["group"] for value in values}
                assert reported >= set(world.old_groups(seconds=120)), (seed, cycle)

    assert answered > WORLDS * CYCLES / 20, (answered, refused)
