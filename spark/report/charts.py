"""Pure: the six charts of a group and topic as inline SVG, without script, with a tooltip at every point."""

from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.weekly_pattern import DAYS, Week, local_times
from spark.figures import formatting
from spark.figures.model import Above, Floats, HourShares, Periods, Share
from spark.report import svg_parts as svg

MOST_POINTS = 84
"""Of a line: hours of half a week, and of two weeks a point for every four. More make up most of a page."""
MOST_BARS = 40
LEVELS = 8
"""Shades of a weekly pattern."""
NO_HOURS = "No hour of this range has data."


def time_charts(
    hours: Periods, above: Above, partitions: int | None, zone: ZoneInfo, most_points: int = MOST_POINTS
) -> svg.Stack:
    """Lag, rates and, with the number of partitions that members can have, the group's members over the same time."""
    if not len(hours):
        return svg.Stack((svg.Chart("Lag", missing=NO_HOURS),))
    axis = axis_of(hours, zone, most_points)
    members = () if partitions is None else (members_chart(hours, partitions, axis),)
    return svg.stacked(axis, (lag_chart(hours, above, axis), rates_chart(hours, axis), *members))


def axis_of(hours: Periods, zone: ZoneInfo, most_points: int = MOST_POINTS) -> svg.Axis:
    each = max(1, -(-len(hours) // most_points))
    first = hours.start[::each]
    since, until = hours.start[0], hours.start[-1] + np.timedelta64(1, "h")
    span = (until - since) / np.timedelta64(1, "s")
    middle = (first - since) / np.timedelta64(1, "s") + 1800 * each
    jumps = np.diff(first, prepend=first[:1] - np.timedelta64(each, "h")) > np.timedelta64(each, "h")
    local = local_times(first, zone)
    ends = local_times(np.array([since]), zone)
    return svg.Axis(
        across=np.minimum(middle / span, 1.0),
        breaks=jumps.astype(np.float64),
        width=3600 * each / span,
        times=tuple(f"{time:%a %d %b %H:%M}" for time in local),
        labels=_time_labels(ends[0], span),
        each=each,
    )


def lag_chart(hours: Periods, above: Above, axis: svg.Axis) -> svg.Chart:
    if np.isnan(hours.lag_max).all():
        return svg.Chart("Lag", missing="The lag was not known in any hour of this range.")
    p50, p95, largest = (axis.thin(column) for column in (hours.lag_p50, hours.lag_p95, hours.lag_max))
    waits = [axis.thin(column) for column in (hours.wait_p50, hours.wait_p95, hours.wait_max)]
    shown, longest, said = float(np.nanmax(largest)), float(np.fmax.reduce(hours.wait_max)), formatting.with_wait
    is_bound = (axis.thin(hours.wait_bounds) > 0).tolist()
    most = said(shown, longest, is_bound=any(is_bound))
    top, step = svg.nice_top(max(shown, min(above.threshold, 2 * shown), 1))
    frame = svg.Frame(top, step, _least(top, above.threshold, p50))
    drawn = (
        svg.band(frame, axis, p50, p95)
        + svg.line(frame, axis, largest, "lag")
        + (svg.limit_line(frame, above.threshold) if above.threshold <= top else "")
    )
    texts = [
        ", ".join(
            f"{name}{said(lag, wait, is_bound=bound)}"
            for name, lag, wait in (("lag p50 ", a, u), ("p95 ", b, v), ("max ", c, w))
        )
        for a, b, c, u, v, w, bound in zip(p50, p95, largest, *waits, is_bound, strict=True)
    ]
    return svg.Chart(
        "Lag",
        _by_hours("messages", axis.each) + (", logarithmic" if frame.least else ""),
        f"at most {most} messages, threshold {formatting.count(above.threshold)}",
        svg.grid(frame, axis.labels) + drawn,
        (("band", "p50 to p95"), ("lags", "max"), ("limit", f"threshold {formatting.short(above.threshold)}")),
        texts=tuple(texts),
    )


def _least(top: float, threshold: int, p50: Floats) -> float:
    """Logarithmic where the largest lag would press the threshold or the usual lag against the axis."""
    usual = float(np.nanmedian(p50)) if not np.isnan(p50).all() else 0.0
    small = [value for value in (usual, float(threshold)) if value > 0]
    least = max(1.0, min(small, default=top) / 3)
    return least if top > 20 * least else 0.0


def rates_chart(hours: Periods, axis: svg.Axis) -> svg.Chart:
    production, consumption = hours.production_rate, hours.consumption_rate
    if np.isnan(production).all() and np.isnan(consumption).all():
        return svg.Chart("Production and consumption", missing="No rate is known in this range.")
    produced, consumed = axis.thin(production, "mean"), axis.thin(consumption, "mean")
    shown = float(np.nanmax(np.concatenate([produced, consumed])))
    frame = svg.Frame(*svg.nice_top(shown))
    drawn = svg.line(frame, axis, produced, "made") + svg.line(frame, axis, consumed, "used")
    texts = [
        f"produced {formatting.rate(a)}, consumed {formatting.rate(b)}" for a, b in zip(produced, consumed, strict=True)
    ]
    return svg.Chart(
        "Production and consumption",
        _by_hours("messages/s", axis.each),
        f"at most {formatting.rate(shown)}",
        svg.grid(frame, axis.labels) + drawn,
        (("made", "produced"), ("used", "consumed")),
        texts=tuple(texts),
    )


def members_chart(hours: Periods, partitions: int, axis: svg.Axis) -> svg.Chart:
    """The fewest and the most of each hour: where they differ, members came or went."""
    if np.isnan(hours.members_max).all():
        return svg.Chart("Members", missing="Members were not counted in this range.")
    fewest, most = axis.thin(hours.members_min, "min"), axis.thin(hours.members_max)
    shown = float(np.nanmax(most))
    top, step = svg.nice_top(max(shown, partitions, 1))
    frame = svg.Frame(top if step >= 1 else max(top, 1.0), max(step, 1.0))
    drawn = (
        svg.limit_line(frame, partitions) + svg.line(frame, axis, fewest, "faint") + svg.line(frame, axis, most, "used")
    )
    return svg.Chart(
        "Members",
        _by_hours("fewest and most", axis.each),
        f"{formatting.span(float(np.nanmin(fewest)), shown)} of {partitions} that could read",
        svg.grid(frame, axis.labels) + drawn,
        (("used", "most"), ("faint", "fewest"), ("limit", formatting.plural(partitions, "partition"))),
        texts=tuple(formatting.span(a, b, "member") for a, b in zip(fewest, most, strict=True)),
    )


def week_chart(title: str, week: Week, said: Callable[[float], str], name: str, zone: ZoneInfo) -> svg.Chart:
    """Weekday by hour of the day: the stronger the color, the more. `said` puts a value in words, `name` is CSS."""
    if np.isnan(week.rates).all():
        return svg.Chart(title, missing=NO_HOURS)
    most = float(np.nanmax(week.rates))
    left, cell, row, height = 40, 18, 20, 176
    parts = [
        f'<text class="mid" x="{left + cell * (hour + 0.5):.0f}" y="{height - 8}">{hour:02}</text>'
        for hour in range(0, 24, 3)
    ] + [
        f'<text class="num" x="{left - 8}" y="{8 + row * day + 14}">{weekday}</text>'
        for day, weekday in enumerate(DAYS)
    ]
    level = np.ceil(LEVELS * week.rates / most) if most > 0 else np.zeros_like(week.rates)
    for shade in np.unique(level):  # NaN once, as the last
        is_shade = np.isnan(level) if np.isnan(shade) else level == shade
        cells = "".join(
            f"M{left + cell * begin} {8 + row * day + row // 2 - 1}h{cell * (end - begin) - 2}"
            for day in range(len(DAYS))
            for begin, end in svg.runs(is_shade[day])
        )
        depth = 0.06 + 0.94 * shade / LEVELS
        mark = 'class="void"' if np.isnan(shade) else f'class="{name}" stroke-opacity="{depth:.2f}"'
        parts.append(f'<path {mark} d="{cells}"/>')
    busiest = week.busiest(3)
    return svg.Chart(
        title,
        f"{'lag p95' if 'lags' in name else 'production'}, mean by weekday and hour, {zone.key}",
        "most: " + (", ".join(f"{when} {said(value)}" for when, value in busiest[:1]) or "none"),
        "".join(parts),
        ((name, f"strongest: {said(most)}"),),
        height,
        note="Most: " + ", ".join(f"{when} {said(value)}" for when, value in busiest) + "." if busiest else "",
    )


def shares_chart(shares: HourShares | None, zone: ZoneInfo) -> svg.Chart:
    """What each partition got in the busiest hour, beside its fair share and its part of the lag."""
    if shares is None or not shares.of or not sum(share.produced for share in shares.of):
        return svg.Chart("Partitions", missing="Nothing was produced, so there is no share to compare.")
    whole, waiting = sum(share.produced for share in shares.of), sum(share.lag or 0 for share in shares.of)
    fair = 1 / len(shares.of)

    def parts_of(share: Share) -> tuple[float, float]:
        return share.produced / whole, (share.lag or 0) / waiting if waiting else 0.0

    most = sorted(shares.of, key=lambda share: -max(parts_of(share)))[:MOST_BARS]
    shown = shares.of if len(shares.of) <= MOST_BARS else sorted(most, key=lambda share: share.partition)
    frame = svg.Frame(*svg.nice_top(max(*(part for share in shown for part in parts_of(share)), fair)))
    bars, wide = [], 1 / len(shown)
    for index, share in enumerate(shown):
        produced, lag = parts_of(share)
        drawn = svg.bar(frame, frame.x((index + 0.3) * wide), produced, "hot" if produced > 2 * fair else "made")
        drawn += svg.bar(frame, frame.x((index + 0.7) * wide), lag, "lags") if lag else ""
        bars.append(f"<g>{drawn}{svg.title(_share_in_words(share, produced, lag))}</g>")
    every = max(1, len(shown) // 12)
    labels = [((index + 0.5) * wide, str(share.partition)) for index, share in enumerate(shown) if index % every == 0]
    drawn_bars = f'<g class="bars" stroke-width="{0.4 * wide * svg.ACROSS:.1f}">{"".join(bars)}</g>'
    body = svg.grid(frame, labels, formatting.share) + drawn_bars + svg.limit_line(frame, fair)
    largest = max(share.produced for share in shown) / whole
    more = "" if len(shown) == len(shares.of) else f", the {MOST_BARS} largest of {len(shares.of)}"
    return svg.Chart(
        "Partitions",
        f"shares in the busiest hour, {formatting.moment(shares.hour, zone)}{more}",
        f"the largest gets {formatting.share(largest)} of the messages, a fair share is {formatting.share(fair)}",
        body,
        (
            ("made", "of what was produced"),
            *((("lags", "of the lag"),) if waiting else ()),
            ("limit", f"fair share {formatting.share(fair)}"),
        ),
        note="" if waiting else "No message waited in that hour.",
    )


def _share_in_words(share: Share, produced: float, lag: float) -> str:
    words = f"partition {share.partition}: {formatting.plural(share.produced, 'message')} produced"
    words += f" ({formatting.share(produced)}), {formatting.count(share.consumed)} consumed, "
    if share.lag is None:
        return words + "lag unknown"
    return words + f"lag up to {formatting.count(share.lag)}" + (f" ({formatting.share(lag)})" if lag else "")


def _by_hours(what: str, each: int) -> str:
    return f"{what}, {'by hour' if each == 1 else f'{each} hours a point'}"


def _time_labels(first: datetime, span: float) -> tuple[tuple[float, str], ...]:
    """Local midnights, or hours where the range is short; six or so."""
    days = span / 86400
    if days <= 2:
        every, form = max(1, round(span / 3600 / 6)), "%H:%M"
        every = next(step for step in (1, 2, 3, 4, 6, 8, 12) if step >= min(every, 12))
        wanted = [first.replace(minute=0, second=0) + timedelta(hours=hour) for hour in range(int(span // 3600) + 2)]
        marks = [time for time in wanted if time.hour % every == 0]
    else:
        form = "%a %d" if days <= 15 else "%d %b"
        midnight = first.replace(hour=0, minute=0, second=0)
        every = max(1, -(-round(days) // 7))
        marks = [midnight + timedelta(days=day) for day in range(0, round(days) + 2, every)]
    placed = [((mark.timestamp() - first.timestamp()) / span, f"{mark:{form}}") for mark in marks]
    return tuple((at, text) for at, text in placed if 0.0 <= at <= 0.97)
