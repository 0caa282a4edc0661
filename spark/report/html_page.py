"""Pure: the report as one HTML file that needs no script, no network and no other file; it is well-formed XML too.

`templates/report.html.j2` is the page. All text that it inserts passes `escaped`; only the drawings of charts are
inserted as they are.
"""

from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.assessment import Report, Standing
from spark.advice.demand import production_of
from spark.advice.spans import local_days, weeks_of
from spark.advice.weekly_pattern import week_of
from spark.figures import formatting
from spark.figures.model import TopicFigures
from spark.report.charts import lag_chart, members_chart, rates_chart, shares_chart, week_chart
from spark.report.fields import fields_of
from spark.report.svg_parts import Chart, escaped
from spark.report.templating import filled

MOST_SECTIONS = 100
"""Groups with charts; all groups are in the tables, the JSON and the HPA files."""
MOST_DAYS = 31


def page_of(report: Report) -> str:
    zone = report.data.zone
    sections = [
        {"standing": standing, "topics": [topic_values(topic, standing, zone) for topic in standing.group.topics]}
        for standing in report.standings[:MOST_SECTIONS]
    ]
    return filled("report.html.j2", escaped, report, zone=zone, sections=sections)


def topic_values(topic: TopicFigures, standing: Standing, zone: ZoneInfo) -> dict[str, Any]:
    """What the template of a topic inserts."""
    group = standing.group
    return {
        "row": fields_of(standing, topic),
        "span": _span(topic, zone),
        "longest_from": topic.above.longest_from,
        "usual": float(np.median(production_of(topic.hours))),
        "charts": _charts(topic, group.partitions, zone),
        "weeks": weeks_of(topic.hours),
        "days": local_days(topic.hours, group.silent, group.interval_seconds, zone)[-MOST_DAYS:],
    }


def _charts(topic: TopicFigures, partitions: int, zone: ZoneInfo) -> tuple[Chart, ...]:
    return (
        lag_chart(topic.hours, topic.above, zone),
        rates_chart(topic.hours, zone),
        week_chart("Busy hours", week_of(topic.hours, zone), formatting.rate, "heat", zone),
        week_chart("Lagging hours", week_of(topic.hours, zone, "lag_p95"), _messages, "heat lags", zone),
        shares_chart(topic.shares, zone),
        members_chart(topic.hours, partitions, zone),
    )


def _messages(number: float) -> str:
    return f"{formatting.count(number)} messages"


def _span(topic: TopicFigures, zone: ZoneInfo) -> str:
    """What the percentiles and the time above the threshold cover, if that is not the whole range."""
    if topic.lag is None:
        return "no samples left" if len(topic.hours_known) else "never known"
    if len(topic.hours_left) == len(topic.hours_known):
        return "over the whole range"
    return f"{formatting.moment(topic.lag.since, zone)} to {formatting.moment(topic.lag.until, zone)} only"
