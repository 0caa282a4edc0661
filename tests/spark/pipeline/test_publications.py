"""Hours of a bucket that are published beside one another."""

from collections.abc import Callable, Sequence
from threading import Barrier

import pytest

from spark.errors import Unavailable
from spark.pipeline import publishing
from spark.pipeline.compact import CompactionResult, compact
from spark.pipeline.lineage import Record, read_record
from spark.storage.bucket import BucketFiles
from spark.storage.location import files_at
from spark.storage.protocol import Manifest
from tests.support.history.compacting import NOW, hours_of, in_process
from tests.support.history.real_bucket import RealBucket
from tests.support.history.written_history import sample, write

HOURS = (6, 7, 8, 9)
SECONDS = 180


def run(bucket: RealBucket) -> CompactionResult:
    return compact(files_at(bucket.location), in_process, NOW, NOW, lambda _: None)


def record_of(bucket: RealBucket, hour: int) -> Record | None:
    return read_record(files_at(bucket.location), f"date=2026-11-20/hour={hour:02}")


def before_publications(monkeypatch: pytest.MonkeyPatch, call: Callable[[str], object]) -> None:
    """`call` gets the folder that is about to be published."""
    publish = BucketFiles.publish

    def called(files: BucketFiles, staged: Sequence[str], target: str, manifest: Manifest) -> None:
        call(target)
        publish(files, staged, target, manifest)

    monkeypatch.setattr(BucketFiles, "publish", called)


@pytest.fixture
def bucket(real_bucket: RealBucket) -> RealBucket:
    write(real_bucket.folder, [sample(hour * 3600 + at, hour, 2 * hour + at) for hour in range(4) for at in (0, 10)])
    return real_bucket


def test_several_hours_are_published_beside_one_another_and_each_starts_from_the_one_before(
    bucket: RealBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_are_there = Barrier(len(HOURS), timeout=SECONDS)
    before_publications(monkeypatch, lambda target: target.startswith("hours/") and all_are_there.wait())

    assert hours_of(run(bucket)) == [*HOURS]

    records = [record for hour in HOURS if (record := record_of(bucket, hour))]
    assert [record.started_from for record in records] == ["", *(record.ends_with for record in records[:-1])]
    assert hours_of(run(bucket)) == []


def test_after_an_hour_that_cannot_be_published_no_other_one_is_and_the_next_run_makes_them(
    bucket: RealBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: str) -> None:
        if target.endswith("hour=07"):
            raise Unavailable("the store does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "AT_ONCE", 1)
        before_publications(patched, refuse)
        with pytest.raises(Unavailable, match="the store does not answer"):
            run(bucket)

    assert [hour for hour in HOURS if record_of(bucket, hour)] == [6]
    assert hours_of(run(bucket)) == [7, 8, 9]


def test_an_hour_that_cannot_be_published_takes_none_back_that_is_published_beside_it(
    bucket: RealBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_are_there = Barrier(len(HOURS), timeout=SECONDS)

    def refuse(target: str) -> None:
        all_are_there.wait()
        if target.endswith("hour=06"):
            raise Unavailable("the store does not answer")

    with monkeypatch.context() as patched:
        before_publications(patched, refuse)
        with pytest.raises(Unavailable, match="the store does not answer"):
            run(bucket)

    assert [hour for hour in HOURS if record_of(bucket, hour)] == [7, 8, 9]
    assert hours_of(run(bucket)) == [6]
