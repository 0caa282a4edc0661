"""Spark's own standalone cluster: a master and two workers, whose executors have neither our code nor our packages."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from adapter.history import parquet
from local.histories.plausible_history import write_large_day
from local.histories.plausible_world import MONDAY
from local.processes import Process, scratch, start, wait_until
from local.spark.cluster import SparkCluster, environment, spark_cluster, spark_home
from spark.pipeline.batches import BatchLimits
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.support.history.compacting import NOW, in_process, no_session, reported
from tests.support.history.event_log import EventLog, logged_to
from tests.support.history.random_histories import history, lay
from tests.support.history.task_processes import stopped_halfway

LIMIT_SECONDS = 600
PARTITIONS = 200
"""1.15 million rows a day, which two tasks share."""
DIVIDED_HOURS = 12
"""Half of that day is enough: each of an hour's three ranges is a task of its own, however many hours there are."""
RANGE_ROWS = 20_000
ROW_GROUP = 500
DIVIDED = f"""
import sys
from datetime import datetime, UTC
from spark.engine.session import SparkSettings, started
from spark.pipeline.batches import BatchLimits
from spark.pipeline.compact import compact
from spark.storage.location import files_at

master, _, _, location = sys.argv[1:]
with started(SparkSettings(master)) as session:
    now, limits = datetime.now(UTC), BatchLimits(of_range={RANGE_ROWS})
    compact(files_at(location), lambda: session, now, now, print, limits=limits)
"""
FROM = "2026-11-01T00:00Z"
"""Before the whole history: the range by default depends on the time."""
SPECULATION = ("spark.speculation=true", "spark.speculation.multiplier=1.1")
SOON_LOST = ("spark.network.timeout=40s", "spark.network.timeoutInterval=5s", "spark.executor.heartbeatInterval=5s")
"""Instead of 120 s, for which the tasks of later stages would wait for the frozen executor."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists a process's open files")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with scratch("spark-cluster") as home, spark_cluster(home) as running:
        yield running


class Runs:
    """Of the command on one history, each with a log of its own."""

    def __init__(self, root: Path, command: Sequence[str], env: dict[str, str], options: Sequence[str] = ()) -> None:
        self._root, self._command, self._env, self._options = root, command, env, options

    def begun(self, name: str, *options: str) -> AbstractContextManager[Process]:
        command = [*self._command, name, "--history", str(self._root), *options, *self._options]
        return start(name, command, log=self._root.with_name(f"{name}.log"), env={**environment(), **self._env})

    def compacted(self) -> None:
        with self.begun("compact") as process:
            ended_well(process)

    def report(self) -> dict[str, Any]:
        output = self._root.with_name("report")
        with self.begun("report", "--output", str(output), "--from", FROM) as process:
            ended_well(process)
        return report_in(output)


def report_in(output: Path) -> dict[str, Any]:
    """Without what differs from run to run."""
    made = json.loads((output / "report.json").read_text())
    return {name: value for name, value in made.items() if name not in {"made_at", "age_seconds", "location"}}


def ended_well(process: Process) -> None:
    assert process.wait(LIMIT_SECONDS) == 0, process.log_tail()


def by_master(cluster: SparkCluster, root: Path, *settings: str) -> Runs:
    command = [sys.executable, "-m", "spark"]
    return Runs(root, command, submit_arguments(cluster, *settings), ["--master", cluster.master])


def divided(cluster: SparkCluster, root: Path, *settings: str) -> Runs:
    """With a limit of rows that every hour of the large day exceeds, instead of 2.5 million."""
    return Runs(root, [sys.executable, "-c", DIVIDED, cluster.master], submit_arguments(cluster, *settings))


def submit_arguments(cluster: SparkCluster, *settings: str) -> dict[str, str]:
    """Spark reads from PYSPARK_SUBMIT_ARGS what is given to spark-submit."""
    conf = (f"--conf={each}" for each in settings)
    return {"PYSPARK_SUBMIT_ARGS": " ".join([*cluster.arguments()[2:], *conf, "pyspark-shell"])}


def submitted(cluster: SparkCluster, root: Path, *options: str) -> Runs:
    command = [str(spark_home() / "bin" / "spark-submit"), *cluster.arguments(), *options, "spark/__main__.py"]
    return Runs(root, command, {})


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of many rows, and small histories with all that may go wrong; each run has a copy of them. The files have
    as many row groups as those of a large hour: ranges of topics end with them."""
    root = tmp_path_factory.mktemp("samples") / "history"
    with mock.patch.object(parquet, "ROW_GROUP", ROW_GROUP):
        write_large_day(root, PARTITIONS, 15, 1)
    chance = Random(11)  # noqa: S311 -- a history, no secret
    lay(root, [part for number in range(6) for part in history(f"c{number}", chance)])
    return root


