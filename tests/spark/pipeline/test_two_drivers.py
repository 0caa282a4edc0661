"""A driver that was frozen while it published, whose last request takes effect when another one has finished."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.errors import Unavailable
from spark.pipeline.compact import CompactionResult, compact
from spark.storage import lease, local
from spark.storage.bucket import BucketFiles
from spark.storage.location import files_at
from spark.storage.protocol import HistoryFiles
from tests.support.history.compacting import NOW, hours_of, in_process
from tests.support.history.real_bucket import RealBucket
from tests.support.history.written_history import Row, sample, write

TABLE, RECORD = (f"hours/date=2026-11-20/hour=06/{name}" for name in ("deltas.parquet", "_record.json"))


@dataclass(frozen=True, slots=True)
class Place:
    location: str
    folder: Path
    """Where the files of the location are."""
    put: Callable[[HistoryFiles, bytes], None]
    """Puts a table there."""
    freeze: Callable[[Callable[[bytes], None]], None]
    """Calls its argument with the table that the next driver is about to put there, before it does."""


def run(location: str) -> CompactionResult:
    return compact(files_at(location), in_process, NOW, NOW, lambda _: None)


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder of a network file system: folders cannot be exchanged, and the lock of a machine that does not answer is
    given up. In a bucket, the lease has expired."""
    if request.param == "folder":
        return folder_at(tmp_path, monkeypatch)
    return bucket_of(request.getfixturevalue("real_bucket"), monkeypatch)


def folder_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(local, "exchanged", lambda _new, _old: False)
    monkeypatch.setattr(local, "_lock", lambda _descriptor, _folder: None)

    def freeze(meanwhile: Callable[[bytes], None]) -> None:
        replace_each = local._replace_each

        def frozen(new: Path, old: Path) -> None:
            monkeypatch.setattr(local, "_replace_each", replace_each)
            meanwhile((new / "deltas.parquet").read_bytes())
            replace_each(new, old)

        monkeypatch.setattr(local, "_replace_each", frozen)

    def put(_: HistoryFiles, table: bytes) -> None:
        (root / TABLE).write_bytes(table)

    return Place(str(root), root, put, freeze)


def bucket_of(bucket: RealBucket, monkeypatch: pytest.MonkeyPatch) -> Place:
    bucket.folder.mkdir(parents=True)

    def freeze(meanwhile: Callable[[bytes], None]) -> None:
        copy = BucketFiles._copy
        is_first = iter([True])

        def frozen(files: BucketFiles, staged: str, target: str) -> None:
            if target == TABLE and next(is_first, False):
                (bucket.folder / lease.NAME).unlink()
                meanwhile((bucket.folder / staged).read_bytes())
            copy(files, staged, target)

        monkeypatch.setattr(BucketFiles, "_copy", frozen)

    def put(files: Any, table: bytes) -> None:  # noqa: ANN401 -- a BucketFiles
        files._put(TABLE, pa.py_buffer(table))

    return Place(bucket.location, bucket.folder, put, freeze)


def test_an_hour_with_a_table_of_another_run_is_made_again_also_if_its_size_is_the_same(place: Place) -> None:
    write(place.folder, [sample(0, 1, 2)])
    run(place.location)
    write(place.folder, [sample(10, 3, 9)])
    sizes: list[int] = []

    def other_driver(table: bytes) -> None:
        write_late(place.folder, sample(10, 4, 9))
        assert hours_of(run(place.location)) == [6]
        sizes.extend([len(table), (place.folder / TABLE).stat().st_size])
        place.put(files_at(place.location), table)
        assert committed_in(place.folder) == [1, 3]

    place.freeze(other_driver)
    with pytest.raises((Unavailable, FileNotFoundError)):
        run(place.location)
    assert sizes[0] == sizes[1]

    assert hours_of(run(place.location)) == [6]
    assert committed_in(place.folder) == [1, 4]
    assert hours_of(run(place.location)) == []


def write_late(root: Path, row: Row) -> None:
    """By the same writer, which has a file with this time already."""
    with TemporaryDirectory() as other:
        (path,) = write(Path(other), [row])
        shutil.move(path, root / path.relative_to(other).with_name(f"{path.stem}.2.parquet"))


def committed_in(root: Path) -> list[object]:
    rows = sorted(pq.ParquetFile(root / TABLE).read().to_pylist(), key=lambda row: row["sampled_at"])
    return [row["committed"] for row in rows]


def test_an_hour_whose_record_has_no_versions_is_not_made_again(place: Place) -> None:
    """Earlier builds wrote none."""
    write(place.folder, [sample(0, 1, 2)])
    run(place.location)
    files = files_at(place.location)
    record = json.loads(files.read(RECORD) or "")
    assert record.pop("versions")
    files.write(RECORD, json.dumps(record))

    assert hours_of(run(place.location)) == []
