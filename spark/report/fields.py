"""Pure: the table of fields that every form of the report takes its figures from, by their names in `groups.csv`."""

from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.assessment import Standing, drain_seconds
from spark.advice.demand import production_of
from spark.advice.finding import Severity
from spark.advice.hpa_files.adapter_settings import keys_of
from spark.advice.recommendation import Behavior, LagPerReplica, Promise, Recommendation
from spark.figures import formatting
from spark.figures.model import ReportData, TopicFigures
from spark.figures.newest import Newest, is_now, newest_of
from spark.figures.periods import median, total

Field = Callable[[Standing, TopicFigures], object]


def _of_lag(name: str) -> Field:
    return lambda _, topic: getattr(topic.lag, name, None)


def _wait_of(name: str) -> Field:
    return lambda _, topic: getattr(topic.waits, name, None)


def _of_capacity(name: str) -> Field:
    return lambda standing, _: getattr(standing.advice.load.capacity, name, None)


def _of_expected(name: str) -> Field:
    return lambda standing, _: getattr(standing.advice.expected, name, None)


def _summed(name: str) -> Field:
    return lambda _, topic: total(getattr(topic.hours, name))


def _rate(name: str) -> Field:
    def rate(_: Standing, topic: TopicFigures) -> float | None:
        seconds = total(topic.hours.covered_seconds)
        return total(getattr(topic.hours, name)) / seconds if seconds else None

    return rate


FIELDS: Mapping[str, Field] = {
    "severity": lambda standing, _: standing.severity.word,
    "cluster": lambda standing, _: standing.group.cluster,
    "group": lambda standing, _: formatting.name(standing.group.name),
    "topic": lambda _, topic: topic.name,
    **{f"lag_{name}": _of_lag(name) for name in ("p50", "p95", "p99")},
    "lag_max": lambda _, topic: topic.largest_lag,
    "lag_last": _of_lag("last"),
    "threshold": lambda _, topic: topic.above.threshold,
    "seconds_above": lambda _, topic: topic.above.seconds,
    "episodes": lambda _, topic: topic.above.episodes,
    "longest_seconds": lambda _, topic: topic.above.longest_seconds,
    "produced": _summed("produced"),
    "consumed": _summed("consumed"),
    "production_rate": _rate("produced"),
    "consumption_rate": _rate("consumed"),
    "peak_production_rate": lambda _, topic: float(production_of(topic.hours).max()),
    "drain_seconds": lambda standing, topic: drain_seconds(topic, standing.advice),
    **{f"capacity_{name}": _of_capacity(name) for name in ("p50", "p95", "windows")},
    "partitions": lambda _, topic: topic.partitions,
    "members_max": lambda standing, _: standing.advice.load.members_max,
    "skew": lambda _, topic: median(topic.hours.skew[topic.hours.produced > 0]),
    **{name: _summed(name) for name in ("samples", "expected_samples", "resets", "rewinds", "recreations")},
    "target": lambda standing, _: standing.advice.hpa.target.value,
    "min_replicas": lambda standing, _: standing.advice.hpa.min_replicas.value,
    "max_replicas": lambda standing, _: standing.advice.hpa.max_replicas.value,
    "preset": lambda standing, _: standing.fitting.name if standing.fitting else None,
    "findings": lambda standing, _: " ".join(
        finding.code for finding in standing.advice.findings if finding.severity > Severity.FINE
    ),
    "owner": lambda standing, _: standing.group.agreement.owner or None,
    "max_wait_seconds": lambda standing, _: standing.group.agreement.max_wait_seconds,
    "wait_p95_seconds": _wait_of("p95"),
    "wait_max_seconds": lambda _, topic: topic.longest_wait,
    "production_rate_max": lambda _, topic: float(np.fmax.reduce(topic.hours.production_rate_max)),
    "lag_first": _of_lag("first"),
    "late_samples": _summed("gaps"),
    "skips": _summed("skips"),
    "covered_seconds": _summed("covered_seconds"),
    "interval_seconds": lambda standing, _: standing.group.interval_seconds,
    "members_now": lambda standing, _: standing.advice.load.members_now,
    "capacity_at_least": lambda standing, _: standing.advice.load.at_least,
    "expected_wait_p95_seconds": _of_expected("wait_p95"),
    "expected_changes_a_day": _of_expected("changes_a_day"),
    "known_seconds": lambda _, topic: topic.above.known_seconds,
    "uncommitted_partitions": lambda _, topic: topic.uncommitted,
    "uncommitted_messages": lambda _, topic: topic.uncommitted_lag,
    "stuck_partitions": lambda _, topic: getattr(topic.still, "number", None),
    **{f"wait_{name}_seconds": _wait_of(name) for name in ("p50", "p99", "first", "last")},
    "wait_bounds": lambda _, topic: total(topic.hours.wait_bounds),
    "members_min": lambda standing, _: float(np.fmin.reduce(standing.group.hours.members_min)),
    "capacity_p25": _of_capacity("p25"),
    "capacity_advised": lambda standing, _: standing.advice.load.advised,
    "metric": lambda standing, _: _metric(standing.advice.hpa),
    "promised_seconds": lambda standing, _: _promised(standing.advice.hpa),
}
"""None and NaN: not known. What is the group's is the same for each of its topics."""


