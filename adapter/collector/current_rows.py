"""The rows that persist from cycle to cycle: their layout, and what earlier cycles found out about them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from adapter.cluster.groups import Phase
from adapter.cluster.topics import Topology
from adapter.collector.commits import Commits
from adapter.collector.share_groups import Shares
from adapter.columns import Flags, Offsets
from adapter.lag.layout import Layout, layout_of
from adapter.lag.rules import Watching
from adapter.lag.snapshot import Observed, Snapshot, State, empty_snapshot, moved_to, with_movement_of
from adapter.lag.states import settled, with_movement, without_commit_unknown
from adapter.lag.transaction_markers import with_markers
from adapter.memory.rows import recalled, remembered
from adapter.memory.value import DELETED, NOTHING, ClusterMemory, GroupMemory, Reads, merged, until, without_deleted
from adapter.settings.models import Isolation

Topics = Mapping[str, frozenset[str]]
"""By group."""
PhaseOf = Callable[[str], Phase | None]
"""Of a group; None if no broker lists it."""


class CurrentRows:
    def __init__(self, watching: Watching, commits: Commits, shares: Shares) -> None:
        self._watching = watching
        self._commits = commits
        self._shares = shares
        self._wanted: tuple[object, ...] = ()
        self._laid_out_for: tuple[object, ...] = ()
        self._groups_read: frozenset[str] = frozenset()
        self._groups_read_before = self._groups_read
        self.latest = empty_snapshot()
        self.memory: ClusterMemory = NOTHING
        """What former rows and others knew of the groups that are remembered; in the first cycle, of all groups."""
        self._has_settled = False
        self._former: Snapshot | None = None
        """Of the collector that this one follows, until its own first cycle has ended."""
        self.to_epoch = 0.0
        """How far the epoch's seconds are ahead of the monotonic clock's."""
        self.only_asked: frozenset[tuple[str, str]] = frozenset()
        """Groups and topics with rows only because the selectors of HPAs name them."""
        self.is_committed_only: Flags = np.zeros(0, dtype=bool)
        """Whether the log end of a row is that of read_committed."""

    @property
    def layout(self) -> Layout:
        return self.latest.layout

    # -- layout ----------------------------------------------------------------------------------

    def lay_out(self, topology: Topology, now: float) -> Layout:
        """Returns the layout of all that is known to be needed so far; moves the rows to it if it changed."""
        basis = self._basis(topology)
        if self._laid_out_for != basis:
            self._laid_out_for = basis
            self._lay_out_anew(topology, now)
            if topology.missing:
                self.memory = without_deleted(self.memory, topology.is_deleted, int(now + self.to_epoch))
            self._groups_read = frozenset(self._commits.topics).union(self._shares.topics)
        return self.layout

    def _basis(self, topology: Topology) -> tuple[object, ...]:
        return self._commits.version, self._shares.version, topology

    def _topics_read(self, groups: Iterable[str]) -> dict[str, frozenset[str]]:
        """Returns group -> the topics that it has progress in, or is meant to read."""
        commits, shares, watching = self._commits.topics, self._shares.topics, self._watching
        return {
            group: frozenset(commits.get(group, ())).union(shares.get(group, ()), watching.given(group).topics)
            for group in groups
        }

    def _lay_out_anew(self, topology: Topology, now: float) -> None:
        wanted = self._topics_read(self._commits.groups)
        asked = self._watching.asked
        only_asked = frozenset((group, topic) for group, topics in asked.items() for topic in topics - wanted[group])
        wanted |= {group: wanted[group] | topics for group, topics in asked.items()}
        names = frozenset().union(*wanted.values()) & topology.topics.keys()
        topics = ((name, topology.topics[name]) for name in sorted(names))
        shape = tuple((name, topic.generation, len(topic.leaders)) for name, topic in topics)
        if (wanted, shape, only_asked) != self._wanted:
            self._wanted = (wanted, shape, only_asked)
            self.only_asked = only_asked
            # Until the first cycle has ended, groups are laid out that a former collector knew.
            is_remembered = self._watching.remembers if self._has_settled else lambda _: True
            self.memory = self.remembered(is_remembered)
            layout = layout_of(wanted, topology)
            moved = moved_to(self.latest, layout, self._groups_read_before, now)
            latest = recalled(moved, self.memory, self.to_epoch)
            self.latest = latest if self._former is None else with_movement_of(latest, self._former)
            self.is_committed_only = self._committed_only(layout)

    def needed(self) -> dict[Isolation, Flags]:
        """Returns the partitions that the rows need, per isolation level."""
        return _needed(self.layout, self.is_committed_only, np.ones(len(self.layout), dtype=bool))

    def needed_by(self, groups: Sequence[str], topology: Topology) -> tuple[Layout, dict[Isolation, Flags]]:
        """Returns which partitions these groups need, and the layout that they are counted in.

        If there is more to lay out than the rows have, it is a layout of these groups alone: thousands of groups that
        are read one by one would otherwise all be laid out anew with each."""
        if self._laid_out_for == self._basis(topology):
            is_needed = np.zeros(len(self.layout), dtype=bool)
            for group in groups:
                is_needed[self.layout.spans[group]] = True
            return self.layout, _needed(self.layout, self.is_committed_only, is_needed)
        asked, wanted = self._watching.asked, self._topics_read(groups)
        layout = layout_of({group: topics.union(asked.get(group, ())) for group, topics in wanted.items()}, topology)
        return layout, _needed(layout, self._committed_only(layout), np.ones(len(layout), dtype=bool))

    def _committed_only(self, layout: Layout) -> Flags:
        isolation_of = self._watching.isolation_of
        return _column(layout, lambda group, _: isolation_of(group) is Isolation.READ_COMMITTED)

    # -- memory ----------------------------------------------------------------------------------

    @property
    def remembered_topics(self) -> frozenset[str]:
        groups = self.memory.values()
        return frozenset(name for group in groups for name, topic in group.topics.items() if topic.topic_id != DELETED)

    def follow_clock(self, now: float, monotonic: float) -> None:
        """If the wall clock was set back, what was dated later must not win over what is seen from now on."""
        before, self.to_epoch = self.to_epoch, now - monotonic
        if self.to_epoch < before - 1:
            self.memory = until(now, self.memory)

    def follow(self, former: Snapshot) -> None:
        """Call before the first cycle."""
        self._former = former

    def recall(self, memory: ClusterMemory) -> None:
        self.memory = merged(self.memory, memory)
        self.latest = recalled(self.latest, self.memory, self.to_epoch)

    def remembered(self, is_wanted: Callable[[str], bool]) -> ClusterMemory:
        """Returns what is known of wanted groups that Kafka knows or once knew."""
        topics = remembered(self.latest, self.to_epoch, is_wanted)
        groups = {group for group in {*self.memory, *self._commits.directory.groups, *topics} if is_wanted(group)}
        own = {group: GroupMemory(topics.get(group, {})) for group in groups}
        return merged({group: memory for group, memory in self.memory.items() if group in groups}, own)

    def with_moved(self, group: str, reads: Reads) -> Reads:
        """Adds the topics whose commits have moved since the description, which proves that they are read."""
        latest = self.latest
        rows = latest.layout.spans.get(group, slice(0))
        seen_at = (latest.moved_at[rows] + self.to_epoch).clip(0).astype(np.int64)
        moved = latest.layout.topic[rows][seen_at > reads.seen_at]
        topics = reads.topics.union(latest.layout.topics[topic] for topic in np.unique(moved).tolist())
        return reads if topics == reads.topics else replace(reads, topics=topics, seen_at=int(seen_at.max()))

    # -- decide ----------------------------------------------------------------------------------

    def after(
        self, observed: Observed, progress: Offsets, reads: Topics, phase: PhaseOf, now: float, *, is_recalled: bool
    ) -> Snapshot:
        """Returns the rows after a cycle. Until the memory `is_recalled`, a missing commit is unknown."""
        layout, before, seen = self.layout, self.latest, observed
        if not is_recalled:
            is_remembered = _column(layout, lambda group, _: self._watching.remembers(group))
            seen = without_commit_unknown(observed, before, is_remembered)
        snapshot = settled(seen, before)
        is_read = before.is_added & (snapshot.cause == 0)
        if is_read.any():
            snapshot = self._counted_from_start(snapshot, is_read, phase)
        if self.is_committed_only.any() or snapshot.has_marker.any():
            has_reader = _column(layout, lambda g, t: phase(g) is Phase.STABLE and t in reads.get(g, ()))
            snapshot = with_markers(snapshot, before, self.is_committed_only, has_reader, now, self._watching.max_age)
        return with_movement(snapshot, progress, observed.commit_received, observed.commit_cause == 0)

    def _counted_from_start(self, snapshot: Snapshot, is_read: Flags, phase: PhaseOf) -> Snapshot:
        """A partition that was added while its group slept counts from its start, like a topic never committed."""

        def counts(group: str, _: str) -> bool:
            sleeps = phase(group) in {None, Phase.EMPTY}
            return sleeps and self._watching.counts_from_start(group, is_named=True)

        is_counted = is_read & (snapshot.state == State.NO_COMMIT) & _column(self.layout, counts)
        return replace(
            snapshot,
            last_commit=np.where(is_counted, 0, snapshot.last_commit),
            last_commit_at=np.where(is_counted, snapshot.received, snapshot.last_commit_at),
            is_added=snapshot.is_added & ~is_read,
        )

    # -- apply -----------------------------------------------------------------------------------

    def replace(self, latest: Snapshot) -> None:
        """Ends the cycle. Not before, because rows are laid out several times in a cycle as commits arrive."""
        self.latest = latest
        self._groups_read_before = self._groups_read
        self._has_settled, self._former = True, None


def _needed(layout: Layout, is_committed_only: Flags, is_needed: Flags) -> dict[Isolation, Flags]:
    """Returns the partitions of the needed rows per isolation level."""
    needed = np.zeros((2, layout.table_size), dtype=bool)
    needed[is_committed_only[is_needed].astype(int), layout.place[is_needed]] = True
    levels = zip((Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED), needed, strict=True)
    return {level: places for level, places in levels if places.any()}


def _column(layout: Layout, claim: Callable[[str, str], bool]) -> Flags:
    """Returns what is true of each row's group and topic."""
    column: Flags = np.array([claim(*pair) for pair in layout.pairs], dtype=bool)[layout.pair]
    return column
