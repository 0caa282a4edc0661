"""One cluster's cycle: gather commits, then log ends; decide every row's state; put the new view into the store.

Commits come first and ends after, so that lag can only be overstated by what was produced in between, never negative.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapter.brokers import Brokers, ClusterUnreachable, Failure
from adapter.commits import OFFSETS_TOPIC, CommitRound, Commits
from adapter.directory import Phase
from adapter.ends import Ends, may_not_describe_topic
from adapter.lag import settled, values_of, without_steps_backward
from adapter.liveness import Liveness
from adapter.members import Members
from adapter.metrics import Clock
from adapter.observing import with_commits, with_ends
from adapter.residue import RESIDUE_SECONDS, followed, no_residue
from adapter.rows import Watching, isolation_of, treatment_of
from adapter.sampling import NOT_ASKED, Keep, Sample
from adapter.settings import Isolation
from adapter.shares import Shares, with_shares
from adapter.snapshot import (
    NO_LAYOUT,
    Cause,
    Causes,
    Codes,
    Flags,
    Layout,
    Observed,
    State,
    empty_snapshot,
    layout_of,
    moved_to,
    nothing_observed,
)
from adapter.store import ClusterView, Store
from adapter.topology import Topology, updated, wants_another_look
from adapter.turns import Turn, Turns, everybodys_turn

logger = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
"""How often Metadata and ListGroups are asked while all is well: a new group or partition is seen within this time."""
MISSING_SECONDS = 15.0
"""How often, while a topic is missing that is given by name; in every second cycle at most."""
UNANSWERED_CYCLES = 3
"""After so many cycles without any answer the client begins anew: every broker may have a new address."""
NOT_READ_YET = Cause(State.UNKNOWN, "its commits have not been read yet")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cycle went, for the log and the metrics."""

    read: int
    """Rows read in this cycle."""
    rows: int
    failures: tuple[Failure, ...]

    @property
    def word(self) -> str:
        if (self.rows and not self.read) or (self.failures and not self.rows):
            return "failed"
        return "partial" if self.failures or self.read < self.rows else "complete"


@dataclass(frozen=True, slots=True)
class Began:
    """When the cycle began, on both clocks."""

    monotonic: float
    at: float
    """Seconds since the epoch."""


