"""Topics that only label selectors name for a group, as `group=billing,topic=orders` in an HPA.

They count as if a rule named them, for such selectors alone, so that a group at zero wakes up without a rule. Readers
ask for them; the collector reads those that were asked for recently."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from adapter.columns import NEVER

MOST_PARTITIONS = 50_000
MOST_OF_NAMESPACE = 10_000
"""Partitions, so that no namespace can take the room of the others."""
PARTITIONS_MORE = 50
"""Each topic of a group counts as so many more, because it takes room in the ConfigMap: at most 1,000 of them."""
KEEP_SECONDS = 600.0
"""After the last read; an HPA reads every 15 s."""
KEEP_CYCLES = 3
"""With long intervals: replies are cached between two cycles, so readers ask once per cycle."""

Key = tuple[str, str, str]
"""Cluster, group, topic."""


@dataclass(slots=True)
class _Asked:
    partitions: int
    counted: int
    namespace: str | None
    wanted_at: float
    read_at: float
    """By a reader of this process."""


class SelectorTopics:
    """Bounded. Any thread may use it. `monotonic` is a clock in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._asked: dict[Key, _Asked] = {}
        self._partitions: Counter[str | None] = Counter()
        """By namespace of the first reader."""
        self._lock = Lock()

    def ask(self, key: Key, partitions: int, namespace: str | None) -> bool:
        """Has the collector read this topic for the group from its next cycle on; returns False if there is no room."""
        with self._lock:
            asked = self._wanted(key, partitions, namespace)
            if asked is not None:
                asked.read_at = asked.wanted_at
            return asked is not None

    def expect(self, key: Key, partitions: int) -> None:
        """Reads it as well, because readers asked another replica or a former process."""
        with self._lock:
            self._wanted(key, partitions, None)

    def asked_here(self) -> Mapping[Key, int]:
        """Returns what readers have asked this process for lately -> partitions."""
        with self._lock:
            oldest = self._monotonic() - KEEP_SECONDS
            return {key: asked.partitions for key, asked in self._asked.items() if asked.read_at >= oldest}

    def of(self, cluster: str, interval: float) -> Mapping[str, frozenset[str]]:
        """Returns group -> topics to read for it, without those that nobody asks for any more."""
        with self._lock:
            oldest = self._monotonic() - max(KEEP_SECONDS, KEEP_CYCLES * interval)
            found: dict[str, set[str]] = {}
            for key in list(self._asked):
                # Also those of clusters that are no longer in the settings, or their room would stay taken.
                if self._asked[key].wanted_at < oldest:
                    self._forget(key)
                elif key[0] == cluster:
                    found.setdefault(key[1], set()).add(key[2])
        return {group: frozenset(topics) for group, topics in found.items()}

    def _wanted(self, key: Key, partitions: int, namespace: str | None) -> _Asked | None:
        asked = self._asked.get(key)
        if asked is None:
            counted = partitions + PARTITIONS_MORE
            of_namespace = self._partitions[namespace] + counted
            if of_namespace > MOST_OF_NAMESPACE or self._partitions.total() + counted > MOST_PARTITIONS:
                return None
            asked = self._asked[key] = _Asked(partitions, counted, namespace, NEVER, NEVER)
            self._partitions[namespace] = of_namespace
        asked.wanted_at = self._monotonic()
        return asked

    def _forget(self, key: Key) -> None:
        asked = self._asked.pop(key)
        self._partitions[asked.namespace] -= asked.counted
        if not self._partitions[asked.namespace]:
            del self._partitions[asked.namespace]
