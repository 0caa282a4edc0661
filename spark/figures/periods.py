"""Pure: hours and days of topics put together, cut and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from spark.figures.model import NUMBERS, Floats, Periods, Times

HOUR = np.timedelta64(1, "h")


def periods(start: Times, **columns: Floats) -> Periods:
    """Sort by time, and fill what is not given with NaN."""
    order = np.argsort(start)
    nothing = np.full(len(start), np.nan)
    return Periods(start[order], *(np.asarray(columns.get(name, nothing), np.float64)[order] for name in NUMBERS))


def together(parts: Sequence[Periods]) -> Periods:
    """Several topics of one group as one: counts are added, covered time and members are the largest of any topic."""
    if len(parts) == 1:
        return parts[0]
    start = np.unique(np.concatenate([part.start for part in parts]))
    columns = {name: _folded(start, parts, name) for name in NUMBERS}
    return periods(start, **columns)


def between(hours: Periods, keep: NDArray[np.bool_]) -> Periods:
    return Periods(*(getattr(hours, field.name)[keep] for field in fields(Periods)))


def last_hours(hours: Periods, number: int) -> Periods:
    """Those of the last so many hours by the clock: fewer where rows are missing."""
    return between(hours, hours.start > hours.start[-1:] - np.timedelta64(number, "h"))


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
}


def _folded(start: Times, parts: Sequence[Periods], name: str) -> Floats:
    fold: Callable[[Floats, Floats], Floats] = np.add if name in _ADDED else np.fmax
    whole = np.full(len(start), np.nan)
    for part in parts:
        at = np.searchsorted(start, part.start)
        known, new = whole[at], getattr(part, name)
        whole[at] = np.where(np.isnan(known), new, np.where(np.isnan(new), known, fold(known, new)))
    return whole


def silent_between(parts: Sequence[Periods]) -> Times:
    """The hours between the first and the last of these that are in none of them."""
    if not parts:
        return np.empty(0, "datetime64[us]")
    there = np.unique(np.concatenate([part.start for part in parts]))
    whole = np.arange(there[0], there[-1] + HOUR, HOUR) if len(there) else there
    return np.setdiff1d(whole, there)
