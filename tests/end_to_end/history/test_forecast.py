"""Weeks of a history, `compact`, and a running adapter: the replicas for the next hour are as the history says."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from local.adapter import Adapter, items, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.level_group import level_group
from local.kafka.tools import commit, create_topic
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.support.history.written_history import START, Row, sample, write
from tests.support.real.groups_to_read import path

REGULAR, CHANGED, NEW = "foretold-regular", "foretold-changed", "foretold-new"
"""Groups that are named like their topics: one for which every week was alike, one whose last week was unlike those
before, and one without a history."""
PARTITIONS, CAPACITY, RATE = 4, 20, 12
"""One consumer reads 20 messages/s, so 12 messages/s need one."""
USUAL, USUAL_NEXT, LATELY = 10, 30, 20
"""Messages per second in every other hour, in those between, and in all hours after the change. What came between two
samples counts for the hour of the later one, so with one every ten minutes, the hours have 13.3 and 26.7."""
WEEK_HOURS, WEEKS = 168, 3
SAMPLE_SECONDS = 600
BEFORE_SECONDS = 30.0
"""Replicas that are asked for now read 61 s later, so after the hour has begun."""
WAIT_SECONDS = 180.0
CLOCK_AHEAD = (
    "import time; from pathlib import Path; from adapter import clock; "
    "clock.time = lambda: time.time() + float(Path({file!r}).read_text()); "
    "from apiservice.__main__ import main; main()"
)
"""The installed command on a machine whose clock is as many seconds ahead as a file says."""
NUMBERS = ("required_replicas", "required_replicas_forecast")


@dataclass
class AdapterClock:
    """The clock of the adapter's machine, which only goes forward."""

    file: Path
    hour: float
    """The beginning of an hour with `USUAL_NEXT`, which the clock is set to be just before."""

    def set_before_hour(self) -> None:
        self.file.write_text(str(self.hour - BEFORE_SECONDS - time.time()))

    @property
    def left(self) -> float:
        """Seconds until the hour."""
        return self.hour - time.time() - float(self.file.read_text())


@dataclass(frozen=True)
class Reader:
    adapter: Adapter
    caller: Pair
    clock: AdapterClock

    def reply(self, metric: str, group: str) -> tuple[int, bytes]:
        return self.adapter.get(path("default", f"kafka_consumergroup_{metric}", f"group%3D{group}"), shown=self.caller)

    def is_served(self, metric: str, group: str) -> bool:
        return self.reply(metric, group)[0] == 200

    def before_the_hour(self, metric: str, group: str) -> tuple[str, str | None]:
        """The value and the skill of the forecast in it, in a reply that was made in time."""
        found: list[tuple[str, str | None]] = []

        def is_in_time() -> bool:
            if self.clock.left <= 0:
                self.clock.hour += 7200
                self.clock.set_before_hour()
            status, body = self.reply(metric, group)
            if status != HTTPStatus.OK:
                return False  # a late cycle
            (item,) = items(body)
            found.append((item["value"], item["metricLabels"].get("skill")))
            read_at = datetime.fromisoformat(item["timestamp"]).timestamp()  # in whole seconds
            return read_at >= self.clock.hour - BEFORE_SECONDS - 1 and self.clock.left > 0

        wait_until(is_in_time, "a cycle shortly before the hour", WAIT_SECONDS, alive=[self.adapter.process])
        return found[-1]


def history(until: datetime) -> Iterator[Row]:
    for group in (REGULAR, CHANGED):
        end = 0
        for ago in range(WEEK_HOURS * WEEKS, 0, -1):
            usual = USUAL if ago % 2 == 0 else USUAL_NEXT
            rate = LATELY if group == CHANGED and ago <= WEEK_HOURS else usual
            for second in range(0, 3600, SAMPLE_SECONDS):
                at = (until - timedelta(hours=ago, seconds=-second) - START).total_seconds()
                yield sample(at, end, end, group=group, topic=group, interval_seconds=float(SAMPLE_SECONDS))
                end += rate * SAMPLE_SECONDS


@pytest.fixture
def reader(
    control_plane: ControlPlane,
    one_broker: Kafka,
    spark_session: SparkSession,
    administrator: Pair,
    tmp_path: Path,
) -> Iterator[Reader]:
    now = datetime.now(UTC)
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    write(tmp_path / "history", list(history(this_hour)))
    compact(LocalFiles(tmp_path / "history"), lambda: spark_session, now, now, lambda _: None)
    for name in (REGULAR, CHANGED, NEW):
        create_topic(one_broker, name, PARTITIONS)
        commit(one_broker, name, {(name, at): 0 for at in range(PARTITIONS)})
    objective = {"maxWait": "30s", "capacityHint": CAPACITY, "forecastTimeZone": "Asia/Tokyo"}
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
        "collection": {"interval": "2s", "groups": {"include": ["foretold-.*"]}},
        "rules": [{"group": name, "topics": [name], "objective": objective} for name in (REGULAR, CHANGED, NEW)],
        "history": {"location": f"{tmp_path}/history", "flushInterval": "1h"},
    }
    clock = AdapterClock(tmp_path / "clock-ahead", this_hour.timestamp() + 3 * 3600)
    clock.set_before_hour()
    program = (sys.executable, "-c", CLOCK_AHEAD.format(file=str(clock.file)))
    with process(tmp_path / "adapter", settings, own_kubeconfig(control_plane), program=program) as adapter:
        yield Reader(adapter, administrator, clock)


def test_replicas_for_the_next_hour_are_required_before_it_begins_where_the_history_foretells_it(
    reader: Reader, one_broker: Kafka
) -> None:
    """Usually, twice as much arrives in it: 24 messages/s, which two consumers read."""
    with ExitStack() as loads:
        for group in (REGULAR, CHANGED):
            loads.enter_context(level_group(one_broker.bootstrap_servers, group, group, PARTITIONS, RATE, batch=3))
            for metric in NUMBERS:
                wait_until(lambda read=(metric, group): reader.is_served(*read), "rates and patterns", WAIT_SECONDS)  # type: ignore[misc]
        regular, changed = (
            {metric: reader.before_the_hour(metric, group) for metric in NUMBERS} for group in (REGULAR, CHANGED)
        )
        status, body = reader.reply("required_replicas_forecast", NEW)

    assert regular == dict.fromkeys(NUMBERS, ("2", "1.00"))
    # A forecast of the last week by the weeks before it was wrong.
    foretold, skill = changed["required_replicas_forecast"]
    assert foretold == "2"
    assert float(skill or "nan") < 0.1
    assert changed["required_replicas"] == ("1", None)
    # Two weeks are missing.
    assert (status, [cause["reason"] for cause in json.loads(body)["details"]["causes"]]) == (503, ["ForecastUnknown"])
    assert reader.is_served("required_replicas", NEW)
