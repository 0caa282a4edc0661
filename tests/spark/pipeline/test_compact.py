import json
import math
import shutil
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from adapter.history.contract import Type
from spark.errors import Unusable
from spark.pipeline.batches import DEFAULT_LIMITS, BatchLimits
from spark.pipeline.compact import compact
from spark.pipeline.lineage import read_record
from spark.pipeline.plan import found_in
from spark.storage.local import LocalFiles
from spark.tables import sample_reader
from spark.tables.contract import DAILY, DELTAS, HOURLY, MINUTES, PARTITIONS, TOTALS
from tests.support.history.compacting import NOW, compacted, hours_of, in_process, no_session
from tests.support.history.history_oracle import tables_of
from tests.support.history.random_histories import history, lay
from tests.support.history.written_history import START, Row, keyed, paths_of, read, sample, write, write_file

TOPIC = ("cluster", "group", "topic")
KEYS = {
    "deltas": (*TOPIC, "partition", "topic_id", "sampled_at"),
    "totals": (*TOPIC, "sampled_at"),
    "partitions": (*TOPIC, "partition", "starts_at"),
    "hourly": (*TOPIC, "hour"),
    "daily": (*TOPIC, "day"),
    "minutes": ("cluster", "group", "minute"),
}
TABLES = {
    "deltas": DELTAS,
    "totals": TOTALS,
    "partitions": PARTITIONS,
    "hourly": HOURLY,
    "daily": DAILY,
    "minutes": MINUTES,
}
ROUNDED = {"minutes": 0.02}
"""Tables whose numbers that are no whole ones are right by so much."""
ARROW_OF = {
    Type.TIME: pa.timestamp("us", tz="UTC"),
    Type.TEXT: pa.string(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.FLAG: pa.bool_(),
}


def differences(
    found: Mapping[tuple[object, ...], Row], wanted: Mapping[tuple[object, ...], Row], error: float
) -> list[str]:
    told = [f"{key}: missing" for key in wanted.keys() - found.keys()]
    told += [f"{key}: not wanted" for key in found.keys() - wanted.keys()]
    for key in found.keys() & wanted.keys():
        assert found[key].keys() == wanted[key].keys()
        told += [
            f"{key}: {name} is {value}, not {wanted[key][name]}"
            for name, value in found[key].items()
            if not is_same(value, wanted[key][name], error)
        ]
    return told


def is_same(one: object, other: object, error: float) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=error, abs_tol=1e-9)
    return one == other


def assert_as_the_oracle_says(root: Path, rows: list[Row]) -> None:
    for table, wanted in tables_of(rows).items():
        told = differences(
            keyed(read(root, table), *KEYS[table]), keyed(wanted, *KEYS[table]), ROUNDED.get(table, 1e-9)
        )
        assert not told, f"{table}: {told[:5]}"


