"""Pure: production that grows from week to week, and when members and partitions run out if it goes on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.demand import Load, well_covered
from spark.advice.finding import Finding, Severity
from spark.figures import formatting
from spark.figures.model import Floats, Group, Periods
from spark.figures.periods import NUMPY_HOUR, joined, median, time_of
from spark.tables.columns import Ints
from spark.tables.layout import HOUR

CODE = "growth"
GROWS = 1.2
"""Times the production of the same hours a week before."""
WEEK, DAY_HOURS, ENOUGH_HOURS = 168, 24, 20
WEEK_DAYS, FEWEST_BEFORE = 7, 3
"""Days of a week that is forecast, and the fewest before it that a trend is made of."""
FEWEST_DAYS = WEEK_DAYS + FEWEST_BEFORE
MADE_OF_DAYS = 28
"""The longest time that a trend is made of: what is older shows how the group once was."""
LARGEST_ERROR = 0.25
"""As a share of what came. If the forecasts of all past weeks or that of the last one were further off, no date is
given: a median of many weeks hides that the growth has just ended."""
FURTHEST_DAYS = 56
SOON_DAYS = 28
LARGEST_LOGARITHM = 700.0
"""Of a number that is finite."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Of the busiest hour of each day: a line through the rates, or through their logarithms."""

    is_exponential: bool
    slope: float
    """A day."""
    last: float
    """Where the line is on the last day."""
    median_error: float
    """Of all days of the weeks that were forecast; as a share of what came."""
    last_error: float
    """The median of the last of these weeks."""
    weeks: int
    """Past ones, each forecast by a trend of the days before it."""

    @property
    def is_proven(self) -> bool:
        return max(self.median_error, self.last_error) <= LARGEST_ERROR

    def reaches(self, rate: float) -> float:
        """In how many days after the last one; infinite: never."""
        if self.slope <= 0 or rate <= 0:
            return math.inf
        goal = math.log(rate) if self.is_exponential else rate
        return max(0.0, (goal - self.last) / self.slope)


def growth(group: Group, load: Load, *, zone: ZoneInfo) -> Finding | None:
    times = grown(group)
    if times is None:
        return None
    end = time_of(group.hours.start[-1]) + HOUR
    seen = group.hours if group.earlier is None else joined(group.earlier, group.hours)
    trend = trend_of(daily_peaks(well_covered(seen)))
    said, soonest = _outlook(trend, load, end, zone)
    return Finding(
        CODE,
        Severity.WATCH if soonest <= SOON_DAYS else Severity.NOTE,
        f"Production is {formatting.decimal(times)} times that of the week before",
        f"Production grows: {formatting.decimal(times)} times that of the same hours a week before. {said}",
        "Plan partitions and replicas for it." if soonest <= SOON_DAYS else "",
        since=max(end - timedelta(days=14), time_of(group.hours.start[0])),
        evidence="the last seven days and the seven before",
    )


def grown(group: Group) -> float | None:
    """How many times its production is that of a week before; None: it does not grow on most days, or too little was
    seen."""
    hours = well_covered(group.hours)
    times = week_on_week(hours)
    return times if times is not None and times >= GROWS and day_on_day(hours) >= GROWS else None


def week_on_week(hours: Periods) -> float | None:
    """The ratio of production in the hours of the last seven days to that of the same hours a week before; None: too
    few of them were seen, or nothing was produced."""
    pairs = _compared(hours)
    before = sum(old for _, _, old in pairs)
    return sum(new for _, new, _ in pairs) / before if len(pairs) >= DAY_HOURS and before > 0 else None


