"""A history in a bucket, on a store of this machine: the same tables as in a folder, whatever comes between."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from adapter.history import buckets
from spark.errors import Unavailable
from spark.pipeline.compact import CompactionResult, compact
from spark.storage import bucket
from spark.storage.bucket import BucketFiles
from spark.storage.lease import NAME
from spark.storage.location import files_at
from tests.support.history.compacting import NOW, asked, compacted, in_process
from tests.support.history.fake_store import FakeStore
from tests.support.history.random_histories import Written, history, lay
from tests.support.history.written_history import sample, write

pytestmark = pytest.mark.spark
LOCATION = "s3://lag/history"
VERSIONS = re.compile(rb' "versions": \{[^}]*\},\n')


def compacted_there() -> CompactionResult:
    return compact(files_at(LOCATION), in_process, NOW, NOW, lambda _: None)


def content_of(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and not path.relative_to(root).parts[0].startswith("."))
    return without_versions({str(path.relative_to(root)): path.read_bytes() for path in paths})


def stored_in(store: FakeStore) -> dict[str, bytes]:
    """The same of the store."""
    return without_versions(
        {key: content for key, content in store.below("history/").items() if not key.startswith(".")}
    )


def without_versions(contents: dict[str, bytes]) -> dict[str, bytes]:
    """A store's ETags are no times of a disk."""
    return {name: VERSIONS.sub(b"", text) if name.endswith(".json") else text for name, text in contents.items()}


def random_history() -> list[Written]:
    chance = Random(5)  # noqa: S311 -- a history, no secret
    return [part for number in range(12) for part in history(f"c{number}", chance)]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three hours and their tables, of a folder; the store has the samples alone."""
    root = tmp_path / "small"
    write(root, [sample(600 * each, each, 2 * each, partition=part) for each in range(18) for part in (0, 1)])
    return root


def test_tables_are_the_same_to_the_byte_as_in_a_folder_also_after_late_files(store: FakeStore, tmp_path: Path) -> None:
    written = random_history()
    for parts in ([part for part in written if not part.is_late], written):
        lay(tmp_path / "here", parts)
        lay(tmp_path / "there", parts)
        store.lay(tmp_path / "there")
        here = compacted(tmp_path / "here")

        assert compacted_there() == here
        assert here.hours
        assert stored_in(store) == content_of(tmp_path / "here")


def test_a_second_run_finds_nothing_to_do_and_changes_nothing(store: FakeStore, small: Path) -> None:
    store.lay(small)
    compacted_there()
    store.requests.clear()

    result = compacted_there()

    assert (result.hours, result.days) == ((), ())
    assert store.changes() == [("POST", "lag")], "the reservation is deleted"


def test_both_commands_need_nothing_but_the_environment_and_no_folder(
    store: FakeStore, spark_session: SparkSession, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They say what they say of the same folder."""
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setitem(spark_session.sparkContext.environment, name, os.environ[name])
    store.lay(small)
    compacted(small)
    store.objects |= {"reports/hpa/of-a-group-that-is-gone.yaml": b"1", "reports/mine": b"2"}
    status, said = asked("compact", "--history", LOCATION, session=lambda: spark_session)

    assert (status, said[-1]) == (0, "compacted 3 hours, summarised 1 day, skipped 0")
    assert stored_in(store) == content_of(small)
    for location, output in ((LOCATION, "s3://lag/reports"), (str(small), str(tmp_path / "here"))):
        status, said = asked("report", "--history", location, "--output", output, session=lambda: spark_session)
        assert status == 0, said

    documents = store.below("reports/")
    here, there = (
        json.loads(each)["groups"] for each in ((tmp_path / "here/report.json").read_bytes(), documents["report.json"])
    )
    assert here == there != []
    assert sorted(documents) == ["groups.csv", "hpa/billing.yaml", "mine", "report.html", "report.json", "report.md"]
    assert b"</html>" in documents["report.html"]
    assert store.kinds["reports/report.html"] == "text/html; charset=utf-8"


