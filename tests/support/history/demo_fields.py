"""Every number of the report about the demo's week, by its path, with its truth and how close it has to be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from local.histories.plausible_history import DOWN
from local.histories.plausible_world import MINUTES, Numbers
from tests.support.history.demo_truth import (
    DAY,
    DUE,
    GROUPS,
    HOUR,
    HOURS,
    RECREATED,
    SEEN,
    TOPICS,
    TopicTruth,
)

NOW = datetime(2026, 11, 16, 1, tzinfo=UTC)
SATURATED = {"checkout", "clickstream", "reporting", "search-index"}
"""Groups that had more to do than they could, at times."""
HOT, STILL = "clickstream", {"mail": 3, "reporting": 2}
"""The group with a hot partition; those whose partitions stand still at the end, and how many of them."""
EXACT, AS_COMPUTED = 1e-9, "computed from the same minutes; report.json has twelve digits"
"""How close a truth has to be where nothing else is said, and why."""
Key = tuple[str, str]
Part = Any
"""Of report.json, or the truth in its place."""


@dataclass(frozen=True)
class Between:
    """What is true lies in a range, not at a point. Of a list, each item that is known lies in the range."""

    because: str
    low: float | Sequence[float]
    high: float | Sequence[float]


@dataclass(frozen=True)
class Field:
    path: str
    truth: Callable[[Any, Any], Any]
    """Of a key and its truth -> what is at the path: a number, a list or None."""
    within: float = EXACT
    because: str = AS_COMPUTED


def hourly(truth: Callable[[TopicTruth], Any]) -> Callable[[Key, TopicTruth], Any]:
    return lambda _, of: truth(of)


def percentile(share: float, span: int) -> Callable[[Key, TopicTruth], list[float]]:
    def of_spans(_: Key, of: TopicTruth) -> list[float]:
        spans = np.unique(DUE // span)
        return [float(np.percentile(of.lag[of.known // span == each], share)) for each in spans]

    return of_spans


def wait(share: float, span: int) -> Callable[[Key, TopicTruth], list[float]]:
    def of_spans(_: Key, of: TopicTruth) -> list[float]:
        spans = np.unique(DUE // span)
        return [float(np.percentile(of.waits[of.known // span == each], share)) for each in spans]

    return of_spans


def bounds(span: int) -> Callable[[Key, TopicTruth], list[int]]:
    return lambda _, of: [int(of.is_bound[of.known // span == each].sum()) for each in np.unique(DUE // span)]


def lagging(span: int) -> Callable[[Key, TopicTruth], list[int]]:
    return lambda _, of: [60 * int((of.lag[of.known // span == each] > 0).sum()) for each in np.unique(DUE // span)]


def spans_of(minutes: Callable[[TopicTruth], Any], span: int) -> Callable[[Key, TopicTruth], Any]:
    return lambda _, of: [int((minutes(of) // span == each).sum()) for each in np.unique(DUE // span)]


def daily(values: Callable[[TopicTruth], Any], fold: Callable[..., Any] = np.sum) -> Callable[[Key, TopicTruth], Any]:
    """Hours folded to days of UTC."""
    return lambda _, of: [float(fold(np.asarray(values(of))[..., day == HOURS // 24])) for day in range(7)]


def members(of: TopicTruth, span: int, fold: Callable[[Any], Any] = np.max) -> list[int]:
    return [int(fold(of.read.reader.members[DUE[DUE // span == each]])) for each in np.unique(DUE // span)]


def made_again(key: Key, of: TopicTruth, span: int) -> list[int]:
    """All partitions of a topic at once."""
    spans = np.unique(DUE // span)
    return [len(of.read.committed) * int(RECREATED.get(key, -1) * HOUR // span == each) for each in spans]


def day_skew(_: Key, of: TopicTruth) -> list[float]:
    days = [of.produced[:, day == HOURS // 24].sum(axis=1) for day in range(7)]
    return [float(day.max() / day.sum()) for day in days]


def in_busiest_hour(of: TopicTruth) -> Numbers:
    hour = of.known[of.known // HOUR == HOURS[of.busiest]]
    found: Numbers = of.of_partitions[:, hour].max(axis=1)
    return found


def drain(key: Key, of: TopicTruth) -> float | None:
    """With all members of the newest hour, or of a hot partition with the one that reads it and the next."""
    group, largest = GROUPS[key[0]], of.lag.max()
    if key[0] not in SATURATED or key[0] in STILL:
        return None
    usual, able = float(np.median(group.rate)), group.member_per_second
    if key[0] == HOT:
        return float(largest / (able - group.hot_share * usual))
    return float(largest / (int(group.members[-1]) * able - usual))


def still_lag(key: Key, of: TopicTruth) -> int | None:
    """The largest of the last hour, of each partition."""
    return int(of.of_partitions[:, SEEN[HOURS[-1] == SEEN // HOUR]].max(axis=1).sum()) if key[0] in STILL else None


NONE_HAPPENED = "nothing of the kind was put in"
CARRIED = "of log ends from earlier hours not all are kept: a wait that began then is right by an eighth"
TOPIC_FIELDS = (
    Field("lag.samples", hourly(lambda of: len(of.lag))),
    Field("lag.p50", hourly(lambda of: np.percentile(of.lag, 50))),
    Field("lag.p95", hourly(lambda of: np.percentile(of.lag, 95))),
    Field("lag.p99", hourly(lambda of: np.percentile(of.lag, 99))),
    Field("lag.max", hourly(lambda of: of.lag.max())),
    Field("lag.first", hourly(lambda of: of.lag[0])),
    Field("lag.last", hourly(lambda of: of.lag[-1])),
    Field("wait_seconds.p50", hourly(lambda of: np.percentile(of.waits, 50)), 0.125, CARRIED),
    Field("wait_seconds.p95", hourly(lambda of: np.percentile(of.waits, 95)), 0.125, CARRIED),
    Field("wait_seconds.p99", hourly(lambda of: np.percentile(of.waits, 99)), 0.125, CARRIED),
    Field("wait_seconds.first", hourly(lambda of: of.waits[0]), 0.125, CARRIED),
    Field("wait_seconds.last", hourly(lambda of: of.waits[-1]), 0.125, CARRIED),
    Field("wait_seconds.max", hourly(lambda of: of.waits.max()), 0.125, CARRIED),
    Field("wait_seconds.bounds", hourly(lambda of: of.is_bound.sum())),
    Field("drain_seconds", drain, 0.2, "capacity less production is small beside either, so an error of 3 % grows"),
    Field("threshold.value", hourly(lambda of: of.threshold)),
    Field("threshold.seconds_above", hourly(lambda of: 60 * (of.lag > of.threshold).sum() + of.episodes()[2])),
    Field("threshold.known_seconds", hourly(lambda of: 60 * len(of.lag) + of.episodes()[2])),
    Field("threshold.episodes", hourly(lambda of: of.episodes()[0])),
    Field("threshold.longest_seconds", hourly(lambda of: of.episodes()[1])),
    Field(
        "busiest_hours.production_rate", hourly(lambda of: np.sort(of.by_weekday()[~np.isnan(of.by_weekday())])[:-6:-1])
    ),
    Field("production_by_weekday_and_hour", hourly(lambda of: of.by_weekday())),
    Field("stuck.number", lambda key, _: STILL.get(key[0])),
    Field("stuck.partitions", lambda key, _: list(range(STILL[key[0]])) if key[0] in STILL else None),
    Field("stuck.lag", still_lag),
    Field("uncommitted.partitions", hourly(lambda _: 0), 0, NONE_HAPPENED),
    Field("uncommitted.messages", hourly(lambda _: 0), 0, NONE_HAPPENED),
    Field("partitions.of.partition", hourly(lambda of: range(len(of.read.committed)))),
    Field("partitions.of.produced", hourly(lambda of: of.produced[:, of.busiest])),
    Field("partitions.of.consumed", hourly(lambda of: of.consumed[:, of.busiest])),
    Field("partitions.of.lag", hourly(in_busiest_hour)),
    Field("hourly.lag_p50", percentile(50, HOUR)),
    Field("hourly.lag_p95", percentile(95, HOUR)),
    Field("hourly.lag_p99", percentile(99, HOUR)),
    Field("hourly.lag_max", percentile(100, HOUR)),
    Field("hourly.wait_p50", wait(50, HOUR), 0.125, CARRIED),
    Field("hourly.wait_p95", wait(95, HOUR), 0.125, CARRIED),
    Field("hourly.wait_p99", wait(99, HOUR), 0.125, CARRIED),
    Field("hourly.wait_max", wait(100, HOUR), 0.125, CARRIED),
    Field("hourly.wait_bounds", bounds(HOUR)),
    Field("hourly.produced", hourly(lambda of: of.produced.sum(axis=0))),
    Field("hourly.consumed", hourly(lambda of: of.consumed.sum(axis=0))),
    Field("hourly.covered_seconds", hourly(lambda of: of.covered)),
    Field("hourly.production_rate_max", hourly(lambda of: of.steepest)),
    Field("hourly.production_rate", hourly(lambda of: of.rate)),
    Field("hourly.consumption_rate", hourly(lambda of: of.consumed.sum(axis=0) / of.covered)),
    Field("hourly.seconds_lagging", lagging(HOUR)),
    Field("hourly.samples", spans_of(lambda of: of.known, HOUR)),
    Field("hourly.expected_samples", hourly(lambda _: np.full(len(HOURS), 60))),
    Field("hourly.resets", hourly(lambda _: np.zeros(len(HOURS))), 0, NONE_HAPPENED),
    Field("hourly.rewinds", hourly(lambda _: np.zeros(len(HOURS))), 0, NONE_HAPPENED),
    Field("hourly.skips", hourly(lambda _: np.zeros(len(HOURS))), 0, NONE_HAPPENED),
    Field("hourly.recreations", lambda key, of: made_again(key, of, HOUR)),
    Field("hourly.partitions", hourly(lambda of: np.full(len(HOURS), len(of.read.committed)))),
    Field("hourly.members_min", hourly(lambda of: members(of, HOUR, np.min))),
    Field("hourly.members_max", hourly(lambda of: members(of, HOUR))),
    Field("hourly.skew", hourly(lambda of: of.produced.max(axis=0) / of.produced.sum(axis=0))),
    Field("daily.lag_p50", percentile(50, DAY)),
    Field("daily.lag_p95", percentile(95, DAY)),
    Field("daily.lag_p99", percentile(99, DAY)),
    Field("daily.lag_max", percentile(100, DAY)),
    Field("daily.wait_p50", wait(50, DAY), 0.125, CARRIED),
    Field("daily.wait_p95", wait(95, DAY), 0.125, CARRIED),
    Field("daily.wait_p99", wait(99, DAY), 0.125, CARRIED),
    Field("daily.wait_max", wait(100, DAY), 0.125, CARRIED),
    Field("daily.wait_bounds", bounds(DAY)),
    Field("daily.produced", daily(lambda of: of.produced)),
    Field("daily.consumed", daily(lambda of: of.consumed)),
    Field("daily.covered_seconds", daily(lambda of: of.covered)),
    Field("daily.production_rate_max", daily(lambda of: of.steepest, np.max)),
    Field(
        "daily.production_rate",
        lambda key, of: np.divide(daily(lambda it: it.produced)(key, of), daily(lambda it: it.covered)(key, of)),
    ),
    Field(
        "daily.consumption_rate",
        lambda key, of: np.divide(daily(lambda it: it.consumed)(key, of), daily(lambda it: it.covered)(key, of)),
    ),
    Field("daily.seconds_lagging", lagging(DAY)),
    Field("daily.samples", spans_of(lambda of: of.known, DAY)),
    Field("daily.expected_samples", spans_of(lambda _: DUE, DAY), 0, "hours without any row are in `coverage`"),
    Field("daily.resets", hourly(lambda _: np.zeros(7)), 0, NONE_HAPPENED),
    Field("daily.rewinds", hourly(lambda _: np.zeros(7)), 0, NONE_HAPPENED),
    Field("daily.skips", hourly(lambda _: np.zeros(7)), 0, NONE_HAPPENED),
    Field("daily.recreations", lambda key, of: made_again(key, of, DAY)),
    Field("daily.partitions", hourly(lambda of: np.full(7, len(of.read.committed)))),
    Field("daily.members_min", hourly(lambda of: members(of, DAY, np.min))),
    Field("daily.members_max", hourly(lambda of: members(of, DAY))),
    Field("daily.skew", day_skew),
)


COVERAGE = {
    "age_seconds": 3600,
    "coverage.samples": sum(len(topic.lag) for topic in TOPICS.values()),
    "coverage.expected_samples": len(TOPICS) * MINUTES,
    "coverage.missing_hours": len(DOWN) / 60,
    "coverage.late_samples": len(TOPICS),
    "coverage.resets": 0,
    "coverage.rewinds": 0,
    "coverage.recreations": sum(len(TOPICS[key].read.committed) for key in RECREATED),
}
"""After the three hours without an adapter, each topic's first sample is late."""
