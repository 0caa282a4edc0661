"""The history's tables -> the groups of a report, in a handful of Spark actions.

The hourly and daily tables are read whole; the totals of each sample only for topics that lagged at all, and the
partitions of an hour only where it was some topic's busiest. Everything after that is arithmetic on small values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.figures import NUMBERS, Above, Group, Lag, Pace, Periods, Share, Shares, Topic, Windows, periods, together
from spark.files import Files
from spark.read_history import folder_of, schema_of
from spark.sample_figures import episodes_of, lag_figures_of, saturated_windows_of
from spark.tables_contract import DAILY, HOURLY, PARTITIONS, TOTALS, Column

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NAMES = ("cluster", "group", "topic")
THRESHOLD_SECONDS = 60
"""A threshold that nobody gave is what is produced in this time: at that lag a message waits for so long (Little)."""
KEPT_ROWS = 20_000_000
"""Samples of a lag that are kept in memory between questions; more are read again for each."""
NOTHING = periods(np.empty(0, "datetime64[us]"))

Key = tuple[str, str, str]
"""Cluster, group, topic."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hours that begin at `since` or later and end by `until`; None: all there are."""

    since: datetime | None = None
    until: datetime | None = None
    threshold: int | None = None

    def has(self, start: datetime, length: timedelta) -> bool:
        return (self.since is None or self.since <= start) and (self.until is None or start + length <= self.until)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables below a location."""

    session: Callable[[], SparkSession]
    files: Files

    def rows(self, paths: Sequence[str], columns: Sequence[Column]) -> DataFrame:
        """Of the paths that exist; the others are hours of which nothing is left."""
        uris = [self.files.uri(path) for path in paths]
        return self.session().read.schema(schema_of(columns)).parquet(*uris)

    def small(self, rows: Mapping[Key, int], name: str) -> DataFrame:
        """Cluster, group, topic and one number."""
        columns = {column: [key[at] for key in rows] for at, column in enumerate(NAMES)}
        return self.session().createDataFrame(pa.table({**columns, name: pa.array(rows.values(), pa.int64())}))


def periods_of(tables: Tables, wanted: Wanted) -> tuple[dict[Key, Periods], dict[Key, Periods]]:
    """The hours of every topic that has one in the range, and its days that lie within, in one action."""
    folders = sorted({file.folder for file in tables.files.listed("hourly", 1)})
    parts = [
        _periods(tables, [folder for folder in folders if _may_have(folder, wanted)], HOURLY, "hour", wanted),
        _periods(tables, [file.path for file in tables.files.listed("daily", 0)], DAILY, "day", wanted),
    ]
    there = [part for part in parts if part is not None]
    if not there:
        return {}, {}
    table = reduce(DataFrame.unionAll, there).toArrow()
    is_hour = table["is_hour"].to_numpy(zero_copy_only=False).astype(bool)
    return _by_topic(table.filter(pa.array(is_hour))), _by_topic(table.filter(pa.array(~is_hour)))


def groups_of(
    tables: Tables, wanted: Wanted, hours: Mapping[Key, Periods], days: Mapping[Key, Periods], check: Callable[[], None]
) -> tuple[Group, ...]:
    """All that a report shows of them. `check` raises where the run is to end."""
    thresholds = {key: threshold_of(of) if wanted.threshold is None else wanted.threshold for key, of in hours.items()}
    with _totals(tables, hours) as totals:
        measured = _measured(tables, totals, hours, thresholds)
        check()
        episodes = _episodes(tables, totals, hours, thresholds)
        check()
        windows = _windows(totals)
        check()
    shares = _shares(tables, hours)
    topics = {
        key: Topic(
            name=key[2],
            hours=of,
            days=days.get(key, NOTHING),
            lag=measured[key].lag if key in measured else _never_lagging(of),
            above=_above(thresholds[key], wanted, measured.get(key), episodes.get(key), of),
            shares=shares.get(key),
        )
        for key, of in hours.items()
    }
    return tuple(
        _group(pair, {key: topic for key, topic in topics.items() if key[:2] == pair}, windows, measured)
        for pair in sorted({key[:2] for key in topics})
    )


def threshold_of(hours: Periods) -> int:
    """At least one message: a group for which nothing is produced should have none waiting."""
    covered = float(np.nansum(hours.covered_seconds))
    return max(1, round(THRESHOLD_SECONDS * float(np.nansum(hours.produced)) / covered)) if covered > 0 else 1


def interval_of(hours: Periods) -> float:
    """Seconds between two samples, from what was expected of the newest hour."""
    expected = hours.expected_samples[hours.expected_samples > 0]
    return 3600 / float(expected[-1]) if len(expected) else 3600.0


@dataclass(frozen=True, slots=True)
class _Measured:
    lag: Lag
    seconds_above: float
    known_seconds: float
    pace: Pace


@dataclass(frozen=True, slots=True)
class _Episodes:
    number: int
    longest_seconds: float
    began: datetime


def _group(
    pair: tuple[str, ...],
    topics: Mapping[Key, Topic],
    windows: Mapping[tuple[str, ...], Windows],
    measured: Mapping[Key, _Measured],
) -> Group:
    paces = [measured[key].pace for key in topics if key in measured]
    return Group(
        cluster=pair[0],
        name=pair[1],
        interval_seconds=min(interval_of(topic.hours) for topic in topics.values()),
        topics=tuple(topics[key] for key in sorted(topics)),
        hours=together([topic.hours for topic in topics.values()]),
        windows=windows.get(pair, Windows(np.empty(0), np.empty(0), np.empty(0))),
        pace=Pace(sum(pace.lagging for pace in paces), sum(pace.moving for pace in paces)),
    )


def _above(threshold: int, wanted: Wanted, measured: _Measured | None, of: _Episodes | None, hours: Periods) -> Above:
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


@contextlib.contextmanager
def _totals(tables: Tables, hours: Mapping[Key, Periods]) -> Iterator[DataFrame | None]:
    """Of all hours of the topics that lagged at all; None: there is none. Few are read once and kept."""
    lagging = [of for of in hours.values() if np.nanmax(of.lag_max, initial=0) > 0]
    starts = np.unique(np.concatenate([of.start[of.samples > 0] for of in lagging])) if lagging else ()
    folders = _there(tables, "totals", [folder_of(_time(int(start.astype(np.int64)))) for start in starts])
    if not folders:
        yield None
        return
    totals = tables.rows(folders, TOTALS)
    if sum(float(np.nansum(of.samples)) for of in hours.values()) > KEPT_ROWS:
        yield totals
        return
    kept = totals.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _measured(
    tables: Tables, totals: DataFrame | None, hours: Mapping[Key, Periods], thresholds: Mapping[Key, int]
) -> dict[Key, _Measured]:
    lagging = {key: thresholds[key] for key, of in hours.items() if np.nanmax(of.lag_max, initial=0) > 0}
    if totals is None or not lagging:
        return {}
    rows = lag_figures_of(totals, tables.small(lagging, "threshold")).toArrow().to_pylist()
    return {
        _key(row): _Measured(_lag(row), row["seconds_above"], row["known_seconds"], Pace(row["lagging"], row["moving"]))
        for row in rows
    }


def _episodes(
    tables: Tables, totals: DataFrame | None, hours: Mapping[Key, Periods], thresholds: Mapping[Key, int]
) -> dict[Key, _Episodes]:
    above = {key: thresholds[key] for key, of in hours.items() if np.nanmax(of.lag_max, initial=0) > thresholds[key]}
    if totals is None or not above:
        return {}
    rows = episodes_of(totals, tables.small(above, "threshold")).toArrow().to_pylist()
    return {_key(row): _Episodes(row["episodes"], row["longest_seconds"], _time(row["longest_began"])) for row in rows}


def _windows(totals: DataFrame | None) -> dict[tuple[str, ...], Windows]:
    if totals is None:
        return {}
    table = saturated_windows_of(totals).toArrow()
    found: dict[tuple[str, ...], list[int]] = {}
    for at, pair in enumerate(zip(table["cluster"].to_pylist(), table["group"].to_pylist(), strict=True)):
        found.setdefault(pair, []).append(at)
    seconds, consumed, members = (
        table[name].to_numpy().astype(np.float64) for name in ("seconds", "consumed", "members")
    )
    return {pair: Windows(seconds[rows], consumed[rows], members[rows]) for pair, rows in found.items()}


def _shares(tables: Tables, hours: Mapping[Key, Periods]) -> dict[Key, Shares]:
    """Of each topic's partitions in its busiest hour."""
    busiest = {
        key: int(of.start[np.nanargmax(of.produced)].astype(np.int64))
        for key, of in hours.items()
        if np.nanmax(of.produced, initial=0) > 0
    }
    folders = _there(tables, "partitions", sorted({folder_of(_time(hour)) for hour in busiest.values()}))
    if not folders:
        return {}
    rows = (
        tables.rows(folders, PARTITIONS)
        .join(F.broadcast(tables.small(busiest, "busiest")), on=list(NAMES), how="inner")
        .where(F.unix_micros("starts_at") == F.col("busiest"))
        .select(*NAMES, "partition", "produced", "consumed", "lag_max")
    )
    found: dict[Key, list[Share]] = {}
    for row in rows.toArrow().sort_by("partition").to_pylist():
        share = Share(row["partition"], row["produced"] or 0, row["consumed"] or 0, row["lag_max"])
        found.setdefault(_key(row), []).append(share)
    return {key: Shares(_time(busiest[key]), tuple(of)) for key, of in found.items()}


