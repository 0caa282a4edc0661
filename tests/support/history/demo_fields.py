"""Every number of the report about the demo's week, by its path, with its truth and how close it has to be."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from local.histories.plausible_history import DOWN
from local.histories.plausible_world import MINUTES, Numbers, Rates
from tests.support.history.demo_truth import (
    DAY,
    DUE,
    GROUPS,
    HOUR,
    HOURS,
    MAX_WAIT,
    RECREATED,
    SEEN,
    TOPICS,
    GroupTruth,
    TopicTruth,
    hpa_over,
)

NOW = datetime(2026, 11, 16, 1, tzinfo=UTC)
SATURATED = {"checkout", "clickstream", "reporting", "search-index"}
"""Groups that had more to do than they could, at times."""
HOT, STILL = "clickstream", {"mail": 3, "reporting": 2}
"""The group with a hot partition; those whose partitions stand still at the end, and how many of them."""
TARGETS = SATURATED - {HOT}
"""Groups for which a target can be recommended."""
WINDOWS = {"checkout": 3600}
"""Of scaling down; 300 s elsewhere."""
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
MEASURED = "a capacity is measured in windows of four minutes, in which work arrives by chance (Poisson)"
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


def if_known(truth: Callable[[GroupTruth], Any]) -> Callable[[str, GroupTruth], Any]:
    """None where no capacity can be seen."""
    return lambda name, of: truth(of) if name in SATURATED else None


def if_recommended(truth: Callable[[str, GroupTruth], Any]) -> Callable[[str, GroupTruth], Any]:
    return lambda name, of: truth(name, of) if name in TARGETS else None


def least(name: str, of: GroupTruth, rate: float) -> int:
    return min(of.carrying(rate / 0.8), most(name, of)) if name in SATURATED else 1


def most(name: str, of: GroupTruth) -> int:
    """Fewer than the partitions only where a member's capacity is known, and none is hot."""
    return max(2, of.carrying(1.5 * of.rate.max())) if name in TARGETS else of.most_members


def step(name: str, of: GroupTruth) -> int:
    needed = math.ceil(of.rise / of.member_per_second) if name in SATURATED else 0
    return min(most(name, of), max(4, needed))


def window(name: str) -> int:
    return WINDOWS.get(name, 300)


def target(of: GroupTruth) -> float:
    return of.member_per_second * MAX_WAIT / 1.2


def backlog_windows(of: GroupTruth) -> float:
    """As many windows of four minutes as fill the minutes with a backlog."""
    return sum(backlog_windows_by_hour(of))


def backlog_windows_by_hour(of: GroupTruth) -> list[float]:
    """By hour of the day in Berlin, an hour ahead. A minute has a backlog if half a minute's production waits in a
    partition, and there are members."""
    minutes = np.zeros(24)
    for number, hour in enumerate(HOURS):
        of_hour = slice(hour * HOUR, (hour + 1) * HOUR)
        waits = [
            topic.of_partitions[:, of_hour] > 30 * topic.produced[:, number, np.newaxis] / topic.covered[number]
            for topic in of.topics
        ]
        minutes[(hour + 1) % 24] += int(np.count_nonzero(np.concatenate(waits).any(axis=0) & (of.members[of_hour] > 0)))
    return [float(each) for each in minutes / 4]


def day_of(name: str, of: GroupTruth) -> tuple[Rates, Rates]:
    """The lag and replicas of an HPA of our own over the minutes of the 24 hours around the busiest one."""
    ends = np.sum([topic.read.log.log_end.sum(axis=0) for topic in of.topics], axis=0)
    first = max(0, min(int(HOURS[np.argmax(of.rate)]) - 12, 144)) * HOUR
    rate = np.diff(ends, prepend=ends[0])[first : first + DAY] / 60
    able = of.member_per_second
    return hpa_over(
        rate, able, int(target(of)), least(name, of, of.off_peak), most(name, of), step(name, of), window(name)
    )


