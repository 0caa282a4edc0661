"""Weekly patterns are read from the tables that `compact` makes, when they are asked for, and say why there is none."""

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapter.conditions import FORECASTS, Conditions
from adapter.history.errors import HistoryUnwritable
from adapter.history.files import Folder
from adapter.history.reading.hours import hours_of
from adapter.history.reading.patterns import (
    FORGOTTEN_SECONDS,
    NOT_READ_YET,
    READ_SECONDS,
    RETRY_SECONDS,
    Patterns,
)
from adapter.lag.forecast import Load, Pattern
from tests.support.history.compacting import compacted
from tests.support.history.histories import FakeFiles
from tests.support.history.written_history import START, sample, write
from tests.support.samples import EPOCH, SteppedClock

BILLING = Load("main", "billing", frozenset({"orders"}), "UTC")
GROUP = "main", "billing"
DAY = 86_400.0


def hourly(rates: list[float], until: float, group: str = "billing", topic: str = "orders") -> dict[str, bytes]:
    """Hours up to a time, a file a day, as the tables have them."""
    end = datetime.fromtimestamp(until - until % 3600, UTC)
    rows: dict[str, list[tuple[datetime, float]]] = {}
    for ago, rate in enumerate(reversed(rates), 1):
        at = end - timedelta(hours=ago)
        rows.setdefault(f"hourly/{at:date=%Y-%m-%d}/hourly.parquet", []).append((at, rate))
    files = {}
    for path, own in rows.items():
        hours, values = zip(*own, strict=True)
        names = {"cluster": "main", "group": group, "topic": topic}
        columns = {name: pa.array([text] * len(own)).dictionary_encode() for name, text in names.items()}
        numbers = {"produced": [3600.0 * rate for rate in values], "covered_seconds": [3600.0] * len(own)}
        table = pa.table(
            {**columns, "hour": pa.array(hours, pa.timestamp("us", tz="UTC")), **numbers, "production_rate": values}
        )
        files[path] = as_file(table)
    return files


