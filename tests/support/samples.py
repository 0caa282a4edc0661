"""Small things by hand: settings, topologies, layouts, rows, views, requirements, a clock that stands still.

A group's rows are written as `{("billing", "orders", 0): row(7, 10)}`: committed 7, log end 10, log start 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from adapter.cluster.possible_groups import NO_POSSIBLE_GROUPS, any_group_possible
from adapter.cluster.topics import Topic, Topology
from adapter.columns import NEVER, NO_COMMIT, NOT_KNOWN
from adapter.errors import SettingsInvalid
from adapter.lag.layout import Layout, layout_of
from adapter.lag.ring import empty_ring
from adapter.lag.rules import Watching, treatment_of
from adapter.lag.snapshot import NO_CAUSE, Cause, Causes, Observed, Snapshot, State, empty_snapshot, nothing_observed
from adapter.lag.totals import totals_of
from adapter.lag.values import Treatment, values_of
from adapter.metrics.definitions import DEFINITIONS, SERVED
from adapter.metrics.problems import Problem, Reason, Refused
from adapter.metrics.query import Metrics, Reading
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.store import ClusterView, Store
from adapter.settings.file import parse
from adapter.settings.models import Settings

NOW = 1000.0
EPOCH = 1_795_000_000.0
"""What `SteppedClock.time` says at `NOW`."""

PLAIN = parse({"clusters": [{"name": "main", "bootstrapServers": ["kafka:9092"]}]}, SERVED)
"""The settings where none are given."""

Key = tuple[str, str, int]


@dataclass
class SteppedClock:
    """Both clocks of a process; they move together, and only on request."""

    seconds: float = NOW
    ahead: float = 0.0
    """How far the wall clock is wrong."""

    def monotonic(self) -> float:
        return self.seconds

    def time(self) -> float:
        return EPOCH + self.seconds - NOW + self.ahead


def settings(**parts: object) -> Settings:
    """Settings of one cluster named `main`, unless `parts` says otherwise; keys as in the file."""
    return parse({"clusters": [cluster("main")], **parts}, SERVED)


def settings_problems(**parts: object) -> tuple[str, ...]:
    """Of settings that must be refused."""
    with pytest.raises(SettingsInvalid) as caught:
        settings(**parts)
    return caught.value.problems


def cluster(name: str) -> dict[str, object]:
    return {"name": name, "bootstrapServers": [f"{name}:9092"]}


def topology(leaders: Mapping[str, Sequence[int]], generations: Mapping[str, str] | None = None) -> Topology:
    """Topic -> the leader of each partition; all leaders are brokers."""
    nodes = {node for nodes in leaders.values() for node in nodes if node >= 0}
    ids = generations or {}
    return Topology(
        brokers={node: f"kafka-{node}:9092" for node in sorted(nodes)},
        topics={name: Topic(ids.get(name), np.array(nodes, dtype=np.int32)) for name, nodes in leaders.items()},
    )


def layout(keys: Iterable[Key], groups: Iterable[str] = ()) -> Layout:
    """Rows for the keys and for every partition below them; `groups` may have groups without rows."""
    wanted: dict[str, set[str]] = {group: set() for group in groups}
    sizes: dict[str, int] = {}
    for group, topic, partition in keys:
        wanted.setdefault(group, set()).add(topic)
        sizes[topic] = max(sizes.get(topic, 0), partition + 1)
    return layout_of(wanted, topology({topic: [1] * size for topic, size in sizes.items()}))


@dataclass(frozen=True)
class Row:
    """One partition of a group as it was last read, and what the newest cycle says of it."""

    committed: int
    log_end: int
    log_start: int = 0
    received: float = NOW
    state: State = State.OK
    why: str = ""

    def unknown(self, why: str, state: State = State.UNKNOWN) -> "Row":
        return replace(self, state=state, why=why)

    def aged(self, seconds: float) -> "Row":
        return replace(self, received=NOW - seconds)


def row(committed: int | None, log_end: int, log_start: int = 0, state: State | None = None) -> Row:
    """A row as read just now; committed None: no commit."""
    found = State.OK if committed is not None else State.NO_COMMIT
    return Row(
        NO_COMMIT if committed is None else committed, log_end, log_start, state=found if state is None else state
    )


NEVER_READ = Row(NO_COMMIT, NOT_KNOWN, NOT_KNOWN, NEVER, State.UNKNOWN, "broker 2 at kafka-2:9092 does not answer")


def place(layout: Layout, key: Key) -> int:
    """The row's number."""
    group, topic, partition = key
    return int(layout.pairs[group, topic].start) + partition


def snapshot(rows: Mapping[Key, Row], groups: Iterable[str] = ()) -> Snapshot:
    made = empty_snapshot(layout(rows, groups))
    causes = Causes()
    for key, one in rows.items():
        at = place(made.layout, key)
        made.committed[at], made.log_end[at], made.log_start[at] = one.committed, one.log_end, one.log_start
        made.received[at], made.state[at] = one.received, one.state
        made.cause[at] = causes.code(Cause(one.state, one.why) if one.why else NO_CAUSE)
        made.beyond[at] = 2 if one.state is State.AHEAD else 0
    return replace(made, causes=tuple(causes.known))


