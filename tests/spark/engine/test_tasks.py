"""Kernels as Spark tasks. The kernels stand in this module, so that Spark's Python processes can import them."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from local.processes import wait_until
from spark.engine import tasks
from spark.engine.machine import RESERVED_BYTES, TASK_BYTES, tasks_at_once
from spark.engine.progress import Counts, Progress
from spark.engine.session import ATTEMPTS
from spark.engine.tasks import attempt, failures_allowed, outcomes, run
from spark.errors import SampleFilesDamaged, TableUnreadable, Unavailable, Unusable
from tests.support.history.compacting import in_process

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@dataclass(frozen=True, slots=True)
class Job:
    number: int
    error: Exception | None = None


def doubled(job: Job) -> int:
    if job.error is not None:
        raise job.error
    return job.number * 2


def test_results_come_in_the_order_of_the_tasks(spark_session: SparkSession) -> None:
    assert run(spark_session, doubled, [Job(number) for number in range(5)], "numbers") == [0, 2, 4, 6, 8]
    assert run(spark_session, doubled, [], "none") == []


@pytest.mark.parametrize(
    "error",
    [
        SampleFilesDamaged({"samples/a": "is torn"}),
        TableUnreadable("totals"),
        Unusable("no"),
        PermissionError(13, "denied", "a"),
    ],
    ids=["damaged", "unreadable", "unusable", "denied"],
)
def test_what_a_kernel_raises_is_raised_as_it_was(spark_session: SparkSession, error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        run(spark_session, doubled, [Job(1), Job(2, error), Job(3)], "jobs")

    assert (str(raised.value), vars(raised.value)) == (str(error), vars(error))


def test_a_fault_of_a_kernel_is_an_error_of_spark(spark_session: SparkSession) -> None:
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        run(spark_session, doubled, [Job(1, ZeroDivisionError("by 0"))], "jobs")


def attempts(_: int) -> tuple[str, str]:
    return attempt(), attempt()


def test_every_attempt_has_a_name_of_its_own_that_it_keeps(spark_session: SparkSession) -> None:
    names = run(spark_session, attempts, range(3), "names") + run(spark_session, attempts, range(3), "names")

    assert all(first == second for first, second in names)
    assert len({first for first, _ in names} | {attempt()}) == 7


def killed_once(marker: Path) -> str:
    """The process of the first attempt is killed, as the kernel does where memory runs out."""
    if not marker.exists():
        marker.write_text(attempt())
        os.kill(os.getpid(), signal.SIGKILL)
    return attempt()


def test_a_task_whose_process_was_killed_is_tried_again_under_another_name(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    (name,) = run(spark_session, killed_once, [tmp_path / "marker"], "killed")

    assert name != (tmp_path / "marker").read_text()


def container(folder: Path, memory: str, cpu: str) -> Path:
    (folder / "memory.max").write_text(f"{memory}\n")
    (folder / "cpu.max").write_text(f"{cpu} 100000\n")
    return folder


def test_tasks_follow_from_the_container_s_memory_and_cores(tmp_path: Path) -> None:
    assert tasks_at_once(container(tmp_path, str(RESERVED_BYTES + TASK_BYTES), "max")) == 1
    assert tasks_at_once(container(tmp_path, str(1 << 28), "max")) == 1
    assert tasks_at_once(container(tmp_path, "max", "150000")) == 1
    assert 1 <= tasks_at_once(container(tmp_path, "max", "max")) == tasks_at_once(tmp_path / "none")


@dataclass(frozen=True, slots=True)
class Flaw:
    """What a kernel raises in its first attempts, each of which leaves a file."""

    folder: Path
    error: Exception
    attempts: int


def flawed(flaw: Flaw) -> int:
    (flaw.folder / attempt()).touch()
    number = len(list(flaw.folder.iterdir()))
    if number <= flaw.attempts:
        raise flaw.error
    return number


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "Input/output error", "a"), Unavailable("s3://lag does not answer"), pa.ArrowIOError("reset")],
    ids=["disk", "store", "arrow"],
)
def test_spark_tries_again_what_may_pass(spark_session: SparkSession, tmp_path: Path, error: Exception) -> None:
    assert run(spark_session, flawed, [Flaw(tmp_path, error, attempts=2)], "flawed") == [3]


@pytest.mark.parametrize("way", ["rdd", "dataframe"])
def test_after_the_last_attempt_the_error_is_raised_as_it_was(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(tasks, "is_shown", lambda _: way == "dataframe")
    error = OSError(errno.EIO, "Input/output error", "a")

    with pytest.raises(OSError, match="Input/output error: 'a'"):
        run(spark_session, flawed, [Flaw(tmp_path, error, attempts=9)], "flawed")

    assert len(list(tmp_path.iterdir())) == ATTEMPTS


@pytest.mark.parametrize("error", [Unusable("no"), TableUnreadable("totals")], ids=["unusable", "unreadable"])
def test_what_another_attempt_would_meet_again_ends_the_run(
    spark_session: SparkSession, tmp_path: Path, error: Exception
) -> None:
    with pytest.raises(type(error)):
        run(spark_session, flawed, [Flaw(tmp_path, error, attempts=1)], "flawed")

    assert len(list(tmp_path.iterdir())) == 1


def test_both_ways_return_the_same(spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [Job(1), Job(2, TableUnreadable("totals")), Job(3)]
    by_rdd = outcomes(spark_session.sparkContext, doubled, given, "jobs")
    monkeypatch.setattr(tasks, "is_shown", lambda _: True)
    by_dataframe = outcomes(spark_session, doubled, given, "jobs")

    assert repr(by_dataframe) == repr(by_rdd) == repr([2, TableUnreadable("totals"), 6])


def imported(_: int) -> set[str]:
    return {"pandas", "pyspark.testing", "grpc"} & set(sys.modules)


def test_pandas_is_imported_neither_by_a_session_nor_by_a_kernel_s_process() -> None:
    """PySpark's `mapInArrow` imports it in the driver."""
    program = (
        "from spark.engine import tasks\n"
        "from spark.engine.session import SparkSettings, started, with_sql\n"
        "from tests.spark.engine.test_tasks import imported\n"
        "with started(SparkSettings()) as context:\n"
        "    found = tasks.run(context, imported, [1], 'by an RDD')\n"
        "    here = imported(0)\n"
        "    tasks.is_shown = lambda _: True\n"
        "    print(found + tasks.run(with_sql(context), imported, [1], 'by a DataFrame') + [here])\n"
    )
    # pytest and what it imports are left out: the tests' module is imported for its kernel alone.
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "[set(), set(), set()]\n"


