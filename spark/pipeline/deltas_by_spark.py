"""Pure: samples -> deltas, their totals per topic and sample, and what is carried into the next hour.

A series is a cluster, group, topic and partition; a generation of it one `topic_id` (null is one, too). Names are long,
so rows are shuffled and sorted by a 64-bit hash of them, in which half a million series meet once in 10^8 histories.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from adapter.history_contract import Column as Contract
from adapter.history_contract import Type
from spark.pipeline.labels import LABEL, NUMBERS, labelled, with_texts
from spark.tables.contract import CARRIED, DELTAS, GAP, NAMES, PARTITIONS, PLACE, REMEMBERED, SERIES, TOTALS

_NO_START = _UNKNOWN = -1
_HASHED, _SEPARATOR = 15, "\x1f"


def deltas_of(samples: DataFrame, carried: DataFrame, labels: DataFrame) -> DataFrame:
    """The samples' columns and DELTAS' further ones, with the folder's `at`; sorted by series.

    `labels`: the texts of all samples (`spark.pipeline.labels`), which are not shuffled with them.
    """
    in_order = Window.partitionBy("place", "series").orderBy("sampled_at", *_best_first())
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    known_end, known_commit = F.col("log_end").isNotNull(), F.col("committed").isNotNull()
    is_told = has_any() & F.col("has_id")
    return (
        _with_carried(samples, carried)
        .repartition("place")  # one exchange and one sort serve all windows
        .withColumn("twin_of", F.lag("sampled_at").over(in_order))
        .where(F.col("is_carried") | F.col("twin_of").isNull() | (F.col("twin_of") != F.col("sampled_at")))
        .withColumns(
            {
                "end_before": F.last("log_end", ignorenulls=True).over(before),
                "end_at_before": F.last(F.when(known_end, F.col("sampled_at")), ignorenulls=True).over(before),
                "commit_before": F.last("committed", ignorenulls=True).over(before),
                "start_before": F.last(
                    F.when(known_commit, F.coalesce("log_start", F.lit(_NO_START))), ignorenulls=True
                ).over(before),
            }
        )
        .withColumn("first_known_at", F.min(F.when(is_told, F.col("sampled_at"))).over(Window.partitionBy("place")))
        .where(~F.col("is_carried"))
        .transform(lambda rows: with_texts(rows, labels))
        .select(*_changes())
    )


def _with_carried(samples: DataFrame, carried: DataFrame) -> DataFrame:
    """A carried value is one more sample, of which nothing else is told."""
    own = labelled(samples).select(
        *NUMBERS,
        LABEL,
        *_keys(),
        F.col("topic_id").isNotNull().alias("has_id"),
        is_known().alias("is_known"),
        F.lit(False).alias("is_carried"),
    )
    earlier = carried.select(
        *_keys(),
        F.col("topic_id").isNotNull().alias("has_id"),
        F.coalesce("end_at", F.timestamp_micros(F.lit(0))).alias("sampled_at"),
        "log_end",
        "committed",
        "log_start",
    ).withColumn("is_carried", F.lit(True))
    return own.unionByName(earlier, allowMissingColumns=True)


def _keys() -> list[Column]:
    return [F.xxhash64(*PLACE).alias("place"), F.xxhash64(*SERIES).alias("series")]


def _best_first() -> list[Column]:
    """Which of two rows of one series and time is kept: what is known, and known later; then the larger values."""
    values = ("received_at", "log_end", "committed", "log_start", "members", "interval_seconds", LABEL)
    return [F.col("is_known").desc(), *(F.col(name).desc_nulls_last() for name in values)]


def _changes() -> list[Column]:
    end, committed = F.col("log_end"), F.col("committed")
    produced, consumed = end - F.col("end_before"), committed - F.col("commit_before")
    is_reset = F.coalesce(produced < 0, F.lit(False))
    is_rewind = F.coalesce(consumed < 0, F.lit(False))
    was_behind_start = F.col("commit_before") < F.col("start_before")
    is_skip = F.coalesce((consumed > 0) & (F.coalesce(committed > end, F.lit(False)) | was_behind_start), F.lit(False))
    elapsed = (F.unix_micros("sampled_at") - F.unix_micros("end_at_before")) / F.lit(1e6)
    added = {
        "seconds": F.when(produced.isNotNull(), elapsed),
        "produced": F.when(~is_reset, produced),
        "consumed": F.when(~is_rewind & ~is_skip, consumed),
        "lag": _lag(),
        "is_reset": is_reset,
        "is_rewind": is_rewind,
        "is_skip": is_skip,
        "is_recreation": _is_recreation(),
    }
    columns = [
        added[column.name].alias(column.name) if column.name in added else F.col(column.name) for column in DELTAS
    ]
    return [*columns, F.expr("unix_seconds(sampled_at) div 3600").cast("int").alias("at")]


def _is_recreation() -> Column:
    """The generation's first known sample, where another one of the same partition has an earlier one; a generation
    without `topic_id` is nothing that could be told from the others."""
    is_first = F.col("end_before").isNull() & F.col("commit_before").isNull() & has_any()
    is_later = F.col("first_known_at") < F.col("sampled_at")
    return F.coalesce(is_first & is_later & F.col("has_id"), F.lit(False))


def has_any() -> Column:
    """Whether a sample tells the end or the commit."""
    return F.col("log_end").isNotNull() | F.col("committed").isNotNull()


def _lag() -> Column:
    lag = F.col("log_end") - F.greatest("committed", F.coalesce("log_start", "committed"))
    has_commit = F.col("state").isin("ok", "truncated") & F.col("committed").isNotNull()
    return F.when(has_commit & (lag >= 0), lag)


def is_known() -> Column:
    """Whether a sample's commit (or its absence) and end are known."""
    return (F.col("committed").isNotNull() | (F.col("state") == "no_commit")) & F.col("log_end").isNotNull()


