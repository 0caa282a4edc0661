"""Compaction where the system does not do what it is asked for: nothing is taken for damaged, nothing is half done."""

import json
import resource
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import spark.tables.sample_files
from spark.storage.local import LocalFiles
from spark.storage.protocol import File
from tests.support.history.compacting import NOW, asked, compacted, no_session
from tests.support.history.written_history import paths_of, read, sample, write


def test_two_runs_at_once_do_not_mix_their_tables(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10)])
    with LocalFiles(tmp_path).reserved():
        other = asked("compact", "--history", str(tmp_path), session=no_session)

    assert other == (1, [f"kafka-lag-report: another run compacts {tmp_path}"])
    assert [each.name for each in tmp_path.iterdir()] == ["samples"]
    assert len(compacted(tmp_path).hours) == 1


def test_a_full_disk_ends_the_run_in_one_sentence_and_leaves_what_was_there(tmp_path: Path) -> None:
    """Full for whatever has more than 3000 bytes: the deltas are the first."""
    write(tmp_path, [sample(each * 10, each * 37 % 1000, each * 131 % 100_000) for each in range(350)])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        status, said = asked("compact", "--history", str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert (status, said[-1]) == (1, "kafka-lag-report: Error writing bytes to file: File too large")
    assert [each.name for each in tmp_path.iterdir()] == ["samples"]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")])
def test_a_file_that_cannot_be_reached_is_not_taken_for_torn(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [sample(0, 1, 10)])

    def refuses(_self: LocalFiles, _file: File) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "footer_source", refuses)
        with pytest.raises(type(error)):
            compacted(tmp_path)

    assert [each.name for each in tmp_path.iterdir()] == ["samples"]
    assert compacted(tmp_path).skipped == ()
    assert len(read(tmp_path, "deltas")) == 1


def test_a_file_that_is_gone_between_its_footer_and_its_rows_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes while compaction reads; what is left is done by the next run."""
    write(tmp_path, [sample(0, 1, 10)])
    (leaves,) = write(tmp_path, [sample(10, 1, 10)], "b")
    looked = spark.tables.sample_files._lies_within

    def looked_and_gone(metadata: pq.FileMetaData, hour: datetime) -> bool:
        leaves.unlink(missing_ok=True)
        return looked(metadata, hour)

    with monkeypatch.context() as patched:
        patched.setattr(spark.tables.sample_files, "_lies_within", looked_and_gone)
        with pytest.raises(FileNotFoundError):
            compacted(tmp_path)
    outcome = compacted(tmp_path)

    assert (len(outcome.hours), outcome.skipped) == (1, ())


def test_what_killed_runs_staged_goes_when_the_next_run_starts(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10)])
    left = tmp_path / f".compacting-{NOW:%Y%m%dT%H%M%S}-1" / "attempt-1"
    left.mkdir(parents=True)
    (left / "deltas.parquet").write_bytes(b"half of")

    compacted(tmp_path)

    assert not list(tmp_path.glob(".compacting-*"))


@pytest.mark.parametrize("table", ["deltas", "totals"])
def test_an_hour_with_a_table_that_its_record_does_not_name_is_made_again(tmp_path: Path, table: str) -> None:
    write(tmp_path, [sample(at, at, 2 * at) for at in (0, 10)])
    compacted(tmp_path)
    (path,) = paths_of(tmp_path, table)
    frozen = path.read_bytes()
    write(tmp_path, [sample(at, 5 * at, 9 * at, topic="late") for at in (20, 30, 40)], writer="late")
    compacted(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(frozen)

    again = compacted(tmp_path)

    assert (len(again.hours), path.read_bytes()) == (1, whole)
    path.unlink()
    assert (len(compacted(tmp_path).hours), path.read_bytes()) == (1, whole)
    assert compacted(tmp_path).hours == ()


def test_records_of_earlier_builds_which_name_no_tables_are_believed(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10)])
    compacted(tmp_path)
    (record,) = tmp_path.glob("hours/*/*/_record.json")
    document = json.loads(record.read_text())
    record.write_text(json.dumps({name: value for name, value in document.items() if name != "tables"}))

    assert compacted(tmp_path).hours == ()
