"""Who counts, of samples as a DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.pipeline.deltas_by_spark import is_known
from spark.rules.writers import Chosen, Count
from spark.tables.contract import SERIES

MINUTE_SECONDS = 60


def counts_of(samples: DataFrame) -> list[Count]:
    """A job over all rows; a row that is there twice counts once."""
    once = samples.groupBy("writer", *SERIES, "sampled_at").agg(F.max(is_known().cast("int")).alias("known"))
    found = once.groupBy("cluster", _minute().alias("minute"), "writer").agg(F.sum("known").alias("known")).collect()
    return [Count(row["cluster"], row["minute"], row["writer"], row["known"]) for row in found]


def of_chosen(session: SparkSession, samples: DataFrame, chosen: Chosen) -> DataFrame:
    """The rows of the writers that count."""
    keys = list(chosen)
    table = session.createDataFrame(
        pa.table(
            {
                "cluster": pa.array([cluster for cluster, _ in keys], pa.string()),
                "minute": pa.array([minute for _, minute in keys], pa.int64()),
                "writer": pa.array([chosen[key] for key in keys], pa.string()),
            }
        )
    )
    rows = samples.withColumn("minute", _minute())
    return rows.join(F.broadcast(table), on=["cluster", "minute", "writer"], how="left_semi").drop("minute")


def clusters_at(totals: DataFrame, minute: int) -> list[str]:
    """The clusters that have a sample in this minute."""
    found = totals.where(_minute() == minute).select("cluster").distinct().collect()
    return sorted(row["cluster"] for row in found)


def _minute() -> Column:
    return F.floor(F.unix_seconds("sampled_at") / MINUTE_SECONDS)
