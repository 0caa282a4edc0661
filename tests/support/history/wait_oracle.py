"""How long the oldest message of a partition has waited, in plain Python: one series, one sample after the other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import frexp
from typing import Any

Row = dict[str, Any]
HOUR = timedelta(hours=1)
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True)
class End:
    """A known log end; `is_reset`: of another log than the ones before."""

    at: datetime
    offset: int
    is_reset: bool


def add_waits(series: Sequence[Row], hours: Iterable[datetime]) -> None:
    """Adds `wait_seconds` and `wait_is_bound` to deltas of one series, in order of time. `hours`: all that the history
    has, in order."""
    ends: list[End] = []
    passed = None
    for hour in hours:
        for row in series:
            if not hour <= row["sampled_at"] < hour + HOUR:
                continue
            if row["log_end"] is not None:
                ends.append(End(row["sampled_at"], row["log_end"], row["is_reset"]))
            if row["committed"] is not None:
                passed = max(row["committed"], row["log_start"] or 0)
            row["wait_seconds"], row["wait_is_bound"] = waited(ends, row)
        ends = carried(ends, passed, hour + HOUR)


def waited(ends: Sequence[End], row: Row) -> tuple[float | None, bool]:
    if not row["lag"]:
        return None if row["lag"] is None else 0.0, False
    passed, log = row["log_end"] - row["lag"], of_one_log(ends)
    before = [place for place, end in enumerate(log) if end.offset <= passed]
    if not before:
        return (row["sampled_at"] - log[0].at).total_seconds(), True
    low, high = log[before[-1]], log[before[-1] + 1]
    rise = (passed - low.offset) / (high.offset - low.offset)
    return (row["sampled_at"] - low.at).total_seconds() - rise * (high.at - low.at).total_seconds(), False


def of_one_log(ends: Sequence[End]) -> list[End]:
    """Those of the newest log; what seems to fall there does not."""
    first = max((place for place, end in enumerate(ends) if end.is_reset), default=0)
    log: list[End] = []
    for end in ends[first:]:
        log.append(End(end.at, max([end.offset, *(each.offset for each in log[-1:])]), end.is_reset))
    return log


def carried(ends: Sequence[End], passed: int | None, until: datetime) -> list[End]:
    """What is left of them at an hour's end: the newest, the last that the commit has passed, and the last of each
    cell after that one."""
    log = of_one_log(ends)
    raw = ends[len(ends) - len(log) :]
    kept = []
    for place, end in enumerate(log[:-1]):
        waits = passed is not None and end.offset > passed
        is_passing = passed is not None and not waits and log[place + 1].offset > passed
        is_last = place == len(log) - 2 or cell_of(end, until) != cell_of(log[place + 1], until)
        kept += [raw[place]] if is_passing or (waits and is_last) else []
    return [*kept, *raw[-1:]]


def cell_of(end: End, until: datetime) -> tuple[int, int]:
    age, at = ((until - end.at) // timedelta(microseconds=1), (end.at - EPOCH) // timedelta(microseconds=1))
    level = frexp(age // 32)[1]
    return level, at >> level
