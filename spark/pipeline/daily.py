"""DataFrames in, DataFrames out: hours of topics and of partitions -> the daily table."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.tables import contract

TOPIC_AND_DAY = (*contract.NAMES, "day")
ADDED = (
    "samples",
    "cycles",
    "expected_samples",
    "gaps",
    "resets",
    "rewinds",
    "skips",
    "recreations",
    "stale_samples",
)
SECONDS = ("seconds_lagging", "lagging_covered_seconds")
LARGEST = ("lag_max", "lag_partition_max", "partitions", "uncommitted_max", "members_max", "production_rate_max")
EXACT = "decimal(38, 12)"
"""Sums of fractions are the same in whatever order Spark adds them up."""


def daily_of(hours: DataFrame, partitions: DataFrame, percentiles: DataFrame) -> DataFrame:
    """DAILY's columns. `percentiles`: of the lags of each topic and day, which hours cannot tell."""
    return (
        _figures(hours)
        .join(_changes(partitions), on=[*TOPIC_AND_DAY], how="inner")
        .join(percentiles, on=[*TOPIC_AND_DAY], how="inner")
        .select(*(column.name for column in contract.DAILY))
    )


def _figures(hours: DataFrame) -> DataFrame:
    return (
        hours.withColumn("day", F.date_trunc("day", "hour"))
        .groupBy(*TOPIC_AND_DAY)
        .agg(
            F.count("*").alias("hours"),
            *(F.sum(name).alias(name) for name in ADDED),
            *(F.max(name).alias(name) for name in LARGEST),
            *(_exact_sum(F.col(name)).cast("double").alias(name) for name in SECONDS),
            F.try_sum("lagging_consumed").alias("lagging_consumed"),
            F.min("members_min").alias("members_min"),
            _mean("lag_mean", "samples"),
            _mean("members_mean", "known_members"),
        )
    )


def _changes(partitions: DataFrame) -> DataFrame:
    """A sum that 64 bits do not hold is null."""
    of_partitions = (
        partitions.withColumn("day", F.date_trunc("day", "starts_at"))
        .groupBy(*TOPIC_AND_DAY, "partition")
        .agg(
            F.try_sum("produced").alias("produced"),
            F.try_sum("consumed").alias("consumed"),
            _exact_sum(F.col("seconds")).alias("seconds"),
        )
    )
    of_topics = of_partitions.groupBy(*TOPIC_AND_DAY).agg(
        F.try_sum("produced").alias("produced"),
        F.try_sum("consumed").alias("consumed"),
        F.max("produced").alias("largest"),
        (F.coalesce(F.sum("seconds").cast("double"), F.lit(0.0)) / F.count("*")).alias("covered_seconds"),
    )
    return of_topics.withColumns(
        {
            "production_rate": F.try_divide("produced", "covered_seconds"),
            "consumption_rate": F.try_divide("consumed", "covered_seconds"),
            "skew": F.try_divide("largest", "produced"),
        }
    )


def _exact_sum(values: Column) -> Column:
    return F.sum(values.cast(EXACT))


def _mean(name: str, weight: str) -> Column:
    """Of the hours' means."""
    return F.try_divide(_exact_sum(F.col(name) * F.col(weight)).cast("double"), F.sum(weight)).alias(name)