class Cycle:
    """The rounds of one cluster, one after another. Used by one thread."""

    def __init__(  # noqa: PLR0913 - what a cycle works with comes from outside, each by itself
        self,
        cluster: str,
        interval: float,
        watching: Watching,
        brokers: Brokers,
        store: Store,
        clock: Clock,
        turns: Turns | None = None,
        *,
        keep: Keep | None = None,
        residue_after: float = RESIDUE_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._interval = interval
        self._watching = watching
        self._brokers = brokers
        self._store = store
        self._clock = clock
        self._keep = keep
        self._residue_after = residue_after
        self._residue = no_residue(NO_LAYOUT)
        self._turns = turns
        self._began = Began(clock.monotonic(), clock.time())
        self._liveness = Liveness(brokers.probe, clock.monotonic)
        self._commits = Commits(brokers, self._liveness, watching)
        self._shares = Shares(brokers, self._liveness, watching)
        self._ends = Ends(brokers, self._liveness, clock.monotonic, interval)
        wanted = turns.wanted if turns is not None else frozenset
        self._members = Members(brokers, self._liveness, clock.monotonic, interval, wanted)
        self._topology = Topology()
        self._topology_read = self._groups_listed = float("-inf")
        self._metadata_from = 0
        self._is_new_client = True
        self._unanswered = 0
        self._snapshot = empty_snapshot()
        self._layout_of: tuple[object, ...] = ()
        self._laid_out_for: tuple[tuple[int, int], Topology] | None = None
        self._committed_only = self._isolation_column(NO_LAYOUT)
        self._treatment = treatment_of(NO_LAYOUT, watching, {})
        self._treated_for: Mapping[str, frozenset[str]] | None = None
        self._strangers: dict[int, frozenset[tuple[str, int]]] = {}
        self._looked_at: dict[int, tuple[object, ...]] = {}
        self._watched_of: Topology | None = None
        self._watched: frozenset[str] = frozenset()

    def run_once(self) -> Outcome:
        """Read, decide, store. Broker failures are part of the outcome, never raised."""
        self._began = Began(self._clock.monotonic(), self._clock.time())
        # Where a broker fails, leaders and coordinators move: Metadata tells before the next regular look.
        is_in_trouble = bool(self._liveness.failures) or self._liveness.is_somebody_absent
        self._liveness.begin_cycle()
        try:
            if not self._brokers.is_connected:
                self._brokers.connect()
                self._is_new_client = True
        except ClusterUnreachable as error:
            self._liveness.failures.extend(error.failures)
            return self._unreachable(str(error))
        self._look_round(has_news=is_in_trouble or self._ends.have_moved)
        has_offsets_topic = OFFSETS_TOPIC in self._topology.topics.keys() | self._topology.hidden
        turn = self._turn()
        commits = self._commits.read(self._topology.brokers.keys(), turn, has_offsets_topic=has_offsets_topic)
        self._shares.read(self._commits.directory)
        self._look_again_for_strangers(commits, turn.number)
        self._members.describe_if_due(self._commits.directory, self._topology.brokers.keys())
        observed = self._observe(self._lay_out(), commits, turn)
        self._begin_anew_if_nobody_answers()
        return self._apply(observed, turn, self._silence(), commits.problems)

    def _turn(self) -> Turn:
        groups = self._commits.groups
        if self._turns is None:
            return everybodys_turn(len(groups))
        return self._turns.next(groups, self._commits.topics, self._snapshot)

    # -- gather: what there is -------------------------------------------------------------------

    def _look_round(self, *, has_news: bool) -> None:
        now = self._clock.monotonic()
        has_news = has_news or self._is_new_client or wants_another_look(self._topology)
        if has_news or self._is_due(self._topology_read, now) or self._misses_a_topic(now):
            self._read_topology(now)
        nodes: Iterable[int] = self._commits.directory.unheard(self._topology.brokers)
        if self._is_due(self._groups_listed, now):
            nodes, self._groups_listed = self._topology.brokers, now
        present = self._liveness.present(nodes)
        if present:
            self._commits.list_groups(present, self._topology.brokers.keys())

    def _misses_a_topic(self, now: float) -> bool:
        """Whether somebody may be waiting for a topic to be made, and it is time to look for it."""
        is_time = now - self._topology_read >= max(MISSING_SECONDS, 1.5 * self._interval)
        return is_time and bool(self._missing_topics())

    def _is_due(self, last: float, now: float) -> bool:
        return now - last >= LOOK_SECONDS - self._interval / 2

    def _read_topology(self, now: float, *, is_second_look: bool = False) -> None:
        """From another broker each time: one that was cut off may not know what the others do."""
        for node in self._in_turn(sorted(self._liveness.present(self._topology.brokers))):
            answer = self._brokers.topology(node, self._asked_by_name())
            self._liveness.note({} if node is None else {node: answer})
            if not isinstance(answer, Failure):
                expected = self._expected_topics()
                self._topology = updated(self._topology, answer.content, expected, counts=not is_second_look)
                self._topology_read = now
                self._is_new_client = False
                self._liveness.forget_others(self._topology.brokers.keys())
                return
            if node is None:
                self._liveness.failures.append(answer)

    def _in_turn(self, nodes: Sequence[int]) -> Iterator[int | None]:
        """The next broker each time; before them any that is connected, where all that are known may be replaced."""
        if self._is_new_client or not nodes:
            yield None
        for _ in nodes:
            self._metadata_from += 1
            yield nodes[self._metadata_from % len(nodes)]

    def _expected_topics(self) -> frozenset[str]:
        named = (self._watching.topics_given_by_name(group) for group in self._watching.named_groups)
        return frozenset().union(*named)

    def _asked_by_name(self) -> frozenset[str]:
        """Topics of which we have to know whether they are missing or hidden from us."""
        expected = self._expected_topics()
        return expected | {OFFSETS_TOPIC} if self._watching.named_groups else expected

    def _look_again_for_strangers(self, commits: CommitRound, turn: int) -> None:
        """Commits for partitions that Metadata did not have: topics made a moment ago are read in this same cycle."""
        looked_at = (self._topology, *(part.columns.shape for part in commits.parts))
        if self._looked_at.get(turn) == looked_at:
            return
        strangers = frozenset(
            (topic, partition)
            for part in commits.parts
            for topic, partition in part.learnt.largest.items()
            if self._is_strange(topic, partition)
        )
        if strangers.difference(*self._strangers.values()):
            self._read_topology(self._clock.monotonic(), is_second_look=True)
        self._strangers[turn] = strangers
        self._looked_at[turn] = looked_at

    def _is_strange(self, topic: str, partition: int) -> bool:
        known = self._topology.topics.get(topic)
        return known is None or partition >= len(known.leaders)

    # -- gather: offsets -------------------------------------------------------------------------

    def _lay_out(self) -> Layout:
        """The rows of this cycle; the same object as before while nothing changes."""
        known = self._laid_out_for
        versions = (self._commits.version, self._shares.version)
        if known is None or known[0] != versions or known[1] is not self._topology:
            self._laid_out_for = (versions, self._topology)
            self._lay_out_anew()
        if self._treated_for is not self._members.topics_read:
            self._treated_for = self._members.topics_read
            self._treatment = treatment_of(self._snapshot.layout, self._watching, self._members.topics_read)
        return self._snapshot.layout

    def _lay_out_anew(self) -> None:
        wanted = {
            group: frozenset(self._commits.topics.get(group, ())).union(
                self._shares.topics.get(group, ()), self._watching.given_topics(group)
            )
            for group in self._commits.groups
        }
        topics = frozenset().union(*wanted.values())
        known = ((topic, self._topology.topics.get(topic)) for topic in sorted(topics))
        shape = tuple((topic, found.generation, len(found.leaders)) for topic, found in known if found is not None)
        if (wanted, shape) != self._layout_of:
            self._layout_of = (wanted, shape)
            layout = layout_of(wanted, self._topology)
            self._snapshot = moved_to(self._snapshot, layout)
            self._treated_for = None
            self._committed_only = self._isolation_column(layout)

    def _isolation_column(self, layout: Layout) -> Flags:
        """Whether a row's end is that of read_committed."""
        levels = [isolation_of(self._watching.rule_for(group)) for group in layout.groups]
        by_group = np.array([level is Isolation.READ_COMMITTED for level in levels], dtype=bool)
        found: Flags = by_group[layout.group]
        return found

    def _observe(self, layout: Layout, commits: CommitRound, turn: Turn) -> Observed:
        causes = Causes()
        observed = nothing_observed(layout)
        is_doubtful = with_commits(observed, layout, commits, causes)
        needed = self._needed(layout, turn.is_due[layout.group])
        tables = self._ends.read(layout, self._topology, needed, causes, turn.number)
        is_doubtful |= with_ends(observed, layout, tables, self._committed_only)
        is_doubtful |= with_shares(observed, layout, self._shares.topics, self._shares.newest, causes)
        if len(layout):
            everything = np.ones(layout.table_size, dtype=bool)
            observed.log_start[:] = self._ends.starts(layout, self._topology, everything)[layout.place]
        observed = replace(observed, causes=causes.table())
        return without_steps_backward(observed, self._snapshot, is_doubtful)

    def _needed(self, layout: Layout, is_due: Flags) -> dict[Isolation, Flags]:
        """Per isolation level in use the places that some row wants which is due."""
        rows = {
            Isolation.READ_UNCOMMITTED: is_due & ~self._committed_only,
            Isolation.READ_COMMITTED: is_due & self._committed_only,
        }
        needed = {}
        for level, wanted in rows.items():
            if wanted.any():
                needed[level] = np.zeros(layout.table_size, dtype=bool)
                needed[level][layout.place[wanted]] = True
        return needed

    # -- decide and apply ------------------------------------------------------------------------

    def _apply(self, observed: Observed, turn: Turn, silence: str | None, problems: Mapping[str, Cause]) -> Outcome:
        is_due = turn.is_due[self._snapshot.layout.group]
        self._snapshot = settled(observed, self._snapshot, is_due)
        view = ClusterView(
            cluster=self._cluster,
            snapshot=self._snapshot,
            treatment=self._treatment,
            values=values_of(self._snapshot, self._treatment, self._found_residue()),
            silence=silence,
            unread=self._unread(self._snapshot.layout, problems),
            missing=self._missing_topics(),
            assumed=self._watching.named_groups - self._commits.directory.groups,
            topics=self._watched_topics(),
        )
        self._store.replace(view)
        if self._keep is not None:
            self._keep(self._sample(observed, turn))
        read = int(((self._snapshot.cause == 0) & is_due).sum())
        return Outcome(read, int(is_due.sum()), tuple(self._liveness.failures))

    def _found_residue(self) -> Flags | None:
        """Rows of which only a transaction's marker is left."""
        layout = self._snapshot.layout
        if not self._committed_only.any():
            return None
        standings = self._commits.directory.standings
        phases = [standings[group].phase if group in standings else None for group in layout.groups]
        is_stable = np.array([phase is Phase.STABLE for phase in phases], dtype=bool)[layout.group]
        now = self._clock.monotonic()
        self._residue = followed(
            self._residue, self._snapshot, self._committed_only, is_stable, now, self._residue_after
        )
        return self._residue.is_found

    def _sample(self, observed: Observed, turn: Turn) -> Sample:
        layout = self._snapshot.layout
        is_stale = self._treatment.is_outside | self._treatment.is_abandoned
        return Sample(
            cluster=self._cluster,
            sampled_at=self._began.at,
            to_epoch=self._began.at - self._began.monotonic,
            layout=layout,
            observed=observed,
            state=np.where(is_stale, State.STALE, self._snapshot.state).astype(np.int8),
            is_due=turn.is_due[layout.group],
            interval_seconds=(turn.every * np.float32(self._interval)).astype(np.float32)[layout.group],
            members=self._members_of(layout),
            is_committed_only=self._committed_only,
        )

    def _members_of(self, layout: Layout) -> Codes:
        by_group = [self._members.counts.get(group, NOT_ASKED) for group in layout.groups]
        found: Codes = np.array(by_group, dtype=np.int32)[layout.group]
        return found

    def _watched_topics(self) -> frozenset[str]:
        if self._watched_of is not self._topology:
            self._watched_of = self._topology
            self._watched = frozenset(filter(self._watching.watches_topic, self._topology.topics))
        return self._watched

    def _unread(self, layout: Layout, problems: Mapping[str, Cause]) -> dict[str, str]:
        never = [group for group in layout.groups if group not in self._commits.topics]
        unread = {group: problems.get(group, NOT_READ_YET).text for group in never} | self._shares.unread()
        for group in self._watching.named_groups:
            for topic in self._required_topics(group):
                if topic in self._topology.hidden:
                    unread[group] = may_not_describe_topic(topic)
                elif topic not in self._topology.topics and not self._topology.is_deleted(topic):
                    unread[group] = f"topic {topic} has not been seen yet"
        return unread

    def _missing_topics(self) -> dict[str, tuple[str, ...]]:
        missing = {
            group: tuple(sorted(filter(self._topology.is_deleted, self._required_topics(group))))
            for group in self._watching.named_groups
        }
        return {group: topics for group, topics in missing.items() if topics}

    def _required_topics(self, group: str) -> frozenset[str]:
        return self._watching.required_topics(group, is_known=group in self._commits.directory.groups)

    def _silence(self) -> str | None:
        """Why groups may exist that nobody has told us of."""
        if not self._topology.brokers:
            return (
                "; ".join(failure.text for failure in self._liveness.failures)
                or "no broker has described the cluster yet"
            )
        unheard = self._commits.directory.unheard(self._topology.brokers)
        if not unheard:
            return None
        node = unheard[0]
        failure = self._liveness.failure(node)
        told = [f.text for f in self._liveness.failures if f.text.startswith(f"broker {node} ")]
        reason = failure.text if failure else next(iter(told), "it is still loading them")
        return f"broker {node} at {self._topology.brokers[node]} has not listed its groups yet: {reason}"

    # -- trouble ---------------------------------------------------------------------------------

    def _begin_anew_if_nobody_answers(self) -> None:
        is_silence = self._liveness.answers == 0 and (self._liveness.failures or self._liveness.is_somebody_absent)
        self._unanswered = self._unanswered + 1 if is_silence else 0
        if self._unanswered >= UNANSWERED_CYCLES:
            self._brokers.close()
            self._liveness.forget_probes()

    def _unreachable(self, reason: str) -> Outcome:
        """Nothing can be asked: rows keep what was last known, and say why it is not newer."""
        causes = Causes()
        observed = nothing_observed(self._snapshot.layout)
        observed.commit_cause[:] = causes.code(Cause(State.UNKNOWN, reason))
        never_heard = not self._topology.brokers or self._commits.directory.unheard(self._topology.brokers)
        problems = dict.fromkeys(self._snapshot.layout.groups, Cause(State.UNKNOWN, reason))
        everybody = everybodys_turn(len(self._snapshot.layout.groups))
        observed = replace(observed, causes=causes.table())
        return self._apply(observed, everybody, reason if never_heard else None, problems)
