"""Weeks of a history, `compact`, and a running adapter: the replicas for the next hour are as the history says.

The adapter's wall clock stands still at times that the test sets, so nothing depends on when the test runs or how long
it takes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from local.adapter import Adapter, items, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.level_group import level_group
from local.kafka.tools import commit, create_topic
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.support.history.compacting import in_process
from tests.support.history.written_history import START, Row, sample, write
from tests.support.real.groups_to_read import path
from tests.support.real.programs import MAIN

REGULAR, UTC_REGULAR, CHANGED, NEW = "foretold-regular", "foretold-utc", "foretold-changed", "foretold-new"
"""Groups that are named like their topics: two for which every week was alike, one whose last week was unlike those
before, and one without a history."""
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = {REGULAR: BERLIN, UTC_REGULAR: ZoneInfo("UTC"), CHANGED: BERLIN, NEW: BERLIN}
USUAL, BUSY, LATELY = 10, 20, 1
"""Messages per second: in most hours, in those that `is_busy` names, and in all hours after the change. The medians of
a usual week and one after the change are 5.5 and 10.5, so these say, too, that about twice as much comes."""
PARTITIONS, CAPACITY, RATE = 4, 20, 12
"""One consumer is planned with 18 of its 20 messages/s, so it reads the 12 that arrive, and two read the 24 of a busy
hour."""
LEAST_RATE, MOST_RATE = 10.0, 16.0
"""Any rate above 9.5 and up to 18 needs one consumer now and two for what is expected."""
WEEK_HOURS, WEEKS = 168, 2
SAMPLE_SECONDS = 600
END = datetime(2026, 10, 25, tzinfo=BERLIN).astimezone(UTC)
"""Of the history: the Sunday on which Berlin's clocks go back from three to two."""
EARLIER = END + timedelta(minutes=30)
AHEAD = timedelta(seconds=30)
"""Replicas that are asked for now read 61 s later, so after the hour has begun."""
TWO_AGAIN, THREE, BERLIN_MONDAY, UTC_MONDAY = (END + timedelta(hours=hours) - AHEAD for hours in (3, 4, 25, 26))
"""Shortly before it is two o'clock once more, before three o'clock, and before it is Monday in Berlin and in UTC."""
WAIT_SECONDS = 180.0
CLOCK_OF_FILE = (
    "from pathlib import Path; from adapter import clock; "
    "clock.time = lambda: float(Path({file!r}).read_text()); "
    f"{MAIN}"
)
"""The installed command on a machine whose wall clock shows what a file says."""
NUMBERS = ("required_replicas", "required_replicas_forecast")


@dataclass(frozen=True)
class Reader:
    adapter: Adapter
    caller: Pair
    clock: Path
    """The file with the adapter's time."""

    def reply(self, metric: str, group: str) -> tuple[int, bytes]:
        return self.adapter.get(path("default", f"kafka_consumergroup_{metric}", f"group%3D{group}"), shown=self.caller)

    def is_served(self, metric: str, group: str) -> bool:
        return self.reply(metric, group)[0] == 200

    def reads_the_load_of(self, group: str) -> bool:
        status, body = self.reply("production_rate", group)
        return status == 200 and LEAST_RATE < int(items(body)[0]["value"].removesuffix("m")) / 1000 < MOST_RATE

    def lacks_weeks_of(self, group: str) -> bool:
        status, body = self.reply("required_replicas_forecast", group)
        return status == 503 and b'"ForecastUnknown"' in body and b"fewer than 14 days" in body

    def at(self, moment: datetime, group: str) -> dict[str, tuple[str, str | None]]:
        """Returns the numbers at this time of the adapter's clock, each with the skill of the forecast in it."""
        set_clock(self.clock, moment)
        found: dict[str, tuple[str, str | None]] = {}

        def is_read(metric: str) -> bool:
            status, body = self.reply(metric, group)
            if status != 200:
                return False
            (item,) = items(body)
            found[metric] = item["value"], item["metricLabels"].get("skill")
            # Otherwise it is a kept reply of before, which is dated by the time that was set then.
            is_new = abs(datetime.fromisoformat(item["timestamp"]) - moment) < timedelta(minutes=5)
            # A busy machine may have held the load up since it was first seen.
            return is_new and self.reads_the_load_of(group)

        for metric in NUMBERS:
            self.wait_until(partial(is_read, metric), f"{metric} of {group} at {moment}")
        return found

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        wait_until(holds, what, WAIT_SECONDS, alive=[self.adapter.process])


