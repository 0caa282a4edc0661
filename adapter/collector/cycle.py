"""One cluster's cycle: gathers commits and log ends, decides every row's state and value, and applies the result.

Because ends are read after commits, lag is never negative; it is overstated by at most what was produced in between.
After a group's commits arrive, its log ends wait at most 0.2 s for those of others, however late other brokers are."""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from weakref import ref

import numpy as np

from adapter.clock import Clock, utc_text
from adapter.cluster.possible_groups import PossibleGroups
from adapter.collector.assignments import Assignments
from adapter.collector.commits import CommitRound, Commits
from adapter.collector.current_rows import CurrentRows
from adapter.collector.inventory import Inventory
from adapter.collector.log_offsets import Ends
from adapter.collector.members import Members, owners_of
from adapter.collector.observed import Observation, in_question, nothing_read, observation_of, with_latest_commits
from adapter.collector.resting import Resting
from adapter.collector.share_groups import ShareRound, Shares
from adapter.columns import NO_COMMIT
from adapter.history.sample import Sample
from adapter.kafka.answers import BrokersUnreachable, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.earlier import preceded_by
from adapter.lag.owners import NOT_ASKED
from adapter.lag.ring import Ring, empty_ring, followed_by
from adapter.lag.rules import Asked, Watching, treatment_of, updated_treatment
from adapter.lag.snapshot import Cause, Causes, Observed, State
from adapter.lag.states import COMMIT_IS_GONE, has_gone_backward, without_lost_commits, without_steps_backward
from adapter.lag.totals import totals_of
from adapter.lag.values import states_of, values_of
from adapter.latest import Latest
from adapter.memory.keeper import MemoryKeeper
from adapter.memory.value import NOTHING, ClusterMemory, GroupMemory, merged, until
from adapter.metrics.problems import Problem, Reason
from adapter.metrics.store import ClusterView, Feed

TOGETHER_SECONDS = 0.2
"""The first commits wait this long for other coordinators, so that one request per leader serves them all."""
UNANSWERED_CYCLES = 3
"""After this many cycles without any response the client reconnects, because every broker may have a new address."""
NOBODY_RESTS: Mapping[str, float] = {}
NOT_READ_YET = Cause(State.UNKNOWN, "its commits have not been read yet")


class Completeness(StrEnum):
    """How much of what a cycle should have read it has read."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    read: int
    rows: int
    failures: tuple[Failure, ...]
    gaps: tuple[float, ...] = ()
    """Seconds from each response with commits to the last request for its log ends."""
    sample: Sample | None = None
    """For the history; None if the cycle ended unexpectedly."""

    @property
    def completeness(self) -> Completeness:
        if (self.rows and not self.read) or (self.failures and not self.rows):
            return Completeness.FAILED
        return Completeness.PARTIAL if self.failures or self.read < self.rows else Completeness.COMPLETE


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What one cycle read."""

    observation: Observation
    unread: Mapping[str, Cause]
    """Group -> why its commits could not be read."""
    possible_groups: PossibleGroups
    commits: CommitRound | None = None
    """None: no broker could be asked, like what follows, which is then empty."""
    gaps: tuple[float, ...] = ()
    unmoved_since: Mapping[str, float] = field(default_factory=dict)
    """Group in doubt -> since when nothing was written to its partition of the offsets topic."""


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """What follows from it."""

    view: ClusterView
    sample: Sample
    behind: Set[str]
    """Groups in doubt that report less than was known."""
    unanswered_since: dict[str, float] = field(default_factory=dict)


