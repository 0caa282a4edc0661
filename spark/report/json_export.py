"""Pure: the report as JSON, the same figures as the page: a versioned schema (docs/report.md)."""

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from adapter.lag.forecast import Forecast
from spark.advice.advised import Comparison
from spark.advice.assessment import Report, Standing
from spark.advice.forecast import forecast_of
from spark.advice.recommendation import Behavior, LagPerReplica, Number, Promise, Recommendation, Target
from spark.advice.spans import weeks_of
from spark.advice.weekly_pattern import week_of
from spark.figures.model import NUMBERS, Periods, TopicFigures
from spark.figures.periods import last_hours
from spark.report.fields import fields_of
from spark.trials.calibration import Figures

SCHEMA = "kafka-lag-report/1"
MOST_HOURS = 31 * 24
"""Of each topic's hourly columns the newest; `daily` has the days of the whole range."""
COLUMNS = (*(name for name in NUMBERS if name != "gaps"), "production_rate", "consumption_rate")
WAITS = ("p50", "p95", "p99", "first", "last", "max")
"""As of the lag."""
DIGITS = 12
"""Of a number that is told; those after them are what computing adds."""


def json_of(report: Report) -> str:
    """Numbers that are not known are null; a time that never comes is null with `drains` false."""
    data = report.data
    document = {
        "schema": SCHEMA,
        "version": data.version or None,
        "made_at": data.made_at,
        "location": data.location,
        "from": data.since,
        "to": data.until,
        "timezone": data.zone.key,
        "age_seconds": data.age_seconds,
        "coverage": {
            **asdict(report.coverage),
            "gaps": [{"from": first, "to": until} for first, until in report.coverage.gaps],
            "skipped": [{"file": skipped.path, "reason": skipped.reason} for skipped in data.skipped],
        },
        "groups": [_group(standing, report) for standing in report.standings],
    }
    return json.dumps(known(document), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _group(standing: Standing, report: Report) -> dict[str, Any]:
    group, load = standing.group, standing.advice.load
    rows = [fields_of(standing, topic) for topic in group.topics]
    row = rows[0]
    return {
        "cluster": row["cluster"],
        "group": group.name,
        "severity": row["severity"],
        "interval_seconds": row["interval_seconds"],
        "partitions": load.partitions,
        "members_max": row["members_max"],
        "capacity": asdict(load.capacity) if load.capacity else None,
        "capacity_at_least": row["capacity_at_least"],
        "production_rate": {"off_peak": load.off_peak, "usual": load.usual, "peak": load.peak, "rise": load.rise},
        "findings": [
            {
                "code": it.code,
                "severity": it.severity.word,
                "words": _plain(it.words),
                "to_do": it.to_do or None,
                "since": it.since,
                "until": it.until,
                "state": it.state or None,
                "subject": _plain(it.subject) or None,
                "evidence": _plain(it.evidence) or None,
            }
            for it in standing.advice.findings
        ],
        "owner": row["owner"],
        "max_wait_seconds": row["max_wait_seconds"],
        "hpa": _hpa(standing.advice.hpa),
        "expected": standing.advice.expected and _expected(standing.advice.expected),
        "replay": standing.advice.replayed and _replay(standing.advice.replayed),
        "hpa_file": f"hpa/{standing.file}.yaml",
        "presets": [
            {
                "name": it.name,
                "fits": it.fits,
                "looks_like_it": it.looks_like_it,
                "why": _plain(it.why),
                "replayed": it.replayed and _figures(it.replayed),
                "extra": _plain(it.extra),
                "hpa": _hpa(it.hpa),
            }
            for it in standing.advice.presets
        ],
        "preset": row["preset"],
        "topics": [_topic(topic, of_topic, report) for topic, of_topic in zip(group.topics, rows, strict=True)],
    }


def _topic(topic: TopicFigures, row: dict[str, Any], report: Report) -> dict[str, Any]:
    drain = row["drain_seconds"]
    week, weeks = week_of(topic.by_local_hour, report.data.zone), weeks_of(topic.hours)
    return {
        "topic": row["topic"],
        "lag": topic.lag and asdict(topic.lag),
        "threshold": {
            "value": row["threshold"],
            "is_given": topic.above.is_given,
            **{name: row[name] for name in ("seconds_above", "known_seconds", "episodes", "longest_seconds")},
            "longest_from": topic.above.longest_from,
        },
        "wait_seconds": {
            **{name: row[f"wait_{name}_seconds"] for name in WAITS},
            "bounds": row["wait_bounds"],
            "at_least": [name for name in WAITS if name in topic.at_least],
        },
        "weeks": {"last": asdict(weeks[0]), "before": asdict(weeks[1])} if weeks else None,
        "drain_seconds": drain,
        "drains": None if drain is None else math.isfinite(drain),
        "busiest_hours": [{"hour": hour, "production_rate": rate} for hour, rate in week.busiest(5)],
        "production_by_weekday_and_hour": week.rates.tolist(),
        "forecast": _forecast(forecast_of(topic.by_local_hour, report.data.zone)),
        "stuck": topic.still and asdict(topic.still),
        "uncommitted": {name: row[f"uncommitted_{name}"] for name in ("partitions", "messages")},
        "partitions": topic.shares and asdict(topic.shares),
        "hourly": _periods(last_hours(topic.hours, MOST_HOURS), "hour"),
        "daily": _periods(topic.days, "day"),
    }


def _forecast(forecast: Forecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    return {**asdict(forecast), "skill": forecast.skill, "is_better": forecast.is_better}


def _periods(periods: Periods, name: str) -> dict[str, Any]:
    """Columns of one length."""
    starts = [f"{value.astype('datetime64[s]')}Z" for value in periods.start]
    return {name: starts, **{column: getattr(periods, column).tolist() for column in COLUMNS}}


def _hpa(hpa: Recommendation) -> dict[str, Any]:
    return {
        "metric": hpa.reads.metric,
        "rule": _rule(hpa.rule),
        "target_average_value": _number(hpa.target),
        "min_replicas": _number(hpa.min_replicas),
        "max_replicas": _number(hpa.max_replicas),
        "scale_up": _behavior(hpa.up),
        "scale_down": _behavior(hpa.down),
    }


def _rule(rule: Promise | LagPerReplica | None) -> dict[str, Any] | None:
    """What the adapter's settings must say of the group."""
    match rule:
        case Promise():
            capacity = {"value": rule.capacity, "reason": _plain(rule.capacity_reason)}
            return {"max_wait_seconds": _number(rule.max_wait_seconds), "capacity_hint": capacity}
        case LagPerReplica():
            return {"lag_per_replica": _number(rule.messages)}
    return None


def _expected(of: Figures) -> dict[str, Any]:
    names = ("wait_p50", "wait_p95", "wait_max", "kept_share", "replicas_mean", "changes_a_day")
    return {name: getattr(of, name) for name in names}


def _replay(of: Comparison) -> dict[str, Any]:
    calibration = of.calibration
    return {
        "calibration": {
            "fits": not calibration.misfit,
            "misfit": calibration.misfit or None,
            "doubt": calibration.doubt or None,
            "capacity": calibration.capacity,
            "observed": _figures(calibration.observed),
            "replayed": _figures(calibration.replayed),
        },
        "candidates": [
            {"name": _plain(line.name), "is_recommended": line.is_recommended, **_figures(line.figures)}
            for line in (*of.lines, *of.others)
        ],
    }


def _figures(of: Figures) -> dict[str, Any]:
    return {**asdict(of), "kept_share": of.kept_share}


def _behavior(behavior: Behavior) -> dict[str, Any]:
    policies = [
        {"type": kind, **_number(number), "period_seconds": behavior.period_seconds}
        for kind, number in behavior.policies
    ]
    return {
        "stabilization_window_seconds": _number(behavior.window_seconds),
        "policies": policies,
        "tolerance": behavior.tolerance and _number(behavior.tolerance),
    }


def _number(number: Number | Target) -> dict[str, Any]:
    return {"value": number.value, "reason": _plain(number.reason)}


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


def known(value: object) -> object:
    """NaN and infinity are null in the documents; whole floats, but for what computing adds, are whole numbers."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [known(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        rounded = float(f"{value:.{DIGITS}g}")
        return int(rounded) if rounded.is_integer() else rounded
    return value
