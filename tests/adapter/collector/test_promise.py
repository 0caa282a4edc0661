"""The main promise, in worlds where much goes wrong at once: whatever is served was true within `maxAge`."""

import random

import pytest

from adapter.metrics.problems import NoMatch, ValueUnavailable
from tests.support import samples
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.kafka.rig import Rig

NODES = (1, 2, 3)
PARTITIONS = 4
RULES = {"by rule": [{"group": "billing", "topics": ["orders"], "offsetReset": "latest"}], "by its commits": []}
WORLDS, CYCLES = 25, 60


class World:
    """A cluster that moves on and breaks at random, and what was true in it."""

    def __init__(self, seed: int, rules: list[dict[str, object]]) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same worlds every time, no secret
        self.kafka = Kafka(
            topics={"orders": [1, 2], "__consumer_offsets": [1, 2, 3]},
            commits={"billing": {("orders", 0): 0}, "audit": {("orders", 0): 0}},
            coordinators={"billing": 2, "audit": 3},
        )
        self.rig = Rig(self.kafka, samples.settings(rules=rules))
        self.truths: list[tuple[float, list[int]]] = []

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def some_nodes(self, one_in: int) -> set[int]:
        return {node for node in NODES if self.happens(one_in)}

    def move_on(self) -> None:
        """Messages come, some are read; a partition is added, or read for the first time."""
        if len(self.kafka.topics["orders"]) < PARTITIONS and self.happens(20):
            self.kafka.topics["orders"].append(1)
        commits = self.kafka.commits["billing"]
        for partition in range(len(self.kafka.topics["orders"])):
            place = ("orders", partition)
            end = self.kafka.ends[place] = self.kafka.ends.get(place, 10) + self.random.choice([0, 0, 5, 100])
            if place in commits or self.happens(10):
                commits[place] = min(end, commits.get(place, 0) + self.random.choice([0, 0, 5, 150]))

    def note_what_is_true(self) -> None:
        commits = self.kafka.commits["billing"]
        lags = [self.kafka.ends.get(("orders", p), 0) - commits.get(("orders", p), 10**9) for p in range(PARTITIONS)]
        self.truths.append((self.rig.clock.seconds, [max(lag, 0) for lag in lags]))

    def break_something(self) -> None:
        kafka = self.kafka
        kafka.nodes = self.random.choice([NODES, NODES, NODES, (1, 2), (2, 3)])
        if self.happens(2):
            kafka.silent = self.some_nodes(8)
        kafka.refusing, kafka.loading = self.some_nodes(20), self.some_nodes(12)
        kafka.ignorant = {node: {"orders"} for node in self.some_nodes(20)}
        kafka.unlisted = {"billing"} if self.happens(5) else set()
        kafka.unreachable = "nobody lets us in" if self.happens(20) else None
        if self.happens(6):
            kafka.coordinators["billing"] = self.random.choice([*NODES, NOBODY])
        if self.happens(8):
            kafka.topics["orders"] = [self.random.choice([*NODES, NOBODY]) for _ in kafka.topics["orders"]]
        kafka.commit_errors = {"billing": self.random.choice([14, 15, 30, -1])} if self.happens(6) else {}
        kafka.end_errors = {("orders", self.random.randrange(PARTITIONS)): 6} if self.happens(6) else {}
        kafka.start_errors = {("orders", self.random.randrange(PARTITIONS)): 6} if self.happens(10) else {}

    def lag(self) -> int:
        found = self.rig.metrics.read("kafka_consumergroup_lag", samples.wants(group="billing"))
        return sum(item.milli // 1000 for item in found.values)

    def is_true_of_late(self, lag: int) -> bool:
        """Partition by partition, as their moments may differ."""
        since = self.rig.clock.seconds - self.rig.settings.collection.max_age
        late = [lags for at, lags in self.truths if at >= since]
        by_partition = list(zip(*late, strict=True))
        least, most = sum(min(lags) for lags in by_partition), sum(max(lags) for lags in by_partition)
        return bool(least <= lag <= most)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_whatever_goes_wrong_a_served_lag_was_true_within_max_age(rules: list[dict[str, object]]) -> None:
    served = 0
    for seed in range(WORLDS):
        world = World(seed, rules)
        for cycle in range(CYCLES):
            world.move_on()
            world.break_something()
            world.rig.run()
            world.note_what_is_true()
            try:
                lag = world.lag()
            except (NoMatch, ValueUnavailable):
                continue
            served += 1
            assert world.is_true_of_late(lag), (seed, cycle, lag, world.truths[-8:])

    assert served > WORLDS * CYCLES / 4, "too little was served for a proof"