@dataclass(frozen=True, slots=True)
class Counted:
    counts: Counts
    folder: Path


def waited(task: Counted) -> None:
    """The second one to begin ends when the watcher has seen the first. Each is a job, so either may begin first."""
    try:
        (task.folder / "begun").open("x").close()
    except FileExistsError:
        wait_until((task.folder / "seen").exists, "the watcher to see the other task", 180)


@pytest.mark.parametrize("way", ["rdd", "dataframe"])
def test_a_watcher_sees_the_tasks_that_have_ended_and_what_they_counted(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """On one core, so that one task begins after the other."""
    monkeypatch.setattr(tasks, "is_shown", lambda _: way == "dataframe")
    both = Counts(10, 200, 1), Counts(5, 100, 0)

    def watch(progress: Progress) -> None:
        if progress in {Progress(1, 2, each) for each in both}:
            (tmp_path / "seen").touch()

    run(spark_session, waited, [Counted(each, tmp_path) for each in both], "counted", watch)

    assert (tmp_path / "seen").exists()


def test_the_job_group_says_what_runs(spark_session: SparkSession) -> None:
    run(spark_session, doubled, [Job(1)], "deltas 2026-11-22 10:00, 36 million rows")

    status = spark_session.sparkContext.statusTracker()
    # Spark notifies its listeners asynchronously, so a job may appear after it has ended.
    wait_until(lambda: bool(status.getJobIdsForGroup("kafka-lag-report")), "the job in its group", 180)
    assert spark_session.sparkContext.getLocalProperty("spark.job.description") == (
        "deltas 2026-11-22 10:00, 36 million rows"
    )


@pytest.mark.parametrize(
    ("master", "failures"),
    [("local", 1), ("local[4]", 1), ("local[*,3]", 3), ("spark://a:7077", 4), ("k8s://https://a:443", 4)],
)
def test_the_attempts_that_spark_allows_follow_from_its_master(master: str, failures: int) -> None:
    assert failures_allowed(in_process(master)) == failures
