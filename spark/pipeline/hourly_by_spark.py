"""Pure: a day's totals and partitions -> its rows of the hourly and of the daily table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from adapter.history_contract import Column
from spark.tables.contract import DAILY, HOURLY, NAMES

HOUR_SECONDS = 3600
PERCENTILES = {"lag_p50": 0.5, "lag_p95": 0.95, "lag_p99": 0.99}


def hourly_of(totals: DataFrame, partitions: DataFrame) -> DataFrame:
    """HOURLY's columns from TOTALS' and PARTITIONS'."""
    of_topic = totals.withColumn("hour", F.date_trunc("hour", "sampled_at"))
    of_partition = partitions.withColumn("hour", F.col("starts_at"))
    return _summed(of_topic, of_partition, (*NAMES, "hour"), {"expected_samples": _expected()}, HOURLY)


def daily_of(totals: DataFrame, partitions: DataFrame) -> DataFrame:
    """DAILY's columns."""
    of_topic = totals.withColumn("day", F.date_trunc("day", "sampled_at"))
    of_partition = partitions.groupBy(*NAMES, "partition", F.date_trunc("day", "starts_at").alias("day")).agg(
        *(F.try_sum(name).alias(name) for name in ("seconds", "produced", "consumed"))
    )
    of_hour = (
        totals.groupBy(*NAMES, F.date_trunc("hour", "sampled_at").alias("hour"))
        .agg(_expected().alias("expected"))
        .select(*NAMES, F.date_trunc("day", "hour").alias("day"), "expected")
    )
    counted = {"expected_samples": F.sum("expected"), "hours": F.count("expected").cast("int")}
    return _summed(
        of_topic.unionByName(of_hour, allowMissingColumns=True), of_partition, (*NAMES, "day"), counted, DAILY
    )


def _expected() -> Expression:
    """Samples that an hour with these intervals promises."""
    return F.floor(F.lit(HOUR_SECONDS) / F.avg("interval_seconds") + F.lit(0.5))


def _summed(
    of_topic: DataFrame,
    of_partition: DataFrame,
    keys: Sequence[str],
    further: dict[str, Expression],
    columns: Sequence[Column],
) -> DataFrame:
    """Rows of both kinds go through one aggregation, each filling what is its own: a join would sort them all."""
    parts = of_partition.select(
        *keys,
        "partition",
        F.col("seconds").alias("part_seconds"),
        F.col("produced").alias("part_produced"),
        F.col("consumed").alias("part_consumed"),
    )
    rows = of_topic.unionByName(parts, allowMissingColumns=True)
    measures = {**_lag_measures(), **_time_measures(), **_part_measures(), **_event_measures(), **further}
    return (
        rows.groupBy(*keys)
        .agg(*(measure.alias(name) for name, measure in measures.items()))
        .withColumns(_derived())
        .select(*(F.col(column.name) for column in columns))
    )


def _lag_measures() -> dict[str, Expression]:
    return {
        "percentiles": F.percentile("lag", list(PERCENTILES.values())),
        "lag_max": F.max("lag"),
        "lag_mean": F.avg("lag"),
        "lag_partition_max": F.max("lag_max"),
        "samples": F.count("lag"),
    }


def _time_measures() -> dict[str, Expression]:
    is_lagging = F.col("lag") > 0
    consumed_lagging = is_lagging & F.col("consumed").isNotNull()
    return {
        "seconds_lagging": _sum_or_0(F.when(is_lagging, F.col("interval_seconds").cast("double"))),
        "lagging_consumed": F.try_sum(F.when(is_lagging, F.col("consumed"))),
        "lagging_covered_seconds": _sum_or_0(F.when(consumed_lagging, F.col("seconds"))),
    }


def _sum_or_0(value: Expression) -> Expression:
    return F.coalesce(F.sum(value), F.lit(0.0))


def _part_measures() -> dict[str, Expression]:
    return {
        "produced": F.try_sum("part_produced"),
        "consumed": F.try_sum("part_consumed"),
        "covered_seconds": _sum_or_0(F.col("part_seconds")) / F.count("partition"),
        "largest": F.max("part_produced"),
    }


def _event_measures() -> dict[str, Expression]:
    is_all_stale = F.col("stale") == F.col("partitions")
    return {
        "cycles": F.count("sampled_at"),
        "gaps": F.count(F.when(F.col("is_after_gap"), 1)),
        **{name: F.sum(name) for name in ("resets", "rewinds", "skips", "recreations")},
        "partitions": F.max("partitions"),
        "uncommitted_max": F.max("uncommitted"),
        "stale_samples": F.count(F.when(is_all_stale, 1)),
        "members_min": F.min("members"),
        "members_mean": F.avg("members"),
        "members_max": F.max("members"),
    }


def _derived() -> dict[str, Expression]:
    covered = F.col("covered_seconds")
    return {
        **{name: F.col("percentiles")[place] for place, name in enumerate(PERCENTILES)},
        "production_rate": F.try_divide(F.col("produced"), covered),
        "consumption_rate": F.try_divide(F.col("consumed"), covered),
        "skew": F.try_divide(F.col("largest"), F.col("produced")),
    }