def _metric(hpa: Recommendation) -> str | None:
    return None if hpa.target.value is None else hpa.reads.metric


def _promised(hpa: Recommendation) -> int | None:
    return hpa.rule.max_wait_seconds.value if isinstance(hpa.rule, Promise) else None


def fields_of(standing: Standing, topic: TopicFigures) -> dict[str, object]:
    return {name: value(standing, topic) for name, value in FIELDS.items()}


def since_of(standing: Standing, zone: ZoneInfo) -> str:
    """Since when the group has the severity that it has, and until when if that is over."""
    finding = standing.attention
    if finding is None or finding.since is None:
        return ""
    if finding.until is None or finding.until == finding.since:
        return formatting.moment(finding.since, zone)
    return f"{formatting.moment(finding.since, zone)} (until {formatting.moment(finding.until, zone)})"


def _lag_now(standing: Standing, data: ReportData) -> str:
    newest = newest_of(standing.group)
    if newest.lag is None or newest.at is None:
        return formatting.UNKNOWN
    doubts = [f"without {formatting.plural(newest.unknown_topics, 'topic')}"] if newest.unknown_topics else []
    if not is_now(newest, data):
        doubts.append(formatting.moment(newest.at, data.zone))
    return formatting.count(newest.lag) + (f" ({', '.join(doubts)})" if doubts else "")


def wait_now(newest: Newest) -> str:
    return formatting.wait(newest.wait_seconds, is_bound=newest.wait_is_bound)


def _lag_p95(standing: Standing, _: ReportData) -> str:
    """The topics' lags, added up, and the wait of the slowest."""
    lags = [topic.lag.p95 for topic in standing.group.topics if topic.lag]
    waits = [topic.waits.p95 for topic in standing.group.topics if topic.waits]
    is_bound = any("p95" in topic.at_least for topic in standing.group.topics)
    return formatting.with_wait(sum(lags) if lags else None, max(waits, default=None), is_bound=is_bound)


OVERVIEW: Mapping[str, Callable[[Standing, ReportData], str]] = {
    "Since": lambda standing, data: since_of(standing, data.zone),
    "Lag now": _lag_now,
    "Wait now": lambda standing, _: wait_now(newest_of(standing.group)),
    "Lag p95": _lag_p95,
    "Members": lambda standing, _: (
        f"{formatting.count(standing.advice.load.members_max)} "
        f"(for {formatting.plural(standing.advice.load.partitions, 'partition')})"
    ),
    "HPA": lambda standing, _: hpa_in_words(standing.advice.hpa),
}
"""A whole group's columns in the tables of groups, by their heads."""


def hpa_in_words(hpa: Recommendation) -> str:
    """Without a target, no replicas either."""
    return "none" if hpa.target.value is None else f"{target_of(hpa)} ({replicas_of(hpa)})"


def replicas_of(hpa: Recommendation) -> str:
    return formatting.span(hpa.min_replicas.value, hpa.max_replicas.value, "replica")


def target_of(hpa: Recommendation) -> str:
    """What it scales by: messages of a lag, or the number of the rule that the adapter counts with."""
    match hpa.rule:
        case Promise(max_wait_seconds=wait):
            return f"maxWait {formatting.duration(wait.value)}"
        case LagPerReplica(messages=messages):
            return f"lagPerReplica {formatting.count(messages.value)}"
    return "none" if hpa.target.value is None else formatting.count(hpa.target.value)


def window_of(behavior: Behavior) -> str:
    return formatting.seconds(behavior.window_seconds.value)


def steps_of(behavior: Behavior) -> str:
    """`4 pods or 100 % / 15 s`."""
    return f"{' or '.join(step for step, _ in _steps(behavior))} / {formatting.seconds(behavior.period_seconds)}"


def numbers_of(hpa: Recommendation) -> list[tuple[str, str, str]]:
    """Field, value and reason of every number of an HPA, and of the rule that it needs."""
    rows = [
        *keys_of(hpa),
        ("averageValue", formatting.count(hpa.target.value), hpa.target.reason),
        *((name, str(number.value), number.reason) for name, number in hpa.replicas),
    ]
    for name, behavior in hpa.behaviors:
        rows.append((f"{name} window", window_of(behavior), behavior.window_seconds.reason))
        if behavior.tolerance is not None:
            rows.append((f"{name} tolerance", str(behavior.tolerance.value), behavior.tolerance.reason))
        per = formatting.seconds(behavior.period_seconds)
        rows += [(f"{name} step", f"{step} / {per}", reason) for step, reason in _steps(behavior)]
    return rows


def _steps(behavior: Behavior) -> list[tuple[str, str]]:
    """Each policy's step, as `4 pods` or `100 %`, and its reason."""
    return [
        (formatting.plural(number.value, "pod") if kind == "Pods" else formatting.percent(number.value), number.reason)
        for kind, number in behavior.policies
    ]
