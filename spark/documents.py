"""Pure: the report as JSON (a versioned schema, docs/report.md), CSV and Markdown: the same figures as the page."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from spark import words
from spark.advice import Behavior, Number, Recommendation
from spark.figures import Floats, Periods, Topic
from spark.finding import Severity
from spark.load import production_of
from spark.page import at_a_glance
from spark.standing import Report, Standing, drain_seconds
from spark.week import week_of

SCHEMA = "kafka-lag-report/1"

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
)
"""Of `groups.csv`, one row per group and topic; an empty cell: not known."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""What a text in a spreadsheet must not begin with."""


def json_of(report: Report) -> str:
    """Numbers that are not known are null; a time that never comes is null with `drains` false."""
    findings, coverage = report.findings, report.coverage
    document = {
        "schema": SCHEMA,
        "made_at": _time(findings.made_at),
        "location": findings.location,
        "from": _time(findings.since),
        "to": _time(findings.until),
        "timezone": findings.timezone,
        "coverage": {
            "samples": coverage.samples,
            "expected_samples": coverage.expected,
            "missing_hours": coverage.missing_hours,
            "gaps": [{"from": _time(gap.first), "to": _time(gap.until)} for gap in coverage.gaps],
            "resets": coverage.resets,
            "rewinds": coverage.rewinds,
            "recreations": coverage.recreations,
            "skipped": [asdict(skipped) for skipped in findings.skipped],
        },
        "groups": [_group(standing, report) for standing in report.standings],
    }
    return json.dumps(_known(document), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def csv_of(report: Report) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for standing in report.standings:
        for topic in standing.group.topics:
            row = {name: _known(value) for name, value in _row(standing, topic).items()}
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
        (
            f"{words.moment(findings.since, report.zone)} to {words.moment(findings.until, report.zone)}, "
            f"times in {markdown(findings.timezone)}."
        ),
        "",
        f"**{markdown(at_a_glance(report))}**",
        "",
        (
            "| | group | topics | lag p95 | lag max | time above threshold | busiest hour | members / partitions | "
            "HPA target, min-max |"
        ),
        "|---|---|---|--:|--:|--:|--:|--:|---|",
        *(_line(standing) for standing in report.standings),
        "",
    ]
    for standing in report.standings:
        if standing.advice.findings:
            lines += [f"## {markdown(standing.called)}", ""]
            lines += [f"- **{it.severity.word}**: {markdown(it.words)}" for it in standing.advice.findings]
            lines.append("")
    lines += [
        "## Coverage",
        "",
        (
            f"{words.count(coverage.samples)} of {words.count(coverage.expected)} expected samples "
            f"({words.share(coverage.share)}); {words.plural(coverage.missing_hours, 'hour')} without any; "
            f"{words.plural(coverage.resets, 'reset')}, {words.plural(coverage.rewinds, 'rewind')}, "
            f"{words.plural(coverage.recreations, 'partition')} made again; "
            f"{words.plural(len(findings.skipped), 'file')} skipped."
        ),
        "",
    ]
    return "\n".join(lines)


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
        words.count(sum(lag.p95 for lag in lags) if lags else None),
        words.count(sum(lag.max for lag in lags) if lags else None),
        words.duration(max(topic.above.seconds for topic in group.topics)),
        words.rate(advice.load.peak),
        f"{words.count(advice.load.members_max)} / {advice.load.partitions}",
        f"{words.count(hpa.target.value)}, {hpa.min_replicas.value}-{hpa.max_replicas.value}",
    )
    return f"| {' | '.join(cells)} |"


def _group(standing: Standing, report: Report) -> dict[str, Any]:
    group, load = standing.group, standing.advice.load
    return {
        "cluster": group.cluster,
        "group": group.name,
        "severity": standing.severity.word,
        "interval_seconds": group.interval_seconds,
        "partitions": load.partitions,
        "members_max": load.members_max,
        "capacity": asdict(load.capacity) if load.capacity else None,
        "capacity_at_least": load.at_least,
        "production_rate": {"off_peak": load.off_peak, "usual": load.usual, "peak": load.peak, "rise": load.rise},
        "findings": [
            {"code": it.code, "severity": it.severity.word, "words": plain(it.words), "to_do": it.to_do or None}
            for it in standing.advice.findings
        ],
        "hpa": _hpa(standing.advice.hpa),
        "hpa_file": f"hpa/{standing.file}.yaml",
        "presets": [
            {"name": it.name, "fits": it.fits, "why": plain(it.why), "extra": plain(it.extra), "hpa": _hpa(it.hpa)}
            for it in standing.presets
        ],
        "preset": standing.fitting.name if standing.fitting else None,
        "topics": [_topic(topic, standing, report) for topic in group.topics],
    }