def test_a_run_that_ends_before_any_of_its_changes_is_made_good_by_the_next(
    store: FakeStore, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.lay(small)
    compacted_there()
    late = write(small, [sample(4000, 3, 90)], writer="late")[0]
    store.lay(small)
    compacted(small)
    before = dict(store.objects)
    assert f"history/{late.relative_to(small)}" in before
    changes = Changes(monkeypatch)

    number = 0
    while not changes.is_done:
        store.objects = dict(before)
        changes.left = number
        with suppress(Ended):
            compacted_there()
            changes.is_done = True
        changes.left = None
        compacted_there()
        assert stored_in(store) == content_of(small), f"ended before change {number}"
        number += 1
    assert number > 10


def test_a_driver_that_was_frozen_before_its_copies_cannot_mix_them_with_those_of_the_next_run(
    store: FakeStore, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds no reservation any more when it thaws, and what it has staged is gone."""
    store.lay(small)
    frozen, copy, copies = files_at(LOCATION), BucketFiles._copy, list[str]()

    def frozen_before(files: BucketFiles, staged: str, target: str) -> None:
        if files is frozen:
            copies.append(target)
            if len(copies) == 2:
                del store.objects[f"history/{NAME}"]  # as after a minute without a renewal
                write(small, [sample(60, 7, 90, topic="late")], writer="late")
                store.lay(small)
                compacted_there()
        copy(files, staged, target)

    monkeypatch.setattr(BucketFiles, "_copy", frozen_before)
    with pytest.raises(Unavailable, match="NO_SUCH_KEY"):
        compact(frozen, in_process, NOW, NOW, lambda _: None)
    compacted(small)

    assert len(copies) > 2
    assert stored_in(store) == content_of(small)


class Ended(BaseException):
    """The process is gone."""


class Changes:
    """Of a bucket: after so many that are `left` the next one ends the run; None: none does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.is_done = False
        for name in ("_put", "_copy", "_delete"):
            monkeypatch.setattr(BucketFiles, name, self._counted(getattr(BucketFiles, name)))

    def _counted(self, change: Callable[..., None]) -> Callable[..., None]:
        def counted(files: BucketFiles, path: str, by: object) -> None:
            if self.left == 0:
                raise Ended
            self.left = None if self.left is None else self.left - 1
            change(files, path, by)

        return counted


def test_a_process_that_is_ended_while_it_publishes_leaves_nothing_that_the_next_would_not_make_good(
    store: FakeStore, small: Path
) -> None:
    store.lay(small)
    command = [sys.executable, "-m", "spark", "compact", "--history", LOCATION]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def end_over_totals(method: str, path: str) -> None:
        if method == "PUT" and path.startswith("/lag/history/hours/") and path.endswith("/totals.parquet"):
            os.kill(process.pid, signal.SIGTERM)

    try:
        store.on_request = end_over_totals
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    store.on_request = lambda _method, _path: None

    assert process.returncode == 143
    assert errors.endswith("kafka-lag-report: interrupted; the next run goes on from here\n")
    assert compacted_there().days
    compacted(small)
    assert stored_in(store) == content_of(small)


@pytest.mark.parametrize("command", [("compact",), ("report", "--output", "out")], ids=["compact", "report"])
def test_trouble_with_a_bucket_is_one_sentence_that_names_it(
    command: tuple[str, ...], store: FakeStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(bucket, "ATTEMPTS", 1)
    monkeypatch.setattr(buckets, "REQUEST_SECONDS", 5.0)
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    store.objects["history/samples/unknown"] = b"1"

    def told(location: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as other:
            for name, value in (environment or {}).items():
                other.setenv(name, value)
            status, said = asked(*command, "--history", location)
            return status, said[-1]

    assert told("s3://lag/elsewhere") == (2, "kafka-lag-report: s3://lag/elsewhere does not exist")
    assert told("s3://elsewhere/history") == (2, "kafka-lag-report: s3://elsewhere/history does not exist")
    status, sentence = told(LOCATION)
    assert (status, sentence.partition(" holds no ")[0]) == (2, f"kafka-lag-report: {LOCATION}")
    for environment, status, word in (
        (nobody, 2, "access is denied: "),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, 2, "cannot be reached: Failed to connect to 127.0.0.1"),
    ):
        found, sentence = told(LOCATION, environment)
        assert found == status
        assert re.fullmatch(f"kafka-lag-report: {LOCATION}: .*{word}.*", sentence)
