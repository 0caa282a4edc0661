"""The latest view of every cluster, replaced as a whole: readers need no lock and never wait for a broker."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import count
from threading import Lock

import numpy as np

from adapter.cluster.unlisted_groups import NO_SILENCE, Silence, nothing_heard
from adapter.lag.layout import Layout
from adapter.lag.snapshot import Snapshot, empty_snapshot
from adapter.lag.totals import NO_TOTALS, Totals, totals_of
from adapter.lag.values import Treatment, Values, values_of


@dataclass(frozen=True, slots=True, eq=False)
class ClusterView:
    cluster: str
    snapshot: Snapshot
    treatment: Treatment
    values: Values
    silence: Silence = NO_SILENCE
    """Which unknown groups may exist."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Group -> why its commits were never read."""
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Group -> topics listed for it by name that do not exist."""
    unseen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Group -> topics listed for it by name that Metadata does not show, and why."""
    assumed: frozenset[str] = frozenset()
    """Groups in the settings that Kafka does not know."""
    in_doubt: Mapping[str, float] = field(default_factory=dict)
    """Group that was not described as Stable for too long -> when it last was, in monotonic seconds."""
    topics: Set[str] = frozenset()
    """Every watched topic that exists, for hints in errors."""
    visible: Mapping[str, int] | None = None
    """Group -> its code in the layout, of the groups that the reader may see; None: all."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Every watched topic that exists -> the number of its partitions, whatever the reader may see."""
    only_selected: frozenset[tuple[str, str]] = frozenset()
    """Groups and topics that have rows only because selectors name them."""
    dormant: Mapping[str, int] = field(default_factory=dict)
    """Group that has no other rows -> its code in the layout."""
    once_known: frozenset[str] | None = frozenset()
    """Groups that Kafka once knew; None: not known yet."""
    remembered: Mapping[tuple[str, str, str], object] = field(default_factory=dict)
    """Cluster, group and topic of which a commit was seen, now or earlier."""
    totals: Totals = NO_TOTALS

    def __post_init__(self) -> None:
        if self.totals is not NO_TOTALS:
            return
        every_row = np.arange(len(self.layout))
        object.__setattr__(self, "totals", totals_of(self.snapshot, self.treatment, self.values, every_row))

    @property
    def groups(self) -> tuple[str, ...]:
        return self.layout.groups if self.visible is None else tuple(self.visible)

    @property
    def codes(self) -> Mapping[str, int]:
        return self.layout.codes if self.visible is None else self.visible

    def knows(self, group: str) -> bool:
        """Returns whether Kafka knows the group or once knew it."""
        is_known = group in self.layout.codes and group not in self.assumed and group not in self.dormant
        return is_known or group in (self.once_known or ())

    @property
    def layout(self) -> Layout:
        return self.snapshot.layout


def silent_view(cluster: str, silence: str) -> ClusterView:
    snapshot = empty_snapshot()
    flags = snapshot.received > 0
    treatment = Treatment(flags, flags, flags, flags)
    return ClusterView(cluster, snapshot, treatment, values_of(snapshot, treatment), nothing_heard(silence))


class Store:
    """One writer per cluster (its collector), any number of readers.

    Stores that share `versions` never have the same."""

    def __init__(self, clusters: Iterable[str], versions: Iterator[int] | None = None) -> None:
        self._versions = count() if versions is None else versions
        self.version = next(self._versions)
        self._lock = Lock()
        self.views: tuple[ClusterView, ...] = tuple(
            silent_view(cluster, "its brokers have not been asked yet") for cluster in clusters
        )

    def replace(self, view: ClusterView) -> None:
        """Replaces a cluster's view. The lock protects against the other clusters' writers; readers need none."""
        with self._lock:
            self.views = tuple(view if known.cluster == view.cluster else known for known in self.views)
            self.version = next(self._versions)


class Feed:
    """Passes a cluster's views to the stores that serve them: to two while changed settings are taken over."""

    def __init__(self, cluster: str, store: Store) -> None:
        self.view = next(view for view in store.views if view.cluster == cluster)
        self._stores: tuple[Store, ...] = (store,)
        self._lock = Lock()

    def replace(self, view: ClusterView) -> None:
        with self._lock:
            self.view = view
            for store in self._stores:
                store.replace(view)

    def lead_to(self, *stores: Store) -> None:
        with self._lock:
            self._stores = stores
            for store in stores:
                store.replace(self.view)
