"""Hours that an earlier release compacted: made again if their samples are there, and else read as they are."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark.tables import layout
from tests.support.history.compacting import compacted, hours_of
from tests.support.history.written_history import Row, read, sample, write

SIX, SEVEN = "date=2026-11-20/hour=06", "date=2026-11-20/hour=07"
NEW = {
    layout.TOTALS: ["wait_seconds", "wait_is_bound", "partitions_with_lag"],
    layout.SUMMARY: ["wait_p50", "wait_p95", "wait_p99", "wait_max", "wait_bounds"],
    layout.CARRY: ["writer", "interval_seconds", "is_reset"],
    layout.DELTAS: ["has_marker"],
}
"""Columns that it did not write."""


def of_an_earlier_release(root: Path, hour: str) -> None:
    folder = root / layout.hour_folder(hour)
    record = json.loads((folder / layout.RECORD).read_text())
    (folder / layout.RECORD).write_text(json.dumps(record | {"rules": 4}))
    (folder / f"{layout.PER_MINUTE}.parquet").unlink()
    for table, columns in NEW.items():
        path = root / layout.hour_tables(hour, table, 1)[0]
        rows = pq.ParquetFile(path).read().drop_columns(columns)
        pq.write_table(rows.filter(rows["seen_at"].is_valid()) if table == layout.CARRY else rows, path)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Two hours of an earlier release; the samples of the first are gone."""
    write(tmp_path, [sample(at, 0, at) for at in (3570, 3580, 3590, 3600, 3610)])
    compacted(tmp_path)
    for hour in (SIX, SEVEN):
        of_an_earlier_release(tmp_path, hour)
    shutil.rmtree(tmp_path / "minutes")
    shutil.rmtree(tmp_path / layout.samples_folder(SIX))
    return tmp_path


def by_hour(root: Path, table: str, name: str) -> list[object]:
    return [row[name] for row in sorted(read(root, table), key=lambda row: str(row["hour"]))]


def test_only_hours_whose_samples_are_there_are_made_again(history: Path) -> None:
    assert hours_of(compacted(history)) == [7]
    assert hours_of(compacted(history)) == []


def test_what_older_hours_do_not_have_stays_unknown_beside_what_is_new(history: Path) -> None:
    compacted(history)
    (day,) = read(history, "daily")

    assert by_hour(history, "hourly", "wait_max") == [None, 20]
    assert by_hour(history, "hourly", "wait_bounds") == [None, 2]
    assert by_hour(history, "hourly", "lag_max") == [3590, 3610]
    assert (day["wait_max"], day["wait_bounds"], day["samples"]) == (20, 2, 5)


def test_the_minutes_are_those_of_the_hours_that_have_them(history: Path) -> None:
    compacted(history)

    assert [minute_of(row) for row in read(history, "minutes")] == ["07:00"]


def minute_of(row: Row) -> str:
    return f"{row['minute']:%H:%M}"


def test_a_wait_goes_on_from_the_last_log_end_that_an_older_hour_handed_on(history: Path) -> None:
    compacted(history)

    rows = sorted(read(history, "totals"), key=lambda row: str(row["sampled_at"]))
    assert [(row.get("wait_seconds"), row.get("wait_is_bound")) for row in rows[-2:]] == [(10, True), (20, True)]
