"""Readers that list and read all the time while hours are made again."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.storage import local
from spark.storage.local import LocalFiles
from spark.storage.location import files_at
from spark.storage.protocol import HistoryFiles, Manifest
from tests.support.history.readers import OF_BUCKET, OF_FOLDER, readers
from tests.support.history.real_bucket import RealBucket

HOURS = 4
NAMES = ("deltas.parquet", "totals.parquet", "_record.json")
MANIFEST = Manifest("_record.json", lambda files: json.dumps([file.version for file in files]))


def hour(number: int) -> str:
    return f"hours/date=2026-11-20/hour={number:02d}"


def staged(files: HistoryFiles, version: int) -> list[str]:
    """An hour's tables: rows that tell their version, and another number of them each time."""
    folder = f".compacting-test/{version}"
    rows = pa.table({"version": pa.array([version] * (500 + 300 * (version % 5)))})
    for name in ("deltas", "totals"):
        with files.created(f"{folder}/{name}.parquet") as target:
            pq.write_table(rows, target)
    return [f"{folder}/deltas.parquet", f"{folder}/totals.parquet"]


def published_while_read(files: HistoryFiles, program: str, location: str, publications: int) -> dict[str, object]:
    """What readers saw, of all of them together."""
    for number in range(HOURS):
        files.publish(staged(files, number), hour(number), MANIFEST)
    with readers(program, location, HOURS) as running:
        for version in range(HOURS, publications):
            files.publish(staged(files, version), hour(version % HOURS), MANIFEST)
        told = [json.loads(reader.told()) for reader in running]
    assert all(each["listings"] > 10 for each in told)
    return {name: [each[name] for each in told if each[name]] for name in ("missed", "twice", "mixed", "crashes")}


NOTHING: dict[str, object] = {"missed": [], "twice": [], "mixed": [], "crashes": []}


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """On the file system of temporary files, and on tmpfs where there is one."""
    if request.param == "disk":
        yield tmp_path
        return
    if not Path("/dev/shm").is_dir():
        pytest.skip("this machine has no /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        yield Path(made)


@pytest.mark.parametrize("can_exchange", [True, False], ids=["exchange", "file by file"])
def test_a_reader_of_a_folder_never_misses_an_hour_nor_finds_one_twice_nor_fails(
    can_exchange: bool,  # noqa: FBT001 -- a parameter of a test
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not can_exchange:
        monkeypatch.setattr(local, "exchanged", lambda _new, _old: False)

    assert published_while_read(LocalFiles(folder), OF_FOLDER, str(folder), 300) == NOTHING


def test_a_reader_of_a_bucket_never_misses_an_hour_nor_finds_one_twice_nor_fails(real_bucket: RealBucket) -> None:
    files = files_at(real_bucket.location)

    assert published_while_read(files, OF_BUCKET, real_bucket.location, 60) == NOTHING


def test_two_folders_are_exchanged_at_once(folder: Path) -> None:
    (folder / "one").mkdir()
    (folder / "other").mkdir()
    (folder / "one" / "file").touch()

    assert local.exchanged(folder / "one", folder / "other")
    assert [each.name for each in (folder / "other").iterdir()] == ["file"]


def test_an_exchange_that_fails_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        local.exchanged(tmp_path / "gone", tmp_path / "other")


def test_a_system_without_exchange_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "CALL", "no_such_call")

    assert not local.exchanged(tmp_path / "one", tmp_path / "other")


def test_what_was_replaced_is_kept_for_a_reader_that_is_about_to_list_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(tmp_path)
    for version in range(2):
        files.publish(staged(files, version), hour(0), MANIFEST)
    (kept,) = tmp_path.glob(".replaced-*")
    assert sorted(each.name for each in kept.iterdir()) == sorted(NAMES)

    monkeypatch.setattr(local, "REPLACED_SECONDS", 0)
    files.publish(staged(files, 2), hour(1), MANIFEST)
    assert list(tmp_path.glob(".replaced-*")) == []


def test_a_file_without_a_successor_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "exchanged", lambda _new, _old: False)
    files = LocalFiles(tmp_path)
    files.write(f"{hour(0)}/part-00000.parquet", "old")

    files.publish(staged(files, 1), hour(0), MANIFEST)

    assert sorted(each.name for each in (tmp_path / hour(0)).iterdir()) == sorted(NAMES)
