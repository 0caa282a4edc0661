"""The rows that persist from cycle to cycle: their layout, treatment and last good values."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from adapter.cluster.groups import Directory, Phase
from adapter.cluster.topics import Topology
from adapter.collector.commits import Commits
from adapter.collector.share_groups import Shares, with_share_starts
from adapter.columns import Flags
from adapter.lag.layout import NO_LAYOUT, Layout, layout_of
from adapter.lag.movement import no_movement
from adapter.lag.rules import Watching, treatment_of, updated_treatment
from adapter.lag.snapshot import Observed, State, empty_snapshot, moved_to
from adapter.lag.transaction_markers import followed, no_residue
from adapter.memory.rows import recalled, remembered
from adapter.memory.value import NOTHING, ClusterMemory, GroupMemory, merged
from adapter.settings.models import Isolation


class CurrentRows:
    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._residue = no_residue(NO_LAYOUT)
        self._wanted: tuple[object, ...] = ()
        self._laid_out_for: tuple[tuple[int, int], Topology] | None = None
        self._treated_for: Mapping[str, frozenset[str]] | None = None
        self._movement = no_movement(NO_LAYOUT)
        self._groups_read: frozenset[str] = frozenset()
        self._groups_read_before = self._groups_read
        self.snapshot = empty_snapshot()
        self.memory: ClusterMemory = NOTHING
        """What former rows and others knew of the groups that are remembered; in the first cycle, of all groups."""
        self._has_settled = False
        self.to_epoch = 0.0
        """How far the epoch's seconds are ahead of the monotonic clock's."""
        self._is_added: Flags = np.zeros(0, dtype=bool)
        """Rows of partitions that were added to a remembered topic and not read since."""
        self._only_asked: frozenset[tuple[str, str]] = frozenset()
        self._described = treatment_of(NO_LAYOUT, watching, {})
        self.treatment = self._described
        self.is_committed_only = self._isolation_column(NO_LAYOUT)
        """Whether the log end of a row is that of read_committed."""

    @property
    def layout(self) -> Layout:
        return self.snapshot.layout

    def lay_out(
        self, commits: Commits, shares: Shares, topology: Topology, topics_read: Mapping[str, frozenset[str]]
    ) -> Layout:
        """Returns the rows of this cycle; `topics_read` is `members_read` of `treatment_of`."""
        known, versions = self._laid_out_for, (commits.version, shares.version)
        if known is None or known[0] != versions or known[1] is not topology:
            self._laid_out_for = (versions, topology)
            self._lay_out_anew(commits, shares, topology)
            self._groups_read = frozenset(commits.topics).union(shares.topics)
        if self._treated_for is not topics_read:
            self._treated_for = topics_read
            self._described = treatment_of(self.layout, self._watching, topics_read, self._only_asked)
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
        topics = frozenset().union(*wanted.values())
        known = ((topic, topology.topics.get(topic)) for topic in sorted(topics))
        shape = tuple((topic, found.generation, len(found.leaders)) for topic, found in known if found is not None)
        if (wanted, shape, only_asked) != self._wanted:
            self._wanted = (wanted, shape, only_asked)
            self._only_asked = only_asked
            layout = layout_of(wanted, topology)
            # Until the first cycle has ended, groups are laid out that a former collector knew.
            wanted_of = self._watching.remembers if self._has_settled else lambda _: True
            self.memory = self.remembered(wanted_of, commits.directory)
            self.snapshot = moved_to(self.snapshot, layout)
            self._recall()
            self._movement = self._movement.in_layout(layout, self._groups_read_before)
            self._treated_for = None
            self.is_committed_only = self._isolation_column(layout)

    def treat(
        self, observed: Observed, shares: Shares, described_at: Mapping[str, float], in_doubt: Collection[str]
    ) -> None:
        progress = with_share_starts(observed.committed, self.layout, shares.newest)
        self._movement = self._movement.followed(progress, observed.commit_received, observed.commit_cause == 0)
        self.treatment = updated_treatment(self._described, self._movement, described_at, in_doubt)
        # Only at the end, because rows are laid out several times in a cycle as commits arrive.
        self._groups_read_before = self._groups_read
        self._has_settled = True

    def recall(self, memory: ClusterMemory) -> None:
        self.memory = merged(self.memory, memory)
        self._recall()

    def _recall(self) -> None:
        found = recalled(self.snapshot, self._residue, self.memory, self.to_epoch)
        self.snapshot, self._residue, self._is_added = found.snapshot, found.markers, found.is_added

    def remembered(self, is_wanted: Callable[[str], bool], directory: Directory) -> ClusterMemory:
        """Returns what is known of wanted groups that Kafka knows or once knew."""
        topics = remembered(self.snapshot, self._residue, self.to_epoch, is_wanted)
        known = {group for group in {*self.memory, *directory.groups, *topics} if is_wanted(group)}
        own = {group: GroupMemory(topics.get(group, {})) for group in known}
        return merged({group: one for group, one in self.memory.items() if group in known}, own)

    def settle_added(self, directory: Directory) -> None:
        """A partition that was added while its group slept counts from its start, like a topic never committed."""
        if not self._is_added.any():
            return
        snapshot = self.snapshot

        def counts(group: str) -> bool:
            sleeps = _phase(directory, group) in {None, Phase.EMPTY}
            return sleeps and self._watching.counts_from_start_by_name(group)

        is_read = self._is_added & (snapshot.cause == 0)
        is_counted = is_read & (snapshot.state == State.NO_COMMIT) & self._column(self.layout, counts)
        self._is_added &= ~is_read
        self.snapshot = replace(
            snapshot,
            last_commit=np.where(is_counted, 0, snapshot.last_commit),
            last_commit_at=np.where(is_counted, snapshot.received, snapshot.last_commit_at),
        )

    def _isolation_column(self, layout: Layout) -> Flags:
        return self._column(layout, lambda group: self._watching.isolation_of(group) is Isolation.READ_COMMITTED)

    @property
    def is_remembered(self) -> Flags:
        return self._column(self.layout, self._watching.remembers)

    @staticmethod
    def _column(layout: Layout, claim: Callable[[str], bool]) -> Flags:
        """Returns what is true of each row's group."""
        found: Flags = np.array([claim(group) for group in layout.groups], dtype=bool)[layout.group]
        return found

    def needed(self, groups: Iterable[str] | None = None) -> dict[Isolation, Flags]:
        """Returns the partitions that rows of these groups (None: all) need, per isolation level."""
        is_chosen = np.full(len(self.layout), groups is None)
        for group in groups or ():
            is_chosen[self.layout.spans[group]] = True
        rows = {
            Isolation.READ_UNCOMMITTED: is_chosen & ~self.is_committed_only,
            Isolation.READ_COMMITTED: is_chosen & self.is_committed_only,
        }
        needed = {}
        for level, wanted in rows.items():
            if wanted.any():
                needed[level] = np.zeros(self.layout.table_size, dtype=bool)
                needed[level][self.layout.place[wanted]] = True
        return needed

    def residue(self, directory: Directory, now: float) -> Flags | None:
        """Returns rows whose lag is only a transaction marker; None if no rule sets read_committed."""
        if not self.is_committed_only.any():
            return None
        is_stable = self._column(self.layout, lambda group: _phase(directory, group) is Phase.STABLE)
        self._residue = followed(self._residue, self.snapshot, self.is_committed_only, is_stable, now)
        return self._residue.is_found


def _phase(directory: Directory, group: str) -> Phase | None:
    """Returns None for a group that no broker lists, or that has no protocol."""
    status = directory.statuses.get(group)
    return None if status is None else status.phase