CLOCK = (
    "windows begin every four minutes by the clock, so those at the ends of a backlog count in part, and a few alone "
    "in an hour may be those of members that only follow"
)
SURE = "a lower bound: how busy members were in their best hour is not what they could do"
KEPT = "no other HPA is as good, but that it keeps what it promises is all that is claimed"
CHANCE = "the replay sees the means of hours; ours sees the minutes, in which bursts of 50 minutes are steeper"
GROUP_FIELDS = (
    Field("interval_seconds", lambda *_: 60),
    Field("partitions", lambda _, of: of.partitions),
    Field("members_max", lambda _, of: of.members[DUE].max()),
    Field("max_wait_seconds", lambda *_: MAX_WAIT),
    Field("capacity.p25", if_known(lambda of: of.member_per_second), 0.05, MEASURED),
    Field("capacity.p50", if_known(lambda of: of.member_per_second), 0.03, MEASURED),
    Field("capacity.p95", if_known(lambda of: of.member_per_second), 0.05, MEASURED),
    Field("capacity.windows", if_known(lambda of: Between(CLOCK, 0.7 * backlog_windows(of), backlog_windows(of)))),
    Field(
        "capacity.seconds", if_known(lambda of: Between(CLOCK, 168 * backlog_windows(of), 240 * backlog_windows(of)))
    ),
    Field("capacity.windows_by_hour", if_known(lambda of: Between(CLOCK, 0, backlog_windows_by_hour(of)))),
    *(
        Field(
            f"capacity.{name}_by_hour",
            if_known(lambda of: Between(MEASURED, 0.92 * of.member_per_second, 1.08 * of.member_per_second)),
        )
        for name in ("p25", "p95")
    ),
    Field("capacity_at_least", lambda _, of: Between(SURE, 0, 1.03 * of.member_per_second)),
    Field("production_rate.off_peak", lambda _, of: of.off_peak),
    Field("production_rate.usual", lambda _, of: np.median(of.rate)),
    Field("production_rate.peak", lambda _, of: of.rate.max()),
    Field("production_rate.rise", lambda _, of: of.rise),
    Field("hpa.target_average_value.value", if_recommended(lambda _, of: target(of)), 0.05, "rounded to two digits"),
    Field("hpa.min_replicas.value", lambda name, of: least(name, of, of.off_peak)),
    Field("hpa.max_replicas.value", most),
    Field("hpa.scale_up.stabilization_window_seconds.value", lambda *_: 0),
    Field("hpa.scale_up.policies.value", lambda name, of: [step(name, of), 100]),
    Field("hpa.scale_up.policies.period_seconds", lambda *_: [15, 15]),
    Field("hpa.scale_down.stabilization_window_seconds.value", lambda name, _: window(name)),
    Field("hpa.scale_down.policies.value", lambda *_: [50]),
    Field("hpa.scale_down.policies.period_seconds", lambda *_: [60]),
    Field("expected.wait_p50", if_recommended(lambda *_: Between(KEPT, 0, MAX_WAIT))),
    Field("expected.wait_p95", if_recommended(lambda *_: Between(KEPT, 0, MAX_WAIT))),
    Field("expected.wait_max", if_recommended(lambda *_: Between(KEPT, 0, 1.1 * MAX_WAIT))),
    Field("expected.kept_share", if_recommended(lambda *_: Between(KEPT, 0.95, 1))),
    Field("expected.replicas_mean", if_recommended(lambda name, of: day_of(name, of)[1].mean()), 0.25, CHANCE),
    Field(
        "expected.changes_a_day",
        if_recommended(lambda name, of: np.count_nonzero(np.diff(day_of(name, of)[1]))),
        1.5,
        f"{CHANCE}; and one change more or less makes others",
    ),
    Field("presets.hpa.target_average_value.value", if_recommended(lambda _, of: [target(of)] * 5), 0.05, "as above"),
    Field(
        "presets.hpa.min_replicas.value",
        lambda name, of: [
            *[least(name, of, of.off_peak)] * 3,
            of.most_members,
            least(name, of, float(np.median(of.rate))),
        ],
    ),
    Field("presets.hpa.max_replicas.value", lambda name, of: [*[most(name, of)] * 3, of.most_members, most(name, of)]),
    Field("presets.hpa.scale_up.stabilization_window_seconds.value", lambda *_: [0, 60, 0, 0, 0]),
    Field(
        "presets.hpa.scale_up.policies.value",
        lambda name, of: [most(name, of), 100, *[step(name, of), 100] * 4],
    ),
    Field("presets.hpa.scale_up.policies.period_seconds", lambda *_: [15] * 10),
    Field(
        "presets.hpa.scale_down.stabilization_window_seconds.value",
        lambda name, _: [60, *(max(least, window(name)) for least in (900, 0, 600, 900))],
    ),
    Field("presets.hpa.scale_down.policies.value", lambda *_: [100, 1, 50, 25, 50]),
    Field("presets.hpa.scale_down.policies.period_seconds", lambda *_: [60, 120, 60, 60, 60]),
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