def totals_of(deltas: DataFrame) -> DataFrame:
    """TOTALS' columns, with the folder's `at`."""
    is_stale = F.col("state") == "stale"
    is_settled = F.col("lag").isNotNull() | ((F.col("state") == "no_commit") & F.col("log_end").isNotNull())
    has_lag = (F.col("unknown") == 0) & (F.col("with_lag") > 0)
    return (
        deltas.groupBy(*NAMES, "sampled_at", "at")
        .agg(
            F.max("interval_seconds").alias("interval_seconds"),
            F.try_sum("lag").alias("lag"),
            F.max("lag").alias("lag_max"),
            F.count("lag").alias("with_lag"),
            F.count("*").cast("int").alias("partitions"),
            _count(F.col("state") == "no_commit").alias("uncommitted"),
            _count(is_stale).alias("stale"),
            _count(~is_stale & ~is_settled).alias("unknown"),
            F.max("members").alias("members"),
            F.sum(F.when(F.col("produced").isNotNull(), F.col("seconds"))).alias("all_seconds"),
            F.min("seconds").alias("least_seconds"),
            F.try_sum("produced").alias("produced"),
            F.try_sum("consumed").alias("consumed"),
            _count(F.col("is_reset")).alias("resets"),
            _count(F.col("is_rewind")).alias("rewinds"),
            _count(F.col("is_skip")).alias("skips"),
            _count(F.col("is_recreation")).alias("recreations"),
        )
        .withColumns(
            {
                "lag": F.when(has_lag, F.col("lag")),
                "lag_max": F.when(has_lag, F.col("lag_max")),
                "seconds": F.col("all_seconds") / F.col("partitions"),
                "is_after_gap": F.coalesce(
                    F.col("least_seconds") > F.col("interval_seconds") * F.lit(GAP), F.lit(False)
                ),
            }
        )
        .select(*(column.name for column in TOTALS), "at")
    )


def _count(condition: Column) -> Column:
    return F.count(F.when(condition, 1)).cast("int")


