"""The inventory of one cluster: its brokers, topics and groups, read periodically, and what is missing from it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from adapter.clock import is_due
from adapter.cluster.coordinators import (
    OFFSETS_TOPIC,
    ListingTimes,
    Placement,
    Round,
    moves_without_election,
    updated_times,
)
from adapter.cluster.groups import NOBODY
from adapter.cluster.possible_groups import PossibleGroups, any_group_possible, possible_groups_of
from adapter.cluster.topics import (
    ANSWERS_BEFORE_DELETED,
    Topic,
    Topology,
    has_more_partitions,
    has_undecided_topics,
    updated,
    without_epochs,
)
from adapter.collector.commits import CommitRound, Commits
from adapter.collector.coordinator_search import PlacementProof
from adapter.collector.current_rows import CurrentRows
from adapter.columns import NEVER
from adapter.errors import some_of
from adapter.kafka.answers import Answer, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.rules import Asked, Watching
from adapter.lag.snapshot import Cause, State
from adapter.latest import Latest
from adapter.metrics.problems import Problem, Reason, hidden_topic
from adapter.protocol.apis import DESCRIBE_SHARE_GROUP_OFFSETS, LIST_GROUPS

REFRESH_SECONDS = 30.0
"""Period of Metadata and ListGroups: a new group or partition is discovered within this time."""
LIVING_SECONDS = 10.0
"""Period of asking which brokers are alive, because a deposed broker may not know that it was deposed."""
LOG_END_SECONDS = 300.0
"""Period of asking for the log ends of the offsets topic: a group that has not committed for longer is certain even if
its next coordinator reports old commits."""
MOST_ASKED = 3
"""The number of brokers asked for Metadata at a time, concurrently if they are slow."""
MISPLACED_SECONDS = 30.0
"""A group that a broker reports for so long, although Metadata shows another coordinator, is not placed as in Kafka: a
broker that hears nothing from the controllers is dead by Metadata after `broker.session.timeout.ms` (9 s)."""
MISPLACED_CYCLES = 3
"""At least as many, if cycles are rare: one broker's Metadata may lag behind."""
CONFIRMATIONS = 2
"""The number of consecutive brokers that must report the same leaders before a listing counts as complete."""
ROUNDS_BEFORE_STALE = 3
"""After this many rounds without a broker's listing, sums may lack groups; `maxAge` counts if it is longer."""