def tables_of(root: Path) -> dict[str, pa.Table]:
    """By their paths."""
    paths = {str(path.relative_to(root)): path for path in root.rglob("*.parquet")}
    return {name: pq.ParquetFile(path).read() for name, path in paths.items() if not name.startswith((".", "samples"))}


@pytest.fixture(scope="module")
def here(
    samples: Path, spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables and the report that this machine makes without the cluster."""
    root = tmp_path_factory.mktemp("here") / "history"
    shutil.copytree(samples, root)
    now, output = datetime.now(UTC), root.with_name("report")
    compact(LocalFiles(root), lambda: spark_session, now, now, lambda _: None)
    reported(root, output, spark_session, now, (FROM, None))
    return tables_of(root), report_in(output)


@pytest.fixture(scope="module")
def half_day(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with fewer hours of the large day."""
    root: Path = shutil.copytree(samples, tmp_path_factory.mktemp("half-day") / "history")
    day = root / f"samples/{MONDAY:date=%Y-%m-%d}"
    for hour in range(DIVIDED_HOURS, 24):
        shutil.rmtree(day / f"hour={hour:02}")
    return root


@pytest.fixture(scope="module")
def divided_here(half_day: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The tables of divided hours that this process makes."""
    root = tmp_path_factory.mktemp("divided") / "history"
    shutil.copytree(half_day, root)
    compact(LocalFiles(root), in_process, NOW, NOW, lambda _: None, limits=BatchLimits(of_range=RANGE_ROWS))
    tables = tables_of(root)
    of_hours = {path.split("/")[2] for path in tables if path.endswith("deltas-02.parquet")}
    assert len(of_hours) == DIVIDED_HOURS, "every hour has several ranges"
    return tables


@pytest.fixture
def root(samples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(samples, tmp_path / "history"))


@pytest.fixture
def divided_root(half_day: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(half_day, tmp_path / "history"))


def frozen_and_thawed(cluster: SparkCluster, runs: Runs, root: Path, tables: dict[str, pa.Table]) -> None:
    """Spark's speculation starts the second attempt."""
    with runs.begun("compact") as process:
        frozen = stopped_halfway(cluster.workers, root, process)
        try:
            ended_well(process)
            assert tables_of(root) == tables
            assert not list(root.glob(".compacting-*"))
            frozen.thaw_task()
            wait_until(lambda: not frozen.has_files(root), "the task to end an hour", LIMIT_SECONDS)
        finally:
            frozen.thaw()
    wait_until(frozen.has_ended, "the executor to end", LIMIT_SECONDS)

    assert tables_of(root) == tables
    again = compact(LocalFiles(root), no_session, NOW, NOW, lambda _: None)
    assert (again.hours, again.days) == ((), ())


def killed_halfway(cluster: SparkCluster, runs: Runs, root: Path) -> None:
    """Spark runs the task again. What the killed attempt has staged is not published, not even with other content, and
    is deleted."""
    with runs.begun("compact") as process:
        killed = stopped_halfway(cluster.workers, root, process)
        killed.kill()
        ended_well(process)
    cluster.start_worker()

    assert killed.staged.isdisjoint(path.stat().st_ino for path in root.rglob("*"))
    assert not list(root.glob(".compacting-*"))
    again = compact(LocalFiles(root), no_session, NOW, NOW, lambda _: None)
    assert (again.hours, again.days) == ((), ())


def test_a_frozen_workers_task_is_done_by_the_other_and_changes_nothing_when_it_goes_on_after_the_publication(
    cluster: SparkCluster, here: tuple[dict[str, pa.Table], dict[str, Any]], root: Path
) -> None:
    runs = submitted(cluster, root, *(f"--conf={one}" for one in (*SPECULATION, *SOON_LOST)))

    frozen_and_thawed(cluster, runs, root, here[0])

    assert runs.report() == here[1]


@pytest.fixture(scope="module")
def killed(
    cluster: SparkCluster, samples: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, pa.Table], EventLog]:
    """The tables of a day during which a worker was killed, and Spark's event log."""
    root, events = tmp_path_factory.mktemp("killed") / "history", tmp_path_factory.mktemp("logs") / "events"
    shutil.copytree(samples, root)
    killed_halfway(cluster, by_master(cluster, root, *logged_to(events)), root)
    return tables_of(root), EventLog.in_folder(events)


def test_a_worker_killed_halfway_through_a_day_costs_time_and_nothing_else(
    killed: tuple[dict[str, pa.Table], EventLog], here: tuple[dict[str, pa.Table], dict[str, Any]]
) -> None:
    assert killed[0] == here[0]


def test_spark_s_ui_shows_which_task_was_lost_with_its_worker_and_done_by_another(
    killed: tuple[dict[str, pa.Table], EventLog],
) -> None:
    """Spark's history server shows the same from the event log."""
    (lost,) = killed[1].lost()

    assert lost[0].startswith("deltas 2026-11-09 00:00")
    assert killed[1].finished().count(lost) == 1


def test_spark_s_ui_says_what_each_job_of_a_run_made_of_how_many_rows(
    killed: tuple[dict[str, pa.Table], EventLog],
) -> None:
    """In the Jobs tab, and in the SQL tab with a row for each task, its bytes and its time."""
    jobs, queries = killed[1].jobs, killed[1].queries()

    assert {group for group, _ in jobs} == {"kafka-lag-report"}
    assert [said for _, said in jobs] == list(queries)
    assert list(queries) == [
        "writers of 2026-11-09 00:00\u20132026-11-20 09:00, 1.15 million rows",
        "last values of 2026-11-09 00:00\u201320:00, 960\u202f000 rows",
        "starts of 2026-11-09 00:00\u201320:00, 960\u202f000 rows",
        "deltas 2026-11-09 00:00\u20132026-11-20 09:00, 1.15 million rows",
        "hourly, daily and minutes 2026-11-09 to 2026-11-20",
    ]
    for figures in queries.values():
        assert figures["MapInArrow: number of output rows"] == figures["Range: number of output rows"] > 0
        for name in ("data sent to", "data returned from", "time to run"):
            assert figures[f"MapInArrow: {name} Python workers"] > 0


def test_a_worker_frozen_in_a_range_of_divided_hours_changes_nothing_either(
    cluster: SparkCluster, divided_here: dict[str, pa.Table], divided_root: Path
) -> None:
    runs = divided(cluster, divided_root, *SPECULATION, *SOON_LOST)

    frozen_and_thawed(cluster, runs, divided_root, divided_here)


def test_a_worker_killed_in_a_range_of_divided_hours_costs_time_and_nothing_else(
    cluster: SparkCluster, divided_here: dict[str, pa.Table], divided_root: Path
) -> None:
    killed_halfway(cluster, divided(cluster, divided_root), divided_root)

    assert tables_of(divided_root) == divided_here
