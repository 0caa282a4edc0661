"""A download is complete or absent, and one sentence says which is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local import downloads
from local.processes import RigError


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


def test_both_sums_of_the_spark_operator_are_pinned() -> None:
    """Go checks what it downloads against the lines that are there, and says nothing about one that is not."""
    module = f"github.com/kubeflow/spark-operator/v2 {downloads.SPARK_OPERATOR}"
    required = (downloads.SPARK_OPERATOR_GO / "go.mod").read_text().splitlines()
    sums = (downloads.SPARK_OPERATOR_GO / "go.sum").read_text().splitlines()

    assert [line for line in required if line.startswith("require")] == [f"require {module}"]
    assert [line.rpartition(" ")[0] for line in sums] == [module, f"{module}/go.mod"]
