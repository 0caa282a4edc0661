"""What a report is about, as small frozen values: all that is shown, decided or written comes from these.

`spark.report.gather` makes them from the history's tables; tests make them by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.capacity import Capacity
from spark.figures.agreement import Agreement
from spark.figures.incidents import Happened, MemberHours, TopicIncidents
from spark.tables.columns import ratio
from spark.tables.sample_files import Skipped

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Times = NDArray[np.datetime64]

STALE_SECONDS = 3 * 3600.0
"""An hour is compacted within the next one; what is older says nothing about now."""
ENOUGH_SAMPLES = 20
"""Fewer do not show how often a group commits."""


@dataclass(frozen=True)
class Periods:
    """Hours or days as columns of one length, in order of time; NaN: not known."""

    start: Times
    """UTC, microseconds."""
    lag_p50: Floats
    lag_p95: Floats
    lag_p99: Floats
    lag_max: Floats
    wait_p50: Floats
    """Seconds for which the oldest message had waited, over the samples of the lag; of a group, its slowest topic's."""
    wait_p95: Floats
    wait_p99: Floats
    wait_max: Floats
    wait_bounds: Floats
    """Samples whose wait is a lower bound."""
    produced: Floats
    """Messages."""
    consumed: Floats
    covered_seconds: Floats
    production_rate_max: Floats
    """Of the steepest five minutes; of a group, its steepest topic's."""
    seconds_lagging: Floats
    samples: Floats
    expected_samples: Floats
    resets: Floats
    rewinds: Floats
    skips: Floats
    """Commits that went up past what nobody can have read."""
    gaps: Floats
    """Samples that came more than half an interval late, or after a longer silence."""
    recreations: Floats
    """Partitions that began anew because their topic was made again."""
    partitions: Floats
    members_min: Floats
    members_max: Floats
    skew: Floats
    """The largest partition's share of `produced`, 0 to 1."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def production_rate(self) -> Floats:
        """Messages per second of covered time; NaN where nothing is covered."""
        return ratio(self.produced, self.covered_seconds)

    @property
    def consumption_rate(self) -> Floats:
        return ratio(self.consumed, self.covered_seconds)


NUMBERS = tuple(field.name for field in fields(Periods) if field.name != "start")
"""The columns of `Periods` beside `start`, named as in the tables `hourly` and `daily`."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Exact percentiles over all samples of the range that are left and in which the topic's lag is known."""

    samples: int
    p50: float
    p95: float
    p99: float
    max: float
    first: float
    last: float
    since: datetime
    """The first of these samples."""
    until: datetime
    """One interval after the last."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds for which the oldest message of a topic had waited, over the samples of `Lag` whose wait is known."""

    p50: float
    p95: float
    p99: float
    max: float
    first: float
    last: float
    bounds: int
    """Of these samples those whose wait is a lower bound."""
    at_least: frozenset[str] = frozenset()
    """The names of these figures that would be larger if such a wait were longer."""


