"""Which groups somebody asked for of late: they are read in every cycle. Written by readers, taken by collectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

INTEREST_SECONDS = 300.0
"""An HPA asks every 15 s, and misses a few rounds when its control plane is renewed; in five minutes it is back."""


class Interest:
    """Cluster and group -> when it was last asked for. Any number of threads; costs a reader one update of a dict."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._asked: dict[str, dict[str, float]] = {}

    def note(self, cluster: str, groups: Iterable[str]) -> None:
        """Somebody asked for the groups, whatever the answer is; all of them are groups that the cluster has."""
        now = dict.fromkeys(groups, self._monotonic())
        with self._lock:
            self._asked.setdefault(cluster, {}).update(now)

    def recent(self, cluster: str) -> frozenset[str]:
        """The groups that were asked for in the last `INTEREST_SECONDS`; the others are forgotten."""
        since = self._monotonic() - INTEREST_SECONDS
        with self._lock:
            asked = self._asked.get(cluster, {})
            if asked and min(asked.values()) < since:
                asked = self._asked[cluster] = {group: at for group, at in asked.items() if at >= since}
            return frozenset(asked)
