"""`report`: gather the figures, decide what they say, publish them."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import metadata

from adapter.errors import did_you_mean
from spark.advice.assessment import Report, decided
from spark.engine.jobs import Spark
from spark.errors import Unusable
from spark.figures import periods
from spark.figures.model import Group, ReportData
from spark.figures.periods import Wanted
from spark.pipeline.plan import found_in
from spark.pipeline.runs import Say
from spark.report.gather import gathered_groups, with_earlier
from spark.report.html_page import pages_of
from spark.report.json_export import json_of
from spark.report.request import Request
from spark.report.tables import Tables
from spark.report.templating import at_a_glance
from spark.report.text_exports import csv_of, markdown_of
from spark.storage.protocol import HistoryFiles
from spark.storage.report_output import output_at
from spark.tables import layout
from spark.tables.sample_files import Skipped
from spark.tables.seen_hpas import SeenHpa, misnamed_documents, seen_hpas
from spark.tables.topic_parts import Names
from spark.trials.hpa_file import GivenHpa, groups_of, was_seen_for


def report(
    request: Request,
    files: HistoryFiles,
    session: Callable[[], Spark],
    say: Say,
    check: Callable[[], None],
    show: Say | None = None,
) -> Report:
    """Writes the report's files; raises Unusable with one sentence where that cannot be done.

    `show` tells how far a step is, in a line that replaces the one before; None: nobody looks."""
    if not files.listed(layout.HOURLY, 1):
        raise Unusable(f"{files.shown()} holds no tables: run `compact` first, once an hour of samples is finished")
    output = output_at(request.output)
    output.prepare()
    tables = Tables(session(), files, show)
    data = gathered(request, tables, say, check)
    data = replace(data, groups=with_earlier(data.groups, tables, data.since))
    check()
    given = with_seen(given_hpas(request.hpas, data.groups), files, data)
    say("replaying HPAs on what the groups did")
    report = decided(data, lambda asked: tables.trials(asked, Wanted(data.since, data.until)), given)
    check()
    say(f"writing {request.output}")
    output.publish(_checked(documents_of(report), check, show), FOLDERS)
    say(at_a_glance(report))
    return report


def gathered(request: Request, tables: Tables, say: Say, check: Callable[[], None]) -> ReportData:
    say("reading the hourly tables")
    wanted = request.wanted.by_default(request.now)
    groups = gathered_groups(tables, wanted, request.agreements, say, check)
    newest = tables.end_of_newest_day()
    if not groups and newest is not None and request.wanted.since is None and request.wanted.until is None:
        wanted = request.wanted.by_default(newest)
        groups = gathered_groups(tables, wanted, request.agreements, say, check)
    # A typing error must not replace a report with one that lacks the group.
    for name in sorted(set(request.agreements.only).difference(group.name for group in groups)):
        names = tables.hours_and_days(wanted)[0]["group"].unique().to_pylist()
        raise Unusable(f"--group {name}: the range has no such group{did_you_mean(name, names)}")
    request = replace(request, wanted=wanted)
    since, until = _range(request, groups)
    return ReportData(
        location=request.location,
        made_at=request.now,
        since=since,
        until=until,
        zone=request.agreements.zone,
        groups=groups,
        skipped=skipped_in(tables.files, request),
        is_past=request.wanted.until is not None,
        version=version_here(),
    )


def given_hpas(files: Sequence[GivenHpa], groups: Sequence[Group]) -> dict[Names, list[GivenHpa]]:
    """The HPAs of each group. Raises Unusable where one is of no group of the range."""
    found: dict[Names, list[GivenHpa]] = {}
    for given in files:
        for group in groups_of(given, groups):
            found.setdefault((group.cluster, group.name), []).append(given)
    return found


def with_seen(
    given: Mapping[Names, list[GivenHpa]], files: HistoryFiles, data: ReportData
) -> dict[Names, list[GivenHpa]]:
    """Of groups without a given HPA those that the adapter saw last in the range."""
    by_group: dict[Names, list[SeenHpa]] = {}
    for seen in seen_hpas(files, data.since, data.until, {group.cluster for group in data.groups}):
        by_group.setdefault((seen.cluster, seen.group), []).append(seen)
    found = dict(given)
    for group in data.groups:
        key = group.cluster, group.name
        if key not in found and (own := [it for it in by_group.get(key, ()) if was_seen_for(it, group)]):
            found[key] = [GivenHpa(f"{it.namespace}/{it.name}", it.hpa, max_wait=it.max_wait_seconds) for it in own]
    return found


def version_here() -> str:
    """Executors and spark-submit have the code as a zip file, which has no version."""
    try:
        return metadata.version("kafka-lag-adapter")
    except metadata.PackageNotFoundError:
        return ""


def skipped_in(files: HistoryFiles, request: Request) -> tuple[Skipped, ...]:
    """Everything that no figure contains: files that compaction left out, folders of no hour, hours not compacted."""
    misnamed = misnamed_documents(files)
    if not files.listed(layout.SAMPLES, 2) and not files.listed(layout.HOURS, 2):
        return tuple(misnamed)  # retention took all samples; the tables are what is left
    history = found_in(files, request.now, request.now)
    wanted = [hour for hour in history.hours if request.wanted.has(hour.start)]
    of_hours = (hour.record.skipped for hour in wanted if hour.record)
    left_out = [*history.skipped, *itertools.chain.from_iterable(of_hours)]
    late = [
        Skipped(layout.samples_folder(hour.name), "has samples that are not compacted: run `compact`")
        for hour in wanted
        if hour.has_changed
    ]
    return (*left_out, *late, *misnamed)


FOLDERS = ("hpa", "groups")
"""Those of a report, replaced as a whole."""


def documents_of(report: Report) -> Iterator[tuple[str, str]]:
    """Path below the output and text of each file, made one after another; what links to others comes after them."""
    yield from ((f"hpa/{standing.file}.yaml", standing.yaml) for standing in report.standings)
    yield "report.json", json_of(report)
    yield "report.md", markdown_of(report)
    yield "groups.csv", csv_of(report)
    yield from pages_of(report)


def _checked(
    documents: Iterator[tuple[str, str]], check: Callable[[], None], show: Say | None
) -> Iterator[tuple[str, str]]:
    """Before each document it is asked whether the run is to end."""
    for number, document in enumerate(documents, 1):
        check()
        if show is not None:
            show(f"writing {document[0]}, file {number}")
        yield document


def _range(request: Request, groups: Sequence[Group]) -> tuple[datetime, datetime]:
    """From the first hour with data to the end of the last, or what was asked for if there is none."""
    if groups:
        first, last = min(group.hours.start[0] for group in groups), max(group.hours.start[-1] for group in groups)
        return periods.time_of(first), request.wanted.until or periods.time_of(last) + timedelta(hours=1)
    return request.wanted.since or request.now, request.wanted.until or request.now
