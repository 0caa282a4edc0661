"""DataFrames in, DataFrames out: hours of topics, as the hourly table has them -> the figures of a range."""

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from spark.figures.model import NUMBERS
from spark.tables.contract import COVERED_SECONDS, EVENTS, NAMES

GROUP = ("cluster", "group")
KNOWN_ENOUGH = 0.5
"""Of an hour's expected samples: where fewer are known, the next hour may contain what this one consumed."""
ADDED = ("produced", "consumed", *EVENTS, "gaps", "partitions", "samples", "expected_samples", "wait_bounds")
SMALLEST = ("members_min",)
LARGEST = tuple(name for name in NUMBERS if name not in {*ADDED, *SMALLEST})


def topics_of(hours: DataFrame) -> DataFrame:
    """One row per topic. `expected_samples`: what the range promises; `busiest_hour` and `busiest_rate`: null if
    nothing was produced."""
    newest = F.max(F.when(F.col("expected_samples") > 0, F.struct("hour", "expected_samples")))
    return hours.groupBy(*NAMES).agg(
        F.sum("expected_samples").alias("expected_samples"),
        F.coalesce(3600 / newest["expected_samples"], F.lit(3600.0)).alias("interval_seconds"),
        *(_busiest()[name].alias(f"busiest_{name}") for name in ("hour", "rate")),
    )


def hours_of_groups(hours: DataFrame, jumps: DataFrame) -> DataFrame:
    """One row per group and hour, all its topics together: counts are added up, members are the group's, lags are the
    largest topic's. `jumps`: cluster, group, hour and messages. `jumped`: the part of `consumed` that no member need
    have read."""
    together = (
        hours.withColumn("caught_up", _caught_up())
        .groupBy(*GROUP, "hour")
        .agg(
            *(F.sum(name).alias(name) for name in (*ADDED, "caught_up")),
            *(F.min(name).alias(name) for name in SMALLEST),
            *(F.max(name).alias(name) for name in LARGEST),
        )
    )
    parts = (F.coalesce(name, F.lit(0.0)) for name in ("messages", "caught_up"))
    return together.join(F.broadcast(jumps), on=[*GROUP, "hour"], how="left").withColumn(
        "jumped", sum(parts, F.lit(0.0))
    )


def _busiest() -> Column:
    """The hour with the highest production rate, of those that are covered well enough or, if nothing was produced in
    these, of all; of several, the one with most messages, then the newest."""
    rate = F.try_divide(F.col("produced").cast(DoubleType()), F.col("covered_seconds"))
    is_covered = F.col("covered_seconds") >= COVERED_SECONDS
    order = F.struct(is_covered.alias("is_covered"), rate.alias("rate"), "produced", "hour")
    return F.max(F.when(rate > 0, order))


def _caught_up() -> Column:
    """What a topic consumed in an hour after one of which less than half is known: that hour's messages may be in it,
    because commits are counted from the last known one."""
    in_time = Window.partitionBy(*NAMES).orderBy("hour")
    is_known = F.col("samples") >= KNOWN_ENOUGH * F.col("expected_samples")
    follows = F.lag("hour").over(in_time) == F.col("hour") - F.lit(timedelta(hours=1))
    is_late = follows & ~F.lag(is_known).over(in_time) & (F.col("samples") > 0)
    return F.when(is_late, F.col("consumed"))