@dataclass(frozen=True, slots=True)
class Above:
    """How long the lag was above the threshold, over the span of `Lag`. NaN and None: no sample is left."""

    threshold: int
    is_given: bool
    """By the user; else it was derived."""
    seconds: float
    known_seconds: float
    """The time for which the lag is known at all."""
    episodes: int | None
    longest_seconds: float
    longest_from: datetime | None
    first_from: datetime | None = None
    """The beginning of the first episode; None: there is none."""
    last_until: datetime | None = None
    longest_quiet_seconds: float = 0.0
    """Between two episodes."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one partition got in the busiest hour."""

    partition: int
    produced: int
    consumed: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class HourShares:
    hour: datetime
    of: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Still:
    """Partitions of a topic in which messages waited, and none was consumed for an hour or more."""

    number: int
    partitions: tuple[int, ...]
    """The first few of them."""
    since: datetime
    is_exact: bool
    """Whether it began then; else it may have been earlier."""
    until: datetime
    """The end of the last hour in which they stood still."""
    lag: int
    owners: tuple[str, ...]
    """The members that they were assigned to, as far as it is known."""


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """A topic as one group reads it."""

    name: str
    hours: Periods
    days: Periods
    lag: Lag | None
    """None: no sample that is left has a known lag; `hours` may know it nevertheless."""
    above: Above
    shares: HourShares | None = None
    still: Still | None = None
    """Of the partitions that stand still at the end; else of those that did so last."""
    uncommitted: int = 0
    """Partitions without a commit at the end, where the history has their `offset_reset`."""
    uncommitted_lag: int = 0
    """The messages in them that the settings count."""
    incidents: TopicIncidents = field(default_factory=TopicIncidents)
    local_hours: Periods | None = None
    """Production by the hours of a zone that is not whole hours ahead of UTC; None: `hours` are the zone's."""
    waits: Waits | None = None
    """None: no wait is known, as in samples of earlier releases."""

    @property
    def by_local_hour(self) -> Periods:
        """Production by hours of the zone in which times are shown."""
        return self.local_hours or self.hours

    @property
    def partitions(self) -> int:
        """As many as there were in the newest hour."""
        return int(_newest(self.hours.partitions))

    @property
    def largest_lag(self) -> float | None:
        """Of the whole range, also where samples are gone."""
        return _largest(self.hours.lag_max)

    @property
    def longest_wait(self) -> float | None:
        """Of the whole range, also where samples are gone."""
        return _largest(self.hours.wait_max)

    @property
    def at_least(self) -> frozenset[str]:
        """The names of `waits` that are lower bounds; `max` is that of the whole range."""
        of_samples = self.waits.at_least if self.waits else frozenset()
        return of_samples | {"max"} if np.nansum(self.hours.wait_bounds) > 0 else of_samples

    @property
    def expected_samples(self) -> float:
        """What the intervals promise for its hours."""
        return float(np.nansum(self.expected_by_hour))

    @property
    def expected_by_hour(self) -> Floats:
        """What the intervals promise for each of its hours; for the first one, from its first sample on."""
        expected, covered = self.hours.expected_samples.copy(), self.hours.covered_seconds
        if len(expected):
            expected[0] = np.fmin(expected[0], 1 + expected[0] * np.nan_to_num(covered[0]) / 3600)
        return expected

    @property
    def hours_known(self) -> Times:
        """Hours with a known lag."""
        return self.hours.start[self.hours.samples > 0]

    @property
    def hours_left(self) -> Times:
        """Those of `hours_known` whose samples are left."""
        hours = self.hours_known
        return hours[:0] if self.lag is None else hours[overlap(hours, self.lag.since, self.lag.until)]


@dataclass(frozen=True, slots=True)
class Pace:
    """Counts samples with members and something to read, to distinguish rare commits from slow consumers."""

    lagging: int
    moving: int
    """Of these, the samples in which the group consumed something."""


