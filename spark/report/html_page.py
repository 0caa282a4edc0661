"""Pure: the report as HTML files that need no script and no network; they are well-formed XML too. The only page of a
report needs no other file, and the pages of many groups share a style sheet.

`templates/report.html.j2` is the page of all groups. All text that it inserts passes `escaped`; only the drawings of
charts are inserted as they are.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.assessment import Report, Standing
from spark.advice.demand import production_of
from spark.advice.forecast import forecast_of
from spark.advice.spans import local_days, weeks_of
from spark.advice.weekly_pattern import week_of
from spark.figures import formatting
from spark.figures.model import TopicFigures
from spark.report.charts import MOST_POINTS, shares_chart, time_charts, week_chart
from spark.report.fields import fields_of
from spark.report.svg_parts import escaped
from spark.report.templating import filled, style_sheet

MOST_ON_ONE_PAGE = 50
"""Groups; of more, each has a page of its own."""
MOST_OPEN = 3
"""Topics of a group; of more, the others are folded."""
MANY_TOPICS = 500
"""Of more, lines have `FEWER_POINTS`: of a week one for every four hours."""
FEWER_POINTS = 42
MOST_DAYS = 31


def pages_of(report: Report) -> Iterator[tuple[str, str]]:
    """Path and text of each page, one after another; that of all groups comes last."""
    if len(report.standings) <= MOST_ON_ONE_PAGE:
        sections = [{"standing": standing, "topics": _topics(standing, report)} for standing in report.standings]
        yield "report.html", _filled("report.html.j2", report, sections=sections, link=lambda it: f"#group-{it.file}")
        return
    for standing in report.standings:
        topics = _topics(standing, report)
        yield page_name(standing), _filled("group_page.html.j2", report, "../", standing=standing, topics=topics)
    yield "groups/report.css", style_sheet()
    yield "report.html", _filled("report.html.j2", report, sections=[], link=page_name)


def page_name(standing: Standing) -> str:
    return f"groups/{standing.file}.html"


def _filled(template: str, report: Report, root: str = "", **values: object) -> str:
    return filled(template, escaped, report, root=root, most_open=MOST_OPEN, **values)


def _topics(standing: Standing, report: Report) -> list[dict[str, Any]]:
    """The slowest first."""

    def urgency(topic: TopicFigures) -> tuple[float, float]:
        return -topic.waits.p95 if topic.waits else 0.0, -topic.lag.p95 if topic.lag else 0.0

    zone, most_members = report.data.zone, standing.advice.load.most_members
    most_points = FEWER_POINTS if sum(len(group.topics) for group in report.data.groups) > MANY_TOPICS else MOST_POINTS
    return [
        topic_values(topic, standing, zone, None if place else most_members, most_points)
        for place, topic in enumerate(sorted(standing.group.topics, key=urgency))
    ]


def topic_values(
    topic: TopicFigures, standing: Standing, zone: ZoneInfo, members: int | None, most_points: int
) -> dict[str, Any]:
    """What the template of a topic inserts. `members`: as many as can have a partition; None: without their chart."""
    group = standing.group
    promised = replace(topic.hours, expected_samples=topic.expected_by_hour)
    return {
        "row": fields_of(standing, topic),
        "span": _span(topic, zone),
        "longest_from": topic.above.longest_from,
        "at_least": topic.at_least,
        "usual": float(np.median(production_of(topic.hours))),
        "time": time_charts(topic.hours, topic.above, members, zone, most_points),
        "charts": (
            shares_chart(topic.shares, zone),
            week_chart("Busy hours", week_of(topic.by_local_hour, zone), formatting.rate, "heat", zone),
            week_chart("Lagging hours", week_of(topic.hours, zone, "lag_p95"), _messages, "heat lags", zone),
        ),
        "forecast": forecast_of(topic.by_local_hour, zone),
        "weeks": weeks_of(topic.hours),
        "days": local_days(promised, group.silent, group.interval_seconds, zone)[-MOST_DAYS:],
    }


def _messages(number: float) -> str:
    return f"{formatting.count(number)} messages"


def _span(topic: TopicFigures, zone: ZoneInfo) -> str:
    """What the percentiles and the time above the threshold cover, if that is not the whole range."""
    if topic.lag is None:
        return "no samples left" if len(topic.hours_known) else "never known"
    if len(topic.hours_left) == len(topic.hours_known):
        return "over the whole range"
    return f"{formatting.moment(topic.lag.since, zone)} to {formatting.moment(topic.lag.until, zone)} only"
