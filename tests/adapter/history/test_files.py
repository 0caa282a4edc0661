"""Where the history lies: whole files or none, trouble in our words, and nothing deleted that is not the history's."""

import errno
import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from adapter.history import buckets
from adapter.history.errors import HistoryUnwritable
from adapter.history.files import BucketFolder, Folder, files_at
from adapter.history.parquet import encoded
from adapter.history.rows import rows_of
from adapter.location import Bucket
from tests.support.history.fake_store import FakeStore
from tests.support.history.histories import sample

PATH = "samples/date=2026-11-18/hour=11/pod-1-20261118T115640.000000Z.parquet"


def content() -> pa.Buffer:
    rows = rows_of([sample()])
    assert rows is not None
    return encoded(rows)


def everything_in(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())


def refusal(files: Folder | BucketFolder) -> HistoryUnwritable:
    with pytest.raises(HistoryUnwritable) as caught:
        files.write(PATH, content())
    return caught.value


def test_a_file_is_there_as_a_whole_under_its_name_and_nothing_else_is(tmp_path: Path) -> None:
    files_at(f"{tmp_path}/made/here").write(PATH, content())

    assert everything_in(tmp_path) == [f"made/here/{PATH}"]
    assert parquet.read_table(tmp_path / "made/here" / PATH, partitioning=None).num_rows == 2


@pytest.mark.parametrize(
    ("number", "cause"), [(errno.ENOSPC, "no_space"), (errno.EROFS, "read_only"), (errno.EIO, "io"), (77, "other")]
)
def test_a_write_that_fails_leaves_nothing_and_raises_our_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, cause: str
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / PATH).parent.mkdir(parents=True)
    error = refusal(Folder(tmp_path))

    assert (error.cause, str(error)) == (cause, f"{tmp_path / Path(PATH).parent}: {os.strerror(number)}")
    assert everything_in(tmp_path) == []


