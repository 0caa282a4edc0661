"""Pure: the report as CSV and as Markdown: the same figures as the page."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spark.advice.assessment import Report, Standing, drain_seconds
from spark.advice.demand import production_of
from spark.advice.finding import Severity
from spark.advice.hpa import expected_in_words
from spark.figures import formatting
from spark.figures.model import Topic
from spark.figures.periods import median, total
from spark.report.html_page import at_a_glance, range_in_words
from spark.report.html_tables import MOST_SKIPPED, coverage_in_words, figures_of, target_of
from spark.report.json_export import known
from spark.tables.sample_files import Skipped

Column = Callable[[Standing, Topic], object]


def _of_lag(name: str) -> Column:
    return lambda _, topic: getattr(topic.lag, name, None)


def _wait_of(name: str) -> Column:
    return lambda _, topic: topic.hours.wait_seconds(getattr(topic.lag, name, None))


def _of_capacity(name: str) -> Column:
    return lambda of, _: getattr(of.advice.load.capacity, name, None)


def _summed(name: str) -> Column:
    return lambda _, topic: total(getattr(topic.hours, name))


def _rate(name: str) -> Column:
    def rate(_: Standing, topic: Topic) -> float | None:
        seconds = total(topic.hours.covered_seconds)
        return total(getattr(topic.hours, name)) / seconds if seconds else None

    return rate


COLUMNS: Mapping[str, Column] = {
    "severity": lambda of, _: of.severity.word,
    "cluster": lambda of, _: of.group.cluster,
    "group": lambda of, _: formatting.name(of.group.name),
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
    "drain_seconds": lambda of, topic: drain_seconds(topic, of.advice),
    **{f"capacity_{name}": _of_capacity(name) for name in ("p50", "p95", "windows")},
    "partitions": lambda _, topic: topic.partitions,
    "members_max": lambda of, _: of.advice.load.members_max,
    "skew": lambda _, topic: median(topic.hours.skew[topic.hours.produced > 0]),
    **{name: _summed(name) for name in ("samples", "expected_samples", "resets", "rewinds", "recreations")},
    "target": lambda of, _: of.advice.hpa.target.value,
    "min_replicas": lambda of, _: of.advice.hpa.min_replicas.value,
    "max_replicas": lambda of, _: of.advice.hpa.max_replicas.value,
    "preset": lambda of, _: of.fitting.name if of.fitting else None,
    "findings": lambda of, _: " ".join(it.code for it in of.advice.findings if it.severity > Severity.FINE),
    "owner": lambda of, _: of.group.agreement.owner or None,
    "max_wait_seconds": lambda of, _: of.group.agreement.max_wait_seconds,
    "wait_p95_seconds": _wait_of("p95"),
    "wait_max_seconds": lambda _, topic: topic.hours.wait_seconds(topic.largest_lag),
    "production_rate_max": lambda _, topic: float(np.fmax.reduce(topic.hours.production_rate_max)),
    "lag_first": _of_lag("first"),
    "late_samples": _summed("gaps"),
    "skips": _summed("skips"),
    "covered_seconds": _summed("covered_seconds"),
    "interval_seconds": lambda of, _: of.group.interval_seconds,
    "members_now": lambda of, _: of.advice.load.members_now,
    "capacity_at_least": lambda of, _: of.advice.load.at_least,
    "expected_wait_p95_seconds": lambda of, _: getattr(of.advice.expected, "wait_p95", None),
    "expected_changes_a_day": lambda of, _: getattr(of.advice.expected, "changes_a_day", None),
    "known_seconds": lambda _, topic: topic.above.known_seconds,
    "uncommitted_partitions": lambda _, topic: topic.uncommitted,
    "uncommitted_messages": lambda _, topic: topic.uncommitted_lag,
    "stuck_partitions": lambda _, topic: getattr(topic.still, "number", None),
    **{f"wait_{name}_seconds": _wait_of(name) for name in ("p50", "p99", "first", "last")},
}
"""Of `groups.csv`, one row per group and topic; an empty cell: not known."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
"""What a text in a spreadsheet must not begin with."""


def csv_of(report: Report) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for standing in report.standings:
        for topic in standing.group.topics:
            writer.writerow({name: _cell(known(value(standing, topic))) for name, value in COLUMNS.items()})
    return text.getvalue()


def _cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe, and so does one that begins with one."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def markdown_of(report: Report) -> str:
    lines = [
        "# Consumer lag report",
        "",
        markdown(range_in_words(report)),
        "",
        f"**{markdown(at_a_glance(report))}**",
        "",
        (
            "| | group | topics | lag p95 | lag max | time above threshold | production, busiest hour | "
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
        *(markdown(line) for line in coverage_in_words(report)),
        "",
        *_skipped(report.findings.skipped),
    ]
    return "\n".join(lines)


def _skipped(skipped: Sequence[Skipped]) -> list[str]:
    if not skipped:
        return []
    more = len(skipped) - MOST_SKIPPED
    lines = [f"- {markdown(it.path)}: {markdown(it.reason)}" for it in skipped[:MOST_SKIPPED]]
    return [*lines, *([f"- {formatting.plural(more, 'file')} more in report.json"] if more > 0 else []), ""]


def markdown(text: str) -> str:
    """On one line, with everything escaped that Markdown or HTML in it would take for its own."""
    shown = "".join(character if character.isprintable() or character == "\u202f" else "\ufffd" for character in text)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", shown)


def _line(standing: Standing) -> str:
    group, advice = standing.group, standing.advice
    hpa = advice.hpa
    cells = (
        standing.severity.word,
        markdown(standing.called),
        markdown(", ".join(topic.name for topic in group.topics)),
        *figures_of(standing),
        f"{target_of(hpa)}, {hpa.min_replicas.value}-{hpa.max_replicas.value}",
    )
    return f"| {' | '.join(cells)} |"


def _target(standing: Standing) -> str:
    hpa = standing.advice.hpa
    return f"{target_of(hpa)}. {hpa.target.reason} {expected_in_words(standing.advice)}"
