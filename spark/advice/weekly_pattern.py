"""Pure: production or lag by weekday and hour of the day, in the time zone of the people who read it.

The tables keep hours in UTC; an hour belongs to the local hour in which it begins, also where a clock was changed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from spark.advice.demand import well_covered
from spark.figures.model import Floats, Periods, Times
from spark.figures.periods import between
from spark.rules.percentiles import percentiles_of
from spark.tables.columns import ratio
from spark.tables.layout import HOUR

Hours = NDArray[np.int64]
"""Of the day, 0 to 23."""

DAY = timedelta(days=1)
HOURS_OF_A_DAY = 23
"""At least: of the day on which clocks are put forward."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
STANDS_OUT = 1.5
"""A peak hour has at least this many times the median hour's rate."""


@dataclass(frozen=True, slots=True)
class Week:
    rates: Floats
    """7 x 24, Monday first: mean production in messages per second, or another column's mean; NaN: not known."""
    hours_seen: Floats
    """7 x 24: how many hours each mean is of."""
    typical: Floats
    """24: the median hour of each hour of the day, which a single burst does not move; NaN: not known."""
    explained: float
    """Share of the hours' variance that the hour of the day accounts for, corrected for chance; at most 1."""
    days_seen: int
    """Dates with an hour, never more than the time from the first to the last is long."""

    def peak_hours(self) -> tuple[int, ...]:
        """Hours of the day (0 to 23) that stand out on most days."""
        if np.isnan(self.typical).all():
            return ()
        usual = float(np.nanmedian(self.typical))
        return tuple(int(hour) for hour in np.flatnonzero(self.typical > STANDS_OUT * usual))

    def rate_of(self, hours: tuple[int, ...]) -> float:
        """The largest mean rate of any weekday in these hours; 0 without hours."""
        chosen = self.rates[:, list(hours)]
        return float(np.nanmax(chosen)) if chosen.size and not np.isnan(chosen).all() else 0.0

    def busiest(self, number: int) -> tuple[tuple[str, float], ...]:
        """The hours of the week with most production, as `Mon 09:00` and their rate, the busiest first."""
        flat = np.nan_to_num(self.rates, nan=-1.0).ravel()
        order = np.argsort(-flat, kind="stable")[:number]
        return tuple((f"{DAYS[at // 24]} {at % 24:02}:00", float(flat[at])) for at in order if flat[at] > 0)


def hours_in_words(hours: Sequence[int]) -> str:
    """Hours that follow one another as one stretch: `07:00-10:00 and 18:00-19:00`."""
    stretches: list[list[int]] = []
    for hour in hours:
        if stretches and hour == stretches[-1][1]:
            stretches[-1][1] = hour + 1
        else:
            stretches.append([hour, hour + 1])
    return " and ".join(f"{first:02}:00-{until:02}:00" for first, until in stretches)


def week_of(hours: Periods, zone: ZoneInfo, column: str = "production_rate") -> Week:
    counted = well_covered(hours)
    counted = between(counted, ~np.isnan(getattr(counted, column)))
    local = local_times(counted.start, zone)
    number = _whole_days(local)
    counted, local = between(counted, np.arange(len(local)) < number), local[:number]
    rates: Floats = getattr(counted, column)
    total, seen = np.zeros((7, 24)), np.zeros((7, 24))
    days, of_day = (
        np.array(numbers, np.int64) for numbers in ([at.weekday() for at in local], [at.hour for at in local])
    )
    np.add.at(total, (days, of_day), rates)
    np.add.at(seen, (days, of_day), 1.0)
    return Week(
        rates=ratio(total, seen),
        hours_seen=seen,
        typical=percentiles_of(rates[np.argsort(of_day)], np.bincount(of_day, minlength=24), 50)["p50"],
        explained=_explained(rates, of_day),
        days_seen=_days_in(local),
    )


def local_times(start: Times, zone: ZoneInfo) -> list[datetime]:
    seconds = start.astype("datetime64[s]").astype(np.int64)
    return [datetime.fromtimestamp(int(second), UTC).astimezone(zone) for second in seconds]


def _whole_days(local: Sequence[datetime]) -> int:
    """How many hours there are without those of a last day that is not whole, where its weekday was seen before: a few
    hours of it beside none of that weekday's other hours would look like the week's first."""
    days = [time.date() for time in local]
    last = days.count(days[-1]) if days else 0
    return len(days) - last if last < HOURS_OF_A_DAY and len(set(days)) > len(DAYS) else len(days)


def _days_in(local: Sequence[datetime]) -> int:
    """`local` in order. A week whose first and last hour lie on the same weekday is of seven days."""
    if not local:
        return 0
    return min(
        len({time.date() for time in local}),
        math.ceil((local[-1].astimezone(UTC) - local[0].astimezone(UTC) + HOUR) / DAY),
    )


def _explained(rates: Floats, of_day: Hours) -> float:
    """Adjusted R squared of the mean of each hour of the day: hours by chance explain nothing."""
    classes = len(np.unique(of_day))
    if len(rates) - classes < classes or len(rates) < 2:
        return 0.0
    total = np.bincount(of_day, weights=rates, minlength=24)
    seen = np.bincount(of_day, minlength=24)
    left = float(((rates - ratio(total, seen)[of_day]) ** 2).sum()) / (len(rates) - classes)
    variance = float(((rates - rates.mean()) ** 2).sum()) / (len(rates) - 1)
    return 1 - left / variance if variance > 0 else 0.0
