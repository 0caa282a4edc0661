"""A cluster's loop: it comes again, whatever happened, and ends when it is asked to."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from adapter.cluster.possible_groups import NO_POSSIBLE_GROUPS
from adapter.cluster.topics import Topology
from adapter.collector import threads as collector_module
from adapter.collector.threads import FIRST_SECONDS, PAST_SECONDS, Collector, collectors_of, start_all, stop_all
from adapter.kafka.answers import Answer, Failure
from adapter.metrics.store import Store
from adapter.repeating import NICENESS
from adapter.settings.models import Cluster, Settings
from adapter.telemetry import Telemetry
from tests.adapter.test_telemetry import samples_of
from tests.support import samples
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.fake_cluster import Kafka
from tests.support.samples import SteppedClock

DEADLINE = 60.0
UNKNOWN_ERROR = -1
"""Kafka's UNKNOWN_SERVER_ERROR."""
SECOND_APART = {"interval": "1s", "maxAge": "10s"}


def kafka() -> Kafka:
    commits = {"billing": {("orders", 0): 7, ("orders", 1): 1}}
    ends, generations = {("orders", 0): 10, ("orders", 1): 1}, {"orders": "id"}
    return Kafka(topics={"orders": [1, 2]}, commits=commits, ends=ends, generations=generations)


class WallClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()


@dataclass
class Watched:
    """Collectors whose brokers are fakes, and what they reported."""

    kafka: Kafka = field(default_factory=kafka)
    settings: Settings = field(default_factory=lambda: samples.settings(collection=SECOND_APART))
    telemetry: Telemetry = field(default_factory=Telemetry)
    brokers: list[FakeBrokers] = field(default_factory=list)
    hook: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.store = Store(cluster.name for cluster in self.settings.clusters)

    def make_brokers(self, _: Cluster, count_request: Callable[[str], None]) -> FakeBrokers:
        watched = self

        class Hooked(FakeBrokers):
            def topology(
                self, nodes: Sequence[int | None], expected: frozenset[str] = frozenset()
            ) -> dict[int | None, Answer[Topology] | Failure]:
                count_request("Metadata")
                watched.hook()
                return super().topology(nodes, expected)

        self.brokers.append(Hooked(self.kafka, SteppedClock(time.monotonic())))
        return self.brokers[-1]

    def collector(self) -> Collector:
        made = Collector(self.settings, self.settings.clusters[0], self.store, self.telemetry, WallClock())
        made.serve()
        return made

    def shown(self, name: str, *labels: str) -> float | None:
        return samples_of(self.telemetry).get((f"kafka_lag_adapter_{name}", frozenset({"main", *labels})))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    made = Watched()
    monkeypatch.setattr(collector_module, "Brokers", made.make_brokers)
    return made


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < ends, "it did not come to be in time"
        time.sleep(0.005)


def collect(watched: Watched, until: Callable[[], bool]) -> None:
    """Run the loop until something holds, and end it."""
    collector = watched.collector()
    collector.start()
    try:
        wait_until(until)
    finally:
        collector.stop(DEADLINE)
    assert not [thread for thread in threading.enumerate() if thread.name == "collector-main"]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_loop_that_serves_nothing_comes_again_after_the_interval(watched: Watched, *, is_late: bool) -> None:
    watched.settings = samples.settings(collection={"interval": "10s", "maxAge": "60s"})
    collector = Collector(watched.settings, watched.settings.clusters[0], watched.store, Telemetry(), WallClock())
    collector._patient_until += -1.0 if is_late else FIRST_SECONDS

    assert collector.turn() > 1.0


def test_the_past_is_wanted_of_the_rows_of_the_first_complete_cycle(watched: Watched) -> None:
    watched.settings = samples.settings(rules=[{"group": "billing", "isolation": "read_committed"}])
    watched.kafka.end_errors = {("orders", 1): UNKNOWN_ERROR}
    collector = watched.collector()
    assert collector.rows_to_recall is None
    collector.turn()
    assert collector.rows_to_recall is None

    watched.kafka.end_errors = {}
    collector.turn()
    wanted = collector.rows_to_recall
    assert wanted is not None
    assert (wanted.cluster, wanted.layout, wanted.is_committed_only.tolist()) == (
        "main",
        collector.feed.view.layout,
        [True, True],
    )


def test_the_past_is_wanted_of_some_rows_where_the_others_cannot_be_read_for_a_minute(watched: Watched) -> None:
    watched.kafka.end_errors = {("orders", 1): UNKNOWN_ERROR}
    collector = watched.collector()
    collector.turn()
    assert collector.rows_to_recall is None

    collector._patient_until -= FIRST_SECONDS + PAST_SECONDS
    assert collector.rows_to_recall is not None


