"""Tracks which brokers are worth asking: one that missed its deadline is only probed until it answers."""

from collections.abc import Callable, Collection, Iterable, Mapping

from kafka.future import Future

from adapter.columns import NEVER
from adapter.kafka.answers import Failure

DISTRUST_SECONDS = 5.0
"""For this long, a broker that was silent may report old offsets (0.25 s was observed)."""
NOT_YET = float("inf")


class Liveness:
    """Which brokers are silent, and since when others are back. Times are monotonic seconds."""

    def __init__(self, probe: Callable[[int], Future], monotonic: Callable[[], float]) -> None:
        self._probe = probe
        self._monotonic = monotonic
        self._absences: dict[int, tuple[Failure, Future]] = {}
        self._back_since: dict[int, float] = {}
        """Node that was silent -> when it answered again, or NOT_YET."""
        self.failures: list[Failure] = []
        self.failed: dict[int, Failure] = {}
        """Node -> its first failure in this cycle."""
        self.answers = 0

    def begin_cycle(self) -> None:
        """Reinstates brokers that answered a probe, and probes the others again."""
        self.failures, self.failed, self.answers = [], {}, 0
        for node, (failure, probe) in list(self._absences.items()):
            if probe.succeeded():
                del self._absences[node]
                self._back_since[node] = self._monotonic()
            elif probe.is_done:
                self._absences[node] = (failure, self._probe(node))

    def note(self, answers: Mapping[int, object]) -> None:
        """Records the outcomes of requests; a broker that missed its deadline is only probed from now on."""
        for node, answer in answers.items():
            if isinstance(answer, Failure):
                self.failures.append(answer)
                self.failed.setdefault(node, answer)
                if answer.was_silence and node not in self._absences:
                    self._absences[node] = (answer, self._probe(node))
            else:
                self.answers += 1
                if self._back_since.get(node) == NOT_YET:
                    self._back_since[node] = self._monotonic()

    def present(self, nodes: Iterable[int]) -> tuple[int, ...]:
        return tuple(node for node in nodes if node not in self._absences)

    @property
    def is_somebody_absent(self) -> bool:
        return bool(self._absences)

    def failure(self, node: int) -> Failure | None:
        """Returns why the broker is not asked; None if it is."""
        return self._absences[node][0] if node in self._absences else None

    def is_doubtful(self, node: int) -> bool:
        """Whether offsets from this broker that go backward are ignored."""
        return self._monotonic() - self._back_since.get(node, NEVER) < DISTRUST_SECONDS

    def forget_others(self, brokers: Collection[int]) -> None:
        """Brokers that left the cluster need no probe; one that returns is distrusted at first."""
        for node in self._absences.keys() - set(brokers):
            del self._absences[node]
            self._back_since[node] = NOT_YET

    def forget_probes(self) -> None:
        """Drops all probes with the closed client; brokers that were silent are distrusted after their next answer."""
        self._back_since |= dict.fromkeys(self._absences, NOT_YET)
        self._absences.clear()
