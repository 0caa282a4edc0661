"""Keeps what is remembered of groups over restarts, and exchanges it with the other replica, by a text that both write.

Kafka can report live commits again, so they are written less often than what it cannot report any more."""

import logging
import math
from collections.abc import Callable, Mapping
from threading import Thread

from adapter.clock import Clock
from adapter.errors import AdapterError, StateNotPersistable, some_of
from adapter.memory.text import Key, dumps, loads
from adapter.memory.value import NOTHING, ClusterMemory, GroupMemory, merged
from adapter.repeating import Repeating

logger = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
RETRY_SECONDS = 5.0
"""Until the text has been read for the first time."""
LIVE_SECONDS = 600.0
"""Between two writes of commits that have only moved on."""
UNNAMED_SECONDS = 86_400.0
"""A group that neither the settings nor an HPA name any more is forgotten after that."""

Exchange = Callable[[Callable[[str], str]], None]
"""Replaces the text by the function's result; raises AdapterError if that fails,
and StateNotPersistable if it always will."""


class MemoryKeeper(Repeating):
    def __init__(
        self, seen: Callable[[], Mapping[str, ClusterMemory]], clock: Clock, exchange: Exchange | None = None
    ) -> None:
        """`seen` returns what is known now of the groups that the settings or HPAs name, by cluster."""
        super().__init__("memory")
        self._seen = seen
        self._clock = clock
        self._exchange = exchange
        self.is_loaded = exchange is None
        """Whether the text has been read, or never can be."""
        self._known: Mapping[Key, GroupMemory] = {}
        self._by_cluster: Mapping[str, ClusterMemory] = {}
        """Replaced as a whole; read by the collectors' threads."""
        self._named_at: dict[Key, float] = {}
        """When the group was last named, or first found in the text."""
        self._live_at = clock.monotonic()
        """When commits that have only moved on were last written."""
        self._left_out: list[Key] = []
        """The groups that the latest text had no room for."""
        self._logged: dict[str, str] = {}

    def of(self, cluster: str) -> ClusterMemory:
        """Returns the same object until something changes."""
        return self._by_cluster.get(cluster, NOTHING)

    def turn(self) -> float:
        self.run_once()
        return ROUND_SECONDS if self.is_loaded else RETRY_SECONDS

    def stop(self, timeout_seconds: float) -> None:
        """Writes what is new since the latest turn, if that takes no longer."""
        super().stop(timeout_seconds)
        last = Thread(target=self.run_once, kwargs={"is_last": True}, name="memory-last", daemon=True)
        last.start()
        last.join(timeout_seconds)

    def run_once(self, *, is_last: bool = False) -> None:
        now, seen = self._clock.monotonic(), self._seen()
        named = {(cluster, group): one for cluster, groups in seen.items() for group, one in groups.items()}
        self._named_at |= dict.fromkeys(named, now)
        named = merged({key: one for key, one in self._known.items() if key in named}, named)
        if self._exchange is None:
            self._know(named)
            return
        writes_live = is_last or now - self._live_at >= LIVE_SECONDS
        live_since = math.inf if writes_live else self._clock.time() - ROUND_SECONDS
        left_out = self._left_out

        def changed(text: str) -> str:
            """What was read counts, whether or not it can be written."""
            nonlocal left_out
            found, bad = loads(text, self._clock.time())
            self._warn("lines", f"lines that cannot be read are dropped: {some_of(bad)}" if bad else "")
            # A group that has not been named for a day is forgotten with the next write.
            self._named_at = {key: self._named_at.get(key, now) for key in found.keys() | named.keys()}
            is_old = {key: now - self._named_at[key] >= UNNAMED_SECONDS for key in found}
            known = merged({key: one for key, one in found.items() if not is_old[key]}, named)
            self._know(known)
            self.is_loaded = True
            news = (
                key for key, one in known.items() if key not in self._left_out and _is_news(found, key, one, live_since)
            )
            if not any(news):
                return text
            written, left_out = dumps(known)
            return written

        try:
            self._exchange(changed)
        except StateNotPersistable as error:
            self.is_loaded = True
            self._warn("kept", f"nothing is kept over restarts: {error}")
        except AdapterError as error:
            self._warn("kept", f"it could not be kept, and will be later: {error}")
        else:
            self._live_at = now if writes_live else self._live_at
            self._left_out = left_out
            names = [f"{group[:80]!r} of cluster {cluster}" for cluster, group in left_out]
            self._warn("room", f"there is no room for group {some_of(names)}" if names else "")
            self._warn("kept", "")

    def _know(self, known: Mapping[Key, GroupMemory]) -> None:
        by_cluster: dict[str, dict[str, GroupMemory]] = {}
        for (cluster, group), one in known.items():
            by_cluster.setdefault(cluster, {})[group] = one
        self._known = known
        self._by_cluster = by_cluster

    def _warn(self, about: str, problem: str) -> None:
        """Logs each problem once while it lasts."""
        if problem and self._logged.get(about) != problem:
            logger.warning("what is remembered of groups: %s", problem)
        self._logged[about] = problem


def _is_news(found: Mapping[Key, GroupMemory], key: Key, known: GroupMemory, live_since: float) -> bool:
    return key not in found or known.has_news(found[key], live_since)
