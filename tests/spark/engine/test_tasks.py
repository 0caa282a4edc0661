"""Kernels as Spark tasks. The kernels stand in this module, so that Spark's Python processes can import them."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.engine.machine import RESERVED_BYTES, TASK_BYTES, tasks_at_once
from spark.engine.tasks import attempt, run
from spark.errors import SampleFilesDamaged, TableUnreadable, Unusable

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
    assert run(spark_session, doubled, [Job(number) for number in range(5)]) == [0, 2, 4, 6, 8]
    assert run(spark_session, doubled, []) == []


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
        run(spark_session, doubled, [Job(1), Job(2, error), Job(3)])

    assert (str(raised.value), vars(raised.value)) == (str(error), vars(error))


def test_a_fault_of_a_kernel_is_an_error_of_spark(spark_session: SparkSession) -> None:
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        run(spark_session, doubled, [Job(1, ZeroDivisionError("by 0"))])


def attempts(_: int) -> tuple[str, str]:
    return attempt(), attempt()


def test_every_attempt_has_a_name_of_its_own_that_it_keeps(spark_session: SparkSession) -> None:
    names = run(spark_session, attempts, range(3)) + run(spark_session, attempts, range(3))

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
    (name,) = run(spark_session, killed_once, [tmp_path / "marker"])

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