def _topic(topic: Topic, standing: Standing, report: Report) -> dict[str, Any]:
    above, drain = topic.above, drain_seconds(topic, standing.advice.load)
    week = week_of(topic.hours, report.zone)
    return {
        "topic": topic.name,
        "lag": asdict(topic.lag) if topic.lag else None,
        "threshold": {
            "value": above.threshold,
            "is_given": above.is_given,
            "seconds_above": above.seconds,
            "known_seconds": above.known_seconds,
            "episodes": above.episodes,
            "longest_seconds": above.longest_seconds,
            "longest_from": _time(above.longest_from) if above.longest_from else None,
        },
        "drain_seconds": drain,
        "drains": None if drain is None else math.isfinite(drain),
        "busiest_hours": [{"hour": hour, "production_rate": rate} for hour, rate in week.busiest(5)],
        "production_by_weekday_and_hour": week.rates.tolist(),
        "partitions": None
        if topic.shares is None
        else {"hour": _time(topic.shares.hour), "of": [asdict(share) for share in topic.shares.of]},
        "hourly": _periods(topic.hours, "hour"),
        "daily": _periods(topic.days, "day"),
    }


def _row(standing: Standing, topic: Topic) -> dict[str, Any]:
    load, hpa, hours, lag = standing.advice.load, standing.advice.hpa, topic.hours, topic.lag
    produced, consumed, covered = (_sum(hours, name) for name in ("produced", "consumed", "covered_seconds"))
    values = (
        standing.severity.word,
        standing.group.cluster,
        words.name(standing.group.name),
        topic.name,
        *((lag.p50, lag.p95, lag.p99, lag.max, lag.last) if lag else (None,) * 5),
        topic.above.threshold,
        topic.above.seconds,
        topic.above.episodes,
        topic.above.longest_seconds,
        produced,
        consumed,
        produced / covered if produced is not None and covered else None,
        consumed / covered if consumed is not None and covered else None,
        float(production_of(hours).max()),
        drain_seconds(topic, load),
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
    )
    return dict(zip(COLUMNS, values, strict=True))


def _periods(of: Periods, name: str) -> dict[str, Any]:
    """Columns of one length."""
    columns: dict[str, Any] = {name: [f"{value.astype('datetime64[s]')}Z" for value in of.start]}
    for column in ("lag_p50", "lag_p95", "lag_p99", "lag_max", "produced", "consumed", "covered_seconds"):
        columns[column] = getattr(of, column).tolist()
    columns |= {"production_rate": of.production_rate.tolist(), "consumption_rate": of.consumption_rate.tolist()}
    for column in (
        "seconds_lagging",
        "samples",
        "expected_samples",
        "resets",
        "rewinds",
        "skips",
        "recreations",
        "partitions",
        "members_max",
        "skew",
    ):
        columns[column] = getattr(of, column).tolist()
    return columns


def _hpa(hpa: Recommendation) -> dict[str, Any]:
    return {
        "target_average_value": _number(hpa.target),
        "min_replicas": _number(hpa.min_replicas),
        "max_replicas": _number(hpa.max_replicas),
        "scale_up": _behavior(hpa.up),
        "scale_down": _behavior(hpa.down),
    }


def _behavior(behavior: Behavior) -> dict[str, Any]:
    policies = [
        {"type": kind, **_number(number), "period_seconds": behavior.period_seconds}
        for kind, number in (("Pods", behavior.pods), ("Percent", behavior.percent))
        if number.value
    ]
    return {"stabilization_window_seconds": _number(behavior.window_seconds), "policies": policies}


def _number(number: Number) -> dict[str, Any]:
    return {"value": number.value, "reason": plain(number.reason)}


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def _known(value: object) -> object:
    """NaN and infinity are null in the documents; whole floats are whole numbers."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_known(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() else value
    return value


def _median(column: Floats) -> float | None:
    known = column[~np.isnan(column)]
    return float(np.median(known)) if len(known) else None


def _sum(hours: Periods, name: str) -> float | None:
    column = getattr(hours, name)
    return float(np.nansum(column)) if (~np.isnan(column)).any() else None


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