def _periods(
    tables: Tables, paths: Sequence[str], columns: Sequence[Column], time: str, wanted: Wanted
) -> DataFrame | None:
    """Hours or days of the range."""
    if not paths:
        return None
    length = HOUR if time == "hour" else DAY
    rows = tables.rows(paths, columns)
    if wanted.since is not None:
        rows = rows.where(F.col(time) >= F.lit(wanted.since))
    if wanted.until is not None:
        rows = rows.where(F.col(time) <= F.lit(wanted.until - length))
    return rows.select(
        *NAMES,
        F.lit(time == "hour").alias("is_hour"),
        F.unix_micros(time).alias("start"),
        *(F.col(name).cast("double") for name in NUMBERS),
    )


def _by_topic(table: pa.Table) -> dict[Key, Periods]:
    start = table["start"].to_numpy().astype("datetime64[us]")
    numbers = {name: table[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in NUMBERS}
    return {key: periods(start[at], **{name: of[at] for name, of in numbers.items()}) for key, at in _series(table)}


def _series(table: pa.Table) -> Iterator[tuple[Key, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Each key and the places of its rows."""
    encoded = [table[name].combine_chunks().dictionary_encode() for name in NAMES]
    code = np.zeros(table.num_rows, np.int64)
    for part in encoded:
        code = code * max(1, len(part.dictionary)) + part.indices.to_numpy()
    order = np.argsort(code, kind="stable")
    bounds = np.flatnonzero(np.diff(code[order])) + 1
    for places in np.split(order, bounds) if len(order) else ():
        yield tuple(part.dictionary[part.indices[places[0]].as_py()].as_py() for part in encoded), places


def _there(tables: Tables, table: str, folders: Iterable[str]) -> list[str]:
    return [path for path in (f"{table}/{folder}" for folder in folders) if tables.files.exists(path)]


def _may_have(folder: str, wanted: Wanted) -> bool:
    """Whether a day's folder (`hourly/date=2026-11-20`) can hold a wanted hour; a name that is no day holds none."""
    try:
        day = datetime.strptime(folder.rpartition("=")[2], "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return False
    return (wanted.since is None or day + DAY > wanted.since) and (wanted.until is None or day < wanted.until)


def _lag(row: Mapping[str, Any]) -> Lag:
    p50, p95, p99 = row["percentiles"]
    return Lag(row["samples"], p50, p95, p99, row["lag_max"], row["lag_first"], row["lag_last"])


def _key(row: Mapping[str, str]) -> Key:
    return row["cluster"], row["group"], row["topic"]


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
