"""`python -m benchmarks.other_engines ENGINE QUESTION LOCATION OUTPUT`: DuckDB, Polars and Spark on the same files.

Prints the seconds that the question itself took, without the start of the process.

Questions: `window`, samples to deltas, sorted by series and written as Parquet by hour; `hourly`, hourly rows of every
topic from the compacted deltas, written as one Parquet file. DuckDB has two threads and 4 GB, Polars two threads.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

WINDOW = """
COPY (
    SELECT *, epoch_us(sampled_at) - epoch_us(lag(sampled_at) OVER series) AS micros,
        log_end - lag(log_end) OVER series AS produced, committed - lag(committed) OVER series AS consumed,
        CASE WHEN state IN ('ok', 'truncated') THEN log_end - greatest(committed, log_start) END AS lag
    FROM read_parquet('{location}/samples/*/*/*.parquet', hive_partitioning = true)
    WINDOW series AS (PARTITION BY cluster, "group", topic, topic_id, partition ORDER BY sampled_at)
) TO '{output}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date, hour))
"""
UNUSED = {"received_at", "topic_id", "committed", "log_start", "isolation"}
"""Columns of the deltas that no total and no partition is made of: neither DuckDB's query reads them."""
HOURLY = """
COPY (
    WITH deltas AS (
        SELECT *, epoch_us(sampled_at) // 3600000000 AS hours
        FROM read_parquet('{location}/deltas/*/*/*.parquet', hive_partitioning = false)
    ), totals AS (
        SELECT cluster, "group", topic, hours, sampled_at, sum(lag) AS lag, sum(produced) AS produced,
            sum(consumed) AS consumed, max(members) AS members
        FROM deltas GROUP BY ALL
    ), parts AS (
        SELECT cluster, "group", topic, hours, partition, sum(produced) AS produced, sum(seconds) AS seconds
        FROM deltas GROUP BY ALL
    ), changed AS (
        SELECT cluster, "group", topic, hours, sum(seconds) / count(*) AS covered,
            max(produced) / nullif(sum(produced), 0) AS skew
        FROM parts GROUP BY ALL
    ), lags AS (
        SELECT cluster, "group", topic, hours, quantile_cont(lag, [0.5, 0.95, 0.99]) AS lags, max(lag) AS lag_max,
            sum(produced) AS produced, sum(consumed) AS consumed, avg(members) AS members
        FROM totals GROUP BY ALL
    )
    SELECT * FROM lags JOIN changed USING (cluster, "group", topic, hours)
) TO '{output}' (FORMAT parquet)
"""


def duckdb(question: str, location: Path, output: Path) -> None:
    import duckdb  # noqa: PLC0415 -- each engine is loaded where it is the one that is measured

    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "4GB",
        "threads": 2,
        "temp_directory": f"{output}.spill",
        "preserve_insertion_order": False,
    }
    with duckdb.connect(config=settings) as connection:
        query = {"window": WINDOW, "hourly": HOURLY}[question]
        connection.execute(query.format(location=location, output=output))


def polars(question: str, location: Path, output: Path) -> None:
    import polars as pl  # noqa: PLC0415 -- as above

    names, series = ["cluster", "group", "topic"], ["cluster", "group", "topic", "topic_id", "partition"]
    if question == "window":
        samples = pl.scan_parquet(f"{location}/samples/*/*/*.parquet", hive_partitioning=False)
        made = samples.sort(*series, "sampled_at").with_columns(
            pl.col("sampled_at").diff().over(series).alias("elapsed"),
            pl.col("log_end").diff().over(series).alias("produced"),
            pl.col("committed").diff().over(series).alias("consumed"),
            (pl.col("log_end") - pl.max_horizontal("committed", "log_start")).alias("lag"),
        )
        made.sink_parquet(output, compression="zstd")
        return
    deltas = pl.scan_parquet(f"{location}/deltas/*/*/*.parquet", hive_partitioning=False).with_columns(
        pl.col("sampled_at").dt.truncate("1h").alias("at")
    )
    totals = deltas.group_by(*names, "at", "sampled_at").agg(
        pl.col("lag", "produced", "consumed").sum(), pl.col("members").max()
    )
    parts = deltas.group_by(*names, "at", "partition").agg(pl.col("produced", "seconds").sum())
    lags = totals.group_by(*names, "at").agg(
        *(pl.col("lag").quantile(each, "linear").alias(f"lag_{each}") for each in (0.5, 0.95, 0.99)),
        pl.col("lag").max().alias("lag_max"),
        pl.col("produced", "consumed").sum(),
        pl.col("members").mean(),
    )
    changed = parts.group_by(*names, "at").agg(
        pl.col("seconds").mean().alias("covered"), (pl.col("produced").max() / pl.col("produced").sum()).alias("skew")
    )
    lags.join(changed, on=[*names, "at"]).sink_parquet(output)


def spark(question: str, location: Path, output: Path) -> None:
    """The pipeline's own transforms and all their columns; its window is measured as `compact`."""
    from spark.engine.session import Machine, started  # noqa: PLC0415 -- as above
    from spark.pipeline.deltas_by_spark import partitions_of, series_hours_of, totals_of  # noqa: PLC0415 -- as above
    from spark.pipeline.hourly_by_spark import hourly_of  # noqa: PLC0415 -- as above
    from spark.pipeline.read_by_spark import schema_of  # noqa: PLC0415 -- as above
    from spark.tables.contract import DELTAS  # noqa: PLC0415 -- as above

    assert question == "hourly", question
    with started(Machine(memory="4g")) as session:
        for name in ("first", "second"):
            began = time.monotonic()
            deltas = session.read.schema(schema_of(DELTAS)).parquet(f"file://{location}/deltas/*/*")
            deltas = deltas.selectExpr("*", "CAST(unix_seconds(sampled_at) DIV 3600 AS INT) AS at")
            hourly = hourly_of(totals_of(deltas), partitions_of(series_hours_of(deltas)))
            hourly.write.parquet(f"file://{output}-{name}")
            print(time.monotonic() - began)


def memory(question: str, location: Path, output: Path) -> None:
    """compact's own transforms in the driver's memory, all that they make; its window is measured as `compact`."""
    from spark.pipeline.compact_in_memory import write  # noqa: PLC0415 -- as above
    from spark.rules.hourly import summaries_of  # noqa: PLC0415 -- as above
    from spark.rules.totals import partitions_of, totals_of  # noqa: PLC0415 -- as above
    from spark.storage.local import LocalFiles  # noqa: PLC0415 -- as above
    from spark.tables.contract import DELTAS, HOURLY  # noqa: PLC0415 -- as above
    from spark.tables.parquet_reader import table_in  # noqa: PLC0415 -- as above

    assert question == "hourly", question
    files = LocalFiles(location)
    folders = sorted({file.folder for file in files.listed("deltas", 2)})
    wanted = [column for column in DELTAS if column.name not in UNUSED]
    hours = (table_in(files, folder, wanted) for folder in folders)
    hourly, _ = summaries_of((totals_of(deltas), partitions_of(deltas)) for deltas in hours)
    write(str(output), hourly, HOURLY)


ENGINES: dict[str, Callable[[str, Path, Path], None]] = {
    "duckdb": duckdb,
    "polars": polars,
    "spark": spark,
    "memory": memory,
}


def main(engine: str, question: str, location: str, output: str) -> None:
    os.environ["POLARS_MAX_THREADS"] = "2"
    began = time.monotonic()
    ENGINES[engine](question, Path(location), Path(output))
    if engine != "spark":
        print(time.monotonic() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
