"""The collectors in this process, as `serve` runs them, and what they would serve: for tests that only ask."""

import contextlib
import gc
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self
from unittest import mock

from adapter import clock
from adapter.clock import Clock
from adapter.collector import threads as collector_module
from adapter.collector.threads import collectors_of, start_all, stop_all
from adapter.errors import AdapterError
from adapter.kafka.client import CALL_SECONDS, Brokers
from adapter.metrics.problems import ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.store import Store
from adapter.settings.models import Settings
from adapter.telemetry import Telemetry
from tests.support.samples import wants

LAG = "kafka_consumergroup_lag"
THREADS = ("collector-", "kafka-io-")


@dataclass
class ShiftedClock:
    """The machine's clock with another wall time."""

    ahead: float = 0.0

    def monotonic(self) -> float:
        return clock.monotonic()

    def time(self) -> float:
        return time.time() + self.ahead


@dataclass(frozen=True)
class Served:
    settings: Settings
    store: Store
    metrics: Metrics
    telemetry: Telemetry

    def lag(self, group: str, **labels: str) -> int:
        """The sum of the items, as the autoscaler takes it; raises what the product raises."""
        return sum(item.milli // 1000 for item in self.metrics.read(LAG, wants(group=group, **labels)).values)

    def answer(self, group: str, **labels: str) -> int | str:
        """The lag, or the sentence that comes with a 503; a 404 is an error of the test."""
        try:
            return self.lag(group, **labels)
        except ValueUnavailable as error:
            return str(error)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        """Until it holds, where a refusal means "not yet"; says what was answered last if that is in vain."""
        ends, last = time.monotonic() + seconds, "it does not hold"
        while True:
            try:
                if condition():
                    return
            except AdapterError as error:
                last = str(error)
            assert time.monotonic() < ends, f"waited {seconds:g} s in vain; the last answer: {last}"
            time.sleep(0.01)

    def wait_for_lag(self, expected: int, group: str, seconds: float = 120.0, **labels: str) -> None:
        self.wait_for(lambda: self.lag(group, **labels) == expected, seconds)

    def wait_for_refusal(self, words: str, group: str, seconds: float = 120.0, **labels: str) -> None:
        said: list[int | str] = []

        def is_refused() -> bool:
            said[:] = [self.answer(group, **labels)]
            return isinstance(said[0], str) and words in said[0]

        try:
            self.wait_for(is_refused, seconds)
        except AssertionError as error:
            raise AssertionError(
                f"waited in vain for a refusal with {words!r}; the last answer: {said[0]!r}"
            ) from error

    def causes(self, group: str, cluster: str = "main") -> set[str]:
        """Why the newest cycle could not read rows of the group."""
        view = next(view for view in self.store.views if view.cluster == cluster)
        rows = view.layout.spans[group]
        return {view.snapshot.cause_of(row).text for row in range(rows.start, rows.stop)} - {""}

    def cycles(self, cluster: str = "main") -> int:
        """How many cycles have ended, in whatever way."""
        found = (
            sample
            for metric in self.telemetry.registry.collect()
            for sample in metric.samples
            if sample.name == "kafka_lag_adapter_cycles_total" and sample.labels["cluster"] == cluster
        )
        return int(sum(sample.value for sample in found))

    def wait_for_cycles(self, count: int, cluster: str = "main", seconds: float = 120.0) -> None:
        """So many more."""
        wanted = self.cycles(cluster) + count
        self.wait_for(lambda: self.cycles(cluster) >= wanted, seconds)


def hurried(settings: Settings, interval: float, max_age: float) -> Settings:
    """With an interval below what the settings file may say, so that tests need not wait."""
    collection = settings.collection.model_copy(update={"interval": interval, "max_age": max_age})
    return settings.model_copy(update={"collection": collection})


@contextlib.contextmanager
def served(settings: Settings, clock: Clock | None = None, call_seconds: float = CALL_SECONDS) -> Iterator[Served]:
    """Running collectors; afterwards none of their threads is left. `call_seconds`: the deadline of each call."""
    store, telemetry = Store(cluster.name for cluster in settings.clusters), Telemetry()
    used = clock or ShiftedClock()
    with mock.patch.object(collector_module, "Brokers", partial(Brokers, call_seconds=call_seconds)):
        collectors = collectors_of(settings, store, telemetry, used).values()
    before = set(threading.enumerate())
    start_all(collectors)
    try:
        yield Served(settings, store, Metrics(settings, store, used), telemetry)
    finally:
        stop_all(collectors, 20.0)
        ends = time.monotonic() + 60.0
        while left := _ours(before):
            assert time.monotonic() < ends, f"threads that did not end: {left}"
            time.sleep(0.01)
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            gc.collect()  # to which the library leaves the socket of a connection that was being made


def _ours(before: set[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in set(threading.enumerate()) - before if thread.name.startswith(THREADS)]


class Watcher:
    """Asks all the time, from a thread of its own; every number must be one that `is_true`."""

    def __init__(self, served: Served, groups: Sequence[str], is_true: Callable[[str, int, float], bool]) -> None:
        self.numbers: Counter[str] = Counter()
        """Group -> how many numbers were served."""
        self.refusals: dict[str, list[str]] = {group: [] for group in groups}
        self.wrong: list[str] = []
        self._served = served
        self._groups = groups
        self._is_true = is_true
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def check(self) -> None:
        assert not self.wrong, self.wrong[:5]

    def _run(self) -> None:
        while not self._stopping.wait(0.01):
            for group in self._groups:
                self._ask(group)

    def _ask(self, group: str) -> None:
        began = time.monotonic()
        try:
            answer = self._served.answer(group)
        except Exception as error:  # noqa: BLE001 - any other error is a wrong answer
            self.wrong.append(f"{group}: {error!r}")
            return
        if isinstance(answer, str):
            self.refusals[group].append(answer)
        elif self._is_true(group, answer, began):
            self.numbers[group] += 1
        else:
            self.wrong.append(f"{group}: {answer}")