def day_on_day(hours: Periods) -> float:
    """The median of the same ratio of each day on which anything was produced in one of both weeks: a load of a single
    day hardly changes it. NaN: there is no such day."""
    pairs = np.array(_compared(hours)).reshape(-1, 3)
    day = (pairs[:, 0] // DAY_HOURS).astype(np.int64)
    new, old = (np.bincount(day, pairs[:, at], minlength=1) for at in (1, 2))
    is_seen = new + old > 0
    with np.errstate(divide="ignore"):
        return median(new[is_seen] / old[is_seen])


def _compared(hours: Periods) -> list[tuple[int, float, float]]:
    """Of each hour of the last seven days that was seen in the week before as well: how long before the end it was, in
    hours, and its production rate and that of a week before."""
    if not len(hours):
        return []
    age = ((hours.start[-1] - hours.start) / NUMPY_HOUR).astype(np.int64)
    rates = dict(zip(age.tolist(), hours.production_rate.tolist(), strict=True))
    return [(hour, rates[hour], rates[hour + WEEK]) for hour in range(WEEK) if hour in rates and hour + WEEK in rates]


def daily_peaks(hours: Periods) -> Floats:
    """The busiest hour's rate of each day of 24 hours, counted backward from the end; NaN for a day with few hours."""
    if not len(hours):
        return np.empty(0)
    day = ((hours.start[-1] - hours.start) / NUMPY_HOUR).astype(np.int64) // DAY_HOURS
    peaks = np.full(int(day.max()) + 1, np.nan)
    for each in range(len(peaks)):
        rates = hours.production_rate[day == each]
        peaks[each] = rates.max() if len(rates) >= ENOUGH_HOURS else np.nan
    return peaks[::-1]


def trend_of(peaks: Floats) -> Trend | None:
    """The line that was closer in all past weeks; None: too few days were seen."""
    days = np.flatnonzero(~np.isnan(peaks) & (peaks > 0))
    recent = days[days >= len(peaks) - MADE_OF_DAYS]
    weeks = list(_past_weeks(days))
    if len(recent) < FEWEST_DAYS or not weeks:
        return None
    trends = []
    for is_exponential in (True, False):
        errors = [abs(_forecast(peaks, *week, is_exponential=is_exponential) / peaks[week[1]] - 1) for week in weeks]
        slope, start = _line(peaks, recent, is_exponential=is_exponential)
        last = start + slope * (len(peaks) - 1)
        of_all, of_last = (float(np.median(each)) for each in (np.concatenate(errors), errors[0]))
        trends.append(Trend(is_exponential, slope, last, of_all, of_last, len(weeks)))
    return min(trends, key=lambda trend: trend.median_error)


def _past_weeks(days: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yields of each past week, the newest first, the days before it and its own. `days`: those that were seen."""
    for end in range(len(days), WEEK_DAYS, -WEEK_DAYS):
        before, week = days[: end - WEEK_DAYS], days[end - WEEK_DAYS : end]
        before = before[before >= week[0] - MADE_OF_DAYS]
        if len(before) >= FEWEST_BEFORE:
            yield before, week


def _forecast(peaks: Floats, before: Ints, week: Ints, *, is_exponential: bool) -> Floats:
    slope, start = _line(peaks, before, is_exponential=is_exponential)
    line = start + slope * week.astype(np.float64)
    return np.exp(np.minimum(line, LARGEST_LOGARITHM)) if is_exponential else line


def _line(peaks: Floats, days: Ints, *, is_exponential: bool) -> tuple[float, float]:
    """Its slope a day, and its value on day 0."""
    slope, start = np.polyfit(days, np.log(peaks[days]) if is_exponential else peaks[days], 1)
    return float(slope), float(start)


def _outlook(trend: Trend | None, load: Load, end: datetime, zone: ZoneInfo) -> tuple[str, float]:
    """In words, and in how many days what there is runs out."""
    if trend is None:
        too_few = "The history has fewer than ten days on which anything was produced and most hours were seen"
        return f"{too_few}, so no date can be given.", math.inf
    if not load.per_member > 0:
        return "What a member can do is not known, so no date can be given.", math.inf
    tried = _tried(trend)
    if not trend.is_proven:
        return f"No date can be given: {tried[0].lower()}{tried[1:]}", math.inf
    limits = _limits(load)
    days = {name: trend.reaches(number * load.per_member) for name, number in limits.items()}
    known = "" if load.advised is not None else ", the most that a member was seen to do"
    told = [
        f"{name} {_spent(load, number) if days[name] < 1 else _enough_until(end, days[name], zone, number)}"
        for name, number in limits.items()
        if days[name] <= FURTHEST_DAYS
    ]
    if not told:
        return f"At this pace its partitions are enough for eight weeks and more. {tried}", math.inf
    said = f"At this pace {' and '.join(told)}, at {formatting.rate(load.per_member)} a member{known}. {tried}"
    return said, min(days.values())


def _limits(load: Load) -> dict[str, int]:
    """The members that there were, and those that can have a partition."""
    members, most = load.members_max or 0, load.most_members
    limits: dict[str, int] = {}
    if 0 < members < most:
        limits["its only member" if members == 1 else f"its {members} members"] = members
    if most == load.partitions:
        limits["its only partition" if most == 1 else f"its {most} partitions, with a member for each,"] = most
    else:
        can = f"the {most} members that can" if most > 1 else "the only member that can"
        limits[f"{can} have a partition"] = most
    return limits


def _tried(trend: Trend) -> str:
    """How far off such a trend was, and in how many weeks."""
    of_all, of_last = (f"{formatting.share(error)} off" for error in (trend.median_error, trend.last_error))
    if trend.weeks == 1:
        return (
            f"In the last week, a forecast made in the same way from the days before it was {of_last} (median of "
            f"{WEEK_DAYS} days)."
        )
    return (
        f"In the last {trend.weeks} weeks, forecasts made in the same way, each from the days before its week, were "
        f"{of_all} (median of {WEEK_DAYS * trend.weeks} days); that of the last week was {of_last} (median of "
        f"{WEEK_DAYS})."
    )


def _spent(load: Load, number: int) -> str:
    """Without a capacity, a member may do more than was seen."""
    return f"{_are(number)} no longer enough" if load.advised is not None else "may no longer be enough"


def _enough_until(end: datetime, days: float, zone: ZoneInfo, number: int) -> str:
    return f"{_are(number)} enough until {(end + timedelta(days=days)).astimezone(zone):%a %Y-%m-%d}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
