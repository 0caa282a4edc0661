"""Pure: a replay as text, as JSON, and as a page with charts of what was and of what would have been."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.candidates import for_its_own_wait
from spark.figures import formatting
from spark.figures.model import Floats
from spark.figures.periods import time_of
from spark.replay.outcome import Outcome
from spark.report import svg_parts as svg
from spark.report.templating import environment_of
from spark.trials.calibration import Figures
from spark.trials.minutes import NUMPY_MINUTE, Minutes
from spark.trials.references import Candidate

VERSION = "kafka-lag-replay/1"
MOST_POINTS = 340

Row = tuple[str, ...]
"""A name, and the figure of each course."""


@dataclass(frozen=True, slots=True)
class Answer:
    group: str
    cluster: str
    file: str
    """The name of the HPA's file."""
    candidate: Candidate
    """The HPA with what it reads."""
    promised_seconds: float
    outcome: Outcome
    zone: ZoneInfo
    """In which times are shown."""

    @property
    def minutes(self) -> Minutes:
        return self.outcome.minutes

    @property
    def wait(self) -> str:
        """How long a message may wait."""
        return formatting.duration(self.promised_seconds)

    @property
    def span(self) -> tuple[datetime, datetime]:
        return time_of(self.minutes.start[0]), time_of(self.minutes.start[-1] + NUMPY_MINUTE)

    @property
    def tables(self) -> tuple[tuple[Row, list[Row]], ...]:
        """Heads and rows: of the calibration, and of the HPA."""
        observed, again = self.outcome.calibration.observed, self.outcome.calibration.replayed
        its_own = for_its_own_wait(self.candidate, self.promised_seconds)
        return (
            (
                ("The members that were there, replayed", "observed", "replayed"),
                _rows(self.wait, observed, again)[:5],
            ),
            (
                (f"With {self.file} from the start{its_own}", "as it was", "with it", "KEDA's defaults", "an oracle"),
                _rows(self.wait, observed, self.outcome.figures, self.outcome.keda, self.outcome.oracle),
            ),
        )

    @property
    def sentences(self) -> tuple[str, str]:
        """One for each of the tables."""
        return calibration_in_words(self.outcome), verdict(self.outcome, self.wait)


def text_of(answer: Answer) -> str:
    lines = [heading(answer)]
    for (head, rows), sentence in zip(answer.tables, answer.sentences, strict=True):
        lines += ["", *_table(head, rows), sentence]
    return "\n".join(lines)


