"""Pure: measured times of Spark's tasks -> how long compacting a month takes on a cluster that this machine is not."""

import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any

from spark.engine.division import jobs_of
from spark.pipeline import publishing
from spark.pipeline.batches import BatchLimits
from spark.pipeline.examine_task import LANES_OF_A_RANGE
from spark.pipeline.examining import FILES_OF_THE_DRIVER, HOURS_AHEAD
from spark.storage import bucket
from spark.tables.layout import TABLES_OF_AN_HOUR

Event = dict[str, Any]
TAILS, DELTAS = "last values of", "deltas"
"""How the descriptions of jobs begin."""
REQUESTS_OF_AN_HOUR = 4
"""One after the other to publish it in a bucket: what lies there, the versions (two listings) and the record."""


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
class Store:
    """Seconds that a bucket's store takes."""

    request: float
    copy: float
    """Of an object of an hour."""

    def publication(self, ranges: int) -> float:
        """Of an hour: the driver copies several of its objects side by side."""
        copies = -(-ranges * len(TABLES_OF_AN_HOUR) // bucket.AT_ONCE)
        return REQUESTS_OF_AN_HOUR * self.request + copies * self.copy


AT_ONCE = Store(0.0, 0.0)
"""As a folder does, nearly."""


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


def replayed(history: History, costs: Costs, cores: int, store: Store = AT_ONCE) -> Replay:
    """Batches as the pipeline divides them; in each, one round of tasks after another. Hours are published while others
    are made; the next batch begins when all are."""
    limits = BatchLimits().on(cores, is_cluster=True)
    makespan, work, left = costs.start, 0.0, history.hours
    while left:
        hours = min(max(1, limits.of_batch // history.rows), left)
        ahead, rounds = _rounds(replace(history, hours=hours), costs, cores)
        makespan += ahead + sum(scheduled(tasks, cores) for tasks in rounds[:-1])
        makespan += published(ends_of(rounds[-1], cores), hours, cores, store)
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
    """When the last task ends."""
    return max(ends_of(tasks, cores), default=0.0)


def ends_of(tasks: Iterable[float], cores: int) -> list[float]:
    """When each task ends if each goes, in order, to the core that is free first."""
    free, ends = [0.0] * cores, []
    for seconds in tasks:
        ends.append(free[0] + seconds)
        heapq.heapreplace(free, ends[-1])
    return ends


def published(ends: Sequence[float], hours: int, cores: int, store: Store) -> float:
    """When the last hour is published. `ends`: of the hours' tasks, in order; results arrive with their job's last."""
    ranges = len(ends) // hours
    arrivals = accumulate((max(job) for job in jobs_of(ends, cores) for _ in job), max)
    free = [0.0] * publishing.AT_ONCE
    for arrival in islice(arrivals, ranges - 1, None, ranges):
        heapq.heapreplace(free, max(free[0], arrival) + store.publication(ranges))
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
