"""Compaction where the system does not do what it is asked for: nothing is taken for damaged, nothing is half done."""

import resource
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import spark.tables.sample_files
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from spark.storage.protocol import File
from tests.compacting import IN_MEMORY, NOW, Way, compacted, no_session
from tests.written_history import read, sample, write

IN_MEMORY_WAY = Way(IN_MEMORY, no_session)


def command(root: Path) -> list[str]:
    return [sys.executable, "-m", "spark", "compact", "--history", str(root)]


def test_two_runs_at_once_do_not_mix_their_tables(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10)])
    with LocalFiles(tmp_path).reserved():
        other = subprocess.run(command(tmp_path), stderr=subprocess.PIPE, text=True, check=False, timeout=120)

    assert (other.returncode, other.stderr) == (1, f"kafka-lag-report: another run compacts {tmp_path}\n")
    assert [each.name for each in tmp_path.iterdir()] == ["samples"]
    assert len(compacted(tmp_path, IN_MEMORY_WAY).hours) == 1


def test_a_full_disk_ends_the_run_in_one_sentence_and_leaves_what_was_there(tmp_path: Path) -> None:
    """Full for whatever has more than 3000 bytes: the deltas are the first."""
    write(tmp_path, [sample(each * 10, each * 37 % 1000, each * 131 % 100_000) for each in range(350)])

    ended = subprocess.run(
        command(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
    )

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("kafka-lag-report: [Errno 27] ")
    assert "Traceback" not in ended.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["samples"]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")])
def test_a_file_that_cannot_be_reached_is_not_taken_for_torn(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [sample(0, 1, 10)])

    def refuses(_self: LocalFiles, _file: File) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "opened", refuses)
        with pytest.raises(type(error)):
            compacted(tmp_path, IN_MEMORY_WAY)

    assert [each.name for each in tmp_path.iterdir()] == ["samples"]
    assert compacted(tmp_path, IN_MEMORY_WAY).skipped == ()
    assert len(read(tmp_path, "deltas")) == 1


def test_a_file_that_is_gone_between_its_footer_and_its_rows_ends_the_run(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        with pytest.raises(Exception, match=r"(?i)no such file|not[ _]exist") as raised:
            compacted(tmp_path, way)
    outcome = compact(LocalFiles(tmp_path), no_session, NOW, NOW, lambda _: None)

    assert type(raised.value).__name__ in {"FileNotFoundError", "AnalysisException", "SparkException", "Py4JJavaError"}
    assert (len(outcome.hours), outcome.skipped) == (1, ())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_in_memory_between_two_hours(number: signal.Signals, status: int, tmp_path: Path) -> None:
    times = [hour * 3600 + at for hour in range(40) for at in range(0, 3600, 12)]
    write(tmp_path, [sample(at, at, at + 3) for at in times])
    process = subprocess.Popen(command(tmp_path), stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("deltas/*/*")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "no hour was compacted"
            time.sleep(0.002)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == status, told
    assert told.splitlines()[-1] == "kafka-lag-report: interrupted; the next run goes on from here"
    assert "Traceback" not in told
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]
    done = {path.parent for path in tmp_path.glob("deltas/*/*/_inputs.json")}
    assert len(done) + len(compacted(tmp_path, IN_MEMORY_WAY).hours) == 40
