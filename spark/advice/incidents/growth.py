"""Pure: production that grows from week to week, and when members and partitions run out if it goes on."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.demand import Load, well_covered
from spark.advice.finding import Finding, Severity
from spark.figures import formatting
from spark.figures.model import Floats, Group, Periods
from spark.figures.periods import NUMPY_HOUR, time_of
from spark.tables.layout import HOUR

CODE = "growth"
GROWS = 1.2
"""Times the production of the same hours a week before."""
WEEK, DAY_HOURS, ENOUGH_HOURS = 168, 24, 20
FEWEST_DAYS = 10
"""Seven that a trend is tried on, and three that it is made of."""
TRIED_DAYS = 7
LARGEST_ERROR = 0.25
"""As a share of what came. If the error is larger, no date is given."""
FURTHEST_DAYS = 56
SOON_DAYS = 28


@dataclass(frozen=True, slots=True)
class Trend:
    """Of the busiest hour of each day: a line through the rates, or through their logarithms."""

    is_exponential: bool
    slope: float
    """A day."""
    last: float
    """Where the line is on the last day."""
    error: float
    """The median error on the last seven days, of a trend that was made without them; of what came."""

    def reaches(self, rate: float) -> float:
        """In how many days after the last one; infinite: never."""
        if self.slope <= 0 or rate <= 0:
            return math.inf
        goal = math.log(rate) if self.is_exponential else rate
        return max(0.0, (goal - self.last) / self.slope)


def growth(group: Group, load: Load, *, zone: ZoneInfo) -> Finding | None:
    times = week_on_week(well_covered(group.hours))
    if times is None or times < GROWS:
        return None
    end = time_of(group.hours.start[-1]) + HOUR
    trend = trend_of(daily_peaks(well_covered(group.hours)))
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


def week_on_week(hours: Periods) -> float | None:
    """The ratio of production in the hours of the last seven days to that of the same hours a week before; None: too
    few of them were seen, or nothing was produced."""
    if not len(hours):
        return None
    age = ((hours.start[-1] - hours.start) / NUMPY_HOUR).astype(np.int64)
    rates = dict(zip(age.tolist(), hours.production_rate.tolist(), strict=True))
    pairs = [(rates[hour], rates[hour + WEEK]) for hour in range(WEEK) if hour in rates and hour + WEEK in rates]
    before = sum(old for _, old in pairs)
    return sum(new for new, _ in pairs) / before if len(pairs) >= DAY_HOURS and before > 0 else None


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
    """The better one of both lines on the last seven days; None: too few days were seen."""
    days = np.flatnonzero(~np.isnan(peaks) & (peaks > 0))
    days = days[days >= len(peaks) - SOON_DAYS]
    if len(days) < FEWEST_DAYS:
        return None
    trends = []
    for is_exponential in (True, False):
        values = np.log(peaks[days]) if is_exponential else peaks[days]
        early, late = slice(None, -TRIED_DAYS), slice(-TRIED_DAYS, None)
        tried = np.polyval(np.polyfit(days[early], values[early], 1), days[late])
        predicted = np.exp(np.minimum(tried, 700)) if is_exponential else tried
        error = float(np.median(np.abs(predicted / peaks[days][late] - 1)))
        slope, start = (float(it) for it in np.polyfit(days, values, 1))
        trends.append(Trend(is_exponential, slope, start + slope * (len(peaks) - 1), error))
    return min(trends, key=lambda trend: trend.error)


def _outlook(trend: Trend | None, load: Load, end: datetime, zone: ZoneInfo) -> tuple[str, float]:
    """In words, and in how many days what there is runs out."""
    if trend is None:
        return "The history has fewer than ten days, so no date can be given.", math.inf
    error = formatting.share(trend.error)
    if trend.error > LARGEST_ERROR:
        return f"No date can be given: a trend made a week before was {error} off on the last seven days.", math.inf
    members = load.members_max or 0
    limits = [("members", members)] if members < load.most_members else []
    limits.append(("partitions, with a member for each,", load.most_members))
    days = {name: trend.reaches(number * load.per_member) for name, number in limits if number and load.per_member > 0}
    known = "" if load.advised is not None else ", the most that a member was seen to do"
    told = [
        f"its {number} {name} {_spent(load) if days[name] < 1 else _enough_until(end, days[name], zone)}"
        for name, number in limits
        if days.get(name, math.inf) <= FURTHEST_DAYS
    ]
    if not told:
        said = f"At this pace its partitions are enough for eight weeks and more. The trend was {error} off last week."
        return said, math.inf
    said = (
        f"At this pace {' and '.join(told)}, counting with {formatting.rate(load.per_member)} a member{known}. A trend "
        f"made a week before was {error} off on the last seven days."
    )
    return said, min(days.values())


def _spent(load: Load) -> str:
    """Without a capacity, a member may do more than was seen."""
    return "are no longer enough" if load.advised is not None else "may no longer be enough"


def _enough_until(end: datetime, days: float, zone: ZoneInfo) -> str:
    return f"are enough until {(end + timedelta(days=days)).astimezone(zone):%a %Y-%m-%d}"