def json_of(answer: Answer) -> str:
    calibration, outcome = answer.outcome.calibration, answer.outcome
    since, until = answer.span
    document = {
        "version": VERSION,
        "cluster": answer.cluster,
        "group": answer.group,
        "hpa": answer.file,
        "from": _iso(since),
        "to": _iso(until),
        "minutes": len(answer.minutes),
        "known_minutes": int(np.count_nonzero(answer.minutes.is_known)),
        "max_wait_seconds": answer.promised_seconds,
        "hpa_max_wait_seconds": answer.candidate.max_wait,
        "capacity": {
            "messages_per_second": calibration.capacity,
            "windows": calibration.windows,
            "is_by_hour": answer.minutes.pace is not None,
        },
        "calibration": {
            "fits": not calibration.misfit,
            "misfit": calibration.misfit or None,
            "doubt": calibration.doubt or None,
            "observed": _figures(calibration.observed),
            "replayed": _figures(calibration.replayed),
        },
        "with_hpa": _with_share(outcome.figures),
        "with_kedas_defaults": _with_share(outcome.keda),
        "with_an_oracle": _with_share(outcome.oracle),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def page_of(answer: Answer) -> str:
    was, would_be, axis = answer.outcome.observed, answer.outcome.courses, _axis(answer.minutes, answer.zone)
    count, duration, limit = formatting.count, formatting.duration, answer.promised_seconds
    charts = (
        _chart(Quantity("Lag", "messages", count), axis, was.lag, would_be.lag),
        _chart(
            Quantity("Wait", "of the oldest message", duration, svg.nice_duration, formatting.short_duration),
            axis,
            was.wait_seconds,
            would_be.wait_seconds,
            limit,
        ),
        _chart(
            Quantity("Replicas", "members, or wanted by the HPA", formatting.decimal, how="mean"),
            axis,
            was.replicas,
            would_be.replicas,
        ),
    )
    template = environment_of(svg.escaped).get_template("replay.html.j2")
    return template.render(heading=heading(answer), sentences=answer.sentences, tables=answer.tables, charts=charts)


def heading(answer: Answer) -> str:
    since, until = (formatting.moment(at, answer.zone) for at in answer.span)
    return (
        f"Group {formatting.name(answer.group)} on cluster {formatting.name(answer.cluster)}, {since} to {until} "
        f"({answer.zone.key}), {formatting.plural(len(answer.minutes), 'minute')}; a message may wait {answer.wait}."
    )


def calibration_in_words(outcome: Outcome) -> str:
    it = outcome.calibration
    if it.misfit:
        fit = f"The replay does not reproduce what happened, so nothing is recommended: {it.misfit}."
    else:
        fit = f"The replay reproduces what happened. {it.doubt}".rstrip()
    return f"{fit} {capacity_in_words(outcome)}"


def capacity_in_words(outcome: Outcome) -> str:
    it, pace = outcome.calibration, outcome.minutes.pace
    windows = f"{formatting.plural(it.windows, 'window')} in which members were saturated"
    if pace is None:
        return (
            f"A member reads {formatting.rate(it.capacity)}: the median of {windows}. HPAs are replayed with "
            f"{formatting.rate(outcome.advised)}, the lower quartile."
        )
    slowest, fastest = (formatting.rate(it.capacity * float(share)) for share in (pace.min(), pace.max()))
    return (
        f"A member reads {slowest} to {fastest}, by the hour of the day: the lower quartile of each hour's share of "
        f"{windows}. HPAs are replayed with the same."
    )


def verdict(outcome: Outcome, wait: str) -> str:
    if outcome.calibration.misfit:
        return "What the HPA would have done is shown for comparison only."
    was, would_be = outcome.calibration.observed, outcome.figures
    new, old = would_be.replica_hours, was.replica_hours
    hours = "been the same" if new == old else f"changed by {formatting.change(new, old)}"
    return (
        f"With this HPA, no message would have waited longer than {wait} in {formatting.share(would_be.kept_share)} of "
        f"the minutes; replica-hours would have {hours}."
    )


def _rows(wait: str, *courses: Figures) -> list[Row]:
    def row(name: str, said: Callable[[float], str], value: str) -> Row:
        return name, *(said(getattr(course, value)) for course in courses)

    return [
        row("wait p50", formatting.duration, "wait_p50"),
        row("wait p95", formatting.duration, "wait_p95"),
        row("wait p99", formatting.duration, "wait_p99"),
        row(f"minutes above {wait}", formatting.count, "minutes_above"),
        row("lag p95", formatting.count, "lag_p95"),
        row("replica-hours", formatting.count, "replica_hours"),
        row("changes a day", formatting.decimal, "changes_a_day"),
    ]


def _table(head: Row, rows: list[Row]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(_cells(row, widths)).rstrip() for row in (head, *rows)]


def _cells(row: Row, widths: list[int]) -> list[str]:
    name, *figures = row
    return [name.ljust(widths[0]), *(text.rjust(width) for text, width in zip(figures, widths[1:], strict=True))]


def _figures(of: Figures) -> dict[str, float]:
    names = ("wait_p50", "wait_p95", "wait_p99", "minutes_above", "lag_p95", "replica_hours", "changes_a_day")
    return {name: round(getattr(of, name), 6) for name in names}


def _with_share(of: Figures) -> dict[str, float]:
    return {**_figures(of), "kept_share": round(of.kept_share, 6)}


def _iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _axis(minutes: Minutes, zone: ZoneInfo) -> svg.Axis:
    each = max(1, -(-len(minutes) // MOST_POINTS))
    times = [time_of(at).astimezone(zone) for at in minutes.start[::each]]
    labels = tuple(
        ((at + 0.5) * each / len(minutes), f"{times[at]:%d %b %H:%M}")
        for at in np.linspace(0, len(times) - 1, 5)[1:4].astype(int).tolist()
    )
    return svg.Axis(
        across=np.minimum((np.arange(len(times)) + 0.5) * each / len(minutes), 1.0),
        breaks=np.zeros(len(times)),
        width=each / len(minutes),
        times=tuple(f"{time:%a %d %b %H:%M}" + (f" and {each} minutes on" if each > 1 else "") for time in times),
        labels=labels if len(times) > 4 else (),
        each=each,
    )


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a chart shows, and how its numbers are written and thinned."""

    title: str
    unit: str
    said: Callable[[float], str]
    top: Callable[[float], tuple[float, float]] = svg.nice_top
    axis_word: Callable[[float], str] = formatting.short
    how: Literal["max", "mean"] = "max"

    def unit_of(self, axis: svg.Axis) -> str:
        each = {"max": "most", "mean": "mean"}[self.how]
        return f"{self.unit}, {each} of {axis.each} min" if axis.each > 1 else self.unit


def _chart(of: Quantity, axis: svg.Axis, was: Floats, would_be: Floats, limit: float | None = None) -> svg.Chart:
    first, second = axis.thin(was, of.how), axis.thin(would_be, of.how)
    most = float(np.nanmax(np.concatenate([first, second, [limit or 1.0]])))
    frame = svg.Frame(*of.top(most))
    texts = [f"was {of.said(a)}, would have been {of.said(b)}" for a, b in zip(first, second, strict=True)]
    drawn = svg.line(frame, axis, first, "made") + svg.line(frame, axis, second, "used")
    drawn += "" if limit is None else svg.limit_line(frame, limit)
    legend = (("made", "as it was"), ("used", "with the HPA"))
    return svg.Chart(
        of.title,
        of.unit_of(axis),
        f"was at most {of.said(float(np.nanmax(was)))}, would have been at most {of.said(float(np.nanmax(would_be)))}",
        svg.grid(frame, axis.labels, of.axis_word) + drawn + svg.tooltips(axis, texts),
        legend if limit is None else (*legend, ("limit", of.said(limit))),
    )
