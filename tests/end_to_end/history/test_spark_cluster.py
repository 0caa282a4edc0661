"""Spark's own standalone cluster: a master and two workers, whose executors have neither our code nor our packages."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from local.processes import scratch
from local.spark.cluster import SparkCluster, environment, spark_cluster, spark_home
from tests.support.history.random_histories import history, lay

LIMIT_SECONDS = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with scratch("spark-cluster") as home, spark_cluster(home) as running:
        yield running


def of_master(cluster: SparkCluster) -> tuple[list[str], dict[str, str]]:
    """The command and its environment: Spark reads from PYSPARK_SUBMIT_ARGS what is given to spark-submit."""
    submit = " ".join([*cluster.arguments()[2:], "pyspark-shell"])
    return [sys.executable, "-m", "spark"], {"PYSPARK_SUBMIT_ARGS": submit}


def submitted(cluster: SparkCluster) -> tuple[list[str], dict[str, str]]:
    command = [str(spark_home() / "bin" / "spark-submit"), *cluster.arguments(), "spark/__main__.py"]
    return command, {}


def begun(command: Sequence[str], env: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, env={**os.environ, **environment(), **env}, stderr=subprocess.PIPE, text=True)


def run(command: Sequence[str], env: dict[str, str]) -> None:
    process = begun(command, env)
    try:
        _, told = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, told


def laid(root: Path) -> Path:
    chance = Random(11)  # noqa: S311 -- a history, no secret
    lay(root, [part for number in range(6) for part in history(f"c{number}", chance)])
    return root


def tables_of(root: Path) -> dict[str, list[str]]:
    """The rows below each folder of a table."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.parquet")):
        folder = path.parent.relative_to(root)
        if folder.parts[0] != "samples" and not folder.parts[0].startswith("."):
            rows = pq.ParquetFile(path).read().to_pylist()
            found.setdefault(str(folder), []).extend(map(repr, rows))
    return {folder: sorted(rows) for folder, rows in found.items()}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history and its tables, made by `local[2]`."""
    root = laid(tmp_path_factory.mktemp("here"))
    run(
        [sys.executable, "-m", "spark", "compact", "--history", str(root), "--master", "local[2]"],
        {"PYSPARK_PYTHON": sys.executable},
    )
    return root


@pytest.mark.parametrize("way", ["--master", "spark-submit"])
def test_compact_and_report_make_the_tables_of_one_machine(
    way: str, cluster: SparkCluster, here: Path, tmp_path: Path
) -> None:
    command, env = submitted(cluster) if way == "spark-submit" else of_master(cluster)
    master = [] if way == "spark-submit" else ["--master", cluster.master]
    root, output = laid(tmp_path / "history"), tmp_path / "report"

    run([*command, "compact", "--history", str(root), *master], env)
    assert tables_of(root) == tables_of(here)

    run([*command, "report", "--history", str(root), "--output", str(output), *master], env)
    assert (output / "report.json").is_file()