def observed(rows: Mapping[Key, Row], layout: Layout) -> Observed:
    """What a cycle gave: a row with `why` could not be read, for want of its commit; the others at their time."""
    made = nothing_observed(layout)
    causes = Causes()
    for key, one in rows.items():
        at = place(layout, key)
        made.log_start[at] = one.log_start
        if one.why:
            made.commit_cause[at] = causes.code(Cause(one.state, one.why))
            continue
        made.committed[at], made.log_end[at] = one.committed, one.log_end
        made.commit_received[at] = made.end_received[at] = one.received
    return replace(made, causes=tuple(causes.known))


def view(
    rows: Mapping[Key, Row],
    cluster: str = "main",
    settings: Settings | None = None,
    silence: str | None = None,
    problems: Sequence[Problem] = (),
    members_read: Mapping[str, frozenset[str]] | None = None,
    assumed: frozenset[str] = frozenset(),
    asked: frozenset[tuple[str, str]] = frozenset(),
) -> ClusterView:
    """A cluster's view after a cycle; groups with `problems` need no rows.

    `asked`: groups and topics that only HPAs name."""
    by_group: dict[str, list[Problem]] = {}
    for problem in problems:
        by_group.setdefault(problem.group, []).append(problem)
    made = snapshot(rows, by_group)
    treatment = treatment_of(made.layout, watching(settings, cluster), members_read or {}, asked)
    topics, values = frozenset(made.layout.topics), values_of(made, treatment)
    return ClusterView(
        cluster,
        made,
        treatment,
        values,
        NO_POSSIBLE_GROUPS if silence is None else any_group_possible(silence),
        by_group,
        assumed=assumed,
        topics=topics,
        totals=totals_of(made, treatment, values, np.arange(len(made.layout))),
        ring=empty_ring(made.layout),
    )


def unread(group: str, why: str = NEVER_READ.why) -> Problem:
    return Problem(Reason.NOT_READ_YET, why, "main", group)


def missing(group: str, topic: str) -> Problem:
    text = f"topic {topic} of group {group} does not exist in cluster main"
    return Problem(Reason.TOPIC_MISSING, text, "main", group, topic)


def watching(given: Settings | None = None, cluster: str = "main") -> Watching:
    return Watching(given or PLAIN, cluster)


def plain_treatment(layout: Layout) -> Treatment:
    """No rules: nothing counts from the start, nothing is stale."""
    return treatment_of(layout, watching(), {})


def store_of(*views: ClusterView) -> Store:
    store = Store(view.cluster for view in views)
    for view in views:
        store.feeds[view.cluster].replace(view)
    return store


def wants(**labels: str | Sequence[str]) -> tuple[Requirement, ...]:
    """`group="billing"`, `partition=["0", "1"]`."""
    return tuple(
        Requirement(key, Operator.IN, frozenset([value] if isinstance(value, str) else value))
        for key, value in labels.items()
    )


def without(**labels: str) -> tuple[Requirement, ...]:
    """`topic="orders"`: every topic but that one."""
    return tuple(Requirement(key, Operator.NOT_IN, frozenset([value])) for key, value in labels.items())


class MetricsReader:
    """Reads metrics with short words."""

    metrics: Metrics
    namespace: str | None = None
    """Of the reader; None: one that may read everything."""

    def read(self, metric: str = "lag", requirements: Sequence[Requirement] = ()) -> Reading:
        """`metric` as clients write it, or a short name."""
        name = f"kafka_consumergroup_{metric}" if metric in SHORT_NAMES else metric
        return self.metrics.read(name, requirements, self.namespace)

    def refusal(
        self, metric: str = "lag", requirements: Sequence[Requirement] = (), /, **labels: str | Sequence[str]
    ) -> Refused:
        """The error of a read that must be refused."""
        with pytest.raises(Refused) as caught:
            self.read(metric, (*requirements, *wants(**labels)))
        return caught.value

    def reasons(
        self, metric: str = "lag", requirements: Sequence[Requirement] = (), /, **labels: str | Sequence[str]
    ) -> list[Reason]:
        return [problem.reason for problem in self.refusal(metric, requirements, **labels).problems]


@dataclass
class Answers(MetricsReader):
    """The metrics of some views."""

    views: Sequence[ClusterView]
    settings: Settings = PLAIN
    clock: SteppedClock = field(default_factory=SteppedClock)
    namespace: str | None = None

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.settings, store_of(*self.views), self.clock)

    def value(self, metric: str, requirements: Sequence[Requirement] = ()) -> int:
        """The only item's value."""
        (item,) = self.read(metric, requirements).values
        return item.milli // 1000


SHORT_NAMES = frozenset(each.name for each in DEFINITIONS)
