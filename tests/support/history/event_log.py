"""Spark's own event log, from which its UI and its history server show what a run did."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

Event = dict[str, Any]


def logged_to(folder: Path) -> tuple[str, ...]:
    """Settings of Spark. Creates the folder, as Spark requires."""
    folder.mkdir()
    return ("spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir={folder.as_uri()}")


@dataclass(frozen=True, slots=True)
class EventLog:
    events: tuple[Event, ...]

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        texts = (path.read_text() for path in sorted(folder.rglob("events_*")))
        return cls(tuple(json.loads(line) for text in texts for line in text.splitlines() if line))

    def of(self, kind: str) -> list[Event]:
        """`kind`: as Spark names it, without the package and `SparkListener`."""
        return [event for event in self.events if event["Event"].endswith(f"SparkListener{kind}")]

    @property
    def jobs(self) -> list[tuple[str, str]]:
        """Group and description of each."""
        properties = (event["Properties"] for event in self.of("JobStart"))
        return [(each["spark.jobGroup.id"], each["spark.job.description"]) for each in properties]

    def queries(self) -> dict[str, dict[str, int]]:
        """Description in the SQL tab -> the figures of the nodes of its plan, by `NODE: FIGURE`."""
        values = self._values()
        return {
            event["description"]: {name: values.get(number, 0) for name, number in _figures_of(event["sparkPlanInfo"])}
            for event in self.of("SQLExecutionStart")
        }

    def lost(self) -> list[tuple[str, int]]:
        """Of each task that ended with its executor: the job's description, and the task's number in it."""
        ends = [each for each in self.of("TaskEnd") if each["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
        return [(self._job_of(each["Stage ID"]), each["Task Info"]["Index"]) for each in ends]

    def finished(self) -> list[tuple[str, int]]:
        """The same of each task that ended well."""
        ends = [each for each in self.of("TaskEnd") if each["Task End Reason"]["Reason"] == "Success"]
        return [(self._job_of(each["Stage ID"]), each["Task Info"]["Index"]) for each in ends]

    def _job_of(self, stage: int) -> str:
        (job,) = (each for each in self.of("JobStart") if stage in each["Stage IDs"])
        return str(job["Properties"]["spark.job.description"])

    def _values(self) -> dict[int, int]:
        """Of accumulators, after the last stage that has them."""
        stages = (each["Stage Info"]["Accumulables"] for each in self.of("StageCompleted"))
        return {each["ID"]: int(each["Value"]) for figures in stages for each in figures}


def _figures_of(node: Event) -> Iterator[tuple[str, int]]:
    """Name and accumulator, of a node of a plan and those below it."""
    for metric in node["metrics"]:
        yield f"{node['nodeName']}: {metric['name']}", metric["accumulatorId"]
    for child in node["children"]:
        yield from _figures_of(child)
