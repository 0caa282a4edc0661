"""Pure: measured times of Spark's tasks -> how long compacting a month takes on a cluster that this machine is not."""

import heapq
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spark.pipeline.batches import BatchLimits

Event = dict[str, Any]
TAILS, DELTAS = "last values of", "deltas"
"""How the descriptions of jobs begin."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, as measured on one core."""

    tail: float
    """To find what a row's hour carries on, for each row."""
    delta: float
    """To make the tables, for each row."""
    fold: float
    """In the driver, to add an hour to what is carried, for each series."""
    start: float
    """Of the session, until its first job."""


@dataclass(frozen=True, slots=True)
class History:
    hours: int
    rows: int
    """Of an hour."""
    series: int


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
    """Batches as the pipeline divides them; in each, the last values of all hours but the last are found, folded in the
    driver, and then every hour is made by one task. What is published while others are made costs no time."""
    of_batch = max(1, BatchLimits().of_batch_on(cores, is_cluster=True) // history.rows)
    makespan, work, left = costs.start, 0.0, history.hours
    while left:
        hours = min(of_batch, left)
        tails = [costs.tail * history.rows] * (hours - 1)
        deltas = [costs.delta * history.rows] * hours
        makespan += scheduled(tails, cores) + costs.fold * history.series * (hours - 1) + scheduled(deltas, cores)
        work += sum(tails) + sum(deltas)
        left -= hours
    return Replay(cores, makespan, work)


def scheduled(tasks: Iterable[float], cores: int) -> float:
    """When the last task ends if each goes, in order, to the core that is free first."""
    free = [0.0] * cores
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def costs_in(log: Iterable[str], history: History) -> Costs:
    """From Spark's event log of a compaction of these hours."""
    events = [json.loads(line) for line in log]
    jobs = [_job(event, events) for event in events if event["Event"] == "SparkListenerJobStart"]
    (tails,) = (job for job in jobs if job.said.startswith(TAILS))
    (deltas,) = (job for job in jobs if job.said.startswith(DELTAS))
    hours = tails.rows / history.rows
    return Costs(
        tails.seconds / tails.rows,
        deltas.seconds / deltas.rows,
        (deltas.began - tails.ended) / (hours * history.series),
        jobs[0].began - _time(events, "SparkListenerApplicationStart", "Timestamp"),
    )


@dataclass(frozen=True, slots=True)
class Job:
    said: str
    rows: float
    seconds: float
    """Of all its tasks."""
    began: float
    ended: float


def _job(start: Event, events: Sequence[Event]) -> Job:
    said, number = start["Properties"]["spark.job.description"], start["Job ID"]
    tasks = (
        event["Task Info"]
        for event in events
        if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in start["Stage IDs"]
    )
    seconds = sum(info["Finish Time"] - info["Launch Time"] for info in tasks) / 1e3
    (end,) = (event for event in events if event["Event"] == "SparkListenerJobEnd" and event["Job ID"] == number)
    return Job(said, _rows_in(said), seconds, start["Submission Time"] / 1e3, end["Completion Time"] / 1e3)


def _rows_in(said: str) -> float:
    """`deltas 2026-11-22 10:00, 36 million rows` -> 36e6; 0 where nothing is said of rows."""
    match = re.search(r"([\d.]+) (million|billion) rows", said)
    return float(match[1]) * {"million": 1e6, "billion": 1e9}[match[2]] if match else 0.0


def _time(events: Sequence[Event], kind: str, field: str) -> float:
    (seconds,) = (event[field] / 1e3 for event in events if event["Event"] == kind)
    return float(seconds)
