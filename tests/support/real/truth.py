"""What a test has produced and committed, and when: which numbers are true within a span of time.

A change is noted from before it was asked for until after it was acknowledged, as it may have been seen in between.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adapter.kafka.client import CALL_SECONDS
from local.kafka.broker import Broker, Kafka
from local.kafka.tools import commit, produce

SLACK_SECONDS = CALL_SECONDS
"""An age counts from when an answer is received, and it may be on its way for as long as a call may take."""


@dataclass
class _Steps:
    """A count that grows: (when a value can first have been seen, when it was the only one, the value)."""

    taken: list[tuple[float, float, int]] = field(default_factory=lambda: [(0.0, 0.0, 0)])

    def within(self, begin: float, end: float) -> list[int]:
        ends = [until for _, until, _ in self.taken[1:]] + [float("inf")]
        return [
            value for (since, _, value), until in zip(self.taken, ends, strict=True) if since <= end and until >= begin
        ]


@dataclass
class Truth:
    """Of groups that read one topic's partition 0 each."""

    cluster: Kafka
    max_age: float
    topics: Mapping[str, str]
    """Group -> topic."""
    _ends: dict[str, _Steps] = field(default_factory=dict)
    _commits: dict[str, _Steps] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def produce(self, topic: str, count: int, through: Broker | None = None) -> None:
        steps = self._ends.setdefault(topic, _Steps())
        before, begun = steps.taken[-1][2], time.monotonic()
        with self._lock:
            # Any number of them may be seen before all are acknowledged.
            steps.taken += [(begun, float("inf"), before + number) for number in range(1, count + 1)]
        produce(connecting_to(self.cluster, through), topic, count, partition=0)
        with self._lock:
            done = time.monotonic()
            steps.taken[-count:] = [(begun, done, value) for _, _, value in steps.taken[-count:]]

    def commit(self, group: str, offset: int, through: Broker | None = None) -> None:
        steps = self._commits.setdefault(group, _Steps([]))
        with self._lock:
            begun = time.monotonic()
            steps.taken.append((begun, float("inf"), offset))
        commit(connecting_to(self.cluster, through), group, {(self.topics[group], 0): offset})
        with self._lock:
            steps.taken[-1] = (begun, time.monotonic(), offset)

    def is_true(self, group: str, lag: int, asked: float) -> bool:
        """Whether the group had that lag at some time within maxAge before it was served."""
        begin, end = asked - self.max_age - SLACK_SECONDS, time.monotonic()
        with self._lock:
            ends = self._ends[self.topics[group]].within(begin, end)
            commits = self._commits[group].within(begin, end)
        return min(ends) - max(commits) <= lag <= max(ends) - min(commits)


def connecting_to(cluster: Kafka, broker: Broker | None) -> Kafka:
    """The cluster as a client sees it that connects to this broker first."""
    return cluster if broker is None else replace(cluster, bootstrap_servers=f"127.0.0.1:{broker.port}")