def series_hours_of(deltas: DataFrame) -> DataFrame:
    """One row per series, generation and hour: its sums, and its last known values in CARRIED's words."""
    at, known_end, known_commit = F.col("sampled_at"), F.col("log_end").isNotNull(), F.col("committed").isNotNull()
    end_at, commit_at = F.when(known_end, at), F.when(known_commit, at)
    return deltas.groupBy(*SERIES, "at").agg(
        F.count("*").alias("samples"),
        F.sum(F.when(F.col("produced").isNotNull(), F.col("seconds"))).alias("seconds"),
        F.try_sum("produced").alias("produced"),
        F.try_sum("consumed").alias("consumed"),
        F.max("lag").alias("lag_max"),
        F.max(F.when(known_end | known_commit, at)).alias("seen_at"),
        F.max(end_at).alias("end_at"),
        F.max_by("log_end", end_at).alias("log_end"),
        F.max_by("committed", commit_at).alias("committed"),
        F.max_by(F.coalesce("log_start", F.lit(_NO_START)), commit_at).alias("log_start"),
    )


def partitions_of(series_hours: DataFrame) -> DataFrame:
    """PARTITIONS' columns, with the folder's `at`."""
    return (
        series_hours.groupBy(*NAMES, "partition", "at")
        .agg(
            *(F.try_sum(name).alias(name) for name in ("samples", "seconds", "produced", "consumed")),
            F.max("lag_max").alias("lag_max"),
        )
        .withColumn("starts_at", F.timestamp_seconds(F.col("at") * F.lit(3600)))
        .select(*(column.name for column in PARTITIONS), "at")
    )


def carried_of(series_hours: DataFrame, carried: DataFrame, hours: DataFrame) -> DataFrame:
    """CARRIED's columns at the end of every hour, with `at`.

    `hours`: at, place (0, 1, … in order) and ends_at of all hours in question; `carried`: before the first.
    """
    until_now = Window.partitionBy("series").orderBy("place")
    own = series_hours.join(F.broadcast(hours), on="at", how="inner")
    values = [column.name for column in CARRIED]
    rows = own.select(*values, "place").unionByName(carried.select(*values, F.lit(-1).alias("place")))
    last_place = hours.agg(F.max("place").alias("last_place"))
    known = ("seen_at", "end_at", "log_end", "committed", "log_start")
    filled = rows.withColumn("series", F.xxhash64(*SERIES)).withColumns(
        {
            **{
                name: F.last(name, ignorenulls=True).over(
                    until_now.rowsBetween(Window.unboundedPreceding, Window.currentRow)
                )
                for name in known
            },
            "next_place": F.lead("place").over(until_now),
        }
    )
    stands = F.sequence(F.greatest("place", F.lit(0)), F.coalesce("next_place", F.col("last_place") + 1) - 1)
    return (
        filled.crossJoin(F.broadcast(last_place))
        .where(F.greatest("place", F.lit(0)) < F.coalesce("next_place", F.col("last_place") + 1))
        .withColumn("place", F.explode(stands))
        .join(F.broadcast(hours), on="place", how="inner")
        .where(F.col("seen_at") >= F.col("ends_at") - F.expr(f"INTERVAL {REMEMBERED.days} DAYS"))
        .select(*values, "at")
    )


def digests_of(carried: DataFrame) -> DataFrame:
    """`at`, `digest`, `series`: the same for the same rows in any order, and as `compact_in_memory` finds it."""
    row = F.sha2(F.concat_ws(_SEPARATOR, *map(_as_text, CARRIED)), 256)
    number = F.conv(F.substring(row, 1, _HASHED), 16, 10).cast("bigint")
    return carried.groupBy("at").agg(F.bit_xor(number).alias("digest"), F.count("*").alias("series"))


def _as_text(column: Contract) -> Column:
    value = F.col(column.name)
    if column.type is Type.TEXT:
        return F.coalesce(value, F.lit(""))
    number = F.unix_micros(value) if column.type is Type.TIME else value
    return F.coalesce(number, F.lit(_UNKNOWN)).cast("string")
