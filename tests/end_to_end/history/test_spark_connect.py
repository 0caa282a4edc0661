"""Both commands by Spark Connect, on a real server from the same wheel, and what its UI shows of them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy
import pyarrow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from local.processes import scratch, wait_until
from local.spark.cluster import python
from local.spark.connect import ConnectServer, connect_server
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.support.history.compacting import compacted, reported
from tests.support.history.random_histories import history, lay
from tests.support.history.written_history import sample, write

LIMIT_SECONDS = 300
MESSAGES = {"spark.connect.grpc.maxInboundMessageSize": str(4 << 20)}
"""Instead of 128 MB."""


@pytest.fixture(scope="module")
def server() -> Iterator[ConnectServer]:
    with scratch("spark-connect") as home, connect_server(home, MESSAGES) as running:
        yield running


def command(server: ConnectServer, *arguments: str) -> "subprocess.CompletedProcess[str]":
    asked = [sys.executable, "-m", "spark", *arguments, "--remote", server.url]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)


def tables_of(root: Path) -> dict[str, pa.Table]:
    paths = {str(path.relative_to(root)): path for path in root.rglob("*.parquet")}
    return {name: pq.ParquetFile(path).read() for name, path in paths.items() if not name.startswith((".", "samples"))}


def report_in(output: Path) -> dict[str, Any]:
    """Without what differs from run to run."""
    made = json.loads((output / "report.json").read_text())
    return {name: value for name, value in made.items() if name not in {"made_at", "age_seconds", "location"}}


def nodes_of(execution: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Name of a node of the SQL tab -> its figures by their names."""
    return {
        node["nodeName"]: {metric["name"]: metric["value"] for metric in node["metrics"]} for node in execution["nodes"]
    }


def test_both_commands_make_the_same_as_in_a_session_of_their_own_and_the_sql_tab_says_what(
    server: ConnectServer, spark_session: SparkSession, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    chance = Random(12)  # noqa: S311 -- a history, no secret
    lay(here, [part for number in range(4) for part in history(f"c{number}", chance)])
    shutil.copytree(here, there)
    now = datetime.now(UTC)
    compact(LocalFiles(here), lambda: spark_session, now, now, lambda _: None)
    # The range by default depends on the time.
    since = "2026-01-01T00:00Z"
    reported(here, tmp_path / "report-here", spark_session, now, (since, None))

    compacted = command(server, "compact", "--history", str(there))
    arguments = ("report", "--history", str(there), "--output", str(tmp_path / "report-there"), "--from", since)
    reported_there = command(server, *arguments)

    assert (compacted.returncode, reported_there.returncode) == (0, 0), compacted.stderr + reported_there.stderr
    assert tables_of(there) == tables_of(here) != {}
    assert report_in(tmp_path / "report-there") == report_in(tmp_path / "report-here")
    # The UI hears of what has ended a moment later.
    wait_until(lambda: has_figures_of_kernels(server), "the figures of the kernels in the SQL tab", LIMIT_SECONDS)
    for said in ("deltas 20", "hourly daily and minutes 20", "samples of totals"):
        wait_until(partial(has_tag, server, said), f"a job with the tag {said}", LIMIT_SECONDS)


def has_figures_of_kernels(server: ConnectServer) -> bool:
    executions = server.asked("sql?details=true&planDescription=false&length=1000")
    kernels = [nodes["MapInArrow"] for nodes in map(nodes_of, executions) if "MapInArrow" in nodes]
    metrics = ("number of output rows", "data returned from Python workers", "time to run Python workers")
    return len(kernels) >= 5 and all(kernel.get(metric) for kernel in kernels for metric in metrics)


def has_tag(server: ConnectServer, words: str) -> bool:
    return any(words in tag for job in server.asked("jobs") for tag in job.get("jobTags", ()))


NOTEBOOK = """
import sys
from pyspark.sql import SparkSession
from spark.datasource import OffsetHistory

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.dataSource.register(OffsetHistory)
spark.conf.set("spark.sql.python.filterPushdown.enabled", True)
totals = spark.read.format("kafka_lag_history").option("table", "totals").load(sys.argv[2])
print(totals.where("date = '2026-11-20' and group = 'billing'").count())
spark.stop()
"""


def test_a_notebook_reads_tables_with_the_data_source(server: ConnectServer, tmp_path: Path) -> None:
    write(tmp_path, [sample(at, at, 2 * at, group=group) for at in (0, 10, 20) for group in ("billing", "mail")])
    compacted(tmp_path)

    asked = [sys.executable, "-c", NOTEBOOK, server.url, str(tmp_path)]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)

    assert (ended.returncode, ended.stdout) == (0, "3\n"), ended.stderr


PACKED = """
import os
import sys
from spark.engine.session import SparkSettings, started
from spark.engine.tasks import run

with started(SparkSettings(remote=sys.argv[1])) as session:
    print(sum(run(session, len, [os.urandom(300_000) for _ in range(40)], "bytes")))
"""


def test_many_large_tasks_reach_a_server_that_accepts_no_large_message(server: ConnectServer) -> None:
    """12 MB of tasks."""
    asked = [sys.executable, "-c", PACKED, server.url]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)

    assert (ended.returncode, ended.stdout) == (0, "12000000\n"), ended.stderr


def test_a_server_that_lacks_a_package_of_the_tasks_is_told_so_before_the_first_of_them(tmp_path: Path) -> None:
    """Its Python lacks only the packages that replays of HPAs need."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for module in (numpy, pyarrow):
        for folder in Path(str(module.__file__)).parents[1].glob(f"{module.__name__}*"):
            (packages / folder.name).symlink_to(folder)
    write(tmp_path / "history", [sample(at, at, 2 * at) for at in (0, 10, 20)])
    compacted(tmp_path / "history")
    output = tmp_path / "report"

    bare = {"PYSPARK_PYTHON": python(), "PYTHONPATH": str(packages)}
    with scratch("spark-connect") as home, connect_server(home, executors=bare) as server:
        ended = command(server, "report", "--history", str(tmp_path / "history"), "--output", str(output))

    lacking = "numba, pydantic, PyYAML"
    said = f"kafka-lag-report: {server.url}: install {lacking} for the Python of its executors, where the tasks run"
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (2, said), ended.stderr
    assert not (output / "report.html").exists()


def test_a_server_that_does_not_answer_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "samples/date=2026-11-20/hour=06").mkdir(parents=True)
    (tmp_path / "samples/date=2026-11-20/hour=06/w-20261120T060000Z.parquet").write_bytes(b"x")
    asked = [sys.executable, "-m", "spark", "compact", "--history", str(tmp_path), "--remote", "sc://127.0.0.1:1"]

    ended = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)

    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "kafka-lag-report: sc://127.0.0.1:1 cannot be reached: Connection refused"
