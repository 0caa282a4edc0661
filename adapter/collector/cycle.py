"""One cluster's cycle: reads commits, then log ends, decides every row's state, and updates the store.

Because ends are read after commits, lag is never negative; it is overstated by at most what was produced in between.
The ends of a group's partitions are requested as soon as its commits arrive, independently of other brokers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from adapter.clock import Clock
from adapter.cluster.possible_groups import PossibleGroups
from adapter.collector.commits import CommitRound, Commits
from adapter.collector.current_rows import CurrentRows
from adapter.collector.inventory import Inventory
from adapter.collector.log_offsets import Ends
from adapter.collector.members import Members
from adapter.collector.observed import batches_of, with_commits, with_ends
from adapter.collector.owners import OwnerColumn
from adapter.collector.share_groups import ShareRound, Shares, with_shares
from adapter.columns import NO_COMMIT, Codes
from adapter.history.sample import NOT_ASKED, Keep, Sample
from adapter.kafka.answers import BrokersUnreachable, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import Layout
from adapter.lag.rules import Watching
from adapter.lag.snapshot import Cause, Causes, Observed, State, nothing_observed
from adapter.lag.states import (
    has_gone_backward,
    lacks_commit,
    settled,
    without_commit_unknown,
    without_drift,
    without_steps_backward,
)
from adapter.lag.values import states_of, values_of
from adapter.memory.keeper import MemoryKeeper
from adapter.memory.value import NOTHING, ClusterMemory, GroupMemory, merged
from adapter.metrics.store import ClusterView, Feed

TOGETHER_SECONDS = 0.2
"""The first commits wait this long for other coordinators, so that one request per leader serves them all."""
UNANSWERED_CYCLES = 3
"""After this many cycles without any response the client reconnects, because every broker may have a new address."""
NOT_READ_YET = Cause(State.UNKNOWN, "its commits have not been read yet")


@dataclass(frozen=True, slots=True)
class Outcome:
    read: int
    rows: int
    failures: tuple[Failure, ...]
    gaps: tuple[float, ...] = ()
    """Seconds from each response with commits to the last request for its log ends."""

    @property
    def word(self) -> str:
        if (self.rows and not self.read) or (self.failures and not self.rows):
            return "failed"
        return "partial" if self.failures or self.read < self.rows else "complete"


class Cycle:
    def __init__(
        self,
        cluster: str,
        interval: float,
        watching: Watching,
        brokers: Brokers,
        feed: Feed,
        clock: Clock,
        *,
        keep: Keep | None = None,
        memory: MemoryKeeper | None = None,
    ) -> None:
        self._cluster = cluster
        self._interval = interval
        self._watching = watching
        self._brokers = brokers
        self._feed = feed
        self._clock = clock
        self._keep = keep
        self._memory = memory
        self._recalled: ClusterMemory = NOTHING
        self._is_recalled = memory is None
        self.asked: Mapping[str, frozenset[str]] = {}
        """Group -> the topics that the selectors of HPAs name for it; replaced by any thread."""
        self._began_at = self._to_epoch = 0.0
        """When the cycle began, in seconds since the epoch, and how far those are from the monotonic clock."""
        self._unanswered = 0
        self._unanswered_since: dict[str, float] = {}
        self._liveness = Liveness(brokers.probe, clock.monotonic)
        self._commits = Commits(brokers, self._liveness, watching)
        self._shares = Shares(brokers, self._liveness, watching)
        self._ends = Ends(brokers, self._liveness, clock.monotonic, interval)
        self._owners = OwnerColumn()
        self._members = Members(brokers, self._liveness, clock.monotonic, interval)
        self._inventory = Inventory(brokers, self._liveness, watching, self._commits, clock.monotonic, interval)
        self._rows = CurrentRows(watching)

    def recall(self, memory: ClusterMemory) -> None:
        """Takes over what another collector knew of this cluster, because Kafka may no longer report it."""
        self._rows.to_epoch = self._clock.time() - self._clock.monotonic()
        self._rows.recall(memory)
        self._members.recall(memory, self._rows.to_epoch)

    def remembered(self, *, everything: bool = False) -> ClusterMemory:
        """Returns what is known of the groups that the settings or HPAs name, or of all; any thread may call it."""
        rows, is_wanted = self._rows, (lambda _: True) if everything else self._watching.remembers
        known = rows.remembered(is_wanted, self._commits.directory)
        reads = self._members.reads(known.keys(), rows.to_epoch)
        return merged(known, {group: GroupMemory(reads=one) for group, one in reads.items()})

    def run_once(self) -> Outcome:
        """Runs one cycle. Broker failures are part of the outcome and never raised."""
        self._began_at = self._clock.time()
        self._to_epoch = self._began_at - self._clock.monotonic()
        self._rows.to_epoch = self._to_epoch
        self._recall_others()
        # If a broker fails, leaders and coordinators move, so Metadata is read before it is due.
        is_in_trouble = bool(self._liveness.failures) or self._liveness.is_somebody_absent
        self._liveness.begin_cycle()
        try:
            self._connect()
        except BrokersUnreachable as error:
            self._liveness.failures.extend(error.failures)
            return self._unreachable(str(error))
        inventory = self._inventory
        inventory.refresh(has_news=is_in_trouble or self._ends.have_moved)
        self._commits.follow_asked(self.asked, self._may_have_been_known, inventory.watched_topics)
        commits, shares = self._read_pairs()
        inventory.refresh_for_unknown_partitions(commits)
        inventory.refresh_for_lost_groups()
        layout = self._lay_out()
        self._ends.ask(layout, inventory.topology, self._ends.not_asked(layout, self._rows.needed()))
        observed = self._observe(layout, commits, shares)
        self._members.describe_if_due(self._commits.directory, inventory.topology.brokers.keys())
        self._lay_out()
        self._begin_anew_if_nobody_answers()
        return self._apply(observed, inventory.possible_groups(), commits.problems, self._gaps(commits, shares))

    # -- gather ----------------------------------------------------------------------------------

    def _connect(self) -> None:
        if not self._brokers.is_connected:
            self._brokers.connect()
        elif self._brokers.follow_rotation():
            self._liveness.forget_probes()
        else:
            return
        self._inventory.begin_with_new_client()

    def _recall_others(self) -> None:
        """Recalls what the other replica or a former process saw."""
        if self._memory is None:
            return
        self._is_recalled = self._memory.is_loaded
        known = self._memory.of(self._cluster)
        if known is not self._recalled:
            self._recalled = known
            self.recall(known)

    def _may_have_been_known(self, group: str) -> bool:
        """Until it is known what is remembered, the group has rows without a value."""
        return not self._is_recalled or group in self._rows.memory

    def _read_pairs(self) -> tuple[CommitRound, ShareRound]:
        topology = self._inventory.topology
        commits = self._commits.ask(topology.brokers.keys())
        shares = self._shares.ask(self._commits.directory, topology)
        self._ends.begin()
        while self._brokers.wait(commits.calls, shares.calls, together=TOGETHER_SECONDS):
            batch = self._ends.rounds
            groups = [*self._commits.take(commits, batch), *self._shares.take(shares, batch)]
            if groups:
                layout = self._lay_out()
                # The first round requests all ends: it is the same in every cycle, and shows production to groups that
                # cannot be read.
                self._ends.ask(layout, topology, self._rows.needed(groups if batch else None))
        has_offsets_topic = self._inventory.has_offsets_topic
        return self._commits.finish(commits, has_offsets_topic=has_offsets_topic), self._shares.finish(shares)

    def _lay_out(self) -> Layout:
        return self._rows.lay_out(self._commits, self._shares, self._inventory.topology, self._members.topics_read)

    def _gaps(self, commits: CommitRound, shares: ShareRound) -> tuple[float, ...]:
        arrivals = [(part.batch, part.received) for part in commits.parts if part.is_accepted.any()]
        arrivals += sorted({(answer.batch, answer.received) for answer in shares.answers.values()})
        pairs = ((self._ends.sent(batch), received) for batch, received in arrivals)
        return tuple(sent - received for sent, received in pairs if sent is not None)

    def _observe(self, layout: Layout, commits: CommitRound, shares: ShareRound) -> Observed:
        causes, topology = Causes(), self._inventory.topology
        observed = nothing_observed(layout)
        is_doubtful = with_commits(observed, layout, commits, causes)
        tables, batches = self._ends.collect(layout, topology, causes), batches_of(layout, commits, shares)
        is_end_doubtful, end_sent = with_ends(observed, layout, tables, batches, self._rows.is_committed_only, causes)
        is_doubtful |= is_end_doubtful
        is_doubtful |= with_shares(observed, layout, self._shares.topics, shares, causes)
        self._ends.doubt(layout.place[has_gone_backward(observed, self._rows.snapshot)])
        if len(layout):
            everything = np.ones(layout.table_size, dtype=bool)
            observed.log_start[:] = self._ends.starts(layout, topology, everything)[layout.place]
        if is_doubtful.any():
            behind = np.unique(layout.group[is_doubtful & lacks_commit(observed, self._rows.snapshot)]).tolist()
            self._commits.note_reports(commits, {layout.groups[place] for place in behind})
        observed = without_drift(replace(observed, causes=causes.table()), end_sent)
        return without_steps_backward(observed, self._rows.snapshot, is_doubtful)

    # -- decide and apply ------------------------------------------------------------------------

    def _apply(
        self,
        observed: Observed,
        possible_groups: PossibleGroups,
        problems: Mapping[str, Cause],
        gaps: tuple[float, ...] = (),
    ) -> Outcome:
        rows, directory = self._rows, self._commits.directory
        is_recalled = self._is_recalled
        seen = observed if is_recalled else without_commit_unknown(observed, rows.snapshot, rows.is_remembered)
        rows.snapshot = settled(seen, rows.snapshot)
        rows.settle_added(directory)
        in_doubt = self._members.in_doubt()
        rows.treat(observed, self._shares, self._members.described_at, in_doubt)
        residue = rows.residue(directory, self._clock.monotonic())
        view = ClusterView(
            cluster=self._cluster,
            snapshot=rows.snapshot,
            treatment=rows.treatment,
            values=values_of(rows.snapshot, rows.treatment, residue),
            possible_groups=possible_groups,
            unread=self._unread(rows.layout, problems),
            missing=self._inventory.missing_topics(),
            unseen=self._inventory.unseen_topics(),
            in_doubt=in_doubt,
            assumed=self._watching.named_groups - directory.groups,
            topics=self._inventory.watched_topics,
        )
        self._feed.replace(view)
        if self._keep is not None:
            self._keep(self._sample(observed))
        read = int((rows.snapshot.cause == 0).sum())
        return Outcome(read, len(rows.layout), tuple(self._liveness.failures), gaps)

    def _unread(self, layout: Layout, problems: Mapping[str, Cause]) -> dict[str, str]:
        never = [group for group in self._commits.groups if group not in self._commits.topics]
        unread = {group: problems.get(group, NOT_READ_YET).text for group in never}
        return unread | self._overdue(layout, problems) | self._shares.unread()

    def _overdue(self, layout: Layout, problems: Mapping[str, Cause]) -> dict[str, str]:
        """Returns groups without rows that were not read for too long; no row shows their age."""
        now = self._clock.monotonic()
        rowless = [group for group in problems if layout.spans[group].start == layout.spans[group].stop]
        self._unanswered_since = {group: self._unanswered_since.get(group, now) for group in rowless}
        is_overdue = (group for group, since in self._unanswered_since.items() if now - since > self._watching.max_age)
        return {group: problems[group].text for group in is_overdue}

    def _sample(self, observed: Observed) -> Sample:
        rows, layout = self._rows, self._rows.layout
        state = states_of(rows.snapshot, rows.treatment)
        is_expired = (state == State.NO_COMMIT) & (rows.snapshot.last_commit >= 0)
        return Sample(
            cluster=self._cluster,
            sampled_at=self._began_at,
            to_epoch=self._to_epoch,
            layout=layout,
            observed=observed,
            state=state,
            interval_seconds=self._interval,
            members=self._members_of(layout),
            is_committed_only=rows.is_committed_only,
            owners=self._owners.of(layout, self._members.owned),
            counts_from_start=rows.treatment.counts_from_start,
            # Samples wait in memory, and this one takes none if no commit has expired.
            last_commit=np.where(is_expired, rows.snapshot.last_commit, NO_COMMIT)
            if is_expired.any()
            else np.broadcast_to(np.int64(NO_COMMIT), len(layout)),
        )

    def _members_of(self, layout: Layout) -> Codes:
        by_group = [self._members.counts.get(group, NOT_ASKED) for group in layout.groups]
        found: Codes = np.array(by_group, dtype=np.int32)[layout.group]
        return found

    # -- failures ---------------------------------------------------------------------------------

    def _begin_anew_if_nobody_answers(self) -> None:
        is_silence = self._liveness.answers == 0 and (self._liveness.failures or self._liveness.is_somebody_absent)
        self._unanswered = self._unanswered + 1 if is_silence else 0
        if self._unanswered >= UNANSWERED_CYCLES:
            self._brokers.close()
            self._liveness.forget_probes()

    def _unreachable(self, reason: str) -> Outcome:
        """No broker can be asked: rows keep their last values and the reason why they are not newer."""
        causes, layout = Causes(), self._rows.layout
        observed = nothing_observed(layout)
        observed.commit_cause[:] = causes.code(Cause(State.UNKNOWN, reason))
        observed = replace(observed, causes=causes.table())
        problems = dict.fromkeys(layout.groups, Cause(State.UNKNOWN, reason))
        return self._apply(observed, self._inventory.possible_groups(unreachable=reason), problems)
