"""A thousand partitions every 15 s: the hourly table against what DuckDB makes of the same samples."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from adapter.history.files import Folder
from adapter.history.parquet import encoded
from adapter.history.rows import Rows
from adapter.history.writer import path_for
from local.histories.large_day import flushes, shuffled_flushes
from spark.pipeline.batches import Limits
from tests.support.history.compacting import compacted
from tests.support.history.written_history import Row, keyed

pytestmark = pytest.mark.spark
PARTITIONS, INTERVAL, FLUSHES_OF_AN_HOUR = 1000, 15, 12

HOURLY = """
WITH changes AS (
    SELECT *, make_timestamp(epoch_us(sampled_at) // 3600000000 * 3600000000) AS hour,
        CASE WHEN state IN ('ok', 'truncated') THEN log_end - greatest(committed, log_start) END AS lag,
        epoch_us(sampled_at) - lag(epoch_us(sampled_at)) OVER series AS micros,
        log_end - lag(log_end) OVER series AS grown,
        committed - lag(committed) OVER series AS moved,
        lag(committed) OVER series < lag(log_start) OVER series AS was_lost
    FROM read_parquet($samples, hive_partitioning = false)
    WINDOW series AS (PARTITION BY cluster, "group", topic, topic_id, partition ORDER BY sampled_at)
), deltas AS (
    SELECT *, CASE WHEN grown >= 0 THEN grown END AS produced,
        CASE WHEN moved >= 0 AND NOT (moved > 0 AND (committed > log_end OR was_lost)) THEN moved END AS consumed
    FROM changes
), parts AS (
    SELECT cluster, "group", topic, partition, hour, sum(produced) AS produced, sum(consumed) AS consumed,
        coalesce(sum(micros) FILTER (produced IS NOT NULL), 0) / 1e6 AS seconds
    FROM deltas GROUP BY ALL
), changed AS (
    SELECT cluster, "group", topic, hour, sum(produced) AS produced, sum(consumed) AS consumed,
        sum(seconds) / count(*) AS covered_seconds, max(produced) / nullif(sum(produced), 0) AS skew
    FROM parts GROUP BY ALL
), totals AS (
    SELECT cluster, "group", topic, hour, sampled_at, max(interval_seconds) AS interval_seconds, sum(lag) AS lag,
        max(lag) AS lag_max, count(*) AS partitions, max(members) AS members,
        count(*) FILTER (grown < 0) AS resets, count(*) FILTER (moved < 0) AS rewinds
    FROM deltas GROUP BY ALL
), lags AS (
    SELECT cluster, "group", topic, hour,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY lag) AS lag_p50,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY lag) AS lag_p95,
        percentile_cont(0.99) WITHIN GROUP (ORDER BY lag) AS lag_p99,
        max(lag) AS lag_max, avg(lag) AS lag_mean, max(lag_max) AS lag_partition_max,
        coalesce(sum(interval_seconds) FILTER (lag > 0), 0) AS seconds_lagging,
        count(lag) AS samples, count(*) AS cycles, floor(3600 / avg(interval_seconds) + 0.5) AS expected_samples,
        sum(resets) AS resets, sum(rewinds) AS rewinds, max(partitions) AS partitions,
        min(members) AS members_min, avg(members) AS members_mean, max(members) AS members_max
    FROM totals GROUP BY ALL
)
SELECT lags.*, produced, consumed, covered_seconds, skew, produced / nullif(covered_seconds, 0) AS production_rate,
    consumed / nullif(covered_seconds, 0) AS consumption_rate
FROM lags JOIN changed USING (cluster, "group", topic, hour)
"""
MADE = "SELECT * REPLACE (make_timestamp(epoch_us(hour)) AS hour) FROM read_parquet($hourly)"
KEY = ("cluster", "group", "topic", "hour")
NOW = datetime(2027, 1, 1, tzinfo=UTC)


def asked(question: str, **values: str) -> list[Row]:
    with duckdb.connect() as connection:
        table: pa.Table = connection.sql(question, params=values).to_arrow_table()
        return list(table.to_pylist())


def written_hours(root: Path, hours: int, flushes: Callable[..., Iterator[Rows]] = flushes) -> int:
    """As the adapter writes them; returns the number of rows."""
    for rows in islice(flushes(PARTITIONS, INTERVAL, days=1, seed=1), hours * FLUSHES_OF_AN_HOUR):
        Folder(root).write(path_for("adapter-0", rows.first_sample), encoded(rows))
    return hours * PARTITIONS * 3600 // INTERVAL


def differences(root: Path) -> list[str]:
    found = keyed(asked(MADE, hourly=f"{root}/hourly/*/*.parquet"), *KEY)
    wanted = keyed(asked(HOURLY, samples=f"{root}/samples/*/*/*.parquet"), *KEY)
    assert found.keys() == wanted.keys()
    return [
        f"{key} {name}: {found[key][name]}, not {value}"
        for key, row in wanted.items()
        for name, value in row.items()
        if name not in KEY and not is_close(found[key][name], value)
    ]


def bytes_of_deltas(root: Path) -> int:
    return sum(path.stat().st_size for path in root.glob("hours/*/*/deltas.parquet"))


def test_a_day_of_5_76_million_rows_becomes_what_duckdb_makes_of_it_and_its_deltas_are_small(tmp_path: Path) -> None:
    rows = written_hours(tmp_path, 24)

    compacted(tmp_path, NOW, Limits(of_part=100_000))

    assert rows == 5_760_000
    assert differences(tmp_path) == []
    assert bytes_of_deltas(tmp_path) / rows <= 5


def test_hours_whose_files_are_in_no_order_become_the_same(tmp_path: Path) -> None:
    written_hours(tmp_path, 2, shuffled_flushes)

    compacted(tmp_path, NOW, Limits(of_task=1, of_part=100_000))

    assert differences(tmp_path) == []


def is_close(one: object, other: object) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(float(str(one)), float(str(other)), rel_tol=1e-9)
