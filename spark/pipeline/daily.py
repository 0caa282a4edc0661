"""DataFrames in, DataFrames out: hours of topics and of partitions -> the daily table."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType

from spark.tables import contract

TOPIC_AND_DAY = (*contract.NAMES, "day")
ADDED = ("samples", "cycles", "expected_samples", "gaps", *contract.EVENTS, "stale_samples")
SECONDS = ("seconds_lagging", "lagging_covered_seconds")
LARGEST = (
    "lag_p50",
    "lag_p95",
    "lag_p99",
    "lag_max",
    "lag_partition_max",
    "partitions",
    "uncommitted_max",
    "members_max",
    "production_rate_max",
)
EXACT = DecimalType(38, 12)
"""Sums of fractions are the same in whatever order Spark adds them up. As a text, a type would start Spark's parser."""


def daily_of(hours: DataFrame, partitions: DataFrame) -> DataFrame:
    """DAILY's columns. `hours`: as the day's tasks return them, with the day's percentiles in each row of a topic."""
    daily = _figures(hours).join(_changes(partitions), on=[*TOPIC_AND_DAY], how="inner")
    rates = {
        "production_rate": F.try_divide("produced", "covered_seconds"),
        "consumption_rate": F.try_divide("consumed", "covered_seconds"),
        "skew": F.try_divide("largest", "produced"),
    }
    names = (column.name for column in contract.DAILY)
    return daily.select(*(rates[name].alias(name) if name in rates else name for name in names))


def _figures(hours: DataFrame) -> DataFrame:
    return hours.groupBy(*contract.NAMES, F.date_trunc("day", "hour").alias("day")).agg(
        F.count("*").alias("hours"),
        *(F.sum(name).alias(name) for name in ADDED),
        *(F.max(name).alias(name) for name in LARGEST),
        *(_exact_sum(F.col(name)).alias(name) for name in SECONDS),
        F.try_sum("lagging_consumed").alias("lagging_consumed"),
        F.min("members_min").alias("members_min"),
        _mean("lag_mean", "samples"),
        _mean("members_mean", "known_members"),
    )


def _changes(partitions: DataFrame) -> DataFrame:
    """A sum that 64 bits do not hold is null."""
    of_partitions = partitions.groupBy(*contract.NAMES, "partition", F.date_trunc("day", "starts_at").alias("day")).agg(
        F.try_sum("produced").alias("produced"),
        F.try_sum("consumed").alias("consumed"),
        F.sum(F.col("seconds").cast(EXACT)).alias("seconds"),
    )
    return of_partitions.groupBy(*TOPIC_AND_DAY).agg(
        F.try_sum("produced").alias("produced"),
        F.try_sum("consumed").alias("consumed"),
        F.max("produced").alias("largest"),
        (F.coalesce(F.sum("seconds").cast(DoubleType()), F.lit(0.0)) / F.count("*")).alias("covered_seconds"),
    )


def _exact_sum(values: Column) -> Column:
    return F.sum(values.cast(EXACT)).cast(DoubleType())


def _mean(name: str, weight: str) -> Column:
    """Of the hours' means."""
    return F.try_divide(_exact_sum(F.col(name) * F.col(weight)), F.sum(weight)).alias(name)
