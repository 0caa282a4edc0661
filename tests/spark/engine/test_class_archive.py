"""Where the archive of loaded classes is kept between runs, and when another one is written."""

import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from unittest.mock import Mock

import pytest

from spark.engine import class_archive
from spark.engine.class_archive import ClassArchive, archive_here

WHOLE_BYTES = 1_000_000
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


def test_an_archive_that_a_killed_process_left_unfinished_is_deleted_and_that_of_a_running_one_is_not(
    folder: Path,
) -> None:
    abandoned, under_way = folder / ".0123456789abcdef.jsa.4711", folder / ".0123456789abcdef.jsa.4712"
    finished = folder / "0123456789abcdef.jsa"
    for path in (abandoned, under_way, finished):
        path.write_bytes(b"classes")
    for path in (abandoned, finished):
        os.utime(path, times=(time.time() - class_archive.ABANDONED_SECONDS - 1,) * 2)

    assert archive_here() is not None
    assert sorted(folder.iterdir()) == sorted([under_way, finished])


def test_another_configuration_of_spark_has_an_archive_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on the JVM's class path, and the JVM refuses archives of another class path."""
    before = here()
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))

    assert here().path != before.path


@pytest.mark.usefixtures("folder")
def test_while_one_process_writes_the_archive_no_other_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    popen = Mock()
    monkeypatch.setattr(subprocess, "Popen", popen)
    archive = here()

    archive.write_later()
    archive.path.with_name(f".{archive.path.name}.4712").touch()
    archive.write_later()

    assert popen.call_count == 1


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
    assert not list(folder.glob(".*")), "no other process writes one"
    assert archive.path.stat().st_mtime_ns == written_at


def run(environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", RUN], env=environment, check=True, timeout=300)


def wait_for(archive: ClassArchive, seconds: float = 600) -> None:
    """Until it is whole. Its writer has a low priority, so it needs minutes beside other work."""
    end = time.monotonic() + seconds
    while archive.path.stat().st_size < WHOLE_BYTES or list(archive.path.parent.glob(".*")):
        assert time.monotonic() < end, sorted(archive.path.parent.iterdir())
        time.sleep(0.2)
