"""Keeps what is remembered of groups over restarts, and exchanges it with the other replica, by a text that both write.

Kafka can report live commits again, so they are written less often than what it cannot report any more."""

import math
from collections.abc import Callable, Mapping

from adapter.clock import Clock
from adapter.conditions import MEMORY, Conditions
from adapter.errors import AdapterError, StateNotPersistable, some_of
from adapter.memory.text import Key, dumps, loads
from adapter.memory.value import NOTHING, ClusterMemory, GroupMemory, merged, until
from adapter.repeating import Repeating

ROUND_SECONDS = 60.0
RETRY_SECONDS = 5.0
"""Until the text has been read for the first time."""
REFUSALS_BEFORE_BELIEVED = 3
"""After so many refusals, RETRY_SECONDS apart, nothing is expected from a text that may not be read."""
LIVE_SECONDS = 600.0
"""Between two writes of commits that have only moved on."""
UNNAMED_SECONDS = 86_400.0
"""A group that neither the settings nor an HPA name any more is forgotten after that."""

Exchange = Callable[[Callable[[str], str]], None]
"""Replaces the text by the function's result; raises AdapterError if that fails,
and StateNotPersistable if it always will."""


class MemoryKeeper(Repeating):
    def __init__(
        self,
        seen: Callable[[], Mapping[str, ClusterMemory]],
        clock: Clock,
        conditions: Conditions,
        exchange: Exchange | None = None,
    ) -> None:
        """`seen` returns what is known now of the groups that the settings or HPAs name, by cluster."""
        super().__init__("memory")
        self._seen = seen
        self._clock = clock
        self._exchange = exchange
        self.is_loaded = exchange is None
        """Whether the text has been read, or never can be."""
        self._refusals = 0
        self._known: Mapping[Key, GroupMemory] = {}
        self._by_cluster: Mapping[str, ClusterMemory] = {}
        """Replaced as a whole; read by the collectors' threads."""
        self._named_at: dict[Key, float] = {}
        """When the group was last named, or first found in the text."""
        self._live_at = clock.monotonic()
        """When commits that have only moved on were last written."""
        self._left_out: list[Key] = []
        """The groups that the latest text had no room for."""
        self._conditions = conditions

    def of(self, cluster: str) -> ClusterMemory:
        """Returns the same object until the next round."""
        return self._by_cluster.get(cluster, NOTHING)

    def turn(self) -> float:
        self.run_once()
        return ROUND_SECONDS if self.is_loaded else RETRY_SECONDS

    def end(self) -> None:
        """Writes what is new since the latest turn."""
        self.run_once(is_last=True)

    def run_once(self, *, is_last: bool = False) -> None:
        now, seen = self._clock.monotonic(), self._seen()
        named = {(cluster, group): one for cluster, groups in seen.items() for group, one in groups.items()}
        # Kept for longer than the group, which is not new if the text that still has it has not been written since.
        named_at = {key: at for key, at in self._named_at.items() if now - at < 2 * UNNAMED_SECONDS}
        self._named_at = named_at | dict.fromkeys(named, now)
        self._know(merged(until(self._clock.time(), self._known), named), now)
        if self._exchange is None:
            return
        writes_live = is_last or now - self._live_at >= LIVE_SECONDS
        live_since = math.inf if writes_live else self._clock.time() - ROUND_SECONDS
        left_out, bad = list[Key](), list[str]()

        def changed(text: str) -> str:
            """What was read counts, whether or not it can be written."""
            nonlocal left_out, bad
            found, bad = loads(text, self._clock.time())
            self._know(merged(found, self._known), now)
            self.is_loaded = True
            # What another replica has forgotten is not written again.
            known = {key: one for key, one in self._known.items() if key in found or key in named}
            news = [key for key, one in known.items() if key not in found or one.has_news(found[key], live_since)]
            written, left_out = dumps(known) if news else (text, [])
            # Of the groups that Kafka still reports, others may have room each time.
            waiting = {key for key in self._left_out if key in known and known[key].seen_at >= live_since}
            if waiting.union(left_out).issuperset(news):
                candidates = known.keys() & {*self._left_out, *left_out}
                written, left_out = text, [key for key in candidates if _lacks(found.get(key), known[key])]
            return written

        try:
            self._exchange(changed)
        except StateNotPersistable as error:
            # A right that was granted a moment ago may not have reached the API server yet.
            self._refusals += 1
            self.is_loaded |= self._refusals >= REFUSALS_BEFORE_BELIEVED
            self._conditions.fails(MEMORY, "NeverKept", "nothing is kept over restarts", details=str(error))
        except AdapterError as error:
            self._conditions.fails(MEMORY, "NotKept", "it could not be kept, and will be later", details=str(error))
        else:
            self._live_at = now if writes_live else self._live_at
            self._left_out = sorted(left_out)
            self._report(bad)

    def _know(self, known: Mapping[Key, GroupMemory], now: float) -> None:
        """Takes it over, without groups that have not been named for a day."""
        ages = {key: now - self._named_at.setdefault(key, now) for key in known}
        known = {key: one for key, one in known.items() if ages[key] < UNNAMED_SECONDS}
        by_cluster: dict[str, dict[str, GroupMemory]] = {}
        for (cluster, group), one in known.items():
            by_cluster.setdefault(cluster, {})[group] = one
        self._known = known
        self._by_cluster = by_cluster

    def _report(self, bad_lines: list[str]) -> None:
        if self._left_out:
            names = some_of([f"{group[:80]!r} of cluster {cluster}" for cluster, group in self._left_out])
            self._conditions.fails(MEMORY, "NoRoom", "there is no room for some groups", details=names)
        elif bad_lines:
            message = "lines that cannot be read are dropped"
            self._conditions.fails(MEMORY, "LinesDropped", message, details=some_of(bad_lines))
        else:
            self._conditions.holds(MEMORY)


def _lacks(written: GroupMemory | None, known: GroupMemory) -> bool:
    """Whether a group, or what its members can read, was left out."""
    return written is None or (not written.windows and bool(known.windows))
