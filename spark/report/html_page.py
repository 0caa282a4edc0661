"""Pure: the report as one HTML file that needs no script, no network and no other file; it is well-formed XML too.

First what needs attention, then a section for each group, worst first. All text passes `escaped`.
"""

from collections.abc import Iterable
from functools import cache, partial
from importlib import resources
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.assessment import Report, Standing, drain_seconds
from spark.advice.demand import production_of
from spark.advice.finding import Severity
from spark.advice.weekly_pattern import week_of
from spark.figures import formatting
from spark.figures.model import Topic
from spark.report import html_tables as tables
from spark.report.charts import lag_chart, members_chart, rates_chart, shares_chart, week_chart
from spark.report.svg_parts import escaped

UNITS = (
    "Figures are of the whole range unless a span is given. Lags are in messages; the wait beside a lag is how long a "
    "message waits behind it at the mean production. /s is messages per second."
)


def page_of(report: Report) -> str:
    drawn = report.standings[: tables.MOST_SECTIONS]
    findings = report.findings
    title = "Consumer lag report"
    body = [
        f"<h1>{title}</h1>",
        f'<p class="soft">{escaped(range_in_words(report))}</p>',
        f'<p class="lead">{escaped(at_a_glance(report))}</p>',
        f'{tables.attention_table(report)}<p class="soft">{UNITS}</p>' if report.standings else "",
        *(_section(standing, report.findings.zone) for standing in drawn),
        _more(len(report.standings) - len(drawn)),
        tables.coverage_table(report),
        (
            f'<p class="soft">Made {escaped(formatting.moment(findings.made_at, report.findings.zone))} from '
            f"<code>{escaped(findings.location)}</code> by "
            f"{escaped(f'kafka-lag-adapter {findings.version}'.strip())}.</p>"
        ),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{title}</title><style>{_style()}</style></head>\n<body>\n"
        + "\n".join(filter(None, body))
        + "\n</body></html>\n"
    )


def range_in_words(report: Report) -> str:
    findings, zone = report.findings, report.findings.zone
    age = findings.age_seconds
    since, until = (formatting.moment(at, zone) for at in (findings.since, findings.until))
    of_data = "" if age is None else f" The newest data is {formatting.duration(age)} old."
    return f"{since} to {until}, times in {zone.key}.{of_data}"


def at_a_glance(report: Report) -> str:
    """A few sentences: how old the data is, and which groups need somebody."""
    age = report.findings.age_seconds
    if not report.findings.is_stale:
        return _who(report)
    return f"The newest data is {formatting.duration(age)} old: what it shows may be over. {_who(report)}"


def _who(report: Report) -> str:
    standings = report.standings
    if not standings:
        return "There is no group in this range."
    urgent = [it.called for it in standings if it.severity is Severity.URGENT]
    watched = [it.called for it in standings if it.severity is Severity.WATCH]
    if not urgent and not watched:
        return f"None of {formatting.plural(len(standings), 'group')} needs attention."
    said = []
    if urgent:
        said.append(
            f"{formatting.plural(len(urgent), 'group')} of {len(standings)} {'needs' if len(urgent) == 1 else 'need'} "
            f"attention now: {_listed(urgent)}."
        )
    if watched:
        said.append(f"Worth watching: {_listed(watched)}.")
    return " ".join(said)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _section(standing: Standing, zone: ZoneInfo) -> str:
    group, advice = standing.group, standing.advice
    findings = "".join(
        f'<li><span class="badge {tables.class_of(finding.severity)}">{finding.severity.word}</span>'
        f"<span>{escaped(f'{finding.words} {finding.to_do}'.rstrip())}</span></li>"
        for finding in advice.findings
    )
    parts = [
        (
            f'<section id="{tables.anchor_of(standing)}"><div class="head">'
            f"<h2>{escaped(formatting.name(group.name))}</h2>"
            f'<span class="badge {tables.class_of(standing.severity)}">{standing.severity.word}</span>'
            f'<span class="soft">cluster {escaped(group.cluster)}'
            f"{f', owner {escaped(owner)}' if (owner := group.agreement.owner) else ''}</span></div>"
        ),
        f'<ul class="findings">{findings}</ul>' if findings else "",
        *(_topic(topic, standing, zone) for topic in group.topics),
        tables.advice_table(standing),
        tables.presets_table(standing),
        "</section>",
    ]
    return "\n".join(filter(None, parts))


