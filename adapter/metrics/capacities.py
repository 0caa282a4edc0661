"""What one member of each group can read, learned from one view of a cluster after another."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np

from adapter.clock import Clock
from adapter.columns import Indexes
from adapter.lag.layout import NO_LAYOUT, Layout
from adapter.lag.saturation import BusyWindow, Saturation, capacity_in, newest_of
from adapter.metrics.store import ClusterView
from adapter.verdicts.capacity import Capacity

Wants = Callable[[str], bool]
"""Whether the capacity of a group's members matters."""
Windows = Mapping[tuple[str, str], tuple[BusyWindow, ...]]
"""Cluster and group -> spans in which its members were busy all the time, dated in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Learned:
    capacity: Capacity
    newest: float
    """When its latest window began, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class _Followed:
    """The rows of one cluster's groups that matter, and the window that has begun."""

    layout: Layout
    wants: Wants
    rows: Indexes
    window: Saturation | None


class Capacities:
    """Any thread may call it. Nothing is followed of groups that do not matter."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._followed: dict[str, _Followed] = {}
        self._windows: Windows = {}
        self._learned: dict[tuple[str, str], tuple[tuple[BusyWindow, ...], Learned | None]] = {}
        """With the windows that it follows from."""

    @property
    def windows(self) -> Windows:
        return self._windows

    def of(self, cluster: str, group: str) -> Learned | None:
        """Returns None if its members have not been busy for long enough to show what they can do."""
        windows, known = self._windows.get((cluster, group), ()), self._learned.get((cluster, group))
        if known is None or known[0] is not windows:
            capacity = capacity_in(windows)
            is_firm = capacity is not None and capacity.is_firm
            learned = Learned(capacity, windows[-1].begin) if capacity is not None and is_firm else None
            known = self._learned[cluster, group] = windows, learned
        return known[1]

    def recall(self, cluster: str, windows: Mapping[str, tuple[BusyWindow, ...]]) -> None:
        """Takes over what is remembered of a cluster's groups, and forgets those that are neither among them nor in the
        latest view."""
        with self._lock:
            followed = self._followed.get(cluster)
            known = windows.keys() | (followed.layout.codes.keys() if followed else ())
            self._windows = {key: own for key, own in self._windows.items() if key[0] != cluster or key[1] in known}
            # A copy, because `of` adds to it without the lock.
            self._learned = {key: each for key, each in self._learned.copy().items() if key in self._windows}
            self._add(((cluster, group), own) for group, own in windows.items() if own)

    def look(self, views: Iterable[ClusterView], wants: Wants, interval: float) -> None:
        """Follows the latest views of all clusters, read every `interval` seconds; call it every few seconds.

        `wants` is the same object while the settings are the same."""
        with self._lock:
            self._followed = {view.cluster: self._follow(view, wants, interval) for view in views}

    def _follow(self, view: ClusterView, wants: Wants, interval: float) -> _Followed:
        before = self._followed.get(view.cluster)
        if before is None or before.layout is not view.layout or before.wants is not wants:
            before = _Followed(view.layout, wants, _rows_of(view.layout, wants), None)
        window = before.window
        # Before the first cycle, a view has neither a ring nor owners of its layout.
        is_whole = view.ring.layout is view.layout and len(view.owners.codes) == len(view.layout)
        if not len(before.rows) or not is_whole:
            window = None
        else:
            owners = view.owners.ids[before.rows]
            if window is not None:
                window = window.followed_by(view.ring, owners)
                if window.is_over(interval):
                    self._end(view.cluster, window)
                    window = None
            window = window or Saturation.begun(view.ring, before.rows, owners)
        return _Followed(view.layout, wants, before.rows, window)

    def _end(self, cluster: str, window: Saturation) -> None:
        to_epoch = self._clock.time() - self._clock.monotonic()
        ended = window.windows().items()
        self._add(((cluster, group), (own._replace(begin=own.begin + to_epoch),)) for group, own in ended)

    def _add(self, windows: Iterable[tuple[tuple[str, str], tuple[BusyWindow, ...]]]) -> None:
        known = dict(self._windows)
        for key, own in windows:
            former = known.get(key, ())
            if not set(own) <= set(former):
                known[key] = newest_of({*former, *own})
        self._windows = known


def _rows_of(layout: Layout, wants: Wants) -> Indexes:
    spans = [layout.spans[group] for group in layout.groups if wants(group)]
    nothing = np.empty(0, np.intp)
    return (
        np.concatenate([nothing, *(np.arange(span.start, span.stop) for span in spans)])
        if layout is not NO_LAYOUT
        else nothing
    )
