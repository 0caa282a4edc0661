"""The history's tables -> the groups of a report.

The hourly and daily tables are read whole; the totals of each sample only for topics that lagged at all, and the
partitions of an hour only where it was some topic's busiest. Everything after that is arithmetic on small values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from adapter.arrow_arrays import flags_of
from spark.advice.demand import well_covered
from spark.figures.model import (
    NUMBERS,
    Above,
    Floats,
    Group,
    Jumps,
    Lag,
    Pace,
    Periods,
    Share,
    Shares,
    Times,
    Topic,
    Windows,
)
from spark.figures.periods import periods, silent_between, together
from spark.report.tables import Tables
from spark.rules.told import Episodes, Key, Measured, Pair, Told, runs, series_of, time_of_micros
from spark.tables.contract import NAMES

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
THRESHOLD_SECONDS = 60
"""A threshold that nobody gave is what is produced in this time: at that lag a message waits for so long (Little)."""
KNOWN_ENOUGH = 0.5
NOTHING = periods(np.empty(0, "datetime64[us]"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hours that begin at `since` or later and end by `until`; None: all there are."""

    since: datetime | None = None
    until: datetime | None = None
    threshold: int | None = None

    def has(self, start: datetime, length: timedelta) -> bool:
        return (self.since is None or self.since <= start) and (self.until is None or self.until - start >= length)

    def may_have(self, folder: str) -> bool:
        """Whether a day's folder (`hourly/date=2026-11-20`) can hold a wanted hour; one that is no day's holds none."""
        try:
            day = datetime.strptime(folder.rpartition("=")[2], "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            return False
        return (self.since is None or self.since - day < DAY) and (self.until is None or day < self.until)


def periods_of(tables: Tables, wanted: Wanted) -> tuple[dict[Key, Periods], dict[Key, Periods]]:
    """The hours of every topic that has one in the range, and its days that lie within."""
    hours = tables.hourly(wanted.may_have, (*NAMES, "hour", *NUMBERS))
    days = tables.daily((*NAMES, "day", *NUMBERS))
    return _by_topic(hours, "hour", HOUR, wanted), _by_topic(days, "day", DAY, wanted)


def groups_of(
    tables: Tables, wanted: Wanted, hours: Mapping[Key, Periods], days: Mapping[Key, Periods], check: Callable[[], None]
) -> tuple[Group, ...]:
    """All that a report shows of them. `check` raises where the run is to end."""
    thresholds = {key: threshold_of(of) if wanted.threshold is None else wanted.threshold for key, of in hours.items()}
    told = _told(tables, hours, thresholds, check)
    check()
    shares = _shares(tables, hours)
    topics = {
        key: Topic(
            name=key[2],
            hours=of,
            days=days.get(key, NOTHING),
            lag=told.measured[key].lag if key in told.measured else _never_lagging(of),
            above=_above(thresholds[key], wanted, told.measured.get(key), told.episodes.get(key), of),
            shares=shares.get(key),
        )
        for key, of in hours.items()
    }
    by_group = itertools.groupby(sorted(topics), key=lambda key: key[:2])
    silent = silent_between(list(hours.values()))
    return tuple(_group(pair, {key: topics[key] for key in keys}, told, silent) for pair, keys in by_group)


def threshold_of(hours: Periods) -> int:
    """At least one message: a group for which nothing is produced should have none waiting."""
    covered = float(np.nansum(hours.covered_seconds))
    return max(1, round(THRESHOLD_SECONDS * float(np.nansum(hours.produced)) / covered)) if covered > 0 else 1


def interval_of(hours: Periods) -> float:
    """Seconds between two samples, from what was expected of the newest hour."""
    expected = hours.expected_samples[hours.expected_samples > 0]
    return 3600 / float(expected[-1]) if len(expected) else 3600.0


def _group(pair: Pair, topics: Mapping[Key, Topic], told: Told, silent: Times) -> Group:
    """`topics` in their order; `silent`: hours without a row of any group."""
    paces = [told.measured[key].pace for key in topics if key in told.measured]
    hours = together([topic.hours for topic in topics.values()])
    return Group(
        cluster=pair[0],
        name=pair[1],
        interval_seconds=min(interval_of(topic.hours) for topic in topics.values()),
        topics=tuple(topics.values()),
        hours=hours,
        windows=told.windows.get(pair, Windows(np.empty(0), np.empty(0), np.empty(0))),
        pace=Pace(sum(pace.lagging for pace in paces), sum(pace.moving for pace in paces)),
        jumped=jumped_in(hours, told.jumps.get(pair)) + caught_up_in(hours, [topic.hours for topic in topics.values()]),
        silent_hours=int(((silent > hours.start[0]) & (silent < hours.start[-1])).sum()),
    )


def jumped_in(hours: Periods, jumps: Jumps | None) -> Floats:
    """A group that never has a member reads without being one: then what commits moved was read."""
    jumped = np.zeros(len(hours))
    if jumps is not None:
        has_members = np.nanmax(hours.members_max, initial=0) > 0
        _, at, of = np.intersect1d(hours.start, jumps.start, return_indices=True)
        jumped[at] = jumps.disturbed[of] + (jumps.alone[of] if has_members else 0.0)
    return jumped


def caught_up_in(hours: Periods, topics: Sequence[Periods]) -> Floats:
    """What topics consumed in hours after one of which less than half is known: that one's may be in it, for commits
    count from the last that was known."""
    caught_up = np.zeros(len(hours))
    for of in topics:
        is_known = of.samples >= KNOWN_ENOUGH * of.expected_samples
        follows = np.diff(of.start) == np.timedelta64(1, "h")
        at = np.flatnonzero(follows & ~is_known[:-1] & (of.samples[1:] > 0)) + 1
        caught_up[np.searchsorted(hours.start, of.start[at])] += np.nan_to_num(of.consumed[at])
    return caught_up


def _above(threshold: int, wanted: Wanted, measured: Measured | None, of: Episodes | None, hours: Periods) -> Above:
    return Above(
        threshold=threshold,
        is_given=wanted.threshold is not None,
        seconds=measured.seconds_above if measured else 0.0,
        known_seconds=measured.known_seconds if measured else float(np.nansum(hours.samples)) * interval_of(hours),
        episodes=of.number if of else 0,
        longest_seconds=of.longest_seconds if of else 0.0,
        longest_from=of.began if of else None,
    )


def _never_lagging(hours: Periods) -> Lag | None:
    """Known and 0 in every sample, so no sample has to be read; None: known in none."""
    samples = int(np.nansum(hours.samples))
    return Lag(samples, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0) if samples else None


def _told(
    tables: Tables, hours: Mapping[Key, Periods], thresholds: Mapping[Key, int], check: Callable[[], None]
) -> Told:
    """From all hours of the topics that lagged at all."""
    lagging = {key: of for key, of in hours.items() if np.nanmax(of.lag_max, initial=0) > 0}
    if not lagging:
        return Told()
    starts = np.unique(np.concatenate([of.start[of.samples > 0] for of in lagging.values()]))
    rows = sum(float(np.nansum(of.expected_samples)) for of in hours.values())
    return tables.told([_time(start) for start in starts], {key: thresholds[key] for key in lagging}, int(rows), check)


def _shares(tables: Tables, hours: Mapping[Key, Periods]) -> dict[Key, Shares]:
    """Of each topic's partitions in its busiest hour."""
    busiest = {key: hour for key, of in hours.items() if (hour := busiest_hour(of)) is not None}
    found: dict[Key, list[Share]] = {}
    for row in tables.shares(busiest).sort_by("partition").to_pylist():
        share = Share(row["partition"], row["produced"] or 0, row["consumed"] or 0, row["lag_max"])
        found.setdefault((row["cluster"], row["group"], row["topic"]), []).append(share)
    return {key: Shares(busiest[key], tuple(of)) for key, of in found.items()}


def busiest_hour(hours: Periods) -> datetime | None:
    """With the highest rate of those covered well enough, or of all where that is none; of several the one with most
    messages, then the newest. None: nothing was produced."""
    covered = well_covered(hours)
    of = covered if np.nanmax(covered.produced, initial=0) > 0 else hours
    rates, produced = np.nan_to_num(of.production_rate), np.nan_to_num(of.produced)
    busiest = np.lexsort((produced, rates))[-1:]
    return _time(of.start[busiest[0]]) if (rates[busiest] > 0).any() else None


def _by_topic(table: pa.Table, time: str, length: timedelta, wanted: Wanted) -> dict[Key, Periods]:
    """Hours or days of the range."""
    start = table[time].cast(pa.int64()).to_numpy().view("datetime64[us]")
    keep = np.ones(len(start), bool)
    if wanted.since is not None:
        keep &= start >= _micros(wanted.since)
    if wanted.until is not None:
        keep &= start + np.timedelta64(length) <= _micros(wanted.until)
    table, start = table.filter(flags_of(keep)), start[keep]
    numbers = {name: table[name].to_numpy().astype(np.float64) for name in NUMBERS}
    keys, place = series_of(table)
    order = np.argsort(place, kind="stable")
    places = [(keys[place[order[run.start]]], order[run]) for run in runs(place[order])]
    return {key: periods(start[at], **{name: of[at] for name, of in numbers.items()}) for key, at in places}


def _micros(time: datetime) -> np.datetime64:
    return np.datetime64(time.astimezone(UTC).replace(tzinfo=None), "us")


def _time(start: np.datetime64) -> datetime:
    return time_of_micros(int(start.astype(np.int64)))
