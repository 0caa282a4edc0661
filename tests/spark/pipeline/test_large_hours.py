"""Hours with several tasks and files, each for a range of topics."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.pipeline import examining
from spark.pipeline.batches import BatchLimits
from spark.pipeline.lineage import read_record
from spark.report.samples_task import LAGS, PARTITIONS, ExpectedSamples, SampleFold
from spark.report.tables import Tables
from spark.storage.local import LocalFiles
from spark.tables import layout
from spark.tables.public import PUBLIC, batches_of, shares_of
from tests.support.history.compacting import compacted, hours_of, in_process
from tests.support.history.written_history import START, Row, read, sample, write

SIX = "date=2026-11-20/hour=06"
TOPICS = 12
LIMITS = BatchLimits(of_task=1, of_range=50)


def rows_of(hour: int, samples: int = 20, topics: int = TOPICS) -> list[Row]:
    """Sorted by topic, as the adapter writes them."""
    return [
        sample(3600 * hour + 10 * at, at, 2 * at, group=f"g{topic // 5}", topic=f"t{topic:02}")
        for topic in range(topics)
        for at in range(samples)
    ]


def files_of(root: Path, table: str, hour: str = SIX) -> list[str]:
    return sorted(path.name for path in (root / layout.hour_folder(hour)).glob(f"{table}*.parquet"))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    write(tmp_path, rows_of(0))
    assert hours_of(compacted(tmp_path, limits=LIMITS)) == [6]
    return tmp_path


def test_a_large_hour_has_a_file_of_each_table_for_each_range_of_its_topics(large: Path) -> None:
    for table in layout.TABLES_OF_AN_HOUR:
        assert files_of(large, table) == [f"{table}-{number:02}.parquet" for number in range(5)]
    topics = [
        {row["topic"] for row in pq.ParquetFile(path).read(["topic"]).to_pylist()}
        for path in sorted(large.glob("hours/*/*/deltas*.parquet"))
    ]
    assert topics == [{"t00", "t01", "t02", "t03"}, {"t04", "t05"}, {"t06", "t07"}, {"t08", "t09"}, {"t10", "t11"}]


def test_a_glob_finds_each_row_of_a_large_hour_once(large: Path) -> None:
    found = [(row["topic"], row["sampled_at"]) for row in read(large, "deltas")]

    assert len(found) == len(set(found)) == len(rows_of(0))
    assert len(read(large, "partitions")) == TOPICS


def test_the_record_names_the_files_of_all_ranges(large: Path) -> None:
    record = read_record(LocalFiles(large), SIX)

    assert record
    assert set(record.tables) == {path.name for path in large.glob("hours/*/*/*.parquet")}
    assert record.paths(SIX, layout.CARRY) == [f"hours/{SIX}/carry-{number:02}.parquet" for number in range(5)]


def test_an_hour_is_made_again_if_the_file_of_a_range_is_missing(large: Path) -> None:
    (large / f"hours/{SIX}/totals-03.parquet").unlink()

    assert hours_of(compacted(large, limits=LIMITS)) == [6]
    assert len(files_of(large, layout.TOTALS)) == 5


def test_a_small_hour_has_one_file_of_each_table(tmp_path: Path) -> None:
    write(tmp_path, rows_of(0, topics=2))

    compacted(tmp_path, limits=LIMITS)

    assert [files_of(tmp_path, table) for table in layout.TABLES_OF_AN_HOUR] == [
        [f"{table}.parquet"] for table in layout.TABLES_OF_AN_HOUR
    ]


def test_an_hour_that_is_made_again_keeps_its_files(large: Path) -> None:
    """So a reader who finds some of the old files and some of the new ones finds each topic once."""
    before = read_record(LocalFiles(large), SIX)
    write(large, [sample(5, 1, 2, group=f"g{number}") for number in range(60)], "late")

    assert hours_of(compacted(large, limits=LIMITS)) == [6]

    after = read_record(LocalFiles(large), SIX)
    assert before
    assert after
    assert (after.bounds, after.files) != ((), before.files)
    assert after.bounds == before.bounds


def test_an_hour_that_has_outgrown_its_files_is_divided_again(tmp_path: Path) -> None:
    write(tmp_path, rows_of(0, samples=4))
    compacted(tmp_path, limits=LIMITS)
    assert files_of(tmp_path, layout.DELTAS) == ["deltas.parquet"]
    write(tmp_path, rows_of(0), "late")

    compacted(tmp_path, limits=LIMITS)

    assert files_of(tmp_path, layout.DELTAS)[0] == "deltas-00.parquet"


def test_neighbours_of_one_machine_s_core_have_the_same_ranges_and_no_other_round_of_tasks(tmp_path: Path) -> None:
    said: list[str] = []
    write(tmp_path, rows_of(0) + rows_of(1) + rows_of(2))

    limits = BatchLimits(of_range=50)
    compacted(tmp_path, limits=limits, session=lambda: in_process("local[2]", 2, said))

    assert {each.split()[0] for each in said} == {"deltas", "hourly,"}
    names = [f"date=2026-11-20/hour=0{hour}" for hour in (6, 7, 8)]
    bounds = {record.bounds for name in names if (record := read_record(LocalFiles(tmp_path), name))}
    assert [len(each) for each in bounds] == [4]


def test_footers_of_many_files_are_read_by_tasks_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    for name, files in (("driver", examining.FILES_OF_THE_DRIVER), ("tasks", 1)):
        monkeypatch.setattr(examining, "FILES_OF_THE_DRIVER", files)
        (path,) = write(tmp_path / name, rows_of(0))
        (path.parent / "torn-20261120T060000Z.parquet").write_bytes(path.read_bytes()[:200])
        result = compacted(tmp_path / name, limits=LIMITS, session=lambda: in_process(said=said))
        assert len(result.skipped) == 1

    assert [each for each in said if each.startswith("footers")] == ["footers of 2 files"]
    one, other = (read_record(LocalFiles(tmp_path / name), SIX) for name in ("driver", "tasks"))
    assert one
    assert other
    assert one.bounds == other.bounds
    assert one.identity == other.identity


@pytest.mark.parametrize("table", ["deltas", "totals", "partitions"])
def test_the_data_source_reads_each_row_of_a_large_hour_once(table: str, large: Path) -> None:
    files, public = LocalFiles(large), PUBLIC[table]
    schema = pa.schema({name: public.types[name] for name in ("group", "topic")})

    stored = public.files_in(files, [])
    pieces = [piece for share in shares_of(stored) for piece in share]
    found = [batch for piece in pieces for batch in batches_of(files, public, piece, schema, [])]

    assert len(stored) == 5
    assert pa.Table.from_batches(found).sort_by("topic") == pa.Table.from_pylist(
        [{"group": row["group"], "topic": row["topic"]} for row in read(large, table)], schema
    ).sort_by("topic")


@pytest.mark.parametrize("fold", [LAGS, PARTITIONS], ids=["totals", "partitions"])
def test_a_report_folds_the_files_of_a_large_hour_as_one_hour(fold: SampleFold, large: Path, tmp_path: Path) -> None:
    write(tmp_path / "whole", rows_of(0))
    compacted(tmp_path / "whole")
    topics = [ExpectedSamples(("main", f"g{number // 5}", f"t{number:02}"), 1, 20) for number in range(TOPICS)]

    divided, whole = (
        Tables(in_process(), LocalFiles(root)).folded(fold, [START], topics, ZoneInfo("UTC"))
        for root in (large, tmp_path / "whole")
    )

    assert divided == whole
    assert len(divided) > 1
