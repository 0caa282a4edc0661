"""The examples of docs/history.md, run one after the other as they stand, on a small history. Only its place differs:
the JVM that is running already has a working folder of its own."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.history.compacting import compacted
from tests.support.history.written_history import paths_of, read, sample, write

PAGE = Path(__file__).parents[2] / "docs/history.md"
TABLES = ("deltas", "totals", "partitions")


def of_an_earlier_release(history: Path) -> None:
    """Leaves the first files as they were before owners were kept."""
    for name in ("samples", "deltas"):
        path = paths_of(history, name)[0]
        table = pq.ParquetFile(path).read()
        pq.write_table(table.drop_columns(["owner", "offset_reset", "last_commit", "has_marker"]), path)


@pytest.fixture(scope="module")
def ran(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names that the examples leave behind, and `root`. Their `getOrCreate` finds the tests' session."""
    assert SparkSession.getActiveSession() is spark_session
    root = tmp_path_factory.mktemp("notebook")
    write(
        root / "history",
        [sample(60 * number, 5 * number, 7 * number, topic=topic) for number in range(150) for topic in ("a", "b")],
    )
    compacted(root / "history")
    of_an_earlier_release(root / "history")
    names: dict[str, Any] = {"root": root}
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(re.sub(r"(?<=[\"'])history/", f"{root}/history/", example), names)  # noqa: S102 -- our own page
    return names


def test_spark_duckdb_and_polars_open_every_table_with_all_its_rows_and_columns(ran: dict[str, Any]) -> None:
    """`date` and `hour` of the folders come with Spark's."""
    rows = {name: read(ran["root"] / "history", name) for name in (*TABLES, "samples", "hourly", "daily", "minutes")}
    opened = {
        **{("spark", name): ran[name].drop("date", *(["hour"] if name != "hourly" else [])).toArrow() for name in rows},
        **{("duckdb", name): ran["tables_by_duckdb"][name].to_arrow_table() for name in TABLES},
        **{("polars", name): ran["tables_by_polars"][name].collect().to_arrow() for name in TABLES},
        ("duckdb", "samples"): ran["samples_by_duckdb"].to_arrow_table(),
    }

    for (tool, name), table in opened.items():
        assert table.num_rows == len(rows[name]) > 0, (tool, name)
        assert set(table.column_names) == set(rows[name][-1]), (tool, name)


def test_the_three_tools_find_the_same_ten_hours(ran: dict[str, Any]) -> None:
    by_spark = ran["by_spark"].to_pylist()

    assert len(by_spark) == 6
    assert by_spark == ran["by_duckdb"].to_pylist() == ran["by_polars"].to_arrow().to_pylist()
    assert [row["lag_max"] for row in by_spark] == [298, 298, 238, 238, 118, 118]


def test_the_longest_wait_of_a_day_is_measured(ran: dict[str, Any]) -> None:
    """After 149 minutes 2/7 of the messages wait."""
    assert [(row["topic"], row["lag_max"], row["is_at_least"]) for row in ran["waits"].toArrow().to_pylist()] == [
        (topic, 298, False) for topic in ("a", "b")
    ]
    assert [row["wait_seconds"] for row in ran["waits"].toArrow().to_pylist()] == pytest.approx([298 / 7 * 60] * 2)


def test_duckdb_and_polars_find_the_same_minutes(ran: dict[str, Any]) -> None:
    (row,) = ran["kept_by_duckdb"].to_pylist()

    assert ran["kept_by_polars"].to_dicts() == [row]
    assert (row["group"], row["kept"]) == ("billing", pytest.approx(4 / 150))
    assert row["longest"] == pytest.approx(298 / 7 * 60, rel=0.02)
