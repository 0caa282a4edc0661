"""Pure: the report as CSV and as Markdown: the same figures as the page."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from spark.advice.assessment import Report, Standing, drain_seconds
from spark.advice.demand import production_of
from spark.advice.finding import Severity
from spark.advice.hpa import expected_in_words
from spark.figures import formatting
from spark.figures.model import Floats, Periods, Skipped, Topic
from spark.report.html_page import at_a_glance, range_in_words
from spark.report.html_tables import MOST_SKIPPED, target_of
from spark.report.json_export import known

COLUMNS = (
    "severity",
    "cluster",
    "group",
    "topic",
    "lag_p50",
    "lag_p95",
    "lag_p99",
    "lag_max",
    "lag_last",
    "threshold",
    "seconds_above",
    "episodes",
    "longest_seconds",
    "produced",
    "consumed",
    "production_rate",
    "consumption_rate",
    "peak_production_rate",
    "drain_seconds",
    "capacity_p50",
    "capacity_p95",
    "capacity_windows",
    "partitions",
    "members_max",
    "skew",
    "samples",
    "expected_samples",
    "resets",
    "rewinds",
    "recreations",
    "target",
    "min_replicas",
    "max_replicas",
    "preset",
    "findings",
    "owner",
    "max_wait_seconds",
    "wait_p95_seconds",
    "wait_max_seconds",
    "production_rate_max",
    "lag_first",
    "late_samples",
    "skips",
    "covered_seconds",
    "interval_seconds",
    "members_now",
    "capacity_at_least",
    "expected_wait_p95_seconds",
    "expected_changes_a_day",
    "known_seconds",
    "uncommitted_partitions",
    "uncommitted_messages",
    "stuck_partitions",
)
"""Of `groups.csv`, one row per group and topic; an empty cell: not known."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""What a text in a spreadsheet must not begin with."""


def csv_of(report: Report) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for standing in report.standings:
        for topic in standing.group.topics:
            row = {name: known(value) for name, value in _row(standing, topic).items()}
            writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe, and so does one that begins with one."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def markdown_of(report: Report) -> str:
    findings, coverage = report.findings, report.coverage
    lines = [
        "# Consumer lag report",
        "",
        markdown(range_in_words(report)),
        "",
        f"**{markdown(at_a_glance(report))}**",
        "",
        (
            "| | group | topics | lag p95 | lag max | time above threshold | busiest hour, rate | "
            "members / partitions | HPA target, min-max |"
        ),
        "|---|---|---|--:|--:|--:|--:|--:|---|",
        *(_line(standing) for standing in report.standings),
        "",
    ]
    for standing in report.standings:
        lines += [f"## {markdown(standing.called)}", ""]
        said = [(it.severity.word, f"{it.words} {it.to_do}") for it in standing.advice.findings]
        said.append(("HPA target", _target(standing)))
        lines += [f"- **{word}**: {markdown(words.rstrip())}" for word, words in said]
        lines.append("")
    lines += [
        "## Coverage",
        "",
        (
            f"{formatting.count(coverage.samples)} of {formatting.count(coverage.expected)} expected samples "
            f"({formatting.share(coverage.share)}); {formatting.plural(coverage.missing_hours, 'hour')} without any; "
            f"{formatting.plural(coverage.late_samples, 'sample')} after a gap; "
            f"{formatting.plural(coverage.resets, 'reset')}, {formatting.plural(coverage.rewinds, 'rewind')}, "
            f"{formatting.plural(coverage.recreations, 'partition')} made again; "
            f"{formatting.plural(len(findings.skipped), 'file')} skipped{':' if findings.skipped else '.'}"
        ),
        "",
        *_skipped(findings.skipped),
    ]
    return "\n".join(lines)