@pytest.mark.spark
@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_random_histories_become_the_tables_that_the_oracle_makes(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    assert_two_compactions_are_right(tmp_path_factory.mktemp("history"), Random(seed))  # noqa: S311 -- a history


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_so_they_do_in_small_batches_tasks_and_parts(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 -- a history, no secret
    limits = BatchLimits(*(chance.choice(each) for each in ([400, 10_000], [100, 1000], [50, 200], [20, 100, 1000])))

    assert_two_compactions_are_right(tmp_path_factory.mktemp("history"), chance, limits, histories=8)


def test_so_they_do_by_spark(spark_session: SparkSession, tmp_path: Path) -> None:
    """A fifth of the other histories with a fifth of their limits: as many tasks and ranges."""
    chance = Random(7)  # noqa: S311 -- a history, no secret
    limits = BatchLimits(of_task=100, of_range=20)

    assert_two_compactions_are_right(tmp_path, chance, limits, lambda: spark_session, histories=8)


def assert_two_compactions_are_right(
    root: Path,
    chance: Random,
    limits: BatchLimits = DEFAULT_LIMITS,
    session: Callable[[], SparkSession] = in_process,
    histories: int = 40,
) -> None:
    """So many histories at once, each a cluster; the late files come after a first compaction."""
    written = [part for number in range(histories) for part in history(f"c{number:02d}", chance)]
    early = [part for part in written if not part.is_late]

    lay(root, early)
    compacted(root, limits=limits, session=session)
    assert_as_the_oracle_says(root, [row for part in early if not part.is_misplaced for row in part.rows])

    lay(root, written)
    compacted(root, limits=limits, session=session)
    assert_as_the_oracle_says(root, [row for part in written if not part.is_misplaced for row in part.rows])


def test_tables_and_records_do_not_depend_on_how_hours_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(1)  # noqa: S311 -- a history, no secret
    written = [part for number in range(10) for part in history(f"c{number}", chance)]
    for name, limits in (("whole", DEFAULT_LIMITS), ("divided", BatchLimits(500, 100, 50, 100))):
        monkeypatch.setattr(sample_reader, "PARTS_AT_ONCE", 12 if name == "whole" else 2)
        lay(tmp_path / name, written)
        compacted(tmp_path / name, limits=limits)

    whole, divided = (records_of(tmp_path / name) for name in ("whole", "divided"))

    assert whole
    assert whole == divided


def records_of(root: Path) -> dict[str, object]:
    """Without how hours were divided, and the sizes of tables, whose files and groups of rows depend on it."""
    paths = root.glob("hours/*/*/_record.json")
    records = {str(path.relative_to(root)): json.loads(path.read_text()) for path in paths}
    assert all(record.pop("tables") and record.pop("versions") for record in records.values())
    bounds = [record.pop("bounds") for record in records.values()]
    assert any(bounds) == (root.name == "divided")
    return records


def test_a_second_run_finds_nothing_to_do_and_needs_no_spark(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 2), sample(10, 2, 9)])
    compacted(tmp_path)

    again = compact(LocalFiles(tmp_path), no_session, NOW, NOW, lambda _: None)

    assert (again.hours, again.days) == ((), ())


def test_a_late_file_redoes_its_hour_and_the_hour_whose_first_difference_used_it(tmp_path: Path) -> None:
    rows = [sample(0, 10, 10), sample(3600, 20, 20), sample(7200, 30, 30)]
    late = sample(1800, 14, 14)

    assert_redone_after(tmp_path, rows, late, [6, 7])


def test_so_it_does_hours_that_begin_with_messages_of_its_time(tmp_path: Path) -> None:
    rows = [sample(0, 10, 10), sample(3600, 12, 20), sample(7200, 20, 30), sample(10800, 30, 30)]
    late = sample(1800, 12, 14)

    assert_redone_after(tmp_path, rows, late, [6, 7, 8])


def assert_redone_after(root: Path, rows: list[Row], late: Row, hours: list[int]) -> None:
    write(root, rows)
    compacted(root)
    write(root, [late])
    assert hours_of(compacted(root)) == hours
    assert_as_the_oracle_says(root, [row | {"writer": "adapter-0"} for row in (*rows, late)])


def test_a_run_until_an_early_hour_leaves_the_later_ones_in_the_days_tables(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10), sample(3600, 1, 20)])
    compacted(tmp_path)
    write(tmp_path, [sample(1800, 1, 14)])

    outcome = compacted(tmp_path, until=START + timedelta(hours=1))

    assert hours_of(outcome) == [6]
    assert sorted(str(row["hour"]) for row in read(tmp_path, "hourly")) == [
        "2026-11-20 06:00:00+00:00",
        "2026-11-20 07:00:00+00:00",
    ]
    (day,) = read(tmp_path, "daily")
    assert day["hours"] == 2


def test_an_unfinished_hour_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 2), sample(3600, 1, 2)])

    outcome = compacted(tmp_path, until=START + timedelta(seconds=7199))

    assert hours_of(outcome) == [6]


def test_what_cannot_be_read_is_skipped_and_named_and_the_rest_is_used(tmp_path: Path) -> None:
    (good,) = write(tmp_path, [sample(0, 1, 2), sample(10, 1, 5)])
    (good.parent / "torn-20261120T060000.000000Z.parquet").write_bytes(good.read_bytes()[:200])
    (misplaced,) = write(tmp_path, [sample(20, 1, 6)], "b")
    write_file(misplaced.parent, [sample(30, 1, 7), sample(4000, 1, 8)], "c")

    outcome = compacted(tmp_path)

    assert {Path(each.path).name.split("-")[0]: each.reason for each in outcome.skipped} == {
        "torn": "is torn, or no Parquet file",
        "c": "holds rows of another hour than its folder's; they are left out",
    }
    record = read_record(LocalFiles(tmp_path), "date=2026-11-20/hour=06")
    assert record
    assert record.skipped == outcome.skipped
    assert [row["sampled_at"] for row in read(tmp_path, "totals")] == [START, START + timedelta(seconds=10)]