def as_file(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


@dataclass
class Tables(FakeFiles):
    contents: dict[str, bytes] = field(default_factory=dict)
    reads: int = 0

    def read(self, path: str) -> bytes | None:
        if self.trouble is not None:
            raise self.trouble
        self.reads += 1
        return self.contents.get(path)


def wave(weeks: float) -> list[float]:
    return [100.0 + 80.0 * math.sin(hour / 24 * 2 * math.pi) for hour in range(round(168 * weeks))]


class Rig:
    def __init__(self, weeks: float = 3, end: float = EPOCH) -> None:
        self.clock, self.conditions = SteppedClock(), Conditions()
        self.files = Tables(contents=hourly(wave(weeks), end))
        self.patterns = Patterns(self.files, self.conditions, self.clock)


def test_a_pattern_is_read_once_it_is_asked_for_and_again_after_some_hours() -> None:
    rig = Rig()
    nothing = rig.patterns.turn()
    first = rig.patterns.of(BILLING)
    rig.patterns.turn()
    reads, found = rig.files.reads, rig.patterns.of(BILLING)
    rig.patterns.turn()
    again = rig.files.reads
    rig.clock.seconds += READ_SECONDS
    rig.patterns.turn()

    assert (nothing, first) == (READ_SECONDS, NOT_READ_YET)
    assert isinstance(found, Pattern)
    assert found.forecast.is_better
    assert (reads, again, rig.files.reads) == (36, 36, 72)


def test_a_load_that_is_asked_for_later_does_not_delay_the_next_time_that_all_are_read() -> None:
    rig = Rig()
    rig.patterns.of(BILLING)
    rig.patterns.turn()
    rig.clock.seconds += 0.75 * READ_SECONDS
    rig.patterns.of(Load("main", "mail", frozenset({"orders"}), "UTC"))

    assert rig.patterns.turn() == 0.25 * READ_SECONDS


def test_trouble_is_forgotten_once_nobody_asks() -> None:
    rig = Rig()
    rig.patterns.of(BILLING)
    rig.files.trouble = HistoryUnwritable("unreachable", "s3://lag: cannot be reached")
    rig.patterns.turn()
    failed = len(rig.conditions.current)
    rig.clock.seconds += FORGOTTEN_SECONDS + 1
    rig.patterns.turn()

    assert (failed, rig.conditions.current) == (1, ())


@pytest.mark.parametrize(
    ("weeks", "end", "expected"),
    [(1.5, EPOCH, "fewer than 14 days"), (3, EPOCH - 3 * DAY, "run `compact`"), (0.1, EPOCH - 90 * DAY, "fewer than")],
)
def test_without_a_pattern_of_today_it_says_why(weeks: float, end: float, expected: str) -> None:
    rig = Rig(weeks, end)
    rig.patterns.of(BILLING)
    rig.patterns.turn()
    said = rig.patterns.of(BILLING)

    assert isinstance(said, str)
    assert expected in said


def test_a_location_that_cannot_be_read_is_said_once_and_what_was_read_before_still_counts() -> None:
    rig = Rig()
    rig.patterns.of(BILLING)
    rig.patterns.turn()
    rig.files.trouble = HistoryUnwritable("unreachable", "s3://lag: cannot be reached")
    rig.clock.seconds += READ_SECONDS
    waits = [rig.patterns.turn(), rig.patterns.turn()]

    assert waits == [RETRY_SECONDS] * 2
    assert isinstance(rig.patterns.of(BILLING), Pattern)
    (condition,) = rig.conditions.current
    assert (condition.name, condition.reason) == (FORECASTS.name, "NotRead")


def test_a_damaged_day_and_hours_of_others_do_not_count() -> None:
    rig = Rig()
    day = min(rig.files.contents)
    sound = hours_of(rig.files, [GROUP], EPOCH)[GROUP].of(["orders"])
    rig.files.contents[day] = b"PAR1 torn"
    start, rates = hours_of(rig.files, [GROUP], EPOCH)[GROUP].of(["orders"])

    assert 0 < len(sound[0]) - len(start) <= 24
    assert len(start) == len(rates)
    for other in (("main", "mail"), ("west", "billing")):
        assert len(hours_of(rig.files, [other], EPOCH)[other].start) == 0


def test_an_hour_counts_only_if_the_production_of_every_topic_is_known() -> None:
    """`refunds` has no row in the older hours, too few seconds in one, and no production in another one."""
    day = datetime.fromtimestamp(EPOCH, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    times = [day + timedelta(hours=hour) for hour in range(4)]
    rows = {
        "cluster": ["main"] * 7,
        "group": ["billing"] * 7,
        "topic": ["orders"] * 4 + ["refunds"] * 3,
        "hour": times + times[1:],
        "produced": [1.0] * 5 + [None, 1.0],
        "covered_seconds": [3600.0] * 6 + [60.0],
        "production_rate": [10.0, 20.0, 30.0, 40.0, 5.0, 5.0, 5.0],
    }
    files = Tables(contents={f"hourly/{day:date=%Y-%m-%d}/hourly.parquet": as_file(pa.table(rows))})
    hours = hours_of(files, [GROUP], EPOCH)[GROUP]

    assert [hours.of([topic])[1].tolist() for topic in ("orders", "refunds")] == [[10, 20, 30, 40], [5]]
    assert [each.tolist() for each in hours.of(["orders", "refunds"])] == [[times[1].replace(tzinfo=None)], [25]]
    assert hours.of(["orders", "returns"])[1].tolist() == []


def test_further_topics_and_zones_of_a_group_are_not_read_again() -> None:
    rig = Rig()
    rig.patterns.of(BILLING)
    rig.patterns.turn()
    reads, others = rig.files.reads, [BILLING._replace(zone="Asia/Kolkata"), BILLING._replace(topics=frozenset("ab"))]
    for load in others:
        rig.patterns.of(load)
        rig.patterns.turn()
    in_kolkata, of_others = (rig.patterns.of(load) for load in others)

    assert rig.files.reads == reads
    assert isinstance(in_kolkata, Pattern)
    assert isinstance(of_others, str)
    assert "in which all its topics are known" in of_others


def test_the_hours_are_those_that_compact_makes(tmp_path: Path) -> None:
    """10 messages come per second, and then 20."""
    ends = [10 * second + max(10 * (second - 3600), 0) for second in range(0, 7200, 60)]
    write(tmp_path, [sample(60 * at, end, end, interval_seconds=60.0) for at, end in enumerate(ends)])
    compacted(tmp_path)
    _, rates = hours_of(Folder(tmp_path), [GROUP], START.timestamp() + DAY)[GROUP].of(["orders"])

    assert rates.tolist() == pytest.approx([10, 20], rel=0.02)
