"""Pure: measured times of Spark's tasks -> how long compacting a month takes on a cluster that this machine is not."""

import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark.pipeline.batches import BatchLimits
from spark.pipeline.examine_task import LANES_OF_A_RANGE
from spark.pipeline.examining import FILES_OF_THE_DRIVER, HOURS_AHEAD

Event = dict[str, Any]
TAILS, DELTAS = "last values of", "deltas"
"""How the descriptions of jobs begin."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, as measured on one core."""

    footer: float
    """To read what a file's footer says, for each file."""
    tail: float
    """To find what a row's hour carries on, for each row."""
    fold: float
    """To add an hour to what is carried, for each series."""
    delta: float
    """To make the tables, for each row."""
    start: float
    """Of the session, until its first job."""


@dataclass(frozen=True, slots=True)
class History:
    hours: int
    rows: int
    """Of an hour."""
    series: int
    files: int
    """Of an hour."""


@dataclass(frozen=True, slots=True)
class Replay:
    cores: int
    makespan: float
    work: float
    """Seconds of all tasks together."""

    @property
    def ratio(self) -> float:
        return self.makespan / (self.work / self.cores)


def replayed(history: History, costs: Costs, cores: int) -> Replay:
    """Batches as the pipeline divides them; in each, one round of tasks after another. What is published while other
    hours are made costs no time."""
    limits = BatchLimits().on(cores, is_cluster=True)
    makespan, work, left = costs.start, 0.0, history.hours
    while left:
        hours = min(max(1, limits.of_batch // history.rows), left)
        ahead, rounds = _rounds(replace(history, hours=hours), costs, cores)
        makespan += ahead + sum(scheduled(tasks, cores) for tasks in rounds)
        work += ahead + sum(map(sum, rounds))
        left -= hours
    return Replay(cores, makespan, work)


def _rounds(batch: History, costs: Costs, cores: int) -> tuple[float, list[list[float]]]:
    """Seconds of the driver, before the first job, and of the tasks of each round."""
    ranges = -(-batch.rows // BatchLimits().of_range)
    lanes = -(-batch.rows // (BatchLimits().of_range // LANES_OF_A_RANGE))
    footers = [costs.footer * batch.files] * batch.hours
    is_in_driver = batch.files * min(batch.hours, max(HOURS_AHEAD, cores)) <= FILES_OF_THE_DRIVER
    rounds = [
        [] if is_in_driver else footers,
        [costs.tail * batch.rows / ranges] * (ranges * (batch.hours - 1)),
        [costs.fold * batch.series / lanes * (batch.hours - 1)] * lanes,
        [costs.delta * batch.rows / ranges] * (ranges * batch.hours),
    ]
    return (sum(footers) if is_in_driver else 0.0), rounds


def scheduled(tasks: Iterable[float], cores: int) -> float:
    """When the last task ends if each goes, in order, to the core that is free first."""
    free = [0.0] * cores
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def costs_in(log: Iterable[str], footer: float, fold: float, hours: Sequence[History]) -> Costs:
    """Reads the costs from Spark's event log of a compaction of these hours. The last hour may be incomplete. `footer`
    and `fold` are measured separately."""
    events = [json.loads(line) for line in log]
    jobs = [_job(event, events) for event in events if event["Event"] == "SparkListenerJobStart"]

    def seconds(said: str) -> float:
        return sum(job.seconds for job in jobs if job.said.startswith(said))

    return Costs(
        footer,
        seconds(TAILS) / sum(hour.rows for hour in hours[:-1]),
        fold,
        seconds(DELTAS) / sum(hour.rows for hour in hours),
        jobs[0].began - _time(events, "SparkListenerApplicationStart", "Timestamp"),
    )


@dataclass(frozen=True, slots=True)
class Job:
    said: str
    seconds: float
    """Of all its tasks."""
    began: float


def _job(start: Event, events: Sequence[Event]) -> Job:
    tasks = (
        event["Task Info"]
        for event in events
        if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in start["Stage IDs"]
    )
    seconds = sum(info["Finish Time"] - info["Launch Time"] for info in tasks) / 1e3
    return Job(start["Properties"]["spark.job.description"], seconds, start["Submission Time"] / 1e3)


def _time(events: Sequence[Event], kind: str, field: str) -> float:
    (seconds,) = (event[field] / 1e3 for event in events if event["Event"] == kind)
    return float(seconds)