class Inventory:
    def __init__(
        self,
        brokers: Brokers,
        liveness: Liveness,
        watching: Watching,
        commits: Commits,
        rows: CurrentRows,
        monotonic: Callable[[], float],
    ) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._commits = commits
        self._rows = rows
        self._monotonic = monotonic
        self.topology = Topology()
        """Replaced on a change, never modified."""
        self._topology_read = self._groups_listed = self._living_read = NEVER
        self._dead: frozenset[int] = frozenset()
        """Brokers in Metadata that another broker no longer counts as alive."""
        self._listing_times = ListingTimes()
        self._proof = PlacementProof(brokers, liveness)
        self._rounds: list[Round] = []
        self._newest_round = self._log_ends_asked = self._sought = NEVER
        self._uncoordinated: frozenset[str] = frozenset()
        """Groups that no broker coordinated in the latest cycle."""
        self._metadata_from = NOBODY
        self._is_new_client = True
        self._is_compared = False
        """Whether the placement was sought to be proven with the latest Metadata."""
        self._misplaced_since: Mapping[str, float] = {}
        """Group -> since when each Metadata has shown another coordinator than the one that reports the group."""
        self.is_described = self.has_lost_commits = False
        """Whether Metadata was read in this cycle, and whether it must show that no topic was created again."""
        self._unknown: Mapping[tuple[str, int], int] = {}
        """Partitions with commits that Metadata lacks -> the number of consecutive cycles."""
        self._checked: tuple[object, ...] = ()
        self._lacks_ids = Latest(lambda topology: any(topic.generation is None for topic in topology.topics.values()))
        self._watched_in = Latest(lambda topology: frozenset(filter(watching.watches_topic, topology.topics)))

    def begin_with_new_client(self) -> None:
        """Known brokers may have been replaced, so any connected broker is asked next."""
        self._is_new_client = True
        self.topology = without_epochs(self.topology)
        if self._listing_times.placement is Placement.PROVEN:
            self._listing_times = replace(self._listing_times, placement=Placement.UNKNOWN)
        self._proof.begin_anew()

    def refresh(self, growing: Collection[str] = (), *, has_news: bool) -> None:
        """Reads what is due, and Metadata if it `has_news`. Listings come first: Metadata then shows whose they are.

        New partitions of topics of `growing` groups are seen sooner than those of others."""
        now, self.is_described = self._monotonic(), False
        has_read = self._is_new_client or not self.topology.brokers
        if has_read:
            self._read_topology(now)
        if self._is_new_client:
            # The first connected broker may be the one that hangs.
            self._read_topology(now)
        if not self.topology.brokers:
            return
        self._meet_brokers()
        self._prove_placement(now)
        handovers = self._commits.handovers
        self._heed_misplaced(handovers.misplaced, now)
        has_news |= bool(handovers.misplaced) or self._has_changed(now, growing)
        asks_all = self._is_due(self._log_ends_asked, now, LOG_END_SECONDS)
        self._log_ends_asked = now if asks_all else self._log_ends_asked
        handovers.follow(self._coordinating_topic, asks_all=asks_all)
        self._list_groups(now)
        has_news = (has_news and not has_read) or has_undecided_topics(self.topology) or self._has_first_lists
        if has_news or self._is_due(self._topology_read, now):
            self._read_topology(now, is_repeat=has_read)
        if self._has_first_lists:
            self._read_topology(now, is_repeat=True)
        self._prove_placement(now)
        handovers.follow(self._coordinating_topic)

    @property
    def _coordinating_topic(self) -> Topic | None:
        return self._listing_times.likely_topic(self.topology)

    def _meet_brokers(self) -> None:
        """Their versions decide what is asked. Any other failure is that of the next request."""
        outcomes = self._brokers.meet(self._liveness.present(self.topology.brokers))
        silent = {node: one for node, one in outcomes.items() if isinstance(one, Failure) and one.was_silence}
        self._liveness.note(silent)

    def _prove_placement(self, now: float) -> None:
        topic = self.topology.topics.get(OFFSETS_TOPIC)
        # A second answer against the same Metadata would prove no more: a broker that lags behind may have sent it.
        is_compared, self._is_compared = self._is_compared, True
        if topic is not None and not is_compared and self._listing_times.placement is not Placement.PROVEN:
            nodes = self._in_turn(self.topology.brokers)
            placement = self._proof.placement(topic, self._commits.groups, nodes, now)
            if placement is not Placement.UNKNOWN:
                self._believe(placement, now)

    def _believe(self, placement: Placement, now: float) -> None:
        self._listing_times = replace(self._listing_times, placement=placement)
        self._proof.put_off(now)

    def _heed_misplaced(self, groups: Iterable[str], now: float) -> None:
        """Metadata is read in each cycle that has misplaced groups, from one broker after the other."""
        self._misplaced_since = {group: self._misplaced_since.get(group, now) for group in groups}
        enough = max(MISPLACED_SECONDS, MISPLACED_CYCLES * self._watching.interval)
        if any(now - since >= enough for since in self._misplaced_since.values()):
            self._believe(Placement.REFUTED, now)

    def _has_changed(self, now: float, growing: Collection[str]) -> bool:
        """Whether commits are gone, another broker no longer counts one of ours as alive (it may be cut off and already
        replaced), or a topic of `growing` groups has grown. All is answered once per LIVING_SECONDS, with one
        request."""
        has_grown = False
        if self._is_due(self._living_read, now, LIVING_SECONDS):
            if self.has_lost_commits:
                self._dead = frozenset()
                return True
            self._living_read, self._dead = now, frozenset()
            pairs = self._rows.layout.pairs if growing else ()
            topics = {topic for group, topic in pairs if group in growing}
            answers = self._brokers.living(self._in_turn(self.topology.brokers)[:MOST_ASKED], topics)
            self._liveness.note(answers)
            for node, answer in answers.items():
                self._metadata_from = node
                if isinstance(answer, Answer):
                    self._dead = frozenset(self.topology.brokers.keys() - answer.content.brokers.keys())
                    has_grown = has_more_partitions(self.topology, answer.content)
        return bool(self._dead) or has_grown

    def _list_groups(self, now: float) -> None:
        """Lists the groups of all brokers if that is due, otherwise those of brokers that the latest round lacks."""
        is_full = self._is_due(self._groups_listed, now)
        if is_full:
            self._groups_listed = now
        present = self._liveness.present(self.topology.brokers if is_full else self._not_listed)
        nodes = [node for node in present if not self._brokers.lack(node, LIST_GROUPS)]
        if nodes:
            leader_of = self._listing_times.leader_of(self.topology)
            listings = self._commits.list_groups(nodes, self.topology.brokers.keys(), leader_of)
            # A broker that has only just come back may list groups that it no longer coordinates.
            believed = {node: one for node, one in listings.items() if not self._liveness.is_doubtful(node)}
            is_complete = self._commits.handovers.is_complete
            self._rounds.append(Round(now, believed, self.topology, is_full, is_complete=is_complete))

    @property
    def _not_listed(self) -> frozenset[int]:
        """Returns brokers whose groups are neither in the latest round nor in an unconfirmed one."""
        return self._listing_times.not_listed_since(self._newest_round, self.topology).difference(
            *(listed.whole for listed in self._rounds)
        )

    @property
    def _has_first_lists(self) -> bool:
        """Whether an unconfirmed round has the first listing of some partition."""
        unheard = self._listing_times.not_listed_since(NEVER, self.topology)
        return any(not listed.whole.isdisjoint(unheard) for listed in self._rounds)

    def _confirm_rounds(self) -> None:
        """Applies rounds whose leaders several brokers confirm: one that is cut off may report former leaders."""
        enough = min(CONFIRMATIONS, len(self.topology.brokers))
        rounds = [listed.seen_again() for listed in self._rounds]
        for listed in rounds:
            if listed.confirmations >= enough:
                self._listing_times = updated_times(self._listing_times, listed, self.topology)
                self._newest_round = max(self._newest_round, listed.at if listed.is_full else NEVER)
        self._rounds = [listed for listed in rounds if listed.confirmations < enough]

    def refresh_for_unknown_partitions(self, commits: CommitRound) -> None:
        """Reads Metadata for commits of unknown partitions, and again in later cycles: a broker may be cut off."""
        checked = (self.topology, *(part.columns.shape for part in commits.parts))
        if self._checked == checked:
            return
        self._unknown = {
            (topic, partition): self._unknown.get((topic, partition), 0) + 1
            for part in commits.parts
            for topic, partition in part.mapping.largest.items()
            if (described := self.topology.topics.get(topic)) is None or partition >= len(described.leaders)
        }
        if any(cycles <= ANSWERS_BEFORE_DELETED for cycles in self._unknown.values()):
            self._read_topology(self._monotonic(), is_repeat=True)
        else:
            self._checked = checked

    def refresh_for_uncoordinated_groups(self) -> None:
        """Asks the new leaders for their log ends at once, because what is committed afterwards moves them."""
        uncoordinated = frozenset(self._commits.uncoordinated)
        if uncoordinated - self._uncoordinated:
            self._read_topology(self._monotonic(), is_repeat=True)
            self._commits.handovers.follow(self._coordinating_topic)
        self._uncoordinated = uncoordinated

    def _is_due(self, last: float, now: float, period: float = REFRESH_SECONDS) -> bool:
        return is_due(last, period, now, self._watching.interval)

    def _read_topology(self, now: float, *, is_repeat: bool = False) -> None:
        """Reads Metadata from another broker each time, because one may be cut off; the next cycle asks more."""
        brokers = self._in_turn(self.topology.brokers)
        # If all known brokers may have been replaced, any connected broker comes first.
        nodes = [None, *brokers] if self._is_new_client or not brokers else brokers
        named = (self._watching.given(group).topics_by_name for group in self._watching.named_groups)
        # Whether a remembered topic is deleted or hidden from us is said only where it is named.
        expected = self._rows.remembered_topics.union(*named)
        answers = self._brokers.topology(nodes[:MOST_ASKED], expected)
        self._liveness.note({node: answer for node, answer in answers.items() if node is not None})
        for node, answer in answers.items():
            self._metadata_from = self._metadata_from if node is None else node
            if isinstance(answer, Answer):
                self._follow(updated(self.topology, answer.content, expected, counts=not is_repeat), now)
                self._topology_read = self._living_read = now
                self._is_new_client, self._is_compared, self.is_described = False, False, True
                self._liveness.forget_others(self.topology.brokers.keys())
                self._confirm_rounds()
                return
            if node is None:
                self._liveness.failures.append(answer)

    def _follow(self, topology: Topology, now: float) -> None:
        before, self.topology = self.topology, topology
        if moves_without_election(before.topics.get(OFFSETS_TOPIC), topology.topics.get(OFFSETS_TOPIC)):
            self._believe(Placement.REFUTED, now)

    def seek(self, asked: Asked) -> None:
        """Looks for groups that HPAs ask for and no broker lists, where that does not prove that they do not exist."""
        now = self._monotonic()
        if not asked or not self._is_due(self._sought, now) or not self.topology.brokers:
            return
        is_placed = self._listing_times.coordinating_topic(self.topology) is not None
        unlisted = () if is_placed else sorted(asked.keys() - self._commits.directory.groups)
        if unlisted := list(filter(self._watching.watches_group, unlisted)):
            self._sought = now
            self._commits.seek(unlisted, self.topology.brokers, has_offsets_topic=self.has_offsets_topic)

    def _in_turn(self, brokers: Iterable[int]) -> list[int]:
        """Rotates the available brokers; doubtful ones come last."""
        is_behind = {node: node in self._dead or self._liveness.is_doubtful(node) for node in brokers}
        return sorted(self._liveness.present(brokers), key=lambda n: (is_behind[n], n <= self._metadata_from, n))

    @property
    def has_offsets_topic(self) -> bool:
        """Whether Metadata shows it. Asked for it by its name, Kafka before 2.8 would create it."""
        return OFFSETS_TOPIC in self.topology.topics

    @property
    def placement(self) -> Placement:
        """Whether groups are where Kafka's hash of their names says."""
        return self._listing_times.placement

    @property
    def lacks_topic_ids(self) -> bool:
        """Whether a topic that is created again is recognised by its offsets alone."""
        return self._lacks_ids(self.topology)

    @property
    def watched_topics(self) -> frozenset[str]:
        """Returns every watched topic that exists; the same object while Metadata is unchanged."""
        return self._watched_in(self.topology)

    def topic_problems(self) -> Iterator[Problem]:
        """Yields a problem for each topic listed for a group that is hidden, missing or not yet seen."""
        cluster = self._watching.cluster
        for group in self._watching.named_groups:
            is_known = group in self._commits.directory.groups
            for topic in sorted(self._watching.required_topics(group, is_known=is_known)):
                if topic in self.topology.hidden:
                    yield Problem(Reason.TOPIC_HIDDEN, hidden_topic(topic), cluster, group, topic)
                elif self.topology.is_deleted(topic):
                    text = f"topic {topic} of group {group} does not exist in cluster {cluster}"
                    yield Problem(Reason.TOPIC_MISSING, text, cluster, group, topic)
                elif topic not in self.topology.topics:
                    yield Problem(Reason.NOT_READ_YET, f"topic {topic} has not been seen yet", cluster, group, topic)

    def possible_share_groups(self) -> dict[str, Cause]:
        """Returns named groups that may be share groups, which have no commits: their coordinators never listed all
        their groups."""
        unlisted = self._watching.named_groups - self._commits.directory.groups
        coordinators = self._commits.directory.coordinators
        unheard = self._listing_times.not_listed_since(NEVER, self.topology) if unlisted else frozenset()
        return {
            group: Cause(State.UNKNOWN, f"broker {node} has not listed its groups yet")
            for group in unlisted
            if (node := coordinators.get(group, NOBODY)) in unheard
            and not self._brokers.lack(node, DESCRIBE_SHARE_GROUP_OFFSETS)
        }

    def possible_groups(self, unreachable: str | None = None) -> PossibleGroups:
        """Returns which unlisted groups may exist; `unreachable` is why no broker can be asked."""
        if not self.topology.brokers:
            why = unreachable or some_of([failure.text for failure in self._liveness.failures])
            return any_group_possible(why or "no broker has described the cluster yet")
        return possible_groups_of(
            self._listing_times,
            self.topology,
            lambda node: unreachable or self._why_not_listed(node),
            now=self._monotonic(),
            newest_round=self._newest_round,
            patience=max(self._watching.max_age, ROUNDS_BEFORE_STALE * max(REFRESH_SECONDS, self._watching.interval)),
        )

    def _why_not_listed(self, node: int) -> str | None:
        failure = self._liveness.failure(node) or self._liveness.failed.get(node)
        return failure.text if failure is not None else self._brokers.lack(node, LIST_GROUPS) or None
