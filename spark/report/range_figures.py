"""DataFrames in, DataFrames out: hours of topics, as the hourly table has them -> the figures of a range.

`samples` below is one row per group of `spark.rules.lag_statistics.STATISTICS`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.tables.contract import NAMES

GROUP = ("cluster", "group")
THRESHOLD_SECONDS = 60
"""The default threshold is what is produced in this time: at that lag a message waits for so long (Little's law)."""
KNOWN_ENOUGH = 0.5
"""Of an hour's expected samples: where fewer are known, the next hour may contain what this one consumed."""
COVERED_SECONDS = 1800.0
"""An hour with less covered time says too little about its rate."""
ADDED = (
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
)
LARGEST = ("lag_p50", "lag_p95", "lag_p99", "lag_max", "covered_seconds", "seconds_lagging", "members_max", "skew")


def topics_of(hours: DataFrame, threshold: int | None) -> DataFrame:
    """One row per topic: its interval, how many samples a range promises, and the threshold, by default from its
    production and at least one message: a topic for which nothing is produced should have none waiting."""
    default = F.bround(THRESHOLD_SECONDS * F.try_divide(F.sum("produced").cast("double"), F.sum("covered_seconds")))
    newest = F.max(F.when(F.col("expected_samples") > 0, F.struct("hour", "expected_samples")))
    return hours.groupBy(*NAMES).agg(
        F.sum("expected_samples").alias("expected_samples"),
        F.coalesce(3600 / newest["expected_samples"], F.lit(3600.0)).alias("interval_seconds"),
        F.greatest(F.lit(1), F.coalesce(default, F.lit(1)).cast("long")).alias("threshold")
        if threshold is None
        else F.lit(threshold).cast("long").alias("threshold"),
    )


def with_lags(topics: DataFrame, samples: DataFrame) -> DataFrame:
    """The topics beside what their samples show; null where no sample is left."""
    return topics.join(samples.select(*GROUP, F.inline("topics")), on=list(NAMES), how="left")


def hours_of_groups(hours: DataFrame, samples: DataFrame) -> DataFrame:
    """One row per group and hour, all its topics together: counts are added up, members are the group's, lags are the
    largest topic's. `jumped`: the part of `consumed` that no member need have read."""
    together = (
        hours.withColumn("caught_up", _caught_up())
        .groupBy(*GROUP, "hour")
        .agg(
            *(F.sum(name).alias(name) for name in ADDED),
            *(F.max(name).alias(name) for name in LARGEST),
            F.sum("caught_up").alias("caught_up"),
        )
    )
    jumps = samples.select(*GROUP, F.inline("jumps"))
    return together.join(jumps, on=[*GROUP, "hour"], how="left").withColumn("jumped", _jumped())


def busiest_hours(hours: DataFrame) -> DataFrame:
    """Each topic's hour with the highest production rate, of those that are covered well enough or, where nothing was
    produced in these, of all; of several, the one with most messages, then the newest. None for a topic for which
    nothing was produced."""
    rate = F.try_divide(F.col("produced").cast("double"), F.col("covered_seconds"))
    is_covered = (F.col("covered_seconds") >= COVERED_SECONDS) & (F.col("produced") > 0)
    first = Window.partitionBy(*NAMES).orderBy(
        F.coalesce(is_covered, F.lit(False)).desc(), rate.desc_nulls_last(), F.desc("produced"), F.desc("hour")
    )
    return (
        hours.where(rate > 0)
        .withColumn("place", F.row_number().over(first))
        .where(F.col("place") == 1)
        .select(*NAMES, "hour")
    )


def shares_of(partitions: DataFrame, busiest: DataFrame) -> DataFrame:
    """Each topic's partitions in its busiest hour."""
    of_hour = partitions.withColumnRenamed("starts_at", "hour")
    return of_hour.join(busiest, on=[*NAMES, "hour"], how="inner").select(
        *NAMES, "hour", "partition", "produced", "consumed", "lag_max"
    )


def _caught_up() -> Column:
    """What a topic consumed in an hour after one of which less than half is known: that hour's messages may be in it,
    because commits are counted from the last known one."""
    in_time = Window.partitionBy(*NAMES).orderBy("hour")
    is_known = F.col("samples") >= KNOWN_ENOUGH * F.col("expected_samples")
    follows = F.lag("hour").over(in_time) == F.col("hour") - F.expr("INTERVAL 1 HOUR")
    is_late = follows & ~F.lag(is_known).over(in_time) & (F.col("samples") > 0)
    return F.when(is_late, F.col("consumed"))


def _jumped() -> Column:
    """A group that never has a member reads without being a group: then what its commits moved was read."""
    has_members = F.max("members_max").over(Window.partitionBy(*GROUP)) > 0
    without_members = F.when(has_members, F.col("without_members"))
    parts = (F.col("after_disturbance"), without_members, F.col("caught_up").cast("double"))
    return sum((F.coalesce(part, F.lit(0.0)) for part in parts), F.lit(0.0))