@dataclass(frozen=True, slots=True)
class Group:
    cluster: str
    name: str
    interval_seconds: float
    topics: tuple[TopicFigures, ...]
    """At least one."""
    hours: Periods
    """All topics together: what is counted is added up, members are the group's, lags are the largest topic's."""
    capacity: Capacity | None
    """None: the group was never seen saturated."""
    pace: Pace
    jumped: Floats
    """Of what is consumed in each of `hours`, what no member need have read."""
    silent: Times = field(default_factory=lambda: np.empty(0, "datetime64[us]"))
    """Hours between its first and its last in which the history has no row of any group."""
    is_spread: bool | None = None
    """Whether the last assignment divides all topics among the members together; None: not known."""
    agreement: Agreement = field(default_factory=Agreement)
    local_hours: Periods | None = None
    """As of a topic, all of them together."""
    member_hours: MemberHours = field(default_factory=MemberHours)
    happened: Mapping[str, Happened] = field(default_factory=dict)
    """By the column of the hours that counts it in partitions."""
    earlier: Periods | None = None
    """Production in the hours before the range, where it grows; None: not read."""

    @property
    def by_local_hour(self) -> Periods:
        """Production by hours of the zone in which times are shown."""
        return self.local_hours or self.hours

    @property
    def commit_seconds(self) -> float | None:
        """Between two commits; None: commits come in half of the samples or more, or too few samples show it."""
        lagging, moving = self.pace.lagging, self.pace.moving
        is_rare = lagging >= ENOUGH_SAMPLES and 0 < moving < 0.5 * lagging
        return lagging / moving * self.interval_seconds if is_rare else None

    @property
    def is_paused(self) -> Flags:
        """Whether each of `hours` lies in a planned pause."""
        if not self.agreement.pauses:
            return np.zeros(len(self.hours), np.bool_)
        starts = (datetime.fromtimestamp(at / 1e6, UTC) for at in self.hours.start.astype(np.int64).tolist())
        return np.array([self.agreement.has_pause(start) for start in starts], np.bool_)

    @property
    def expected_samples(self) -> float:
        """What the interval promises for its hours, the silent ones included."""
        promising = sum(np.nansum(topic.hours.expected_samples) > 0 for topic in self.topics)
        of_silent = len(self.silent) * promising * 3600 / self.interval_seconds
        return sum(topic.expected_samples for topic in self.topics) + of_silent

    @property
    def seconds_above(self) -> float:
        """The longest time above the threshold of any topic; NaN: not known."""
        return float(np.fmax.reduce([topic.above.seconds for topic in self.topics]))

    @property
    def largest_lag(self) -> float | None:
        """The topics' largest lags, added up."""
        lags = [topic.largest_lag for topic in self.topics if topic.largest_lag is not None]
        return sum(lags) if lags else None

    @property
    def partitions(self) -> int:
        """Of all its topics."""
        return sum(topic.partitions for topic in self.topics)


@dataclass(frozen=True, slots=True)
class ReportData:
    """All that was gathered for one report."""

    location: str
    made_at: datetime
    since: datetime
    """Start of the first hour that counts, UTC."""
    until: datetime
    """End of the last hour that counts, UTC."""
    zone: ZoneInfo
    """In which times are shown."""
    groups: tuple[Group, ...]
    skipped: tuple[Skipped, ...] = ()
    """What of the history no figure contains."""
    is_past: bool = False
    """Whether the user asked for a range that has an end: then its end is what "now" means."""
    version: str = ""
    """Of what made the report; empty: not installed as a distribution."""

    @property
    def age_seconds(self) -> float | None:
        """Since the end of the newest hour of data; None: there is none."""
        if not self.groups:
            return None
        newest = max(group.hours.start[-1] for group in self.groups) + np.timedelta64(1, "h")
        return self.made_at.timestamp() - int(newest.astype("datetime64[us]").astype(np.int64)) / 1e6

    @property
    def is_stale(self) -> bool:
        """Whether what the data shows at its end is over, as far as anybody knows."""
        age = self.age_seconds
        return not self.is_past and age is not None and age > STALE_SECONDS


def as_column(time: datetime) -> np.datetime64:
    """As `Periods.start` has it."""
    return np.datetime64(time.replace(tzinfo=None), "us")


def overlap(hours: Times, since: datetime, until: datetime) -> Flags:
    """Which of these hours have a part between two times."""
    is_within: Flags = (hours > as_column(since) - np.timedelta64(1, "h")) & (hours < as_column(until))
    return is_within


def _largest(column: Floats) -> float | None:
    """None: nothing is known."""
    numbers = column[~np.isnan(column)]
    return float(numbers.max()) if len(numbers) else None


def _newest(column: Floats) -> float:
    numbers = column[~np.isnan(column)]
    return float(numbers[-1]) if len(numbers) else 0.0
