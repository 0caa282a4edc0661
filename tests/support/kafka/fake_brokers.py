"""The interface of `adapter.kafka.client.Brokers` over a fake cluster.

Brokers can be silent (a deadline passes), refuse the connection, or still be loading their groups. Every request is
remembered as `(kind, node)`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from kafka.protocol.consumer import ListOffsetsRequest

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.cluster.groups import NOBODY, Description, GroupStatus, Kind, Listing, Phase
from adapter.cluster.topics import Topic, Topology
from adapter.kafka.answers import Answer, BrokersUnreachable, Failure, FailureCause
from adapter.kafka.calls import Calls, Pending
from adapter.kafka.client import COMMIT_SECONDS, Brokers
from adapter.kafka.failures import failure_of
from adapter.kafka.paced_calls import BrokerTooSlow, PacedCalls
from adapter.kafka.versions import NEWEST, Versions
from adapter.protocol.apis import LIST_OFFSETS, OFFSET_FETCH
from adapter.protocol.codes import (
    COORDINATOR_ABSENT,
    COORDINATOR_LOADING,
    GROUP_NOT_AUTHORIZED,
    NOT_COORDINATOR,
    TOPIC_NOT_AUTHORIZED,
)
from adapter.protocol.group_responses import FoundCoordinator, GroupShares, SharedPartitions
from adapter.protocol.offset_responses import Columns
from adapter.protocol.prepared_requests import EARLIEST, CommitQuestion, OffsetQuestion
from adapter.settings.models import Isolation
from tests.support import samples
from tests.support.kafka import responses
from tests.support.kafka.fake_cluster import Kafka, Partition
from tests.support.kafka.fake_transit import FakeProbe, Sent, Transit
from tests.support.kafka.responses import NOT_LEADER, UNKNOWN_TOPIC_OR_PARTITION, by_topic
from tests.support.samples import SteppedClock

T = TypeVar("T")


class FakeBrokers(Brokers):
    """Reads `kafka` instead of a network; its methods are those that a cycle calls."""

    def __init__(self, kafka: Kafka, clock: SteppedClock) -> None:
        super().__init__(samples.settings().clusters[0], lambda _: None)
        self.kafka = kafka
        self.requests: list[tuple[str, int | None]] = []
        self.asked_for: list[tuple[str, object]] = []
        """(kind, what was asked for), beside `requests`."""
        self.before: dict[str, Callable[[], None]] = {}
        """Kind -> what happens just before the next request of that kind."""
        self.connects = self.closes = 0
        self._clock = clock
        self._connected = False
        self._turns = 0
        """How many Metadata responses there were."""
        self.transit = Transit(kafka, clock, self.requests, self._failure)
        self._written: dict[int, tuple[Mapping[str, Mapping[Partition, int]], int]] = {}
        """Partition of the offsets topic -> its commits as last looked at, and its records."""

    @property
    def is_connected(self) -> bool:
        return self._connected

    def connect(self) -> None:
        self.connects += 1
        if self.kafka.unreachable is not None:
            raise BrokersUnreachable([Failure(FailureCause.REFUSED, self.kafka.unreachable)])
        self._connected = True

    @property
    def credentials_problem(self) -> str:
        return ""

    def follow_rotation(self) -> bool:
        return False

    def close(self) -> None:
        self.closes += 1
        self._connected = False

    def topology(
        self, nodes: Sequence[int | None], expected: frozenset[str] = frozenset()
    ) -> dict[int | None, Answer[Topology] | Failure]:
        self.asked_for.append(("Metadata", expected))
        outcomes: dict[int | None, Answer[Topology] | Failure] = {}
        for node in nodes:
            outcomes[node] = self._described(node, expected)
            if isinstance(outcomes[node], Answer):
                break
        return outcomes

    def living(self, nodes: Sequence[int], topics: Collection[str] = ()) -> dict[int, Answer[Topology] | Failure]:
        outcomes: dict[int, Answer[Topology] | Failure] = {}
        for node in nodes:
            self.requests.append(("Metadata living", node))
            self.asked_for.append(("Metadata living", sorted(topics)))
            described = self._topology(node, frozenset()).topics if topics else {}
            named = {name: topic for name, topic in described.items() if name in topics}
            outcomes[node] = self._failure(node) or Answer(Topology(self._living(node), named), self._clock.seconds)
            if isinstance(outcomes[node], Answer):
                break
        return outcomes

    def _described(self, node: int | None, expected: frozenset[str]) -> Answer[Topology] | Failure:
        if node is None:
            alive = [n for n in self.kafka.nodes if n not in self.kafka.silent | self.kafka.refusing]
            node = alive[0] if alive else self.kafka.nodes[0]
            self.requests.append(("Metadata", None))
        else:
            self.requests.append(("Metadata", node))
        self._let_pass("Metadata", [node])
        return self._failure(node) or Answer(self._topology(node, expected), self._clock.seconds)

    def _topology(self, node: int, expected: frozenset[str]) -> Topology:
        self._turns += 1
        hidden = self.kafka.ignorant.get(node, set()) | self.kafka.hidden
        sizes = self.kafka.behind.get(node, {})
        return Topology(
            brokers=self._living(node),
            topics={name: self._topic(node, name, sizes.get(name)) for name in self.kafka.topics if name not in hidden},
            hidden=expected & self.kafka.hidden,
        )

    def _living(self, node: int) -> dict[int, str]:
        return {n: f"kafka-{n}:9092" for n in self.kafka.living.get(node, self.kafka.nodes)}

    def _topic(self, node: int, name: str, size: int | None) -> Topic:
        truth = self.kafka.topics[name], self.kafka.epochs.get(name)
        leaders, epochs = self.kafka.believed.get(node, {}).get(name, truth)
        if self.kafka.are_agents:
            leaders = self._agents(len(leaders))
        reported = None if epochs is None else np.array(epochs, dtype=np.int32)[:size]
        return Topic(self.kafka.generations.get(name), np.array(leaders, dtype=np.int32)[:size], reported)

    def _agents(self, count: int) -> list[int]:
        """Returns the leaders of a topic's partitions in the latest Metadata."""
        nodes = self.kafka.nodes
        return [nodes[(self._turns + index) % len(nodes)] for index in range(count)]

    def groups(self, nodes: Iterable[int]) -> dict[int, Answer[Listing] | Failure]:
        nodes = tuple(nodes)
        self._let_pass("ListGroups", nodes)
        return {node: self._asked("ListGroups", node) or self._answered(self._listing(node)) for node in nodes}

    def _listing(self, node: int) -> Listing:
        if node in self.kafka.loading:
            return Listing(frozenset(), loading=True)
        own = {group for group in self.kafka.commits if self._coordinates(node, group)}
        listed = frozenset(own - self.kafka.unlisted)
        return Listing(listed, False, {group: self._status(group) for group in listed})

    def _status(self, group: str) -> GroupStatus:
        kind = self.kafka.kinds.get(group, Kind.CLASSIC)
        is_stable = group in self.kafka.members and group not in self.kafka.moving
        if not self.kafka.lists_phases:
            return GroupStatus(kind, Phase.UNKNOWN)
        return GroupStatus(
            kind, Phase.STABLE if is_stable else Phase.MOVING if group in self.kafka.moving else Phase.EMPTY
        )

    def described(
        self, plan: Mapping[int, Sequence[str]], kind: Kind, *, with_clients: bool = False
    ) -> dict[int, Answer[dict[str, Description | None]] | Failure]:
        self._let_pass("Describe", plan)
        what = f"Describe {kind}{' with clients' if with_clients else ''}"
        self.asked_for.append((what, {node: tuple(groups) for node, groups in plan.items()}))
        return {
            node: self._asked(f"Describe {kind}", node)
            or self._answered(
                {
                    group: self._description(group, kind, with_clients=with_clients)
                    for group in groups
                    if self._is_described(node, group)
                }
            )
            for node, groups in plan.items()
        }

    def _is_described(self, node: int, group: str) -> bool:
        return node not in self.kafka.loading and group not in self.kafka.undescribed

    def _description(self, group: str, kind: Kind, *, with_clients: bool) -> Description | None:
        if not self.kafka.lists_phases and group in self.kafka.commits.keys() - self.kafka.members.keys():
            return Description(0)
        if self.kafka.kinds.get(group, Kind.CLASSIC) is not kind or group not in self.kafka.members:
            return None
        is_stable = group not in self.kafka.moving
        topics = frozenset(self.kafka.members[group]) if is_stable else frozenset()
        owned = self.kafka.owned.get(group, ()) if is_stable else ()
        clients = self.kafka.clients.get(group, ()) if with_clients and is_stable else ()
        return Description(self.kafka.member_counts.get(group, 1), topics, owned, clients=clients)

    def versions(self, node: int) -> Versions:
        return self.kafka.versions.get(node, NEWEST)

    def meet(self, nodes: Iterable[int]) -> dict[int, Answer[None] | Failure]:  # noqa: ARG002 - they are known
        return {}

    def coordinators(self, node: int, groups: Sequence[str]) -> dict[str, FoundCoordinator] | Failure:
        self._let_pass("FindCoordinator", [node])
        self.asked_for.append(("FindCoordinator", {node: tuple(groups)}))
        return self._asked("FindCoordinator", node) or {group: self._found(group) for group in groups}

    def _found(self, group: str) -> FoundCoordinator:
        if self.kafka.describable is not None and group not in self.kafka.describable:
            return FoundCoordinator(NOBODY, GROUP_NOT_AUTHORIZED)
        node = self._coordinator(group)
        return FoundCoordinator(node, COORDINATOR_ABSENT if node == NOBODY else 0)

    def commits(self, questions: Mapping[int, CommitQuestion]) -> PacedCalls[Columns]:
        plan: dict[int, tuple[str, ...]] = {}
        for question in questions.values():
            plan[question.node] = (*plan.get(question.node, ()), *question.groups)
        self.asked_for.append(("OffsetFetch", plan))

        def send(numbers: Sequence[int]) -> Calls[Columns]:
            return self.transit.sent({number: self._asked_commits(questions[number]) for number in numbers})

        def too_slow(node: int) -> Failure:
            return failure_of(BrokerTooSlow(COMMIT_SECONDS), self._who(node))

        nodes = {number: question.node for number, question in questions.items()}
        return PacedCalls(nodes, send, too_slow, lambda: self._clock.seconds, COMMIT_SECONDS)

    def _asked_commits(self, question: CommitQuestion) -> Sent[Columns]:
        return "OffsetFetch", question.node, partial(self._commits_reported, question)

    def _commits_reported(self, question: CommitQuestion) -> Columns:
        groups = ((group, *self._commits_of(question.node, group)) for group in question.groups)
        answered = {group: (error, by_topic(rows, {})) for group, error, rows in groups}
        version = self.versions(question.node).offset_fetch or OFFSET_FETCH.newest
        return question.columns(responses.body(responses.commits(answered, version=version), version), version)

    def _commits_of(self, node: int, group: str) -> tuple[int, Mapping[Partition, int]]:
        """Error, and commits."""
        stale = self.kafka.stale_commits.get(node, {})
        if group in stale:
            return 0, stale[group]
        if not self._coordinates(node, group):
            return NOT_COORDINATOR, {}
        if node in self.kafka.loading:
            return COORDINATOR_LOADING, {}
        if group in self.kafka.commit_errors:
            return self.kafka.commit_errors[group], {}
        return 0, self.kafka.commits.get(group, {})

    def shares(self, plan: Mapping[int, Sequence[str]]) -> Calls[dict[str, GroupShares]]:
        kind = "DescribeShareGroupOffsets"
        return self.transit.sent(
            {node: (kind, node, partial(self._shares_reported, node, plan[node])) for node in plan}
        )

    def _shares_reported(self, node: int, groups: Sequence[str]) -> dict[str, GroupShares] | Failure:
        return self._not_offered(node) or {group: self._shares_of(node, group) for group in groups}

    def _not_offered(self, node: int) -> Failure | None:
        return (
            Failure(FailureCause.VERSION, f"broker {node} does not offer DescribeShareGroupOffsets")
            if node in self.kafka.ignorant_of_shares
            else None
        )

    def _shares_of(self, node: int, group: str) -> GroupShares:
        if self._coordinator(group) != node:
            return GroupShares(NOT_COORDINATOR, {})
        if group in self.kafka.share_errors:
            return GroupShares(self.kafka.share_errors[group], {})
        reported = self.kafka.shares.get(group, {})
        topics = {topic: [index for of, index in reported if of == topic] for topic, _ in reported}
        return GroupShares(0, {topic: self._shared(reported, topic, indexes) for topic, indexes in topics.items()})

    def _shared(
        self, reported: Mapping[Partition, tuple[int, int]], topic: str, indexes: Sequence[int]
    ) -> SharedPartitions:
        starts, lags = zip(*(reported[topic, index] for index in indexes), strict=True)
        return SharedPartitions(
            np.array(indexes, dtype=np.int32),
            np.array(starts, dtype=np.int64),
            np.array(lags, dtype=np.int64),
            np.array([self.kafka.share_row_errors.get((topic, index), 0) for index in indexes], dtype=np.int32),
        )

    def offsets(self, questions: Mapping[int, OffsetQuestion]) -> Calls[Columns]:
        asked = {
            node: _asked_offsets(question.request(LIST_OFFSETS.newest).body) for node, question in questions.items()
        }
        for kind in {kind for kind, _ in asked.values()}:
            self.asked_for.append((kind, {node: topics for node, (its, topics) in asked.items() if its == kind}))
        self._clock.seconds += self.kafka.busy_seconds
        return self.transit.sent(
            {node: (asked[node][0], node, partial(self._offsets_reported, one)) for node, one in questions.items()}
        )

    def _offsets_reported(self, question: OffsetQuestion) -> Columns:
        kind, topics = _asked_offsets(question.request(LIST_OFFSETS.newest).body)
        partitions = [(topic, index) for topic, indexes in topics.items() for index in indexes]
        if kind == "ListOffsets earliest":
            reported, errors = {one: self.kafka.starts.get(one, 0) for one in partitions}, self.kafka.start_errors
        else:
            changed = self.kafka.stable_ends if kind == "ListOffsets read_committed" else {}
            reported, errors = (
                {one: {**self.kafka.ends, **changed}.get(one) or self._records(*one) for one in partitions},
                self.kafka.end_errors,
            )
        found = {one: errors.get(one) or self._leader_error(question.node, one) for one in partitions}
        found |= {one: TOPIC_NOT_AUTHORIZED for one in partitions if one[0] in self.kafka.hidden}
        response = responses.log_offsets(by_topic(reported, found))
        return question.columns(responses.body(response, LIST_OFFSETS.newest), LIST_OFFSETS.newest)

    def _records(self, topic: str, partition: int) -> int:
        """A partition of the offsets topic has a record whenever its groups' commits were found changed."""
        if topic != OFFSETS_TOPIC or topic not in self.kafka.topics:
            return 0
        count = len(self.kafka.topics[OFFSETS_TOPIC])
        commits = {
            group: dict(one) for group, one in self.kafka.commits.items() if partition_of(group, count) == partition
        }
        before, records = self._written.get(partition, ({}, 0))
        self._written[partition] = (commits, records + (commits != before))
        return self._written[partition][1]

    def _leader_error(self, node: int, partition: Partition) -> int:
        topic, index = partition
        leaders = self.kafka.topics.get(topic, [])
        if index >= len(leaders):
            return UNKNOWN_TOPIC_OR_PARTITION
        return 0 if leaders[index] == node or self.kafka.are_agents else NOT_LEADER

    def probe(self, node: int) -> FakeProbe:
        self.requests.append(("probe", node))
        return FakeProbe(self.kafka, node)

    def _coordinates(self, node: int, group: str) -> bool:
        return self.kafka.are_agents or self._coordinator(group) == node

    def _coordinator(self, group: str) -> int:
        if self.kafka.place is not None:
            return self.kafka.coordinators.get(group, self.kafka.place(group))
        leaders = self.kafka.topics.get(OFFSETS_TOPIC)
        if leaders and self.kafka.are_agents:
            leaders = self._agents(len(leaders))
        led_by = leaders[partition_of(group, len(leaders))] if leaders else self.kafka.nodes[0]
        return self.kafka.coordinators.get(group, led_by)

    def _asked(self, kind: str, node: int) -> Failure | None:
        self.before.pop(kind, lambda: None)()
        self.requests.append((kind, node))
        return self._failure(node)

    def _let_pass(self, kind: str, nodes: Iterable[int]) -> None:
        """The time until the last of them has answered."""
        self._clock.seconds += max((sum(self.kafka.delays.get((kind, node), ())) for node in nodes), default=0.0)

    def wait(self, *calls: Pending, together: float, within: float = float("inf")) -> bool:
        return self.transit.wait(calls, together, within)

    def _who(self, node: int) -> str:
        return f"broker {node} at kafka-{node}:9092"

    def _failure(self, node: int) -> Failure | None:
        who = self._who(node)
        if node in self.kafka.silent:
            return Failure(FailureCause.TIMED_OUT, f"{who} does not answer")
        if node in self.kafka.refusing or node not in self.kafka.nodes:
            return Failure(FailureCause.REFUSED, f"{who} refuses the connection")
        if node in self.kafka.throttling:
            return Failure(FailureCause.THROTTLED, f"{who} throttles the adapter", was_sent=False)
        return None

    def _answered(self, content: T) -> Answer[T]:
        return Answer(content, self._clock.seconds)


@lru_cache(1000)
def _asked_offsets(body: bytes) -> tuple[str, dict[str, tuple[int, ...]]]:
    """Returns the kind of a request, and topic -> partitions."""
    asked = ListOffsetsRequest.decode(body, version=LIST_OFFSETS.newest)
    is_earliest = any(part.timestamp == EARLIEST for topic in asked.topics for part in topic.partitions)
    kind = "earliest" if is_earliest else list(Isolation)[asked.isolation_level].value
    topics = {topic.name: tuple(part.partition_index for part in topic.partitions) for topic in asked.topics}
    return f"ListOffsets {kind}", topics