def set_clock(file: Path, moment: datetime) -> None:
    """Replaces the file as a whole, as somebody may be reading it."""
    new = file.with_suffix(".new")
    new.write_text(str(moment.timestamp()))
    new.rename(file)


def is_busy(local: datetime) -> bool:
    return local.weekday() == 0 or local.hour == 3


def history() -> Iterator[Row]:
    """What came between two samples counts for the hour of the later one."""
    for group in (REGULAR, UTC_REGULAR, CHANGED):
        end = 0
        for ago in range(WEEK_HOURS * WEEKS, 0, -1):
            hour = END - timedelta(hours=ago)
            usual = BUSY if is_busy(hour.astimezone(ZONES[group])) else USUAL
            rate = LATELY if group == CHANGED and ago <= WEEK_HOURS else usual
            for second in range(0, 3600, SAMPLE_SECONDS):
                end += rate * SAMPLE_SECONDS
                at = (hour - START).total_seconds() + second
                yield sample(at, end, end, group=group, topic=group, interval_seconds=float(SAMPLE_SECONDS))


@pytest.fixture
def reader(control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path) -> Iterator[Reader]:
    write(tmp_path / "history", list(history()))
    compact(LocalFiles(tmp_path / "history"), in_process, EARLIER, EARLIER, lambda _: None)
    for name in ZONES:
        create_topic(one_broker, name, PARTITIONS)
        commit(one_broker, name, {(name, at): 0 for at in range(PARTITIONS)})
    objectives = {
        name: {"maxWait": "30s", "capacityHint": CAPACITY, "forecastTimeZone": zone.key} for name, zone in ZONES.items()
    }
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}],
        "collection": {"interval": "2s", "groups": {"include": ["foretold-.*"]}},
        "rules": [{"group": name, "topics": [name], "objective": it} for name, it in objectives.items()],
        "history": {"location": f"{tmp_path}/history", "flushInterval": "1h"},
    }
    clock = tmp_path / "clock"
    set_clock(clock, EARLIER)
    program = (sys.executable, "-c", CLOCK_OF_FILE.format(file=str(clock)))
    with process(tmp_path / "adapter", settings, own_kubeconfig(control_plane), program=program) as adapter:
        yield Reader(adapter, administrator, clock)


def test_replicas_for_the_next_hour_are_required_before_it_begins_where_the_history_foretells_it(
    reader: Reader, one_broker: Kafka
) -> None:
    foretold = (REGULAR, UTC_REGULAR, CHANGED)
    with ExitStack() as loads:
        for group in foretold:
            load = level_group(one_broker.bootstrap_servers, group, group, PARTITIONS, RATE, batch=RATE)
            loads.enter_context(load)
        for group in foretold:
            reader.wait_until(partial(reader.reads_the_load_of, group), f"the rate of {group}")
            reader.wait_until(partial(reader.is_served, NUMBERS[1], group), f"the pattern of {group}")
        reader.wait_until(partial(reader.lacks_weeks_of, NEW), "a refusal of the forecast without weeks")
        reader.wait_until(partial(reader.is_served, NUMBERS[0], NEW), "the number without a forecast")
        two_again = reader.at(TWO_AGAIN, REGULAR)
        three, changed = (reader.at(THREE, group) for group in (REGULAR, CHANGED))
        mondays = [reader.at(BERLIN_MONDAY, REGULAR), reader.at(UTC_MONDAY, UTC_REGULAR)]

    assert two_again == dict.fromkeys(NUMBERS, ("1", "1.00"))
    assert [three, *mondays] == [dict.fromkeys(NUMBERS, ("2", "1.00"))] * 3
    # The load of its first week did not predict that of its second.
    forecast, skill = changed["required_replicas_forecast"]
    assert forecast == "2"
    assert float(skill or "nan") < 0.1
    assert changed["required_replicas"] == ("1", None)
