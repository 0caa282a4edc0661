"""What is brought is whole or not there at all, brought once, and its absence is told in one sentence."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local import downloads
from local.downloads import cache_folder
from local.processes import RigError
from local.steps import run_step


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_LAG_ADAPTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def run(path: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "local.downloads"]
    environment = {**os.environ, "PATH": str(path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_LAG_ADAPTER_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/caches")
    assert cache_folder() == Path("/var/caches/kafka-lag-adapter")

    monkeypatch.setenv("KAFKA_LAG_ADAPTER_CACHE", "/elsewhere")
    assert cache_folder() == Path("/elsewhere")


def test_without_java_it_says_so_first_and_ends_with_status_2(cache: Path, tmp_path: Path) -> None:
    ended = run(tmp_path)

    assert ended.returncode == 2
    assert ended.stderr == "Java 17 or newer is needed to run Kafka and Spark; there is no `java` on PATH.\n"
    assert not cache.exists()


def test_an_old_java_is_refused(cache: Path, tmp_path: Path) -> None:
    program(tmp_path / "jdk" / "bin", "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")

    ended = run(tmp_path / "jdk" / "bin")

    assert ended.returncode == 2
    assert ended.stderr == "Java 17 or newer is needed to run Kafka and Spark; the `java` on PATH is 11.\n"
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_too_little_disk_space_is_reported_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path / "jdk" / "bin", "java", """echo 'openjdk version "21" 2023-09-19' >&2""")
    monkeypatch.setenv("PATH", str(tmp_path / "jdk" / "bin"))
    monkeypatch.setattr(downloads, "BUILD_NEEDS_BYTES", 2**60)

    assert downloads.main(list(downloads.PARTS)) == 2
    assert capsys.readouterr().err.startswith("What the rig lacks needs 1152921507.0 GB of disk")


def test_what_was_interrupted_is_made_again_from_the_start(cache: Path) -> None:
    def break_off(target: Path) -> None:
        target.write_text("half")
        raise RigError("interrupted")

    with pytest.raises(RigError, match="interrupted"):
        downloads._bring(downloads._Part("part", 0, break_off))
    assert not (cache / "part").exists()

    left_by_a_killed_one = cache / "unfinished-part" / "part"
    left_by_a_killed_one.parent.mkdir()
    left_by_a_killed_one.write_text("half")
    made = downloads._bring(downloads._Part("part", 0, lambda target: target.touch(exist_ok=False)))
    assert made.read_text() == ""


@pytest.mark.usefixtures("cache")
def test_two_at_once_do_the_work_once() -> None:
    times_made = 0
    both_are_there = threading.Barrier(2)
    another_made_it = threading.Event()

    def make(target: Path) -> None:
        nonlocal times_made
        times_made += 1
        if times_made > 1:
            another_made_it.set()
        another_made_it.wait(0.3)
        target.touch()

    def bring() -> None:
        both_are_there.wait()
        downloads._bring(downloads._Part("part", 0, make))

    threads = [threading.Thread(target=bring) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert times_made == 1


def test_a_failed_command_shows_the_end_of_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r"downloading it did not work:\nno route to anywhere"):
        run_step("downloading it", ["sh", "-c", "echo no route to anywhere; exit 3"], tmp_path / "log")


def test_both_sums_of_the_spark_operator_are_pinned() -> None:
    """Go checks what it downloads against the lines that are there, and says nothing about one that is not."""
    module = f"github.com/kubeflow/spark-operator/v2 {downloads.SPARK_OPERATOR}"
    required = (downloads.SPARK_OPERATOR_GO / "go.mod").read_text().splitlines()
    sums = (downloads.SPARK_OPERATOR_GO / "go.sum").read_text().splitlines()

    assert [line for line in required if line.startswith("require")] == [f"require {module}"]
    assert [line.rpartition(" ")[0] for line in sums] == [module, f"{module}/go.mod"]
