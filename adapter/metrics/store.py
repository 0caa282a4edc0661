"""The latest view of every cluster, replaced as a whole: readers never wait for a broker."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import count

from adapter.cluster.groups import Assignment, GroupStatus, MemberCount, Owned
from adapter.cluster.possible_groups import NO_POSSIBLE_GROUPS, PossibleGroups, any_group_possible
from adapter.lag.layout import Layout
from adapter.lag.owners import NO_OWNERS, Owners
from adapter.lag.ring import Ring, empty_ring
from adapter.lag.snapshot import Snapshot, empty_snapshot
from adapter.lag.totals import NO_TOTALS, Totals
from adapter.lag.values import Treatment, Values, values_of
from adapter.metrics.problems import Problem, Reason
from adapter.verdicts.assignment import Sharing

_UNREAD = {Reason.NOT_READ_YET, Reason.NOT_READ_SINCE}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ClusterView:
    cluster: str
    snapshot: Snapshot
    treatment: Treatment
    values: Values
    possible_groups: PossibleGroups = NO_POSSIBLE_GROUPS
    """Which unknown groups may exist."""
    problems: Mapping[str, Sequence[Problem]] = field(default_factory=dict)
    """Group -> its problems. One that names a topic affects only reads that include the topic; IN_DOUBT affects only
    reads of entries in doubt; any other affects every read of the group."""
    assumed: frozenset[str] = frozenset()
    """Groups that the settings or HPAs name and that Kafka does not know."""
    assignments: Mapping[str, Assignment] = field(default_factory=dict)
    """Which members own what, of the groups for whose members an HPA asks; a group that is absent is not known."""
    topics: Set[str] = frozenset()
    """Every watched topic that exists, for hints in errors."""
    visible: Mapping[str, int] | None = None
    """Group -> its code in the layout, of the groups that the reader may see; None: all."""
    totals: Totals = NO_TOTALS
    """Over all rows."""
    sharing_of: Callable[[str], Sharing] = lambda _: Sharing.BY_TOPIC
    """Returns how the members of a group share the partitions of several topics."""
    members_of: Callable[[str], MemberCount | None] = lambda _: None
    """Returns how many members a group has; None if that is not known, as in a rebalance."""
    owned: Mapping[str, Sequence[Owned]] = field(default_factory=dict)
    """What is assigned to the members of each group, as it was last described; a group that is absent is not known."""
    statuses: Mapping[str, GroupStatus] = field(default_factory=dict)
    """What the coordinator of each group reported of it, where members can be described."""
    judged_at: Mapping[str, float] = field(default_factory=dict)
    """Group -> as of when it is judged whether its commits move, in monotonic seconds; if absent, as they were read."""
    ring: Ring = field(default_factory=empty_ring)
    """How the offsets of the rows moved."""
    owners: Owners = NO_OWNERS
    """Which members have which partitions, of groups whose description is not outdated."""

    @property
    def codes(self) -> Mapping[str, int]:
        return self.layout.codes if self.visible is None else self.visible

    def is_unread(self, group: str) -> bool:
        """Whether the group's commits were not read in time."""
        return any(not each.topic and each.reason in _UNREAD for each in self.problems.get(group, ()))

    @property
    def has_unread(self) -> bool:
        return any(map(self.is_unread, self.problems))

    def is_only_asked(self, group: str) -> bool:
        """Whether nothing but the selectors of HPAs names a group that Kafka does not know."""
        entries = self.totals.spans.get(self.layout.codes[group], range(0)) if group in self.assumed else range(0)
        return bool(entries) and all(self.totals.is_asked[entry] for entry in entries)

    @property
    def layout(self) -> Layout:
        return self.snapshot.layout


def silent_view(cluster: str, reason: str) -> ClusterView:
    snapshot = empty_snapshot()
    flags = snapshot.received > 0
    treatment = Treatment(flags, flags, flags, flags, flags, flags)
    return ClusterView(cluster, snapshot, treatment, values_of(snapshot, treatment), any_group_possible(reason))


class Feed:
    """The newest view of one cluster. Its collector alone replaces it; readers need no lock."""

    def __init__(self, cluster: str, versions: Iterator[int]) -> None:
        self.view = silent_view(cluster, "its brokers have not been asked yet")
        self.version = 0
        self._versions = versions

    def replace(self, view: ClusterView) -> None:
        """The version follows the view, so that no reply from an older view has the new version."""
        self.view = view
        self.version = next(self._versions)


class Store:
    """The feeds of all clusters. Stores that share `versions` never have the same version."""

    def __init__(self, clusters: Iterable[str], versions: Iterator[int] | None = None) -> None:
        self._versions = count() if versions is None else versions
        self.feeds = {cluster: Feed(cluster, self._versions) for cluster in clusters}
        self.renew()

    def renew(self) -> None:
        """Makes replies outdated although no view is new: they were made by other settings."""
        self._renewed = next(self._versions)

    @property
    def version(self) -> int:
        return max([self._renewed, *(feed.version for feed in self.feeds.values())])

    @property
    def views(self) -> tuple[ClusterView, ...]:
        return tuple(feed.view for feed in self.feeds.values())