class Cycle:
    def __init__(
        self, watching: Watching, brokers: Brokers, feed: Feed, clock: Clock, memory: MemoryKeeper | None = None
    ) -> None:
        self._watching = watching
        self._brokers, self._feed, self._clock, self._memory = brokers, feed, clock, memory
        self._recalled: ClusterMemory = NOTHING
        self._is_recalled = memory is None
        self._recalled_for: Asked = {}
        """What HPAs asked for then."""
        self.asked: Asked = {}
        """Replaced by any thread."""
        self.members_asked: frozenset[str] = frozenset()
        """Groups for whose members HPAs ask. Replaced by any thread."""
        self.partitions_asked: frozenset[str] = frozenset()
        """Groups whose number of partitions HPAs follow. Replaced by any thread."""
        self._past: Ring | None = None
        """What moved before the first cycle, for the next one to take over. Replaced by any thread."""
        self._successor: Callable[[], Cycle | None] = lambda: None
        self._began_at = 0.0
        """When the cycle began, in seconds since the epoch."""
        self._unanswered, self._unanswered_since = 0, dict[str, float]()
        """Group without rows -> since when its commits could not be read."""
        self._liveness = Liveness(brokers.probe, clock.monotonic)
        self._commits = Commits(brokers, self._liveness, watching)
        self._shares = Shares(brokers, self._liveness, watching)
        self._ends = Ends(brokers, self._liveness, clock.monotonic, watching.interval)
        self._members = Members(brokers, self._liveness, clock.monotonic, watching.interval)
        self._assignments = Assignments(brokers, self._liveness)
        self._rows = CurrentRows(watching, self._commits, self._shares)
        self._ring = empty_ring()
        self._inventory = Inventory(brokers, self._liveness, watching, self._commits, self._rows, clock.monotonic)
        self._resting = Resting(watching.interval)
        self._treatment_of = Latest(treatment_of)
        self._owners_of = Latest(owners_of)

    @property
    def inventory(self) -> Inventory:
        return self._inventory

    def recall(self, memory: ClusterMemory) -> None:
        """Takes over what another collector knew of this cluster, because Kafka may no longer report it."""
        self._rows.follow_clock(self._clock.time(), self._clock.monotonic())
        self._rows.recall(until(self._clock.time(), memory))
        self._members.recall(memory, self._rows.to_epoch)

    def follow(self, former: "Cycle") -> None:
        """Takes over what another cycle of this cluster saw of the movement of offsets. Call before the first one."""
        self._rows.follow(former._rows.latest)
        # In this order, no past is lost that is delivered or taken over meanwhile.
        former._successor = ref(self)
        self._past, self._ring = former._past or self._past, former._ring
        self._resting = Resting(self._watching.interval, former._resting)

    def precede(self, past: Ring) -> None:
        """Takes over what moved before the first cycle, here and in the cycle that follows; any thread may call it."""
        self._past = past
        if (successor := self._successor()) is not None:
            successor.precede(past)

    def remembered(self, *, everything: bool = False) -> ClusterMemory:
        """Returns what is known of the groups that the settings or HPAs name, or of all; any thread may call it."""
        rows, is_wanted = self._rows, (lambda _: True) if everything else self._watching.remembers
        groups = rows.remembered(is_wanted)
        reads = self._members.reads(groups.keys(), self._inventory.watched_topics, rows.to_epoch)
        return merged(groups, {group: GroupMemory(reads=rows.with_moved(group, one)) for group, one in reads.items()})

    def run_once(self) -> Outcome:
        """Runs one cycle. Broker failures are part of the outcome and never raised."""
        self._began_at = self._clock.time()
        self._rows.follow_clock(self._began_at, self._clock.monotonic())
        self._recall_others()
        if (past := self._past) is not None:
            self._ring = preceded_by(self._ring, past)
            self._past = None
        # If a broker fails, leaders and coordinators move, so Metadata is read before it is due.
        has_news = bool(self._liveness.failures) or self._liveness.is_somebody_absent or self._ends.have_moved
        self._liveness.begin_cycle()
        try:
            self._connect()
        except BrokersUnreachable as error:
            self._liveness.failures.extend(error.failures)
            gathered = self._nothing_gathered(str(error))
        else:
            gathered = self._gather(has_news=has_news)
            self._begin_anew_if_nobody_answers()
        decided = self._decide(gathered)
        self._apply(gathered, decided)
        read = int((decided.view.snapshot.cause == 0).sum())
        return Outcome(read, len(self._rows.layout), tuple(self._liveness.failures), gathered.gaps, decided.sample)

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
        """Recalls what the other replica or a former process saw, and groups that are asked for again."""
        if self._memory is None:
            return
        self._is_recalled = self._memory.is_loaded
        memory, asked = self._memory.of(self._watching.cluster), self.asked
        if memory is not self._recalled or asked is not self._recalled_for:
            self._recalled, self._recalled_for = memory, asked
            self.recall(memory)

    def _gather(self, *, has_news: bool) -> Gathered:
        """Reads everything. What is asked next depends on the answers. Rows may be laid out anew; no value changes."""
        inventory = self._inventory
        inventory.refresh(self.partitions_asked, has_news=has_news)
        inventory.seek(self.asked)
        self._commits.follow_asked(self.asked, self._may_have_been_known, inventory.watched_topics)
        commits, shares = self._read_progress()
        inventory.refresh_for_unknown_partitions(commits)
        inventory.refresh_for_uncoordinated_groups()
        observation = self._read_ends(commits, shares)
        unmoved_since = self._commits.handovers.unmoved_since(in_question(observation, self._rows.latest))
        self._members.describe_if_due(self._commits.directory, inventory.topology.brokers.keys())
        self._assignments.describe(self.members_asked, self._commits.directory, inventory.topology.brokers.keys())
        possible, gaps = inventory.possible_groups(), self._gaps(commits, shares)
        return Gathered(observation, commits.unread, possible, commits, gaps, unmoved_since)

    def _may_have_been_known(self, group: str) -> bool:
        """Until it is known what is remembered, the group has rows without a value."""
        return not self._is_recalled or group in self._rows.memory

    def _read_progress(self) -> tuple[CommitRound, ShareRound]:
        """Reads the commits, and requests the ends of their partitions as they arrive."""
        topology = self._inventory.topology
        commits = self._commits.ask(topology.brokers, has_offsets_topic=self._inventory.has_offsets_topic)
        share_calls = self._shares.ask(self._commits.directory, topology)
        self._ends.begin()
        together = TOGETHER_SECONDS
        while self._brokers.wait(commits.calls, share_calls, together=together):
            began = self._clock.monotonic()
            batch = self._ends.rounds
            groups = [*self._commits.take(commits, batch), *self._shares.take(share_calls, batch)]
            if groups and batch:
                self._ends.ask(*self._rows.needed_by(groups, topology), topology)
            elif groups:
                # The first round requests all ends: it is the same in every cycle, and the history also learns what is
                # produced for groups whose commits cannot be read.
                layout = self._rows.lay_out(topology, self._clock.monotonic())
                self._ends.ask(layout, self._rows.needed(), topology)
            # The longer it takes to read many answers, the sooner the next ones are read, which may take even longer.
            together = max(TOGETHER_SECONDS - 2 * (self._clock.monotonic() - began), 0.0)
        self._commits.finish(commits, has_offsets_topic=self._inventory.has_offsets_topic)
        commits.unread = self._inventory.possible_share_groups() | commits.unread
        return commits, self._shares.newest

    def _read_ends(self, commits: CommitRound, shares: ShareRound) -> Observation:
        """Reads the ends that are left, and then the starts: again where an end shows that the log may be another."""
        topology, causes = self._inventory.topology, Causes()
        layout = self._rows.lay_out(topology, self._clock.monotonic())
        self._ends.ask(layout, self._ends.not_asked(layout, self._rows.needed()), topology)
        ends = self._ends.collect(layout, causes)
        observation = observation_of(
            layout, commits, shares, self._shares.topics, ends, self._rows.is_committed_only, causes
        )
        is_backward = has_gone_backward(observation.observed, self._rows.latest)
        self._ends.doubt(layout.place[is_backward])
        starts = self._ends.starts(layout, topology)
        observation.observed.log_start[:] = starts.offset[layout.place]
        observation.start_received[:] = starts.received[layout.place]
        return observation

    def _gaps(self, commits: CommitRound, shares: ShareRound) -> tuple[float, ...]:
        arrivals = [(part.batch, part.received) for part in commits.parts if part.is_accepted.any()]
        arrivals += sorted({(answer.batch, answer.received) for answer in shares.answers.values()})
        pairs = ((self._ends.sent(batch), received) for batch, received in arrivals)
        return tuple(sent - received for sent, received in pairs if sent is not None)

    def _nothing_gathered(self, reason: str) -> Gathered:
        """No broker can be asked: rows keep their last values and the reason why they are not newer."""
        layout, cause = self._rows.layout, Cause(State.UNKNOWN, reason)
        possible_groups = self._inventory.possible_groups(unreachable=reason)
        return Gathered(nothing_read(layout, cause), dict.fromkeys(layout.groups, cause), possible_groups)

    def _begin_anew_if_nobody_answers(self) -> None:
        is_silence = self._liveness.answers == 0 and (self._liveness.failures or self._liveness.is_somebody_absent)
        self._unanswered = self._unanswered + 1 if is_silence else 0
        if self._unanswered >= UNANSWERED_CYCLES:
            self._brokers.close()
            self._liveness.forget_probes()

    # -- decide ----------------------------------------------------------------------------------

    def _decide(self, gathered: Gathered) -> Decided:
        """Returns what follows from the answers and from what was known before; changes nothing."""
        before, now, layout = self._rows.latest, self._clock.monotonic(), self._rows.layout
        seen, is_behind = with_latest_commits(gathered.observation, before, gathered.unmoved_since)
        observed = without_steps_backward(seen.observed, before, seen.is_doubtful)
        observed = without_lost_commits(observed, before, is_described=self._inventory.is_described)
        in_doubt, topics_read = self._members.in_doubt(), self._members.topics_read
        phase, is_recalled = self._members.phase, self._is_recalled
        snapshot = self._rows.after(observed, seen.progress, topics_read, phase, now, is_recalled=is_recalled)
        treatment = self._treatment_of(layout, self._watching, topics_read, self._rows.only_asked)
        treatment = updated_treatment(treatment, snapshot, self._members.described_at, in_doubt)
        # Of groups without rows, because no row shows their age.
        rowless = (group for group in gathered.unread if layout.spans[group].start == layout.spans[group].stop)
        unanswered_since = {group: self._unanswered_since.get(group, now) for group in rowless}
        values = values_of(snapshot, treatment)
        view = ClusterView(
            cluster=self._watching.cluster,
            snapshot=snapshot,
            treatment=treatment,
            values=values,
            possible_groups=gathered.possible_groups,
            problems=self._problems(gathered.unread, unanswered_since, in_doubt, now),
            assumed=self._watching.named_groups - self._commits.directory.groups,
            assignments=self._assignments.current,
            topics=self._inventory.watched_topics,
            totals=totals_of(snapshot, treatment, values, np.arange(len(layout))),
            sharing_of=self._members.sharing_of,
            members_of=self._members.counted.get,
            owned=self._members.owned,
            statuses=self._commits.directory.statuses,
            judged_at=self._judged_at(now),
            ring=followed_by(self._ring, observed, snapshot, seen.start_received, now),
            owners=self._owners_of(layout, self._members.owned),
        )
        behind = {layout.groups[code] for code in np.unique(layout.group[is_behind]).tolist()}
        return Decided(view, self._sample(observed, view), behind, unanswered_since)

    def _judged_at(self, now: float) -> Mapping[str, float]:
        if not self._watching.judges_movement:
            return NOBODY_RESTS
        statuses, outdated = self._commits.directory.statuses, self._members.outdated
        return self._resting.judged_at(statuses, outdated, self._watching.is_judged, now)

    def _problems(
        self, unanswered: Mapping[str, Cause], since: Mapping[str, float], in_doubt: Mapping[str, float], now: float
    ) -> dict[str, list[Problem]]:
        by_group: dict[str, list[Problem]] = {}
        topics = self._inventory.topic_problems()
        for problem in (*topics, *self._unread(unanswered, since, now), *self._doubts(in_doubt)):
            by_group.setdefault(problem.group, []).append(problem)
        return by_group

    def _unread(self, unanswered: Mapping[str, Cause], since: Mapping[str, float], now: float) -> Iterator[Problem]:
        """Yields the groups that were never read, or not for too long and have no rows."""
        never = (group for group in self._commits.groups if group not in self._commits.topics)
        shares = self._shares.newest.unread.items()
        causes = {group: unanswered.get(group, NOT_READ_YET) for group in never}
        causes |= {group: cause for group, cause in shares if group not in self._shares.topics}
        for group, cause in causes.items():
            yield Problem(Reason.NOT_READ_YET, cause.text, self._watching.cluster, group)
        for group, at in since.items():
            if now - at > self._watching.max_age and group not in causes:
                began = at + self._rows.to_epoch
                yield Problem(Reason.NOT_READ_SINCE, unanswered[group].text, self._watching.cluster, group, since=began)

    def _doubts(self, in_doubt: Mapping[str, float]) -> Iterator[Problem]:
        for group, described_at in in_doubt.items():
            since = described_at + self._rows.to_epoch
            text = f"the group has not been described as Stable since {utc_text(since)}"
            yield Problem(Reason.IN_DOUBT, text, self._watching.cluster, group, since=since)

    def _sample(self, observed: Observed, view: ClusterView) -> Sample:
        layout, snapshot, treatment = view.layout, view.snapshot, view.treatment
        state = states_of(snapshot, treatment)
        is_expired = (state == State.NO_COMMIT) & (snapshot.last_commit >= 0)
        members = [self._members.counts.get(group, NOT_ASKED) for group in layout.groups]
        return Sample(
            cluster=self._watching.cluster,
            sampled_at=self._began_at,
            to_epoch=self._rows.to_epoch,
            layout=layout,
            observed=observed,
            state=state,
            interval_seconds=self._watching.interval,
            members=np.array(members, dtype=np.int32)[layout.group],
            is_committed_only=self._rows.is_committed_only,
            owners=view.owners,
            counts_from_start=treatment.counts_from_start,
            # Samples wait in memory, and these take none if no commit has expired and there is no marker.
            last_commit=np.where(is_expired, snapshot.last_commit, NO_COMMIT)
            if is_expired.any()
            else np.broadcast_to(np.int64(NO_COMMIT), len(layout)),
            has_marker=snapshot.has_marker if snapshot.has_marker.any() else np.broadcast_to(np.False_, len(layout)),
        )

    # -- apply -----------------------------------------------------------------------------------

    def _apply(self, gathered: Gathered, decided: Decided) -> None:
        if gathered.commits is not None:
            self._commits.note_reports(gathered.commits, decided.behind)
        self._inventory.has_lost_commits = COMMIT_IS_GONE in decided.view.snapshot.causes
        self._rows.replace(decided.view.snapshot)
        self._ring, self._unanswered_since = decided.view.ring, decided.unanswered_since
        self._feed.replace(decided.view)
