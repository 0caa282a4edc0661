import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from adapter.history import buckets
from adapter.location import Bucket
from spark.errors import Unavailable, Unusable, is_of_system
from spark.storage import bucket as module
from spark.storage.bucket import FOOTER_BYTES, BucketFiles
from spark.storage.location import files_at
from spark.storage.protocol import File, HistoryFiles, Manifest
from tests.support.history.fake_store import FakeStore

LOCATION = "s3://lag/history"
BUCKET = Bucket("s3", "lag/history")


@pytest.fixture
def files(store: FakeStore) -> BucketFiles:
    store.objects["history/there/already"] = b"1"
    return BucketFiles(BUCKET)


def trouble(files: HistoryFiles, error: type[Exception]) -> str:
    with pytest.raises(error) as raised:
        files.read("there/already")
    return str(raised.value)


def test_a_listing_is_a_request_for_each_page_whatever_the_folders(store: FakeStore, files: BucketFiles) -> None:
    names = [f"samples/date=2026-11-{day:02d}/hour=07/a.parquet" for day in range(1, 8)]
    store.objects.update({f"history/{name}": b"12" for name in names})
    store.page = 3

    assert files.listed("samples", 2) == [File(name, 2) for name in names]
    assert [method for method, _ in store.requests] == ["GET"] * 3


def test_what_one_process_stages_another_one_sees(store: FakeStore, files: BucketFiles) -> None:
    files.write(".run/deltas/_record.json", "{}")
    with files.created(".run/deltas/part-0.parquet") as target:
        target.write(b"1234")
    other = pickle.loads(pickle.dumps(files))  # noqa: S301 -- just made

    assert other.listed(".run/deltas", 0) == [File(".run/deltas/part-0.parquet", 4)]
    assert other.read(".run/deltas/_record.json") == "{}"
    other.delete(".run")
    assert store.below("history/") == {"there/already": b"1"}


def test_a_location_that_goes_to_an_executor_carries_no_credentials(files: BucketFiles) -> None:
    files.read("there/already")

    assert b"wonderland" not in pickle.dumps(files)
    assert b"alice" not in pickle.dumps(files)


