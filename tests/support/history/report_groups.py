"""Groups by hand for the tests of the report: hours whose load and lag are written as short functions of time."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.capacity import Capacity
from spark.figures.model import (
    NUMBERS,
    Above,
    Floats,
    Group,
    HourShares,
    Lag,
    Pace,
    Periods,
    ReportData,
    Share,
    Times,
    TopicFigures,
    Waits,
)
from spark.figures.periods import periods

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
STEADY = Pace(0, 0)


def hours(
    number: int = 48,
    production: Callable[[int], float] = lambda _: 10.0,
    lag: Callable[[int], float] = lambda _: 0.0,
    since: datetime = MONDAY,
    **columns: float,
) -> Periods:
    """`number` whole hours; what is produced is consumed, unless columns say otherwise."""
    at = range(number)
    start = np.datetime64(since.replace(tzinfo=None), "us") + np.arange(number) * np.timedelta64(1, "h")
    produced = np.array([3600 * production(hour) for hour in at], np.float64)
    waiting = np.array([lag(hour) for hour in at], np.float64)
    wait = np.divide(3600 * waiting, produced, out=np.full(number, np.nan), where=produced > 0)
    given = {
        "lag_p50": waiting,
        "lag_p95": 1.5 * waiting,
        "lag_p99": 1.8 * waiting,
        "lag_max": 2 * waiting,
        "wait_p50": wait,
        "wait_p95": 1.5 * wait,
        "wait_p99": 1.8 * wait,
        "wait_max": 2 * wait,
        "wait_bounds": np.zeros(number),
        "produced": produced,
        "consumed": produced,
        "seconds_lagging": np.where(waiting > 0, 3600.0, 0.0),
    }
    constant = {
        "covered_seconds": 3600,
        "samples": 360,
        "expected_samples": 360,
        "resets": 0,
        "rewinds": 0,
        "gaps": 0,
        "recreations": 0,
        "partitions": 4,
        "members_min": columns.get("members_max", 2),
        "members_max": 2,
        "skew": 0.25,
    } | columns
    return periods(start, **given | {name: np.full(number, float(value)) for name, value in constant.items()})


def topic(
    name: str = "orders", of: Periods | None = None, threshold: int = 600, seconds_above: float = 0.0
) -> TopicFigures:
    columns = hours() if of is None else of
    known = columns.lag_p50[~np.isnan(columns.lag_p50)]
    lag = None
    if len(known):
        p50, p95, p99 = (float(value) for value in np.percentile(known, (50, 95, 99)))
        lag = Lag(
            len(known), p50, p95, p99, float(columns.lag_max.max()), float(known[0]), float(known[-1]), *span(columns)
        )
    waits = columns.wait_p50[~np.isnan(columns.wait_p50)]
    above = Above(
        threshold,
        False,
        seconds_above,
        3600.0 * len(columns),
        int(seconds_above > 0),
        seconds_above,
        MONDAY if seconds_above else None,
    )
    shares = HourShares(MONDAY, tuple(Share(number, 100 + number, 100, 0) for number in range(4)))
    return TopicFigures(
        name,
        columns,
        periods(np.empty(0, "datetime64[us]")),
        lag,
        above,
        shares,
        waits=_waits(waits, float(np.fmax.reduce(columns.wait_max))) if len(waits) else None,
    )


def _waits(waits: Floats, longest: float) -> Waits:
    p50, p95, p99 = (float(value) for value in np.percentile(waits, (50, 95, 99)))
    return Waits(p50, p95, p99, longest, float(waits[0]), float(waits[-1]), 0)


def span(of: Periods) -> tuple[datetime, datetime]:
    first, last = (datetime.fromtimestamp(int(of.start[at].astype(np.int64)) / 1e6, UTC) for at in (0, -1))
    return first, last + timedelta(hours=1)


def group(name: str = "billing", *topics: TopicFigures, capacity: Capacity | None = None, pace: Pace = STEADY) -> Group:
    of = topics or (topic(),)
    return Group("main", name, 10.0, of, of[0].hours, capacity, pace, np.zeros(len(of[0].hours)))


def saturated(number: int = 60, per_member: float = 50.0) -> Capacity:
    """Seen in so many windows of a minute, in each of which a member did `per_member` messages a second."""
    hours = (math.nan,) * 24
    return Capacity(number, 60.0 * number, per_member, per_member, per_member, (0,) * 24, hours, hours)


_ADDED = {
    "produced",
    "consumed",
    "resets",
    "rewinds",
    "skips",
    "gaps",
    "recreations",
    "partitions",
    "samples",
    "expected_samples",
    "wait_bounds",
}


def together(parts: Sequence[Periods]) -> Periods:
    """Several topics of one group as one: counts are added up, of members the fewest and the most, of all else the
    largest."""
    start = np.unique(np.concatenate([part.start for part in parts]))
    return periods(start, **{name: _folded(start, parts, name) for name in NUMBERS})


def _folded(start: Times, parts: Sequence[Periods], name: str) -> Floats:
    fold = np.add if name in _ADDED else np.fmin if name == "members_min" else np.fmax
    whole = np.full(len(start), np.nan)
    for part in parts:
        at = np.searchsorted(start, part.start)
        known, new = whole[at], getattr(part, name)
        whole[at] = np.where(np.isnan(known), new, np.where(np.isnan(new), known, fold(known, new)))
    return whole


def report_data(*groups: Group, timezone: str = "Europe/Berlin", is_past: bool = True) -> ReportData:
    """Made on Tuesday of the week after. `is_past`: the range was asked for, so the age of the data is not said."""
    made_at, until = MONDAY + timedelta(days=8), MONDAY + timedelta(days=7)
    return ReportData("history", made_at, MONDAY, until, ZoneInfo(timezone), groups, is_past=is_past)
