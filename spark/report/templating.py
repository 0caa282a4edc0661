"""The templates of the report (`templates/`), the filters that they format values with, and the sentences that the page
and the Markdown have in common."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from spark.advice.advised import calibration_in_words, expected_in_words
from spark.advice.assessment import ENDED, Report, Standing
from spark.advice.finding import Severity
from spark.advice.presets import replay_in_words
from spark.figures import formatting
from spark.figures.newest import Newest, end_of, is_now, newest_of
from spark.report.fields import OVERVIEW, numbers_of, replicas_of, since_of, steps_of, target_of, wait_now, window_of

Escape = Callable[[str], str]
MOST_SKIPPED = 50
"""Skipped files and gaps that are listed; all are in the JSON."""


def filled(template: str, escape: Escape, report: Report, **values: object) -> str:
    """The template's text; `escape` is applied to each value that the template inserts."""
    return (
        environment_of(escape)
        .get_template(template)
        .render(
            report=report,
            data=report.data,
            zone=report.data.zone,
            range=range_in_words(report),
            at_a_glance=at_a_glance(report),
            coverage=coverage_in_words(report),
            skipped=report.data.skipped,
            most_skipped=MOST_SKIPPED,
            summary=OVERVIEW,
            **values,
        )
    )


@cache
def environment_of(escape: Escape) -> Environment:
    environment = Environment(
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else Markup(escape(str(value))),  # noqa: S704
        keep_trailing_newline=True,
        loader=FunctionLoader(lambda name: style_sheet() if name == "report.css" else _source(name)),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    names = (
        *(
            "change",
            "count",
            "decimal",
            "duration",
            "first_sentence",
            "known_plural",
            "moment",
            "name",
            "plural",
            "rate",
        ),
        *("share", "span", "with_wait"),
    )
    environment.filters |= {name: getattr(formatting, name) for name in names}
    environment.filters |= {
        "calibration": calibration_in_words,
        "expected": expected_in_words,
        "replay": replay_in_words,
        "is_now": is_now,
        "lasted": _lasted,
        "newest": newest_of,
        "newest_span": _newest_in_words,
        "numbers": numbers_of,
        "per": _per,
        "replicas": replicas_of,
        "since": since_of,
        "steps": steps_of,
        "target": target_of,
        "wait_now": wait_now,
        "window": window_of,
        "with_wait": formatting.with_wait,
    }
    return environment


def _source(name: str) -> str:
    # Not by its path: spark-submit --py-files imports this package from a zip file.
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """Without its blanks, for it is a sixth of a page with one group."""
    return re.sub(r": +", ":", re.sub(r"\s*([{};,])\s*", r"\1", _source("report.css")))


def _per(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _lasted(standing: Standing, now: datetime) -> str:
    """How long the group has had its severity, or why nothing says it. `now`: the end of the range."""
    finding = standing.attention
    if finding is None:
        return "nothing needs attention"
    if finding.since is None:
        return "true of the whole range"
    if finding.until == finding.since:
        return "it happened once"
    until = finding.until or (now if finding.code == ENDED else end_of(standing.group))
    return f"{'it lasted' if finding.until else 'for'} {formatting.duration((until - finding.since).total_seconds())}"


def _newest_in_words(newest: Newest, zone: ZoneInfo) -> str:
    if newest.at is None:
        return "no sample of it is left"
    without = f", without {formatting.plural(newest.unknown_topics, 'topic')}" if newest.unknown_topics else ""
    return f"messages, {formatting.moment(newest.at, zone)}{without}"


def range_in_words(report: Report) -> str:
    data, zone = report.data, report.data.zone
    since, until = (formatting.moment(at, zone) for at in (data.since, data.until))
    return f"{since} to {until}, times in {zone.key}.{_age_in_words(data.age_seconds)}"


def _age_in_words(age: float | None) -> str:
    """Data that ends in the future was compacted with `--until`, or came from a clock that is ahead."""
    if age is None:
        return ""
    if age < 0:
        return f" The newest hour of data ends in {formatting.duration(-age)}."
    return f" The newest data is {formatting.duration(age)} old."


def at_a_glance(report: Report) -> str:
    """A few sentences: how old the data is, and which groups need attention."""
    age = report.data.age_seconds
    if not report.data.is_stale:
        return _who(report)
    return f"The newest data is {formatting.duration(age)} old: what it shows may be over. {_who(report)}"


def coverage_in_words(report: Report) -> list[str]:
    coverage, skipped = report.coverage, report.data.skipped
    return [
        (
            f"{formatting.share(coverage.share)} of the expected samples of a lag were seen: "
            f"{formatting.count(coverage.samples)} of {formatting.count(coverage.expected_samples)}, "
            "a sample being one topic of one group."
        ),
        (
            f"{formatting.plural(coverage.missing_hours, 'hour')} between the first and the last sample "
            f"{'has' if coverage.missing_hours == 1 else 'have'} no sample of any group; "
            f"{formatting.plural(coverage.late_samples, 'sample')} came after a gap of any length."
        ),
        (
            f"{formatting.plural(coverage.resets, 'reset')} of log ends, "
            f"{formatting.plural(coverage.rewinds, 'rewind')} of commits, "
            f"{formatting.plural(coverage.recreations, 'partition')} started again because their topic was recreated."
        ),
        f"{formatting.plural(len(skipped), 'file')} of the history {'was' if len(skipped) == 1 else 'were'} skipped.",
    ]


def _who(report: Report) -> str:
    standings = report.standings
    if not standings:
        return "There is no group in this range."
    urgent = [it.called for it in standings if it.severity is Severity.URGENT]
    watched = [it.called for it in standings if it.severity is Severity.WATCH]
    if not urgent and not watched:
        return (
            f"None of {len(standings)} groups needs attention."
            if len(standings) > 1
            else "The group needs no attention."
        )
    said = []
    if urgent:
        said.append(
            f"{len(urgent)} of {formatting.plural(len(standings), 'group')} {'needs' if len(urgent) == 1 else 'need'} "
            f"attention now: {_listed(urgent)}."
        )
    if watched:
        said.append(f"Worth watching: {_listed(watched)}.")
    return " ".join(said)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
