"""A run as a picture: the load, the replicas of both groups, and how long messages waited."""

from collections.abc import Sequence

import numpy as np

from adapter.columns import Seconds
from local.promise import scenario
from local.promise.figures import Run
from spark.report import svg_parts as svg

STYLE = (
    "text{font:11px sans-serif;fill:#333}path{fill:none;stroke-width:1.5}.grid{stroke:#ddd;stroke-width:1}"
    ".tick{stroke:#999;stroke-width:1}.num{text-anchor:end}.mid{text-anchor:middle}"
    ".load{stroke:#888}.lag{stroke:#c2410c}.promise{stroke:#1d4ed8}.limit{stroke:#111;stroke-dasharray:4 3}"
)
BETWEEN = 46
"""Units between two charts, with the title of the next one."""
EACH = 5
"""Seconds that a point stands for."""


def picture(by_lag: Run, by_promise: Run) -> str:
    """Returns a document of its own, with three charts of the same time."""
    waits = [run.longest_by_second() for run in (by_lag, by_promise)]
    charts = (
        _chart("Messages/s", [("load", scenario.rates())]),
        _chart("Replicas", [("lag", by_lag.replicas.astype(float)), ("promise", by_promise.replicas.astype(float))]),
        _chart(
            "Longest wait of the messages that were read, in s",
            [("lag", waits[0]), ("promise", waits[1])],
            limit=float(scenario.MAX_WAIT),
        ),
    )
    tall = svg.HEIGHT + BETWEEN
    parts = [f'<g transform="translate(0 {BETWEEN + at * tall})">{chart}</g>' for at, chart in enumerate(charts)]
    legend = (
        '<text x="40" y="16">grey: load; <tspan fill="#c2410c">orange: HPA on lag</tspan>; '
        '<tspan fill="#1d4ed8">blue: HPA on the promise</tspan></text>'
    )
    size = f'viewBox="0 0 {svg.WIDTH} {len(charts) * tall + BETWEEN}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{legend}{"".join(parts)}</svg>\n'


def _chart(title: str, lines: Sequence[tuple[str, Seconds]], limit: float | None = None) -> str:
    axis = _axis(len(lines[0][1]))
    columns = [(name, axis.thin(values)) for name, values in lines]
    frame = svg.Frame(*svg.nice_top(max([limit or 1.0, *(float(values.max()) for _, values in columns)])))
    drawn = "".join(svg.line(frame, axis, values, name) for name, values in columns)
    dashed = "" if limit is None else svg.limit_line(frame, limit)
    return f'<text x="40" y="-8">{svg.escaped(title)}</text>{svg.grid(frame, axis.labels)}{drawn}{dashed}'


def _axis(seconds: int) -> svg.Axis:
    points = -(-seconds // EACH)
    minutes = range(1, seconds // 60 + 1)
    return svg.Axis(
        across=(np.arange(points) + 0.5) / points,
        breaks=np.zeros(points),
        width=1 / points,
        times=tuple(f"{EACH * at} s" for at in range(points)),
        labels=tuple((60 * minute / seconds, f"{minute} min") for minute in minutes),
        each=EACH,
    )