def let_the_sync_of_folders_fail(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_folders_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Shares of Windows servers among them."""
    let_the_sync_of_folders_fail(monkeypatch, number)
    Folder(tmp_path / "new").write(PATH, content())

    assert everything_in(tmp_path) == [f"new/{PATH}"]


def test_a_folder_that_cannot_be_synced_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / PATH).parent.mkdir(parents=True)
    let_the_sync_of_folders_fail(monkeypatch, errno.EIO)

    assert refusal(Folder(tmp_path)).cause == "io"


def test_a_location_below_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "samples").touch()

    assert refusal(Folder(tmp_path)).cause == "not_found"


def test_a_location_that_vanished_is_made_again(tmp_path: Path) -> None:
    files = Folder(tmp_path / "history")
    files.write(PATH, content())
    (tmp_path / "history").rename(tmp_path / "gone")
    files.write(PATH, content())

    assert everything_in(tmp_path / "history") == [PATH]


def test_only_days_are_days(tmp_path: Path) -> None:
    for name in ("date=2026-11-18", "date=2026-11-02", ".git", "date=x", "keep"):
        (tmp_path / "samples" / name).mkdir(parents=True)
    (tmp_path / "samples/date=2026-11-19").touch()
    (tmp_path / "samples/date=2026-11-20").symlink_to(tmp_path)

    assert Folder(tmp_path).days("samples") == ["2026-11-02", "2026-11-18"]
    assert Folder(tmp_path).days("deltas") == []


def test_the_names_in_a_folder_are_those_of_its_finished_files(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    files.write(PATH, content())
    folder = tmp_path / PATH.rpartition("/")[0]
    (folder / ".1234-unfinished.tmp").touch()
    (folder / "_SUCCESS").touch()
    (folder / "folder.parquet").mkdir()

    assert files.names(PATH.rpartition("/")[0]) == [PATH.rpartition("/")[2]]
    assert files.names("samples/date=2026-11-18/hour=12") == []


def test_a_day_goes_whole_and_only_that_day(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    kept = PATH.replace("-18", "-19")
    files.write(PATH, content())
    files.write(kept, content())
    files.delete_day("samples", "2026-11-18")
    files.delete_day("samples", "2026-11-17")  # another writer was faster

    assert files.days("samples") == ["2026-11-19"]
    assert everything_in(tmp_path) == [kept]


def test_a_day_that_came_back_while_its_remains_lay_there_goes_too(tmp_path: Path) -> None:
    """Its writer was killed while it deleted the day; then another one wrote what it had kept for days."""
    (tmp_path / "samples/.date=2026-11-18.deleted/hour=00").mkdir(parents=True)
    files = Folder(tmp_path)
    assert files.days("samples") == ["2026-11-18"]
    files.write(PATH, content())
    files.delete_day("samples", "2026-11-18")

    assert list((tmp_path / "samples").iterdir()) == []


def test_a_file_that_was_written_can_be_read(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    files.write("_retention.json", pa.py_buffer(b"first"))
    files.write("_retention.json", pa.py_buffer(b"second"))

    assert files.read("_retention.json") == b"second"
    assert files.read("another.json") is None
    assert Folder(tmp_path / "missing").read("_retention.json") is None


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "_retention.json").mkdir()

    with pytest.raises(HistoryUnwritable, match="Is a directory"):
        Folder(tmp_path).read("_retention.json")


def test_writers_that_replace_one_file_at_the_same_time_leave_one_of_theirs(tmp_path: Path) -> None:
    contents = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: Folder(tmp_path).write("_retention.json", pa.py_buffer(one)), contents * 4))

    assert Folder(tmp_path).read("_retention.json") in contents
    assert everything_in(tmp_path) == ["_retention.json"]


def test_a_writer_that_is_killed_leaves_only_what_readers_do_not_see(tmp_path: Path) -> None:
    """Killed between the write and the rename: where a crash leaves most."""
    script = (
        "import os, sys, signal, pyarrow as pa\n"
        "from pathlib import Path\n"
        "from adapter.history.files import Folder\n"
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path(sys.argv[1], sys.argv[2]).parent.mkdir(parents=True)\n"
        "Folder(Path(sys.argv[1])).write(sys.argv[2], pa.py_buffer(b'PAR1' * 1000))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path), PATH], capture_output=True, check=False)

    assert ended.returncode == -9, ended.stderr
    assert [Path(name).name[0] for name in everything_in(tmp_path)] == ["."]


def test_in_a_bucket_a_file_is_one_put_of_the_whole(store: FakeStore) -> None:
    expected = content()
    files_at("s3://lag/history").write(PATH, expected)

    assert store.objects == {f"history/{PATH}": expected.to_pybytes()}
    assert [method for method, _ in store.requests if method in {"PUT", "POST"}] == ["PUT"]


def test_a_bucket_has_days_that_can_be_deleted(store: FakeStore) -> None:
    files = files_at("s3://lag/history")
    assert files.days("samples") == []
    for path in (PATH, PATH.replace("-18", "-19")):
        files.write(path, content())
    assert files.days("samples") == ["2026-11-18", "2026-11-19"]

    files.delete_day("samples", "2026-11-18")
    files.delete_day("samples", "2026-11-17")  # another writer was faster
    assert files.days("samples") == ["2026-11-19"]
    assert f"history/{PATH.replace('-18', '-19')}" in store.objects


def test_the_names_in_a_folder_of_a_bucket_are_those_of_its_files(store: FakeStore) -> None:
    files = files_at("s3://lag/history")
    files.write(PATH, content())
    files.write(PATH.replace("hour=11", "hour=12"), content())

    assert files.names(PATH.rpartition("/")[0]) == [PATH.rpartition("/")[2]]
    assert files.names("samples/date=2026-11-18/hour=13") == []
    assert len(store.objects) == 2


def test_a_file_in_a_bucket_can_be_read(store: FakeStore) -> None:
    files = files_at("s3://lag/history")
    files.write("_retention.json", pa.py_buffer(b"first"))

    assert files.read("_retention.json") == b"first"
    assert files.read("another.json") is None
    assert store.objects == {"history/_retention.json": b"first"}


def test_a_missing_bucket_is_reported(store: FakeStore) -> None:
    error = refusal(BucketFolder(Bucket("s3", "elsewhere/history")))

    assert (error.cause, str(error).partition(": ")[0]) == ("not_found", "s3://elsewhere/history")
    assert store.objects == {}


def test_a_store_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, store: FakeStore) -> None:
    monkeypatch.setattr(buckets, "REQUEST_SECONDS", 0.3)
    store.is_silent = True
    started = time.monotonic()
    error = refusal(BucketFolder(Bucket("s3", "lag/history")))

    assert error.cause in {"timed_out", "unreachable"}
    assert time.monotonic() - started < 60  # the library looks at how slow it is every few seconds only