def test_an_object_that_is_not_finished_is_not_there(files: BucketFiles) -> None:
    with pytest.raises(ZeroDivisionError), files.created(".run/part-0.parquet") as target:
        target.write(bytes(1 // 0))

    assert files.listed(".run", 0) == []


def test_a_record_is_the_last_to_take_its_place_and_what_has_no_successor_goes_first(
    store: FakeStore, files: BucketFiles
) -> None:
    store.objects.update({"history/deltas/hour/part-9.parquet": b"1", "history/deltas/hour/_record.json": b"old"})
    for name in ("part-0.parquet", "part-1.parquet"):
        files.write(f".run/deltas/{name}", "new")
    store.requests.clear()

    staged = [".run/deltas/part-0.parquet", ".run/deltas/part-1.parquet"]
    files.publish(staged, "deltas/hour", Manifest("_record.json", lambda _: "new"))

    names = ["part-0.parquet", "part-1.parquet", "_record.json"]
    first, *copies, last = store.changes()[:4]
    assert first == ("DELETE", "history/deltas/hour/part-9.parquet")
    assert sorted(copies) == [("PUT", f"history/deltas/hour/{name}") for name in names[:2]]
    assert last == ("PUT", "history/deltas/hour/_record.json")
    assert store.below("history/deltas/hour/") == dict.fromkeys(names, b"new")


def test_a_run_that_publishes_has_more_connections_than_pyarrow_opens_by_itself(
    store: FakeStore, files: BucketFiles
) -> None:
    """By itself it opens 25. The store answers no copy before all of two folders have begun."""
    names = [f"part-{number:02}.parquet" for number in range(20)]
    all_have_begun = Barrier(2 * len(names), timeout=180)

    def wait(method: str, path: str) -> None:
        if method == "PUT" and path.endswith(".parquet"):
            all_have_begun.wait()

    for folder in ("one", "other"):
        store.objects |= {f"history/.staged/{folder}/{name}": b"rows" for name in names}
    with files.reserved(), ThreadPoolExecutor(2) as pool:
        store.on_request = wait
        for folder in ("one", "other"):
            pool.submit(
                files.publish,
                [f".staged/{folder}/{name}" for name in names],
                folder,
                Manifest("_record.json", lambda _: "new"),
            )

    assert len(store.below("history/one/")) == len(store.below("history/other/")) == len(names) + 1


def test_a_table_that_is_large_is_whole(store: FakeStore, files: BucketFiles) -> None:
    """The store's clients put more than 10 MB in parts."""
    content = bytes(range(256)) * 50_000
    with files.created(".run/deltas/part-0.parquet") as target:
        target.write(content)

    files.publish([".run/deltas/part-0.parquet"], "deltas/hour", Manifest("_record.json", lambda _: ""))

    assert store.below("history/deltas/hour/") == {"part-0.parquet": content, "_record.json": b""}
    with files.reading("deltas/hour/part-0.parquet") as source:
        assert source.read() == content


def test_of_a_large_file_no_more_than_the_end_is_read_for_its_footer(store: FakeStore, files: BucketFiles) -> None:
    store.objects["history/large"] = b"0" * 300_000 + b"1" * 100_000

    end = files.footer_source(File("large", 400_000)).read()

    assert end == b"1" * FOOTER_BYTES


def test_a_footer_is_read_whole_however_long_it_is(store: FakeStore, files: BucketFiles, tmp_path: Path) -> None:
    table = pa.table({f"column-{number}": pa.array([1.0]) for number in range(300)})
    pq.write_table(table, tmp_path / "wide")
    content = (tmp_path / "wide").read_bytes()
    store.objects["history/wide"] = content
    assert int.from_bytes(content[-8:-4], "little") > FOOTER_BYTES

    assert pq.read_metadata(files.footer_source(File("wide", len(content)))).num_columns == 300


def test_what_retention_deleted_meanwhile_is_no_trouble_of_the_store(files: BucketFiles) -> None:
    with pytest.raises(FileNotFoundError, match=f"is not there any more: '{LOCATION}/gone'$") as raised:
        files.footer_source(File("gone", 5))
    assert is_of_system(raised.value), "so that no file is taken for torn"
    files.delete("gone")
    assert files.read("gone") is None


def test_a_store_that_breaks_off_is_never_an_error_for_which_a_file_would_be_skipped(
    store: FakeStore, files: BucketFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.objects["history/file"] = b"12345"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    files = BucketFiles(BUCKET)

    with pytest.raises(Unavailable, match=f"^{LOCATION}: cannot be reached: Failed to connect"):
        files.footer_source(File("file", 5))
    assert not issubclass(Unavailable, OSError)


def test_without_credentials_the_store_s_refusal_is_shown(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    sentence = trouble(BucketFiles(BUCKET), Unusable)
    assert sentence.startswith(f"{LOCATION}: ")
    assert "access is denied: " in sentence
    assert store.requests


def test_a_store_that_does_not_answer_is_given_up(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    store.is_silent = True

    assert trouble(BucketFiles(BUCKET), Unavailable).startswith(f"{LOCATION}: ")


@pytest.mark.parametrize(
    ("location", "scheme", "shown"),
    [
        ("s3://lag/history", "s3", "s3://lag/history"),
        ("s3a://lag/history", "s3", "s3://lag/history"),
        ("gs://lag/history/", "gs", "gs://lag/history"),
        ("abfss://lag@acme.dfs.core.windows.net/history", "abfss", "abfss://lag@acme.dfs.core.windows.net/history"),
    ],
)
def test_buckets_are_opened_as_the_adapter_opens_them(
    location: str, scheme: str, shown: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[str] = []

    def opened(bucket: Bucket, _attempts: int) -> fs.FileSystem:
        seen.append(bucket.scheme)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    monkeypatch.setattr(module, "opened", opened)
    (tmp_path / "lag/history").mkdir(parents=True)
    (tmp_path / "lag/history/file").write_text("here")

    files = files_at(location)
    assert (files.read("file"), seen) == ("here", [scheme])
    assert files.shown("samples") == f"{shown}/samples"


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("s3://", "is not a valid bucket"),
        ("gs:///history", "is not a valid bucket"),
        ("s3://lag//history", "the prefix must be parts of letters"),
        ("s3://lag/one[1]", "the prefix must be parts of letters"),
        ("abfss://lag/history", "is not of the form s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or abfss://CONTAINER@"),
        ("s3://lag@acme.dfs.core.windows.net/history", "is not of the form s3://BUCKET/PREFIX"),
        ("hdfs://name/history", "is neither a path nor s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or abfss://"),
        ("file:///history", "is neither a path nor s3://BUCKET/PREFIX"),
    ],
)
def test_what_is_no_location_is_refused(location: str, said: str) -> None:
    with pytest.raises(Unusable, match=f"^{re.escape(repr(location))}:? {said}"):
        files_at(location)
