"""`replay`: gather what a report knows of a group, replay its minutes in a Spark task, and say what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from spark.advice.candidates import TOO_LARGE, asked_of, is_too_large
from spark.advice.capacity_words import without_capacity
from spark.advice.demand import load_of
from spark.advice.hpa import promised_seconds
from spark.engine.jobs import Spark
from spark.engine.tasks import run
from spark.errors import Unusable
from spark.figures.model import Group, ReportData
from spark.figures.periods import Wanted
from spark.pipeline.runs import Say
from spark.replay.outcome import Outcome, ReplayTask, outcome_in
from spark.replay.page import Answer, json_of, page_of, text_of
from spark.report.build import gathered, with_seen
from spark.report.group_file import Agreements
from spark.report.request import Request, requested
from spark.report.tables import Tables
from spark.storage.protocol import HistoryFiles
from spark.storage.report_output import output_at
from spark.tables import layout
from spark.trials.hpa_file import GivenHpa, candidate_of
from spark.trials.references import Candidate


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    report: Request
    """Of this group alone."""
    cluster: str | None
    group: str
    hpa: GivenHpa | None
    """None: the one that the adapter saw."""


def requested_replay(
    location: str,
    cluster: str | None,
    group: str,
    hpa_file: Path | None,
    agreements: Agreements,
    times: tuple[str | None, str | None],
    timezone: str,
    now: datetime,
) -> ReplayRequest:
    """The flags as one value, or Unusable."""
    given = () if hpa_file is None else (hpa_file,)
    report = requested(location, "", times, timezone, now, agreements, given)
    return ReplayRequest(report, cluster, group, report.hpas[0] if given else None)


def replay(
    request: ReplayRequest,
    files: HistoryFiles,
    session: Callable[[], Spark],
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
    data = gathered(request.report, tables, say, check)
    group = _group_in(data.groups, request)
    given = request.hpa or _seen(group, tables.files, data)
    say(f"replaying {given.file}")
    promised = promised_seconds(group, load_of(group))
    candidate = candidate_of(given, group, promised)
    outcome = _outcome(group, candidate, promised, tables, data)
    check()
    zone = request.report.agreements.zone
    answer = Answer(group.name, group.cluster, given.file, candidate, promised, outcome, zone)
    text = text_of(answer)
    if output is not None:
        documents = {"replay.html": page_of(answer), "replay.json": json_of(answer), "replay.txt": f"{text}\n"}
        output_at(output).publish(documents.items())
    return text


def _group_in(groups: tuple[Group, ...], request: ReplayRequest) -> Group:
    named = f"--group {request.group}"
    clusters = [group.cluster for group in groups]
    if request.cluster is None and len(groups) > 1:
        raise Unusable(f"{named} is on clusters {', '.join(clusters)}: name one with --cluster")
    chosen = [group for group in groups if request.cluster in {None, group.cluster}]
    if not chosen:
        where = f" on cluster {request.cluster!r}, only on {', '.join(clusters)}" if clusters else ""
        raise Unusable(f"{named}: the range has no such group{where}")
    return chosen[0]


def _seen(group: Group, files: HistoryFiles, data: ReportData) -> GivenHpa:
    seen = with_seen({}, files, data).get((group.cluster, group.name), [])
    if not seen:
        raise Unusable(f"--hpa: is missing, and the adapter saw no HPA that scales on the lag of group {group.name!r}")
    if len(seen) > 1:
        names = ", ".join(each.file for each in seen)
        raise Unusable(f"--hpa: is missing, and the adapter saw several HPAs of group {group.name!r}: {names}")
    return seen[0]


def _outcome(group: Group, candidate: Candidate, promised: float, tables: Tables, data: ReportData) -> Outcome:
    wanted = Wanted(data.since, data.until)
    load = load_of(group)
    if is_too_large(group):
        raise Unusable(f"--group {group.name}: {TOO_LARGE}")
    question = asked_of(group, load, [candidate], promised, data.zone)
    if question is None:
        raise Unusable(f"--group {group.name} has no capacity to replay with. {without_capacity(load)}")
    task = ReplayTask(tables.files, tuple(tables.minutes(wanted)), wanted, (group.cluster, group.name), question)
    (outcome,) = run(tables.session, outcome_in, [task], f"replay of group {group.name}")
    return outcome