def test_brokers_without_topic_ids_are_told_once_until_they_report_them(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watched.kafka.generations = {}
    collector = watched.collector()
    for _ in range(3):
        collector._cycle.run_once()
        collector._report_topic_ids()
    assert told(caplog) == ["topic-ids of cluster main: NotReported"]
    assert watched.shown("condition", "topic-ids", "false") == 1

    watched.kafka.generations = {"orders": "id"}
    collector._cycle._inventory.begin_with_new_client()
    collector._cycle.run_once()
    collector._report_topic_ids()
    assert told(caplog)[1:] == ["topic-ids of cluster main: Reported"]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = (record.getMessage() for record in caplog.records)
    return [": ".join(line.split(": ")[:2]) for line in lines if line.startswith("topic-ids")]


def test_brokers_with_topic_ids_have_no_condition_about_them(watched: Watched) -> None:
    collector = watched.collector()
    collector._cycle.run_once()
    collector._report_topic_ids()

    assert watched.shown("condition", "topic-ids", "true") is None


def test_rounds_are_stored_counted_and_shown(watched: Watched) -> None:
    # What a second one stores while the collector is stopped is not counted.
    watched.settings = samples.settings(collection={"interval": "60s", "maxAge": "600s"})
    collect(watched, lambda: watched.shown("partitions", "ok") is not None)

    assert watched.store.views[0].values.lag.tolist() == [3, 0]
    assert watched.shown("cycles_total", "complete") == watched.store.version == 1
    assert watched.shown("partitions", "ok") == 2
    assert watched.shown("partitions", "unknown") == 0
    assert watched.shown("broker_requests_total", "Metadata") == 3
    assert 0 <= (watched.shown("age_seconds") or 0) < DEADLINE


def test_the_last_success_is_that_of_a_cycle_that_read_every_row(watched: Watched) -> None:
    watched.kafka.refusing = {2}
    collect(watched, lambda: watched.store.version >= 2)
    assert watched.shown("last_success_timestamp_seconds") == 0
    watched.kafka.refusing = set()
    began = time.time()
    collect(watched, lambda: (watched.shown("cycles_total", "complete") or 0) >= 1)

    assert began <= (watched.shown("last_success_timestamp_seconds") or 0) <= time.time()


def test_one_round_follows_another(watched: Watched) -> None:
    collect(watched, lambda: (watched.shown("cycles_total", "complete") or 0) >= 2)

    assert watched.store.version >= 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
def test_a_cycle_yields_the_cpu_to_reads(watched: Watched) -> None:
    seen: list[int] = []
    watched.hook = lambda: seen.append(os.getpriority(os.PRIO_PROCESS, 0))
    own = os.getpriority(os.PRIO_PROCESS, 0)

    collect(watched, lambda: watched.store.version >= 1)

    assert seen[0] == min(own + NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_an_unexpected_error_in_a_cycle_is_logged_and_the_next_cycle_runs(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    mishaps = iter([ZeroDivisionError("nobody thought of it")])

    def fail_once() -> None:
        for mishap in mishaps:
            raise mishap

    watched.hook = fail_once
    collect(watched, lambda: watched.store.version >= 1)

    assert watched.shown("cycles_total", "failed") == 1
    assert "unexpected error in thread collector-main" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_failures_are_counted_by_cause_and_logged_once(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.kafka.refusing = {2}
    caplog.set_level(logging.INFO, "adapter.conditions")
    collect(watched, lambda: watched.store.version >= 2)

    assert (watched.shown("broker_errors_total", "refused") or 0) >= 2
    lines = [record.getMessage() for record in caplog.records if record.name == "adapter.conditions"]
    assert lines == [
        "values of cluster main: Partial: a part could not be read: broker 2 at kafka-2:9092 refuses the connection",
        "credentials of cluster main: Used: the newest credentials are used",
    ]


def test_a_partition_without_a_leader_is_logged_although_no_request_fails(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.kafka.topics["orders"] = [1, -1]
    caplog.set_level(logging.WARNING, "adapter.conditions")
    collect(watched, lambda: watched.store.version >= 2)

    lines = [record.getMessage() for record in caplog.records if record.name == "adapter.conditions"]
    assert lines == ["values of cluster main: Partial: a part could not be read: orders/1: the partition has no leader"]


def test_brokers_are_closed_in_the_end(watched: Watched) -> None:
    collect(watched, lambda: watched.store.version >= 1)

    assert not watched.brokers[0].is_connected


def test_before_the_first_value_the_age_is_not_a_number(watched: Watched) -> None:
    watched.collector()
    age = watched.shown("age_seconds")

    assert age is not None
    assert age != age  # noqa: PLR0124 - only NaN does so


def test_a_cluster_that_hangs_holds_up_neither_another_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = [samples.cluster("main"), samples.cluster("eu")]
    watched = Watched(settings=samples.settings(clusters=clusters, collection=SECOND_APART))
    freed = threading.Event()

    def hang_in_main() -> None:
        if threading.current_thread().name == "collector-main":
            freed.wait(2 * DEADLINE)

    watched.hook = hang_in_main
    monkeypatch.setattr(collector_module, "Brokers", watched.make_brokers)
    collectors = collectors_of(watched.settings, watched.store, watched.telemetry, WallClock()).values()
    start_all(collectors)
    try:
        wait_until(lambda: watched.store.views[1].possible_groups == NO_POSSIBLE_GROUPS)
        assert watched.store.views[0].possible_groups.in_sums == "its brokers have not been asked yet"
        began = time.monotonic()
        stop_all(collectors, 0.2)
        assert time.monotonic() - began < DEADLINE
    finally:
        freed.set()
    wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("collector-")])
