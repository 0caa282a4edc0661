"""`python -m benchmarks.history.other_engines ENGINE LOCATION OUTPUT`: DuckDB and Polars on the same files.

Samples to deltas, sorted by series and written as Parquet by hour (Polars: as one file). DuckDB has two threads and
4 GB, Polars two threads.
"""

import os
import sys
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


def duckdb(location: Path, output: Path) -> None:
    import duckdb  # noqa: PLC0415 -- each engine is loaded where it is the one that is measured

    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "4GB",
        "threads": 2,
        "temp_directory": f"{output}.spill",
        "preserve_insertion_order": False,
    }
    with duckdb.connect(config=settings) as connection:
        connection.execute(WINDOW.format(location=location, output=output))


def polars(location: Path, output: Path) -> None:
    import polars as pl  # noqa: PLC0415 -- as above

    series = ["cluster", "group", "topic", "topic_id", "partition"]
    samples = pl.scan_parquet(f"{location}/samples/*/*/*.parquet", hive_partitioning=False)
    made = samples.sort(*series, "sampled_at").with_columns(
        pl.col("sampled_at").diff().over(series).alias("elapsed"),
        pl.col("log_end").diff().over(series).alias("produced"),
        pl.col("committed").diff().over(series).alias("consumed"),
        (pl.col("log_end") - pl.max_horizontal("committed", "log_start")).alias("lag"),
    )
    made.sink_parquet(output, compression="zstd")


ENGINES: dict[str, Callable[[Path, Path], None]] = {"duckdb": duckdb, "polars": polars}


def main(engine: str, location: str, output: str) -> None:
    os.environ["POLARS_MAX_THREADS"] = "2"
    ENGINES[engine](Path(location), Path(output))


if __name__ == "__main__":
    main(*sys.argv[1:])
