"""A cluster in which everything changes and much breaks at random, and what was true in it, cycle by cycle.

Topics are deleted and made again, partitions added, logs cut by retention; groups come, go and are of several kinds;
coordinators and leaders move; brokers fall silent, refuse, load, or are behind with their Metadata.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from adapter.cluster.groups import Kind
from adapter.collector.inventory import REFRESH_SECONDS
from adapter.metrics.aggregation import MetricValue
from tests.support import samples
from tests.support.kafka.fake_cluster import NOBODY, Kafka, Partition
from tests.support.kafka.rig import Rig

NODES = (1, 2, 3)
TOPICS = ("orders", "bills", "notes")
PARTITIONS = 4
OFFSETS_TOPIC = "__consumer_offsets"
GROUPS = ("billing", "audit", "etl", "guest-1", "guest-2", "shared")
SHARED = "shared"
FROM_STARTS, COMMITTED_ONLY = "billing", "audit"
RULES: list[dict[str, object]] = [
    {"group": FROM_STARTS, "topics": ["orders"], "offsetReset": "earliest"},
    {"groups": "au.*", "isolation": "read_committed"},
]


@dataclass(frozen=True, slots=True)
class Truth:
    """One partition for one group at one time."""

    generation: str
    committed: int | None
    """None: no commit, which counts from the last one that was seen, else 0 or from the start on."""
    log_end: int
    log_start: int

    def lags(self, start: int, *, from_start: bool, earlier: Iterable[int]) -> Iterator[int]:
        """Returns what may count with the log start of another moment, after one of the `earlier` commits."""
        if self.committed is None:
            yield max(self.log_end - start, 0) if from_start else 0
        for committed in earlier if self.committed is None else (self.committed,):
            yield max(self.log_end - max(committed, start), 0)


class World:
    """Settings with or without rules; `is_calm`: things change, and nothing breaks."""

    def __init__(self, seed: int, *, has_rules: bool, max_age: str, is_calm: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same worlds every time, no secret
        self.is_calm, self.has_rules = is_calm, has_rules
        self.kafka = Kafka(topics={OFFSETS_TOPIC: [1, 2, 3]}, kinds={SHARED: Kind.SHARE})
        self.kafka.commits[SHARED], self.kafka.shares[SHARED] = {}, {}
        settings = samples.settings(rules=RULES if has_rules else [], collection={"interval": "10s", "maxAge": max_age})
        self.rig = Rig(self.kafka, settings)
        self.metrics = self.rig.metrics
        self.truths: list[tuple[float, dict[tuple[str, Partition], Truth]]] = []
        self._made = 0
        for topic in TOPICS:
            self._make(topic)

    # -- what happens ----------------------------------------------------------------------------

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def _make(self, topic: str) -> None:
        self._made += 1
        self.kafka.generations[topic] = f"id-{self._made}"
        self.kafka.topics[topic] = []
        for _ in range(self.random.randrange(1, PARTITIONS + 1)):
            self._add_partition(topic)

    def _add_partition(self, topic: str) -> None:
        place = (topic, len(self.kafka.topics[topic]))
        self.kafka.topics[topic].append(self.random.choice(NODES))
        self.kafka.ends[place] = self.kafka.starts[place] = self.kafka.stable_ends[place] = 0

    def _delete(self, topic: str) -> None:
        del self.kafka.topics[topic]
        for commits in self.kafka.commits.values():
            _forget(commits, topic)
        _forget(self.kafka.shares[SHARED], topic)

    def partitions(self) -> list[Partition]:
        return [(topic, index) for topic in TOPICS for index in range(len(self.kafka.topics.get(topic, ())))]

    def move_on(self) -> None:
        """Topics, messages, commits."""
        for topic in TOPICS:
            if topic in self.kafka.topics and self.happens(25):
                self._delete(topic)
                if self.happens(2):
                    self._make(topic)
            elif topic not in self.kafka.topics and self.happens(4):
                self._make(topic)
            elif len(self.kafka.topics.get(topic, [0] * PARTITIONS)) < PARTITIONS and self.happens(20):
                self._add_partition(topic)
        for place in self.partitions():
            self._produce(place)
        for group in GROUPS:
            self._consume(group)

    def _produce(self, place: Partition) -> None:
        kafka = self.kafka
        kafka.ends[place] += self.random.choice([0, 0, 1, 7, 300])
        if self.happens(12):
            kafka.starts[place] = self.random.randint(kafka.starts[place], kafka.ends[place])
        stable = min(kafka.stable_ends.get(place, 0), kafka.ends[place])
        kafka.stable_ends[place] = self.random.randint(max(kafka.starts[place], stable), kafka.ends[place])

    def _consume(self, group: str) -> None:
        kafka = self.kafka
        if group == SHARED:
            self._acknowledge()
            return
        if group in kafka.commits and self.happens(60):
            del kafka.commits[group]
        if group not in kafka.commits and not self.happens(5):
            return
        commits = kafka.commits.setdefault(group, {})
        for place in self.partitions():
            end = self._end(group, place)
            if place in commits:
                commits[place] = max(commits[place], min(end, commits[place] + self.random.choice([0, 0, 7, 400])))
                if commits[place] > end or self.happens(80):
                    del commits[place]
            elif self.happens(6):
                commits[place] = self.random.randint(min(kafka.starts[place], end), end)

    def _acknowledge(self) -> None:
        shares = self.kafka.shares[SHARED]
        for place in self.partitions():
            if place in shares or self.happens(8):
                span = self.kafka.ends[place] - self.kafka.starts[place]
                shares[place] = (self.kafka.starts[place], self.random.randint(0, span))

    def _end(self, group: str, place: Partition) -> int:
        is_committed_only = self.has_rules and group == COMMITTED_ONLY
        return self.kafka.stable_ends[place] if is_committed_only else self.kafka.ends[place]

    def _some_nodes(self, one_in: int) -> set[int]:
        return {node for node in NODES if self.happens(one_in)}

    def break_something(self) -> None:
        kafka = self.kafka
        for group in GROUPS:
            if self.happens(10):
                kafka.coordinators[group] = self.random.choice(NODES)
        for topic in TOPICS:
            if topic in kafka.topics and self.happens(10):
                kafka.topics[topic] = [self.random.choice(NODES) for _ in kafka.topics[topic]]
        kafka.unlisted = {group for group in GROUPS if self.happens(8)}
        if self.is_calm:
            return
        kafka.nodes = self.random.choice([NODES, NODES, NODES, (1, 2), (2, 3)])
        if self.happens(2):
            kafka.silent = self._some_nodes(10)
        kafka.refusing, kafka.loading = self._some_nodes(20), self._some_nodes(15)
        kafka.ignorant = {node: {self.random.choice(TOPICS)} for node in self._some_nodes(20)}
        behind = {node: {self.random.choice(TOPICS): 1} for node in self._some_nodes(10)}
        # What the very first answer lacks, nobody can know.
        kafka.behind = behind if self.truths else {}
        kafka.unreachable = "nobody lets us in" if self.happens(30) else None
        if self.happens(8):
            kafka.coordinators[self.random.choice(GROUPS)] = NOBODY
        places = self.partitions()
        for topic, index in places:
            if self.happens(40):
                kafka.topics[topic][index] = NOBODY
        kafka.commit_errors = {g: self.random.choice([14, 15, 30, -1]) for g in GROUPS if self.happens(15)}
        kafka.share_errors = {SHARED: self.random.choice([14, 15, 16, 30, -1])} if self.happens(10) else {}
        kafka.end_errors = {place: self.random.choice([3, 6, 78, -1]) for place in places if self.happens(25)}
        kafka.start_errors = {place: 6 for place in places if self.happens(15)}

    # -- what is true ----------------------------------------------------------------------------

    def note_what_is_true(self) -> None:
        truths = {(g, place): self._truth(g, place) for g in GROUPS for place in self.partitions()}
        self.truths.append((self.rig.clock.seconds, truths))

    def _truth(self, group: str, place: Partition) -> Truth:
        start, end = self.kafka.starts[place], self._end(group, place)
        if group == SHARED:
            reported = self.kafka.shares[SHARED].get(place)
            committed = None if reported is None else end - reported[1]
        else:
            committed = self.kafka.commits.get(group, {}).get(place)
        return Truth(self.kafka.generations[place[0]], committed, end, start)

    def is_true(self, item: MetricValue) -> bool:
        """Whether every partition had its part of the value between the time that the item carries and now."""
        since = item.measured_at - samples.EPOCH
        least = most = 0
        for index in range(PARTITIONS):
            lags = list(self._lags(item.labels["group"], (item.labels["topic"], index), since))
            least, most = least + min(lags, default=0), most + max(lags, default=0)
        return least <= item.milli // 1000 <= most

    def _lags(self, group: str, place: Partition, since: float) -> Iterator[int]:
        """What could be said; the log start is as old as it may be, or as new."""
        from_start = self.has_rules and group == FROM_STARTS
        moments = [truths.get((group, place)) for at, truths in self.truths if at >= since]
        yield from (0 for moment in moments if moment is None or self._may_be_unseen(group, place, moment))
        ever = [truths[group, place] for _, truths in self.truths if (group, place) in truths]
        for one in moments:
            if one is not None:
                same = [other for other in ever if other.generation == one.generation]
                starts = [other.log_start for other in same]
                earlier = {other.committed for other in same if other.committed is not None}
                for start in (min(starts), max(starts)):
                    yield from one.lags(start, from_start=from_start, earlier=earlier)

    def _may_be_unseen(self, group: str, place: Partition, one: Truth) -> bool:
        """A partition without commit is known from the next look at Metadata on."""
        earliest = self.rig.clock.seconds - REFRESH_SECONDS
        late = [truths.get((group, place)) for at, truths in self.truths if at >= earliest]
        return one.committed is None and any(t is None or t.generation != one.generation for t in late)

    def left_out(self, group: str, items: list[MetricValue]) -> list[str]:
        """Topics that are not among the items though the group has had commits for them all through `maxAge`."""
        late = [
            truths for at, truths in self.truths if at >= self.rig.clock.seconds - self.rig.settings.collection.max_age
        ]
        reported = {item.labels["topic"] for item in items}
        counted = ("orders",) if self.has_rules and group == FROM_STARTS else TOPICS
        return [topic for topic in counted if topic not in reported and all(_has_commit(t, group, topic) for t in late)]

    def items(self, group: str) -> list[MetricValue]:
        """What is served; raises as reading does."""
        return list(self.metrics.read("kafka_consumergroup_lag", samples.wants(group=group)).values)


def _forget(places: dict[Partition, Any], topic: str) -> None:
    for place in [place for place in places if place[0] == topic]:
        del places[place]


def _has_commit(truths: dict[tuple[str, Partition], Truth], group: str, topic: str) -> bool:
    found = (truths.get((group, (topic, index))) for index in range(PARTITIONS))
    return any(one is not None and one.committed is not None for one in found)
