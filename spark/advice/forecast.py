"""Pure: whether a topic has a weekly pattern that is worth more than the hour before."""

from zoneinfo import ZoneInfo

from adapter.lag.forecast import Forecast, pattern_of
from spark.advice.demand import well_covered
from spark.figures.model import Periods


def forecast_of(hours: Periods, zone: ZoneInfo) -> Forecast | None:
    """None: too few hours were seen, or nothing was produced in those that are tried."""
    covered = well_covered(hours)
    pattern = pattern_of(covered.start, covered.production_rate, zone)
    return None if pattern is None else pattern.forecast
