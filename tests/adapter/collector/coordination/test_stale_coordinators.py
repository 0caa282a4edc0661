"""Coordinators that move and miss their followers' confirmation, at random: a served lag was true within `maxAge`."""

import random

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.metrics.problems import ValueUnavailable
from tests.support.kafka.coordinators import LEADERS, NODES, READ, cluster, move, named, rig_of
from tests.support.kafka.small_cluster import ORDERS_0

BESIDE = named(0, 1)
"""Another group of the same partition."""
WORLDS, CYCLES = 6, 150
FIVE_MINUTES = 32
MAX_AGE = 60.0


class World:
    """A partition of the offsets topic with two groups, one of them often reset, and what was true."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same worlds every time, no secret
        self.kafka = cluster(LEADERS, READ, BESIDE)
        self.rig = rig_of(self.kafka)
        self.former = [{READ: {ORDERS_0: 7}, BESIDE: {ORDERS_0: 7}}]
        """All that was committed, by the cycle."""
        self.truths: list[tuple[float, int]] = [(self.rig.clock.seconds, 3)]
        self.is_quiet = 0

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def move_on(self) -> None:
        """A commit wakes a coordinator that is behind. Once it has been read, the coordinator may move and be behind;
        after a reset, once the log ends have been read, too."""
        self.kafka.ends[ORDERS_0] += self.random.choice([0, 0, 3])
        self.kafka.silent = {self.random.choice(NODES)} if self.happens(12) else set()
        self.is_quiet += 1
        if self.happens(15):
            group = self.random.choice([READ, BESIDE])
            most = self.kafka.ends[ORDERS_0]
            least = 0 if self.happens(4) else self.kafka.commits[group][ORDERS_0]
            self.kafka.commits[group] = {ORDERS_0: self.random.randint(least, most)}
            self.kafka.stale_commits, self.is_quiet = {}, 0
        elif self.is_quiet > (FIVE_MINUTES if self.was_reset else 2) and self.happens(5):
            node = self.random.choice([node for node in NODES if node != self.kafka.topics[OFFSETS_TOPIC][0]])
            move(self.kafka, 0, node)
            self.kafka.stale_commits = {node: self.random.choice(self.former)} if self.happens(2) else {}
        self.former.append({group: dict(commits) for group, commits in self.kafka.commits.items()})
        self.truths.append((self.rig.clock.seconds, self.kafka.ends[ORDERS_0] - self.kafka.commits[READ][ORDERS_0]))

    @property
    def was_reset(self) -> bool:
        """Whether an earlier commit of the group was later than its present one."""
        return max(each[READ][ORDERS_0] for each in self.former) > self.kafka.commits[READ][ORDERS_0]

    def is_true(self, lag: int) -> bool:
        return lag in {truth for at, truth in self.truths if at >= self.rig.clock.seconds - MAX_AGE - 10}


def test_what_is_served_of_a_group_whose_coordinators_are_behind_was_true_within_max_age() -> None:
    served = 0
    for seed in range(WORLDS):
        world = World(seed)
        for cycle in range(CYCLES):
            world.move_on()
            world.rig.run()
            try:
                lag = world.rig.lag(READ)
            except ValueUnavailable:
                continue
            served += 1
            assert world.is_true(lag), (seed, cycle)

    assert served > WORLDS * CYCLES / 2, "too little was served for a proof"
