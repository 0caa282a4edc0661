"""The rows that persist from cycle to cycle: their layout, and what earlier cycles found out about them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from adapter.cluster.groups import Directory, Phase
from adapter.cluster.topics import Topology
from adapter.collector.commits import Commits
from adapter.collector.share_groups import ShareRound, Shares, with_share_starts
from adapter.columns import Flags
from adapter.lag.layout import NO_LAYOUT, Layout, layout_of
from adapter.lag.movement import Movement, no_movement
from adapter.lag.rules import Watching
from adapter.lag.snapshot import Observed, Snapshot, State, empty_snapshot, moved_to
from adapter.lag.states import settled, without_commit_unknown
from adapter.lag.transaction_markers import with_markers
from adapter.memory.rows import recalled, remembered
from adapter.memory.value import DELETED, NOTHING, ClusterMemory, GroupMemory, merged, without_deleted
from adapter.settings.models import Isolation


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What one cycle hands to the next, with one entry per row of the layout."""

    snapshot: Snapshot
    movement: Movement
    is_added: Flags
    """Rows of partitions that were added to a remembered topic and not read since."""


class CurrentRows:
    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._wanted: tuple[object, ...] = ()
        self._laid_out_for: tuple[tuple[int, int], Topology] | None = None
        self._groups_read: frozenset[str] = frozenset()
        self._groups_read_before = self._groups_read
        self.latest = Rows(empty_snapshot(), no_movement(NO_LAYOUT), np.zeros(0, dtype=bool))
        self.memory: ClusterMemory = NOTHING
        """What former rows and others knew of the groups that are remembered; in the first cycle, of all groups."""
        self._has_settled = False
        self.to_epoch = 0.0
        """How far the epoch's seconds are ahead of the monotonic clock's."""
        self.only_asked: frozenset[tuple[str, str]] = frozenset()
        """Groups and topics with rows only because the selectors of HPAs name them."""
        self.is_committed_only = self._isolation_column(NO_LAYOUT)
        """Whether the log end of a row is that of read_committed."""

    @property
    def layout(self) -> Layout:
        return self.latest.snapshot.layout

    # -- layout ----------------------------------------------------------------------------------

    def lay_out(self, commits: Commits, shares: Shares, topology: Topology, now: float) -> Layout:
        """Returns the layout of all that is known to be needed so far; moves the rows to it if it changed."""
        known, versions = self._laid_out_for, (commits.version, shares.version)
        if known is None or known[0] != versions or known[1] is not topology:
            self._laid_out_for = (versions, topology)
            self._lay_out_anew(commits, shares, topology)
            if topology.missing:
                self.memory = without_deleted(self.memory, topology.is_deleted, int(now + self.to_epoch))
            self._groups_read = frozenset(commits.topics).union(shares.topics)
        return self.layout

    def _lay_out_anew(self, commits: Commits, shares: Shares, topology: Topology) -> None:
        wanted = {
            group: frozenset(commits.topics.get(group, ())).union(
                shares.topics.get(group, ()), self._watching.given_topics(group)
            )
            for group in commits.groups
        }
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
            self.memory = self.remembered(is_remembered, commits.directory)
            layout = layout_of(wanted, topology)
            movement = self.latest.movement.in_layout(layout, self._groups_read_before)
            self._recall(moved_to(self.latest.snapshot, layout), movement)
            self.is_committed_only = self._isolation_column(layout)

    def _isolation_column(self, layout: Layout) -> Flags:
        return _column(layout, lambda group: self._watching.isolation_of(group) is Isolation.READ_COMMITTED)

    def needed(self, groups: Iterable[str] | None = None) -> dict[Isolation, Flags]:
        """Returns the partitions that rows of these groups (None: all) need, per isolation level."""
        is_needed = np.full(len(self.layout), groups is None)
        for group in groups or ():
            is_needed[self.layout.spans[group]] = True
        rows = {
            Isolation.READ_UNCOMMITTED: is_needed & ~self.is_committed_only,
            Isolation.READ_COMMITTED: is_needed & self.is_committed_only,
        }
        needed = {}
        for level, wanted in rows.items():
            if wanted.any():
                needed[level] = np.zeros(self.layout.table_size, dtype=bool)
                needed[level][self.layout.place[wanted]] = True
        return needed

    # -- memory ----------------------------------------------------------------------------------

    @property
    def remembered_topics(self) -> frozenset[str]:
        groups = self.memory.values()
        return frozenset(name for group in groups for name, topic in group.topics.items() if topic.topic_id != DELETED)

    def recall(self, memory: ClusterMemory) -> None:
        self.memory = merged(self.memory, memory)
        self._recall(self.latest.snapshot, self.latest.movement)

    def _recall(self, snapshot: Snapshot, movement: Movement) -> None:
        snapshot, is_added = recalled(snapshot, self.memory, self.to_epoch)
        self.latest = Rows(snapshot, movement, is_added)

    def remembered(self, is_wanted: Callable[[str], bool], directory: Directory) -> ClusterMemory:
        """Returns what is known of wanted groups that Kafka knows or once knew."""
        topics = remembered(self.latest.snapshot, self.to_epoch, is_wanted)
        groups = {group for group in {*self.memory, *directory.groups, *topics} if is_wanted(group)}
        own = {group: GroupMemory(topics.get(group, {})) for group in groups}
        return merged({group: memory for group, memory in self.memory.items() if group in groups}, own)

    # -- decide ----------------------------------------------------------------------------------

    def after(
        self, observed: Observed, shares: ShareRound, statuses: Directory, now: float, *, is_recalled: bool
    ) -> Rows:
        """Returns the rows after a cycle. Until it `is_recalled` what others saw, a missing commit is unknown."""
        layout, before = self.layout, self.latest.snapshot
        seen = observed
        if not is_recalled:
            seen = without_commit_unknown(observed, before, _column(layout, self._watching.remembers))
        snapshot = settled(seen, before)
        is_read = self.latest.is_added & (snapshot.cause == 0)
        if is_read.any():
            snapshot = self._counted_from_start(snapshot, is_read, statuses)
        if self.is_committed_only.any() or snapshot.has_marker.any():
            is_stable = _column(layout, lambda group: _phase(statuses, group) is Phase.STABLE)
            snapshot = with_markers(snapshot, before, self.is_committed_only, is_stable, now)
        progress = with_share_starts(observed.committed, layout, shares)
        movement = self.latest.movement.followed(progress, observed.commit_received, observed.commit_cause == 0)
        return Rows(snapshot, movement, self.latest.is_added & ~is_read)

    def _counted_from_start(self, snapshot: Snapshot, is_read: Flags, directory: Directory) -> Snapshot:
        """A partition that was added while its group slept counts from its start, like a topic never committed."""

        def counts(group: str) -> bool:
            sleeps = _phase(directory, group) in {None, Phase.EMPTY}
            return sleeps and self._watching.counts_from_start_by_name(group)

        is_counted = is_read & (snapshot.state == State.NO_COMMIT) & _column(self.layout, counts)
        return replace(
            snapshot,
            last_commit=np.where(is_counted, 0, snapshot.last_commit),
            last_commit_at=np.where(is_counted, snapshot.received, snapshot.last_commit_at),
        )

    # -- apply -----------------------------------------------------------------------------------

    def replace(self, latest: Rows) -> None:
        """Ends the cycle. Not before, because rows are laid out several times in a cycle as commits arrive."""
        self.latest = latest
        self._groups_read_before = self._groups_read
        self._has_settled = True


def _column(layout: Layout, claim: Callable[[str], bool]) -> Flags:
    """Returns what is true of each row's group."""
    column: Flags = np.array([claim(group) for group in layout.groups], dtype=bool)[layout.group]
    return column


def _phase(directory: Directory, group: str) -> Phase | None:
    """Returns None for a group that no broker lists, or that has no protocol."""
    status = directory.statuses.get(group)
    return None if status is None else status.phase
