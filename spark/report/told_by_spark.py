"""Totals of each sample -> what only samples can tell: percentiles over a whole range, time above a threshold and its
longest episode, and the windows in which a group was saturated. For what does not fit into memory: `told_in_memory`
does the same for all else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark.advice.capacity import IN_FLIGHT_SECONDS, WINDOW_SECONDS
from spark.figures.model import Jumps, Lag, Pace, Windows
from spark.rules.told import (
    COLUMNS,
    COVERED,
    END_OF_EPISODE,
    EVENTS,
    WINDOW_INTERVALS,
    Episodes,
    Key,
    Measured,
    Pair,
    Told,
    time_of_micros,
)
from spark.tables.contract import HOUR_MICROS, NAMES

KEPT_ROWS = 20_000_000
"""Samples that are kept in memory between questions; more are read again for each."""


def told_by_spark(totals: DataFrame, thresholds: Mapping[Key, int], rows: int, check: Callable[[], None]) -> Told:
    """`rows`: about as many has `totals`. `check` raises where the run is to end."""
    session = totals.sparkSession
    with _kept(totals.select(*COLUMNS), rows) as samples:
        measured = _measured(lag_figures_of(samples, small(session, thresholds, "threshold")).toArrow())
        check()
        above = {key: thresholds[key] for key, of in measured.items() if of.lag.max > thresholds[key]}
        episodes = _episodes(episodes_of(samples, small(session, above, "threshold")).toArrow()) if above else {}
        check()
        windows = _windows(saturated_windows_of(samples).toArrow())
        check()
        return Told(measured, episodes, windows, _jumps(jumps_of(samples).toArrow()))


def small(session: SparkSession, rows: Mapping[Key, int], name: str) -> DataFrame:
    """Cluster, group, topic and one number."""
    columns = {column: [key[at] for key in rows] for at, column in enumerate(NAMES)}
    return session.createDataFrame(pa.table({**columns, name: pa.array(rows.values(), pa.int64())}))


def lag_figures_of(totals: DataFrame, thresholds: DataFrame) -> DataFrame:
    """One row per topic of `thresholds` (cluster, group, topic, threshold): figures over all samples of its lag."""
    lag, interval = F.col("lag"), F.col("interval_seconds").cast("double")
    is_lagging = lag > 0
    return (
        totals.join(F.broadcast(thresholds), on=list(NAMES), how="inner")
        .where(lag.isNotNull())
        .groupBy(*NAMES)
        .agg(
            F.count("lag").alias("samples"),
            F.percentile("lag", [0.5, 0.95, 0.99]).alias("percentiles"),
            F.max("lag").alias("lag_max"),
            F.min_by("lag", "sampled_at").alias("lag_first"),
            F.max_by("lag", "sampled_at").alias("lag_last"),
            F.sum(F.when(lag > F.col("threshold"), interval).otherwise(0.0)).alias("seconds_above"),
            F.sum(interval).alias("known_seconds"),
            F.count(F.when(is_lagging, 1)).alias("lagging"),
            F.count(F.when(is_lagging & (F.col("consumed") > 0), 1)).alias("moving"),
        )
    )


def episodes_of(totals: DataFrame, thresholds: DataFrame) -> DataFrame:
    """One row per topic of `thresholds` that was above: how often, the longest time in seconds, and when that began.

    An episode lasts from its first sample above to one interval after its last.
    """
    in_time = Window.partitionBy(*NAMES).orderBy("at")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_above = F.col("lag") > F.col("threshold")
    goes_on = F.lag(is_above).over(in_time) & (
        F.col("at") - F.lag("at").over(in_time) <= END_OF_EPISODE * 1e6 * F.col("interval")
    )
    samples = (
        totals.join(F.broadcast(thresholds), on=list(NAMES), how="inner")
        .where(F.col("lag").isNotNull())
        .select(
            *NAMES,
            "lag",
            "threshold",
            F.unix_micros("sampled_at").alias("at"),
            F.col("interval_seconds").cast("double").alias("interval"),
        )
        .withColumn("begins", F.when(is_above & ~F.coalesce(goes_on, F.lit(False)), 1).otherwise(0))
        .withColumn("episode", F.sum("begins").over(so_far))
        .where(is_above)
    )
    lengths = samples.groupBy(*NAMES, "episode").agg(
        F.min("at").alias("began"),
        ((F.max("at") - F.min("at")) / 1e6 + F.max_by("interval", "at")).alias("seconds"),
    )
    return lengths.groupBy(*NAMES).agg(
        F.count("*").alias("episodes"),
        F.max("seconds").alias("longest_seconds"),
        F.max_by("began", F.struct("seconds", -F.col("began"))).alias("longest_began"),
    )


def saturated_windows_of(totals: DataFrame) -> DataFrame:
    """Windows of a group in which a backlog outlasted them: `seconds`, `consumed`, and the `members` that had work.

    Of all samples of the window the lag at both ends must be known and more than IN_FLIGHT_SECONDS of production;
    no gap, no reset, no rewind, and no change of members. Nor may it begin with a sample whose `consumed` goes back to
    a time in which the lag was not known.
    """
    interval = F.col("interval_seconds").cast("double")
    size = F.greatest(F.lit(float(WINDOW_SECONDS)), F.ceil(interval * WINDOW_INTERVALS).cast("double"))
    was_unknown = F.coalesce(
        F.lag(F.col("lag").isNull()).over(Window.partitionBy(*NAMES).orderBy("sampled_at")), F.lit(False)
    )
    of_topic = (
        totals.withColumns(
            {
                "size": size,
                "window": F.floor(F.unix_micros("sampled_at") / (size * 1e6)),
                "was_unknown": was_unknown,
            }
        )
        .groupBy(*NAMES, "window", "size")
        .agg(
            F.min(F.least("lag", F.col("lag") - F.col("produced") + F.col("consumed"))).alias("least"),
            F.sum("seconds").alias("seconds"),
            F.sum("produced").alias("produced"),
            F.sum("consumed").alias("consumed"),
            F.min("members").alias("members"),
            F.max("partitions").alias("partitions"),
            F.count(F.when(_is_doubtful() | F.col("was_unknown"), 1)).alias("doubtful"),
            (F.max("members") - F.min("members")).alias("changes"),
        )
    )
    of_group = of_topic.groupBy("cluster", "group", "window", "size").agg(
        F.sum("least").alias("least"),
        F.max("seconds").alias("seconds"),
        F.sum("produced").alias("produced"),
        F.sum("consumed").alias("consumed"),
        F.least(F.min("members"), F.sum("partitions").cast("int")).alias("members"),
        F.sum("doubtful").alias("doubtful"),
        F.max("changes").alias("changes"),
    )
    backlog = F.col("least") > F.greatest(
        F.lit(0.0), IN_FLIGHT_SECONDS * F.try_divide(F.col("produced").cast("double"), F.col("seconds"))
    )
    is_clean = (F.col("doubtful") == 0) & (F.col("changes") == 0) & (F.col("members") > 0)
    return of_group.where(backlog & is_clean & (F.col("seconds") >= COVERED * F.col("size"))).select(
        "cluster", "group", "seconds", "consumed", "members"
    )


def jumps_of(totals: DataFrame) -> DataFrame:
    """Per group and hour (`at`, hours since 1970) what commits moved though no member need have read it:
    `disturbed`, in samples that are, and `alone`, in others without a member."""
    consumed = F.col("consumed").cast("double")
    rows = totals.withColumn("disturbed", _is_disturbed()).where(
        (consumed > 0) & (F.col("disturbed") | F.coalesce(F.col("members") == 0, F.lit(False)))
    )
    at = F.floor(F.unix_micros("sampled_at") / F.lit(HOUR_MICROS)).alias("at")
    return (
        rows.groupBy("cluster", "group", at)
        .agg(
            F.sum(F.when(F.col("disturbed"), consumed).otherwise(0.0)).alias("disturbed"),
            F.sum(F.when(F.col("disturbed"), 0.0).otherwise(consumed)).alias("alone"),
        )
        .select("cluster", "group", "at", "disturbed", "alone")
    )


def _is_doubtful() -> Column:
    """A sample that says nothing about a capacity."""
    unknown = (
        F.col("lag").isNull() | F.col("produced").isNull() | F.col("consumed").isNull() | F.col("members").isNull()
    )
    return unknown | _is_disturbed()


def _is_disturbed() -> Column:
    """One that says nothing about a capacity, though all is known."""
    events = (F.coalesce(F.col(name), F.lit(0)) for name in EVENTS)
    return F.col("is_after_gap") | (reduce(add, events) > 0)


@contextlib.contextmanager
def _kept(totals: DataFrame, rows: int) -> Iterator[DataFrame]:
    if rows > KEPT_ROWS:
        yield totals
        return
    kept = totals.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _measured(rows: pa.Table) -> dict[Key, Measured]:
    return {
        _key(row): Measured(_lag(row), row["seconds_above"], row["known_seconds"], Pace(row["lagging"], row["moving"]))
        for row in rows.to_pylist()
    }


def _lag(row: Mapping[str, Any]) -> Lag:
    p50, p95, p99 = row["percentiles"]
    return Lag(row["samples"], p50, p95, p99, row["lag_max"], row["lag_first"], row["lag_last"])


def _episodes(rows: pa.Table) -> dict[Key, Episodes]:
    return {
        _key(row): Episodes(row["episodes"], row["longest_seconds"], time_of_micros(row["longest_began"]))
        for row in rows.to_pylist()
    }


def _jumps(rows: pa.Table) -> dict[Pair, Jumps]:
    rows = rows.sort_by("at")
    start = (rows["at"].to_numpy().astype(np.int64) * HOUR_MICROS).astype("datetime64[us]")
    disturbed, alone = (rows[name].to_numpy() for name in ("disturbed", "alone"))
    return {pair: Jumps(start[at], disturbed[at], alone[at]) for pair, at in _by_group(rows).items()}


def _by_group(rows: pa.Table) -> dict[Pair, list[int]]:
    """The places of each group's rows, in their order."""
    found: dict[Pair, list[int]] = {}
    for at, pair in enumerate(zip(rows["cluster"].to_pylist(), rows["group"].to_pylist(), strict=True)):
        found.setdefault(pair, []).append(at)
    return found


def _windows(rows: pa.Table) -> dict[Pair, Windows]:
    columns = [rows[name].to_numpy().astype(np.float64) for name in ("seconds", "consumed", "members")]
    return {pair: Windows(*(column[places] for column in columns)) for pair, places in _by_group(rows).items()}


def _key(row: Mapping[str, str]) -> Key:
    return row["cluster"], row["group"], row["topic"]