def _skipped(skipped: Sequence[Skipped]) -> list[str]:
    if not skipped:
        return []
    more = len(skipped) - MOST_SKIPPED
    lines = [f"- {markdown(it.file)}: {markdown(it.reason)}" for it in skipped[:MOST_SKIPPED]]
    return [*lines, *([f"- {formatting.plural(more, 'file')} more in report.json"] if more > 0 else []), ""]


def markdown(text: str) -> str:
    """On one line, with everything escaped that Markdown or HTML in it would take for its own."""
    shown = "".join(character if character.isprintable() or character == "\u202f" else "\ufffd" for character in text)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", shown)


def _line(standing: Standing) -> str:
    group, advice = standing.group, standing.advice
    lags = [topic.lag for topic in group.topics if topic.lag]
    hpa = advice.hpa
    cells = (
        standing.severity.word,
        markdown(standing.called),
        markdown(", ".join(topic.name for topic in group.topics)),
        formatting.count(sum(lag.p95 for lag in lags) if lags else None),
        formatting.count(group.largest_lag),
        formatting.duration(group.seconds_above),
        formatting.rate(advice.load.peak),
        f"{formatting.count(advice.load.members_max)} / {advice.load.partitions}",
        f"{target_of(hpa)}, {hpa.min_replicas.value}-{hpa.max_replicas.value}",
    )
    return f"| {' | '.join(cells)} |"


def _target(standing: Standing) -> str:
    hpa = standing.advice.hpa
    return f"{target_of(hpa)}. {hpa.target.reason} {expected_in_words(standing.advice)}"


def _row(standing: Standing, topic: Topic) -> dict[str, Any]:
    load, hpa, hours, lag = standing.advice.load, standing.advice.hpa, topic.hours, topic.lag
    produced, consumed, covered = (_sum(hours, name) for name in ("produced", "consumed", "covered_seconds"))
    values = (
        standing.severity.word,
        standing.group.cluster,
        formatting.name(standing.group.name),
        topic.name,
        *((lag.p50, lag.p95, lag.p99) if lag else (None,) * 3),
        topic.largest_lag,
        lag.last if lag else None,
        topic.above.threshold,
        topic.above.seconds,
        topic.above.episodes,
        topic.above.longest_seconds,
        produced,
        consumed,
        produced / covered if produced is not None and covered else None,
        consumed / covered if consumed is not None and covered else None,
        float(production_of(hours).max()),
        drain_seconds(topic, standing.advice),
        *((load.capacity.p50, load.capacity.p95, load.capacity.windows) if load.capacity else (None,) * 3),
        topic.partitions,
        load.members_max,
        _median(hours.skew[hours.produced > 0]),
        *(_sum(hours, name) for name in ("samples", "expected_samples", "resets", "rewinds", "recreations")),
        hpa.target.value,
        hpa.min_replicas.value,
        hpa.max_replicas.value,
        standing.fitting.name if standing.fitting else None,
        " ".join(it.code for it in standing.advice.findings if it.severity > Severity.FINE),
        standing.group.agreement.owner or None,
        standing.group.agreement.max_wait_seconds,
        hours.wait_seconds(lag.p95 if lag else None),
        hours.wait_seconds(topic.largest_lag),
        float(np.fmax.reduce(hours.production_rate_max)),
        lag.first if lag else None,
        *(_sum(hours, name) for name in ("gaps", "skips", "covered_seconds")),
        standing.group.interval_seconds,
        load.members_now,
        load.at_least,
        *((expected.wait_p95, expected.changes_a_day) if (expected := standing.advice.expected) else (None,) * 2),
        topic.above.known_seconds,
        topic.uncommitted,
        topic.uncommitted_lag,
        topic.still.number if topic.still else None,
    )
    return dict(zip(COLUMNS, values, strict=True))


def _median(column: Floats) -> float | None:
    known = column[~np.isnan(column)]
    return float(np.median(known)) if len(known) else None


def _sum(hours: Periods, name: str) -> float | None:
    column = getattr(hours, name)
    return float(np.nansum(column)) if (~np.isnan(column)).any() else None
