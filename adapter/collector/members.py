"""The members of the groups, and the topics they read: a topic without readers must not keep pods running.

A describe request covers groups of one kind. A broker that coordinates several kinds is asked about one at a time.

A description is trusted while it describes the group as it is. Where the next one fails (the coordinator returns an
error, the group is rebalancing, subscriptions cannot be read), the last good description is kept, but it is outdated
until the group is described as Stable again. Once it has been outdated for the time of two descriptions, what the group
reads is in doubt."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from adapter.clock import is_due
from adapter.cluster.groups import Description, Directory, GroupStatus, Kind, MemberCount, Owned, Phase
from adapter.columns import NEVER
from adapter.kafka.answers import Answer, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import Layout
from adapter.lag.owners import NOT_ASKED, Owners
from adapter.memory.value import ClusterMemory, Reads
from adapter.verdicts.assignment import SHARING_BY_KIND, Sharing

DESCRIBE_SECONDS = 60.0
"""Between two requests to a broker. With two ListGroups and one request for log starts, these are four a minute."""
DOUBT_SECONDS = 2 * DESCRIBE_SECONDS
"""How long an outdated description is still used: a rebalance usually ends earlier."""
GROUPS_PER_REQUEST = 1000
"""Bounds the time that decoding one answer takes. The remaining groups are described a minute later."""
HEAD_START_SECONDS = 90.0
"""How much earlier new and outdated groups, and their kinds, are described. Bounded, so that the others get a turn."""
EMPTY_SECONDS = 15.0
"""A new coordinator may report a group as Empty for some tenths of a second, without an error. So two listings that are
at least this far apart must agree; groups are listed every 30 s."""
STILL_HOLDS = NOT_EMPTY = float("inf")
NOT_LISTED = Directory()
"""Before the first listing."""


@dataclass(frozen=True, slots=True)
class _Group:
    asked_at: float = NEVER
    members: int | None = None
    topics: frozenset[str] = frozenset()
    """What the members read, by the last description of the group as Stable; empty if there was none."""
    owned: tuple[Owned, ...] = ()
    described_at: float = NEVER
    outdated_since: float = STILL_HOLDS
    """When the first sign was seen that the description may no longer be true."""
    gone_as: Kind | None = None
    """The kind for which the coordinator reported that no such group exists."""
    empty_since: float = NOT_EMPTY
    """When the first of consecutive listings reported the group as Empty."""

    def outdated(self, now: float) -> "_Group":
        return replace(self, outdated_since=min(self.outdated_since, now))


class Members:
    def __init__(self, brokers: Brokers, liveness: Liveness, monotonic: Callable[[], float], interval: float) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._monotonic = monotonic
        self._interval = interval
        self._turns: dict[tuple[int, Kind], float] = {}
        self._groups: dict[str, _Group] = {}
        self._directory = NOT_LISTED
        self.topics_read: Mapping[str, frozenset[str]] = {}
        """Group -> the topics that some member is subscribed to or assigned, by the last description of the group as
        Stable; the same object while nothing changes."""
        self.owned: Mapping[str, tuple[Owned, ...]] = {}
        """Group -> what is assigned to each of its members; only while the description is not outdated, as partitions
        move in a rebalance. The same object while nothing changes."""
        self.described_at: Mapping[str, float] = {}
        """Group in `topics_read` -> when that description was received."""
        self.counts: Mapping[str, int] = {}
        """Group -> the number of its members when it was last described; 0 if its coordinator reports it as Empty;
        absent if it is not known. Replaced, never changed."""
        self.counted: Mapping[str, MemberCount] = {}
        """The same of the groups that have not changed since, as far as listings and descriptions show."""
        self._listed_at = NEVER
        self.outdated: Mapping[str, float] = {}
        """Group -> since when its description may no longer be true. Replaced, never changed."""
        self._sharing: Mapping[str, tuple[Kind, Sharing]] = {}
        """As each group was last described as Stable; kept while it is Empty. Replaced, never changed."""

    def phase(self, group: str) -> Phase | None:
        """Returns what the latest listing reports, or the last description where listings report no states; None for a
        group that no broker lists, or that has no protocol."""
        status, state = self._directory.statuses.get(group), self._groups.get(group, _Group())
        if status is None or status.phase is not Phase.UNKNOWN:
            return None if status is None else status.phase
        if state.members == 0:
            return Phase.EMPTY
        return Phase.STABLE if state.topics and state.outdated_since == STILL_HOLDS else Phase.UNKNOWN

    def in_doubt(self) -> dict[str, float]:
        """Returns groups whose description has been outdated for too long -> when it was received."""
        now = self._monotonic()
        return {
            group: state.described_at
            for group, state in self._groups.items()
            if state.topics and is_due(state.outdated_since, DOUBT_SECONDS, now, self._interval)
        }

    def reads(self, groups: Collection[str], topics: frozenset[str], to_epoch: float) -> dict[str, Reads]:
        """Returns which of these topics each of these groups reads, as far as is known; members may name any others.

        No topics: none is known yet. `to_epoch` is as in `adapter.memory.rows`."""
        now = int(self._monotonic() + to_epoch)
        known = {group: reads for group in groups if (reads := self._reads(group, to_epoch, now)) is not None}
        return {group: replace(reads, topics=reads.topics & (topics or reads.topics)) for group, reads in known.items()}

    def _reads(self, group: str, to_epoch: float, now: int) -> Reads | None:
        state, status = self._groups.get(group), self._directory.statuses.get(group)
        if state is not None and state.topics:
            outdated = None if state.outdated_since == STILL_HOLDS else int(state.outdated_since + to_epoch)
            return Reads(state.topics, int(state.described_at + to_epoch), outdated)
        is_empty = state is None and status is not None and status.phase is Phase.EMPTY
        return Reads(frozenset(), now) if is_empty else None

    def recall(self, memory: ClusterMemory, to_epoch: float) -> None:
        """Takes over what another collector knew of groups that this one has not described yet."""
        now = self._monotonic()
        for group, reads in ((group, remembered.reads) for group, remembered in memory.items()):
            status = self._directory.statuses.get(group)
            is_gone = self._directory is not NOT_LISTED and group not in self._directory.groups
            is_gone |= status is not None and status.phase is Phase.EMPTY
            if reads is not None and reads.topics and group not in self._groups and not is_gone:
                outdated = now if reads.outdated_since is None else min(reads.outdated_since - to_epoch, now)
                described = _Group(topics=reads.topics, described_at=reads.seen_at - to_epoch, outdated_since=outdated)
                self._groups[group] = described
        self._publish()

    def describe_if_due(self, directory: Directory, brokers: Collection[int]) -> None:
        """Describes groups with members at each broker that was last asked a minute ago."""
        now = self._monotonic()
        self._follow(directory, now)
        self._turns = {turn: then for turn, then in self._turns.items() if turn[0] in brokers}
        turns = self._turns.items()
        recent = {node for (node, _), then in turns if not is_due(then, DESCRIBE_SECONDS, now, self._interval)}
        due = {*self._liveness.present(brokers)} - recent
        for kind, plan in self._plans(directory, due).items():
            self._describe(kind, plan, now)

    def _follow(self, directory: Directory, now: float) -> None:
        before, self._directory = self._directory, directory
        if directory.statuses is before.statuses:
            return
        self._listed_at = now
        self._groups = {group: state for group, state in self._groups.items() if group in directory.groups}
        self._sharing = {group: known for group, known in self._sharing.items() if group in directory.groups}
        for group in self._groups.keys() & directory.statuses.keys():
            self._follow_group(group, directory.statuses[group], before.statuses.get(group), now)
        self._publish()

    def _follow_group(self, group: str, status: GroupStatus, before: GroupStatus | None, now: float) -> None:
        """A group that is missing in a listing may only be moving to another coordinator, so it is kept."""
        state, is_listed = self._groups[group], group in self._directory.listed
        is_empty = status.phase is Phase.EMPTY and now - state.empty_since >= EMPTY_SECONDS
        if is_listed and (state.gone_as is status.kind or is_empty):
            del self._groups[group]
            return
        is_another = status.phase not in {Phase.STABLE, Phase.UNKNOWN}
        is_another |= before is not None and before.kind is not status.kind
        state = state.outdated(now) if is_another else state
        if is_listed and status.phase is not Phase.UNKNOWN:
            empty_since = min(state.empty_since, now) if status.phase is Phase.EMPTY else NOT_EMPTY
            if state.gone_as is not None or state.empty_since != empty_since:
                state = replace(state, gone_as=None, empty_since=empty_since)
        self._groups[group] = state

    def _plans(self, directory: Directory, due: Collection[int]) -> dict[Kind, dict[int, list[str]]]:
        """Returns kind -> brokers to ask -> groups. Each broker occurs once, with the kind that waits longest."""
        waiting: dict[int, dict[Kind, list[str]]] = {}
        for group, status in directory.statuses.items() if due else ():
            node = directory.coordinators.get(group)
            is_due_there = node is not None and node in due and self._brokers.can_describe(node, status.kind)
            if node is not None and is_due_there and status.phase is not Phase.EMPTY:
                waiting.setdefault(node, {}).setdefault(status.kind, []).append(group)
        plans: dict[Kind, dict[int, list[str]]] = {}
        for node, by_kind in waiting.items():
            kind = min(by_kind, key=lambda kind: self._turns.get((node, kind), NEVER) - self._head_start(by_kind[kind]))
            plans.setdefault(kind, {})[node] = sorted(by_kind[kind], key=self._last_asked)[:GROUPS_PER_REQUEST]
        return plans

    def _last_asked(self, group: str) -> float:
        return self._groups.get(group, _Group()).asked_at - self._head_start((group,))

    def _head_start(self, groups: Collection[str]) -> float:
        held = self._groups
        needed = any(group not in held or held[group].outdated_since != STILL_HOLDS for group in groups)
        return HEAD_START_SECONDS if needed else 0

    def _describe(self, kind: Kind, plan: Mapping[int, Sequence[str]], now: float) -> None:
        self._turns |= dict.fromkeys(((node, kind) for node in plan), now)
        answers = self._brokers.described(plan, kind)
        self._liveness.note(answers)
        for node, answer in answers.items():
            for group in plan[node]:
                state = replace(self._groups.get(group, _Group()), asked_at=now)
                is_unlisted = self._directory.statuses[group].phase is Phase.UNKNOWN
                self._groups[group] = _learnt(state, group, kind, answer, tells_phase=is_unlisted)
            descriptions = {} if isinstance(answer, Failure) else answer.content
            stable = ((group, one.sharing) for group, one in descriptions.items() if one is not None and one.topics)
            self._sharing = {**self._sharing, **{group: (kind, sharing) for group, sharing in stable}}
        self._publish()

    def _publish(self) -> None:
        statuses = self._directory.statuses
        empty = [group for group, status in statuses.items() if status.phase is Phase.EMPTY]
        counts = {group: state.members for group, state in self._groups.items() if state.members is not None}
        self.counts = {**dict.fromkeys(empty, 0), **counts}
        without = MemberCount(0, self._listed_at)
        self.counted = dict.fromkeys((group for group in empty if group not in self._groups), without) | {
            group: MemberCount(state.members, state.asked_at)
            for group, state in self._groups.items()
            if state.members is not None and state.outdated_since == STILL_HOLDS
        }
        described = {group: state for group, state in self._groups.items() if state.topics}
        self.described_at = {group: state.described_at for group, state in described.items()}
        topics_read = {group: state.topics for group, state in described.items()}
        if topics_read != self.topics_read:
            self.topics_read = topics_read
        owned = {group: state.owned for group, state in described.items() if state.outdated_since == STILL_HOLDS}
        if owned != self.owned:
            self.owned = owned
        groups = self._groups.items()
        self.outdated = {group: state.outdated_since for group, state in groups if state.outdated_since != STILL_HOLDS}

    @property
    def sharing_of(self) -> Callable[[str], Sharing]:
        """Returns how the members of a group shared topics when it was last described as Stable; otherwise as groups of
        its kind do."""
        return partial(_sharing_of, self._directory.statuses, self._sharing)


def _sharing_of(
    statuses: Mapping[str, GroupStatus], described: Mapping[str, tuple[Kind, Sharing]], group: str
) -> Sharing:
    status = statuses.get(group)
    kind, sharing = described.get(group, (None, Sharing.BY_TOPIC))
    if status is None or status.kind is kind:
        return sharing
    return SHARING_BY_KIND.get(status.kind, Sharing.BY_TOPIC)


def _learnt(
    state: _Group,
    group: str,
    kind: Kind,
    answer: Answer[dict[str, Description | None]] | Failure,
    *,
    tells_phase: bool,
) -> _Group:
    """`tells_phase`: no listing does."""
    if isinstance(answer, Failure) or group not in answer.content:
        return state.outdated(state.asked_at)
    description = answer.content[group]
    if description is None:
        return replace(state.outdated(state.asked_at), gone_as=kind)
    if tells_phase and not description.members:
        return _emptied(state)
    members = description.members or state.members
    if not description.topics:
        return replace(state.outdated(state.asked_at), members=members, gone_as=None)
    return _Group(
        asked_at=state.asked_at,
        members=members,
        topics=description.topics,
        owned=description.owned,
        described_at=answer.received,
        empty_since=state.empty_since,
    )


def _emptied(state: _Group) -> _Group:
    """As with listings, two descriptions must agree that the group is Empty: then every topic with commits counts."""
    now = state.asked_at
    empty_since = min(state.empty_since, now)
    if now - empty_since >= EMPTY_SECONDS:
        return _Group(asked_at=now, members=0, empty_since=empty_since)
    return replace(state.outdated(now), members=0, gone_as=None, empty_since=empty_since)


def owners_of(layout: Layout, owned: Mapping[str, tuple[Owned, ...]]) -> Owners:
    """Returns the member that owns the partition of each row, in the form in which the history keeps it."""
    members = sorted({part.member for parts in owned.values() for part in parts})
    code = {member: place for place, member in enumerate(members)}
    column = np.full(len(layout), NOT_ASKED, dtype=np.int32)
    for group, parts in owned.items():
        for part in parts:
            rows = layout.pairs.get((group, part.topic))
            if rows is not None:
                partitions = np.array(part.partitions, dtype=np.int64)
                inside = (partitions >= 0) & (partitions < rows.stop - rows.start)
                column[rows.start + partitions[inside]] = code[part.member]
    return Owners(tuple(members), column)
