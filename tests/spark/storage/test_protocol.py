import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from spark.storage.location import files_at
from spark.storage.protocol import File, HistoryFiles, Manifest
from tests.support.history.compacting import in_process
from tests.support.history.real_bucket import RealBucket
from tests.support.history.written_history import read, sample, write

Made = Callable[[Path], HistoryFiles]


@pytest.fixture(params=["local", "bucket"])
def made(request: pytest.FixtureRequest) -> Made:
    """Both must do the same; the bucket has a copy of the folder."""
    if request.param == "local":
        return LocalFiles
    return partial(in_bucket, request.getfixturevalue("real_bucket"))


def in_bucket(bucket: RealBucket, root: Path) -> HistoryFiles:
    bucket.lay(root)
    return files_at(bucket.location)


def test_only_what_is_not_hidden_is_listed_at_its_depth(made: Made, tmp_path: Path) -> None:
    for name in ("t/a/b/2.parquet", "t/a/b/1.parquet", "t/a/b/.new", "t/a/_b/3.parquet", "t/a/4.parquet", "t/a/b/c/5"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("12345")

    assert made(tmp_path).listed("t", 2) == [File("t/a/b/1.parquet", 5), File("t/a/b/2.parquet", 5)]


def test_a_table_that_is_not_there_lists_nothing(made: Made, tmp_path: Path) -> None:
    assert made(tmp_path).listed("nothing", 2) == []


def test_hidden_names_are_found_where_they_are_asked_for(made: Made, tmp_path: Path) -> None:
    for name in (".one", "_two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("1")

    assert made(tmp_path).hidden() == [".one", "_two"]


def test_text_is_written_over_what_was_there(made: Made, tmp_path: Path) -> None:
    files = made(tmp_path)
    files.write("folder/_record.json", "first")

    files.write("folder/_record.json", "zweite Größe")

    assert files.read("folder/_record.json") == "zweite Größe"
    assert files.read("folder/nothing") is None


def test_a_staged_folder_takes_the_place_of_another_as_a_whole(made: Made, tmp_path: Path) -> None:
    files = made(tmp_path)
    files.write("table/place/b", "old")
    files.write("table/place/c", "old")
    files.write(".run/new/b", "new")

    files.write(".run/other/a", "also new")

    files.publish(
        [".run/new/b", ".run/other/a"], "table/place", Manifest("_m", lambda stored: str([it.name for it in stored]))
    )

    assert [files.read(f"table/place/{name}") for name in "abc"] == ["also new", "new", None]
    assert files.read("table/place/_m") == "['a', 'b']"


def test_a_file_that_is_replaced_has_another_version_also_if_its_size_is_the_same(made: Made, tmp_path: Path) -> None:
    files = made(tmp_path)
    for name in "ab":
        files.write(f"table/{name}", "old")
    before = files.versioned("table", 0)
    files.write("table/b", "new")
    os.utime(tmp_path / "table/b", ns=(0, 0)) if isinstance(files, LocalFiles) else None

    after = files.versioned("table", 0)

    assert [file.path for file in before] == [file.path for file in after] == ["table/a", "table/b"]
    assert [one.version == other.version for one, other in zip(before, after, strict=True)] == [True, False]
    assert all(file.version for file in before)


def test_a_folder_is_deleted_as_a_whole(made: Made, tmp_path: Path) -> None:
    files = made(tmp_path)
    for path in ("new/a/b", "new/c/d/e", "new/c/f"):
        files.write(path, "text")

    files.delete("new")
    files.delete("nothing")

    assert [files.listed("new", depth) for depth in (1, 2)] == [[], []]


def test_a_file_takes_the_place_of_another(made: Made, tmp_path: Path) -> None:
    files = made(tmp_path)
    files.write(".run/one", "1")
    files.write("other", "2")

    files.replace(".run/one", "other")

    assert files.read("other") == "1"


def test_a_footer_is_read_without_the_rest(made: Made, tmp_path: Path) -> None:
    (path,) = write(tmp_path, [sample(0, 1, 2), sample(1, 1, 2)])
    file = File(str(path.relative_to(tmp_path)), path.stat().st_size)

    assert pq.read_metadata(made(tmp_path).footer_source(file)).num_rows == 2


def test_a_location_may_have_any_signs_in_its_name(tmp_path: Path) -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    name = "a b,c%20#é:d^[1]{*}?\\"
    write(tmp_path / name, [sample(0, 1, 10), sample(10, 4, 12)])

    compact(files_at(str(tmp_path / name)), in_process, now, now, lambda _: None)

    assert [row["produced"] for row in read(tmp_path / name, "hourly")] == [2]
