"""Which writer counts, per cluster and minute: the one with most rows whose commit (or its absence) and end are known;
ties: the writer of the minute before, else the smaller name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.deltas import SERIES, is_known

MINUTE_SECONDS = 60


@dataclass(frozen=True, slots=True, order=True)
class Count:
    """One writer's known rows of one cluster in one minute (since the epoch)."""

    cluster: str
    minute: int
    writer: str
    known: int


Chosen = Mapping[tuple[str, int], str]
"""(cluster, minute) -> the writer that counts."""


def counts_of(samples: DataFrame) -> list[Count]:
    """A job over all rows; a row that is there twice counts once."""
    once = samples.groupBy("writer", *SERIES, "sampled_at").agg(F.max(is_known().cast("int")).alias("known"))
    found = once.groupBy("cluster", _minute().alias("minute"), "writer").agg(F.sum("known").alias("known")).collect()
    return [Count(row["cluster"], row["minute"], row["writer"], row["known"]) for row in found]


def chosen_of(counts: Iterable[Count], before: Chosen) -> dict[tuple[str, int], str]:
    """`before`: who counted in the minute before the first one, where that is known."""
    by_minute: dict[tuple[str, int], list[Count]] = {}
    for count in sorted(counts):
        by_minute.setdefault((count.cluster, count.minute), []).append(count)
    chosen = dict(before)
    for (cluster, minute), rivals in by_minute.items():
        most = max(rival.known for rival in rivals)
        best = [rival.writer for rival in rivals if rival.known == most]
        last = chosen.get((cluster, minute - 1))
        chosen[cluster, minute] = last if last in best else best[0]
    return {key: chosen[key] for key in by_minute}


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
