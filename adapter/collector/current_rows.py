"""The rows that persist from cycle to cycle: their layout, treatment and last good values."""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from adapter.cluster.groups import Directory, Phase
from adapter.cluster.topics import Topology
from adapter.collector.commits import Commits
from adapter.collector.last_commits import LastCommits
from adapter.collector.share_groups import Shares, with_share_starts
from adapter.columns import Flags
from adapter.lag.last_commit import recalled
from adapter.lag.layout import NO_LAYOUT, Layout, layout_of
from adapter.lag.movement import no_movement
from adapter.lag.rules import Watching, treatment_of, updated_treatment
from adapter.lag.snapshot import Observed, empty_snapshot, moved_to, remember_commits
from adapter.lag.transaction_markers import followed, no_residue
from adapter.settings.models import Isolation


class CurrentRows:
    def __init__(self, watching: Watching, residue_after: float) -> None:
        self._watching = watching
        self._residue_after = residue_after
        self._residue = no_residue(NO_LAYOUT)
        self._wanted: tuple[object, ...] = ()
        self._laid_out_for: tuple[tuple[int, int], Topology] | None = None
        self._recalled: tuple[object, ...] = ()
        self._treated_for: Mapping[str, frozenset[str]] | None = None
        self._movement = no_movement(NO_LAYOUT)
        self._groups_read: frozenset[str] = frozenset()
        self._groups_read_before = self._groups_read
        self.snapshot = empty_snapshot()
        self.former = empty_snapshot()
        """What the collector before this one last knew of the cluster; used in the first cycle."""
        self.only_selected: frozenset[tuple[str, str]] = frozenset()
        """Groups and topics that have rows only because selectors name them."""
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
            self._described = treatment_of(self.layout, self._watching, topics_read, self.only_selected)
        return self.layout

    def _lay_out_anew(self, commits: Commits, shares: Shares, topology: Topology) -> None:
        wanted = {
            group: frozenset(commits.topics.get(group, ())).union(
                shares.topics.get(group, ()), self._watching.given_topics(group)
            )
            for group in commits.groups
        }
        by_selectors = self._watching.by_selectors
        only_selected = frozenset(
            (group, topic) for group, topics in by_selectors.items() for topic in topics - wanted[group]
        )
        wanted |= {group: wanted[group] | topics for group, topics in by_selectors.items()}
        topics = frozenset().union(*wanted.values())
        known = ((topic, topology.topics.get(topic)) for topic in sorted(topics))
        shape = tuple((topic, found.generation, len(found.leaders)) for topic, found in known if found is not None)
        if (wanted, shape, only_selected) != self._wanted:
            self._wanted = (wanted, shape, only_selected)
            self.only_selected = only_selected
            layout = layout_of(wanted, topology)
            self.snapshot = moved_to(self.snapshot, layout)
            remember_commits(self.snapshot, self.former)
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
        self.former = empty_snapshot()

    def recall(self, cluster: str, memory: LastCommits) -> bool:
        """Fills in the last commits of new rows, and of all rows once those of former processes are known."""
        is_complete = memory.is_loaded
        if self._recalled != (self.layout, is_complete):
            self._recalled = (self.layout, is_complete)
            self.snapshot = recalled(self.snapshot, cluster, memory.known)
        return is_complete

    def _isolation_column(self, layout: Layout) -> Flags:
        levels = [self._watching.isolation_of(group) for group in layout.groups]
        by_group = np.array([level is Isolation.READ_COMMITTED for level in levels], dtype=bool)
        found: Flags = by_group[layout.group]
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
        statuses = directory.statuses
        phases = [statuses[group].phase if group in statuses else None for group in self.layout.groups]
        is_stable = np.array([phase is Phase.STABLE for phase in phases], dtype=bool)[self.layout.group]
        self._residue = followed(
            self._residue, self.snapshot, self.is_committed_only, is_stable, now, self._residue_after
        )
        return self._residue.is_found