def _topic(topic: Topic, standing: Standing, zone: ZoneInfo) -> str:
    waiting = partial(formatting.with_wait, topic.hours, unit=" messages")
    charts = (
        lag_chart(topic.hours, topic.above, zone),
        rates_chart(topic.hours, zone),
        week_chart("Busy hours", week_of(topic.hours, zone), formatting.rate, "heat", zone),
        week_chart("Lagging hours", week_of(topic.hours, zone, "lag_p95"), waiting, "heat lags", zone),
        shares_chart(topic.shares, zone),
        members_chart(topic.hours, standing.group.partitions, zone),
    )
    drawn = f'<div class="charts">{"".join(charts)}</div>'
    days = tables.days_table(topic, standing.group, zone)
    weeks = tables.weeks_table(topic)
    return f"<h3>Topic {escaped(topic.name)}</h3>{_figures(topic, standing, zone)}{drawn}{weeks}{days}"


def _figures(topic: Topic, standing: Standing, zone: ZoneInfo) -> str:
    load, lag, above = standing.advice.load, topic.lag, topic.above
    rates = production_of(topic.hours)
    pairs: Iterable[tuple[str, str, str]] = (
        ("Lag p50, messages", formatting.with_wait(topic.hours, lag.p50 if lag else None), _span(topic, zone)),
        (
            "Lag p95, messages",
            formatting.with_wait(topic.hours, lag.p95 if lag else None),
            f"p99 {formatting.with_wait(topic.hours, lag.p99 if lag else None)}",
        ),
        (
            "Largest lag, messages",
            formatting.with_wait(topic.hours, topic.largest_lag),
            f"at the end {formatting.with_wait(topic.hours, lag.last if lag else None)}",
        ),
        (
            f"Time above the threshold of {formatting.plural(above.threshold, 'message')}",
            formatting.duration(above.seconds),
            f"{formatting.known_plural(above.episodes, 'time')}, "
            f"the longest {formatting.duration(above.longest_seconds)}"
            + (f" from {formatting.moment(above.longest_from, zone)}" if above.longest_from else ""),
        ),
        (
            "Production, median hour",
            formatting.rate(float(np.median(rates))),
            (
                f"busiest hour {formatting.rate(float(rates.max()))}, "
                f"steepest 5 minutes {formatting.rate(float(np.fmax.reduce(topic.hours.production_rate_max)))}"
            ),
        ),
        (
            "Drain time",
            formatting.duration(drain_seconds(topic, standing.advice)),
            f"of the largest lag, with {formatting.known_plural(load.members_now, 'member')} "
            + ("after the planned pause" if standing.group.is_paused[-1] else "now"),
        ),
        (
            "Capacity of one member",
            formatting.rate(load.capacity.p50 if load.capacity else None),
            f"p95 {formatting.rate(load.capacity.p95)}, {formatting.plural(load.capacity.windows, 'window')}"
            if load.capacity
            else f"never saturated; at least {formatting.rate(load.at_least)}",
        ),
        (
            "Members, most in an hour",
            formatting.count(load.members_max),
            f"for {formatting.plural(load.partitions, 'partition')}",
        ),
    )
    cells = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}<small>{escaped(more)}</small></dd></div>"
        for name, value, more in pairs
    )
    return f"<dl>{cells}</dl>"


def _span(topic: Topic, zone: ZoneInfo) -> str:
    """What the percentiles and the time above the threshold cover, if that is not the whole range."""
    if topic.lag is None:
        return "no samples left" if len(topic.hours_known) else "never known"
    if len(topic.hours_left) == len(topic.hours_known):
        return "over the whole range"
    return f"{formatting.moment(topic.lag.since, zone)} to {formatting.moment(topic.lag.until, zone)} only"


def _more(number: int) -> str:
    if number <= 0:
        return ""
    return (
        f'<section><p class="soft">{formatting.plural(number, "group")} more, all less urgent, '
        f"{'is' if number == 1 else 'are'} in the table above, in report.json and in hpa/, without "
        "charts.</p></section>"
    )


@cache
def _style() -> str:
    # Not by its path: spark-submit --py-files imports this package from a zip file.
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
