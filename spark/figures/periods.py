"""Pure: hours and days as columns, sorted, cut and counted."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from spark.figures.model import NUMBERS, Floats, Periods, Times

NUMPY_HOUR = np.timedelta64(1, "h")
NO_TIMES: Times = np.empty(0, "datetime64[us]")


def periods(start: Times, **columns: Floats) -> Periods:
    """Sort by time, and fill what is not given with NaN."""
    order = np.argsort(start)
    nothing = np.full(len(start), np.nan)
    return Periods(start[order], *(np.asarray(columns.get(name, nothing), np.float64)[order] for name in NUMBERS))


def between(hours: Periods, keep: NDArray[np.bool_]) -> Periods:
    return Periods(*(getattr(hours, field.name)[keep] for field in fields(Periods)))


def last_hours(hours: Periods, number: int) -> Periods:
    """Those of the last so many hours by the clock: fewer where rows are missing."""
    return between(hours, hours.start > hours.start[-1:] - np.timedelta64(number, "h"))


def total(column: Floats) -> float:
    """NaN where nothing is known."""
    return float(np.nansum(column)) if (~np.isnan(column)).any() else np.nan


def median(column: Floats) -> float:
    """Of what is known; NaN where nothing is."""
    numbers = column[~np.isnan(column)]
    return float(np.median(numbers)) if len(numbers) else np.nan


def time_of(start: np.datetime64) -> datetime:
    return datetime.fromtimestamp(int(start.astype("datetime64[us]").astype(np.int64)) / 1e6, UTC)


def silent_between(parts: Sequence[Periods]) -> Times:
    """The hours between the first and the last of these that are in none of them."""
    if not parts:
        return np.empty(0, "datetime64[us]")
    present = np.unique(np.concatenate([part.start for part in parts]))
    whole = np.arange(present[0], present[-1] + NUMPY_HOUR, NUMPY_HOUR) if len(present) else present
    return np.setdiff1d(whole, present)
