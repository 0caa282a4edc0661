"""Where the archive of loaded classes is kept between runs, and when another one is written."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from local.processes import start, wait_until
from spark.engine import write_archive
from spark.engine.class_archive import AT_ONCE, LOCK, ClassArchive, archive_here, locked

WHOLE_BYTES = 1_000_000
LIMIT_SECONDS = 300
RUN = """
import sys, time
from spark.engine.session import SparkSettings, started
with started(SparkSettings()) as context:
    assert context.parallelize(range(9)).count() == 9
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_LAG_REPORT_CDS", str(tmp_path))
    return tmp_path


def here() -> ClassArchive:
    archive = archive_here()
    assert archive is not None
    return archive


def test_what_a_killed_process_left_unfinished_is_deleted_and_what_a_running_one_writes_is_not(folder: Path) -> None:
    unfinished, finished = folder / ".0123456789abcdef.jsa.4711", folder / "0123456789abcdef.jsa"
    for path in (unfinished, finished):
        path.write_bytes(b"classes")

    with locked(folder):
        here()
        while_it_is_written = [path.exists() for path in (unfinished, finished)]
    here()

    assert while_it_is_written == [True, True]
    assert [path.exists() for path in (unfinished, finished)] == [False, True]


@pytest.mark.parametrize(("mode", "lock_mode"), [(0o1777, 0o666), (0o2775, 0o664), (0o755, 0o644)])
def test_whoever_may_write_into_the_folder_may_take_the_lock_whatever_the_umask(
    folder: Path, mode: int, lock_mode: int
) -> None:
    folder.chmod(mode)
    before = os.umask(0o077)
    try:
        with locked(folder):
            pass
    finally:
        os.umask(before)

    assert stat.S_IMODE((folder / LOCK).stat().st_mode) == lock_mode


def test_a_link_in_place_of_the_lock_creates_no_file_elsewhere(folder: Path) -> None:
    """Nor does one that is there get a mode with which others may write into it."""
    elsewhere = folder / "elsewhere"
    (folder / LOCK).symlink_to(elsewhere)
    with pytest.raises(FileNotFoundError), locked(folder):
        pass

    assert not elsewhere.exists()


def test_another_configuration_of_spark_has_an_archive_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on the JVM's class path, and the JVM refuses archives of another class path."""
    before = here()
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))

    assert here().path != before.path


def test_while_a_process_writes_an_archive_no_other_one_begins_until_it_has_ended_or_was_killed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path_factory.mktemp("writer") / "log"
    with start("the writer", [sys.executable, "-m", "spark.engine.write_archive"], log=log) as writer:
        wait_until(lambda: is_being_written(folder), "the writer to begin", LIMIT_SECONDS, alive=[writer])
        begins_beside_it = begins_another(monkeypatch)
        writer.send(signal.SIGKILL)
        writer.wait(LIMIT_SECONDS)

    assert not begins_beside_it
    assert begins_another(monkeypatch)


@pytest.mark.usefixtures("folder")
def test_a_process_that_has_waited_for_another_one_does_not_write_the_same_archive_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive = here()

    @contextlib.contextmanager
    def locked_after_another(_: Path) -> Iterator[None]:
        archive.path.write_bytes(b"classes")
        yield

    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(write_archive, "locked", locked_after_another)
    monkeypatch.setattr(write_archive, "_write", written := Mock())

    write_archive.main()

    assert not written.called


def begins_another(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a run that misses the archive starts a process."""
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", popen := Mock())
        here().write_later()
    return popen.called


@pytest.mark.usefixtures("folder")
def test_nobody_is_warned_that_the_process_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("sleep"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        here().write_later()

    assert not said


@pytest.mark.spark
def test_an_archive_that_the_jvm_refuses_is_replaced_by_one_that_it_uses(folder: Path) -> None:
    """The first one is of no JVM. No run waits until an archive is written."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    archive = here()
    archive.path.write_bytes(b"classes of other jars")
    run(environment)
    is_written = archive.path.stat().st_size > WHOLE_BYTES

    wait_for(archive)
    written_at = archive.path.stat().st_mtime_ns
    run(environment)

    assert not is_written
    assert not is_being_written(folder), "no other process writes one"
    assert archive.path.stat().st_mtime_ns == written_at


def run(environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", RUN], env=environment, check=True, timeout=300)


def wait_for(archive: ClassArchive, seconds: float = 600) -> None:
    """Until it is whole. Its writer has a low priority, so it needs minutes beside other work."""
    end = time.monotonic() + seconds
    while archive.path.stat().st_size < WHOLE_BYTES or is_being_written(archive.path.parent):
        assert time.monotonic() < end, sorted(archive.path.parent.iterdir())
        time.sleep(0.2)


def is_being_written(folder: Path) -> bool:
    try:
        with locked(folder, AT_ONCE):
            return False
    except BlockingIOError:
        return True
