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
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        files[path] = sink.getvalue().to_pybytes()
    return files


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
    sound = hours_of(rig.files, [BILLING], EPOCH)[BILLING]
    rig.files.contents[day] = b"PAR1 torn"
    start, rates = hours_of(rig.files, [BILLING], EPOCH)[BILLING]
    mail = Load("main", "mail", frozenset({"orders"}), "UTC")

    assert 0 < len(sound[0]) - len(start) <= 24
    assert len(start) == len(rates)
    assert len(hours_of(rig.files, [mail], EPOCH)[mail][0]) == 0


def test_the_hours_are_those_that_compact_makes(tmp_path: Path) -> None:
    """10 messages come per second, and then 20."""
    ends = [10 * second + max(10 * (second - 3600), 0) for second in range(0, 7200, 60)]
    write(tmp_path, [sample(60 * at, end, end, interval_seconds=60.0) for at, end in enumerate(ends)])
    compacted(tmp_path)
    _, rates = hours_of(Folder(tmp_path), [BILLING], START.timestamp() + DAY)[BILLING]

    assert rates.tolist() == pytest.approx([10, 20], rel=0.02)
