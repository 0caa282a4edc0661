"""`replay`: gather a group's minutes, replay them in Spark's tasks, and say what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from adapter.errors import did_you_mean
from adapter.settings.types import seconds_of
from adapter.verdicts.hpa import Hpa
from adapter.verdicts.plant import Consumers
from spark.engine.tasks import run
from spark.errors import Unusable
from spark.figures.periods import Wanted
from spark.pipeline.runs import Say
from spark.replay.hpa_file import check_scales_on_lag, hpa_in
from spark.replay.minutes import Minutes, MinutesRead, minutes_of, rows_of_group
from spark.replay.outcome import Question, outcome_of
from spark.replay.page import Answer, json_of, page_of, text_of
from spark.report.request import parsed_time, zone_of
from spark.report.tables import Tables
from spark.storage.protocol import HistoryFiles
from spark.storage.report_output import output_at
from spark.tables import layout

DAYS_OF_A_TASK = 2


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    location: str
    cluster: str | None
    group: str
    hpa_file: Path
    hpa: Hpa
    promised_seconds: float
    wanted: Wanted
    zone: ZoneInfo
    now: datetime


@dataclass(frozen=True, slots=True)
class GroupFound:
    cluster: str
    topics: dict[str, int]
    """Name -> partitions, in the newest hour."""
    interval_seconds: float


def requested_replay(
    location: str,
    cluster: str | None,
    group: str,
    hpa_file: Path,
    max_wait: str,
    times: tuple[str | None, str | None],
    timezone: str,
    now: datetime,
) -> ReplayRequest:
    """The flags as one value, or Unusable."""
    zone = zone_of(timezone)
    since, until = (parsed_time(option, text, zone) for option, text in zip(("--from", "--to"), times, strict=True))
    if since is not None and until is not None and since >= until:
        raise Unusable(f"--from {times[0]} is not before --to {times[1]}")
    try:
        promised = seconds_of(max_wait)
    except ValueError as error:
        raise Unusable(f"--max-wait: {error}") from error
    return ReplayRequest(
        location, cluster, group, hpa_file, hpa_in(hpa_file), promised, Wanted(since, until), zone, now
    )


def replay(
    request: ReplayRequest,
    files: HistoryFiles,
    session: Callable[[], SparkSession],
    say: Say,
    check: Callable[[], None],
    output: str | None = None,
) -> str:
    """Returns the result as text; with `output`, writes replay.html, .json and .txt there. Raises Unusable with one
    sentence where that cannot be done."""
    if not files.listed(layout.MINUTES, 0):
        raise Unusable(f"{files.shown()} holds no minutes: run `compact` first, once an hour of samples is finished")
    if output is not None:
        output_at(output).prepare()
    tables = Tables(session(), files)
    say("reading the tables")
    wanted, found = _found(request, tables)
    check_scales_on_lag(request.hpa, found.cluster, request.group, found.topics)
    minutes = _minutes(request, tables, wanted, found.cluster)
    check()
    say(f"replaying {len(minutes):,} minutes")
    partitions = tuple(found.topics.values())
    consumers = Consumers(np.nan, partitions, interval_seconds=found.interval_seconds)
    question = Question(minutes, consumers, request.hpa, request.promised_seconds)
    (outcome,) = run(session(), outcome_of, [question], f"replay of group {request.group}")
    check()
    name, promised = request.hpa_file.name, request.promised_seconds
    answer = Answer(request.group, found.cluster, name, minutes, promised, outcome, request.zone)
    text = text_of(answer)
    if output is not None:
        documents = {"replay.html": page_of(answer), "replay.json": json_of(answer), "replay.txt": f"{text}\n"}
        output_at(output).publish(documents.items())
    return text


def _found(request: ReplayRequest, tables: Tables) -> tuple[Wanted, GroupFound]:
    wanted = request.wanted.by_default(request.now)
    hourly, _ = tables.hours_and_days(wanted)
    newest = tables.end_of_newest_day()
    if not len(hourly) and newest is not None and request.wanted == Wanted():
        wanted = request.wanted.by_default(newest)
        hourly, _ = tables.hours_and_days(wanted)
    return wanted, _group_in(hourly, request)


def _group_in(hourly: pa.Table, request: ReplayRequest) -> GroupFound:
    names = hourly["group"].unique().to_pylist()
    rows = hourly.filter(pc.equal(hourly["group"], request.group))
    if request.cluster is not None:
        rows = rows.filter(pc.equal(rows["cluster"], request.cluster))
    clusters = sorted(rows["cluster"].unique().to_pylist())
    if not clusters:
        on = "" if request.cluster is None else f" on cluster {request.cluster!r}"
        near = "" if request.group in names else did_you_mean(request.group, names)
        raise Unusable(f"--group {request.group}: the range has no such group{on}{near}")
    if len(clusters) > 1:
        raise Unusable(f"--group {request.group} is on clusters {', '.join(clusters)}: name one with --cluster")
    newest = rows.sort_by("hour").to_pylist()
    topics = {row["topic"]: int(row["partitions"] or 1) for row in newest}
    expected = [row["expected_samples"] for row in newest if row["expected_samples"]]
    return GroupFound(clusters[0], topics, 3600 / expected[-1] if expected else 60.0)


def _minutes(request: ReplayRequest, tables: Tables, wanted: Wanted, cluster: str) -> Minutes:
    stored = tables.files.listed(layout.MINUTES, 0)
    paths = [file.path for file in stored if wanted.may_have(file.name.removesuffix(".parquet"))]
    reads = [
        MinutesRead(tables.files, tuple(paths[at : at + DAYS_OF_A_TASK]), cluster, request.group)
        for at in range(0, len(paths), DAYS_OF_A_TASK)
    ]
    rows = run(tables.session, rows_of_group, reads, f"minutes of group {request.group}")
    minutes = minutes_of(rows, wanted)
    if minutes is None or not minutes.is_known.any():
        raise Unusable(f"--group {request.group}: no minute of the range has a known lag and wait")
    return minutes