def test_a_file_with_damaged_pages_is_skipped_and_named(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 2)])
    (damaged,) = write(tmp_path, [sample(10, 1, 5)], "b")
    content = damaged.read_bytes()
    damaged.write_bytes(content[:4] + b"\xff" * 200 + content[204:])

    (skipped,) = compacted(tmp_path).skipped

    assert skipped.path == str(damaged.relative_to(tmp_path))
    assert skipped.reason == "is damaged: its footer can be read, its rows cannot"
    assert [row["sampled_at"] for row in read(tmp_path, "totals")] == [START]


def test_an_hour_of_nothing_but_torn_files_is_done_once(tmp_path: Path) -> None:
    (only,) = write(tmp_path, [sample(0, 1, 2)])
    only.write_bytes(b"PAR1")

    first, second = compacted(tmp_path), compacted(tmp_path)

    assert (hours_of(first), hours_of(second), read(tmp_path, "hourly")) == ([6], [], [])


def test_a_folder_of_the_future_is_named(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 2), sample(400 * 86400, 1, 2)])

    (skipped,) = compacted(tmp_path).skipped

    assert (skipped.path, skipped.reason) == ("samples/date=2027-12-25/hour=06", "lies in the future")


def test_the_last_hour_of_the_calendar_lies_in_the_future(tmp_path: Path) -> None:
    folder = tmp_path / "samples/date=9999-12-31/hour=23"
    folder.mkdir(parents=True)
    (folder / "a-99991231T230000Z.parquet").touch()

    (skipped,) = found_in(LocalFiles(tmp_path), NOW, NOW).skipped

    assert skipped.reason == "lies in the future"


def test_samples_that_retention_took_stay_in_the_tables(tmp_path: Path) -> None:
    paths = write(tmp_path, [sample(0, 1, 10), sample(3600, 1, 20)])
    compacted(tmp_path)
    before = read(tmp_path, "hourly")
    paths[0].unlink()
    shutil.rmtree(tmp_path / "hours/date=2026-11-20/hour=06")

    outcome = compacted(tmp_path)

    assert (outcome.hours, outcome.days, read(tmp_path, "hourly")) == ((), (), before)


def test_progress_is_a_line_for_each_batch_and_day(tmp_path: Path) -> None:
    write(tmp_path, [sample(hour * 3600.0, 1, 2) for hour in range(20)])
    said: list[str] = []

    here = in_process("local[1]")
    compact(LocalFiles(tmp_path), lambda: here, NOW, NOW, said.append, limits=BatchLimits(of_batch=19))

    assert said == [
        "compacting 2026-11-20 06:00 to 2026-11-21 00:00: 19 rows of 19 files",
        "compacting 2026-11-21 01:00: 1 row of 1 file",
        "summarising 2026-11-20: 18 hours",
        "summarising 2026-11-21: 2 hours",
    ]


def test_no_sample_is_touched_and_nothing_hidden_is_left(tmp_path: Path) -> None:
    (path,) = write(tmp_path, [sample(0, 1, 2)])
    content = path.read_bytes()

    compacted(tmp_path)

    assert path.read_bytes() == content
    assert sorted(each.name for each in tmp_path.iterdir()) == ["daily", "hourly", "hours", "minutes", "samples"]


def test_no_history_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"holds no samples"):
        compact(LocalFiles(tmp_path), no_session, NOW, NOW, lambda _: None)


def test_columns_have_the_types_of_the_contract(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 2), sample(10, 1, 5)])
    compacted(tmp_path)

    for table, columns in TABLES.items():
        found = pq.read_schema(paths_of(tmp_path, table)[0])
        assert {field.name: field.type for field in found} == {each.name: ARROW_OF[each.type] for each in columns}, (
            table
        )
