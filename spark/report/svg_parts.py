"""Pure: the parts that every chart is made of: a frame with axes, lines that break where nothing is known, tooltips.

Colors are CSS classes, so that one drawing serves light, dark and print. All text passes `escaped`.
"""

import html
import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spark.figures import formatting
from spark.figures.model import Flags, Floats

WIDTH, HEIGHT = 480, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 24
ACROSS = WIDTH - LEFT - RIGHT
FOLDS: dict[str, Callable[..., Floats]] = {"max": np.nanmax, "min": np.nanmin, "mean": np.nanmean}
DURATIONS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 21_600.0, 43_200.0, 86_400.0)
"""Seconds."""
UNSHOWN = re.compile(r"[^\t\n\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, and the delete character."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Maps 0..1 across and 0..`top` upward to the drawing's units."""

    top: float
    step: float
    """Between two lines."""
    least: float = 0.0
    """Above 0: the scale is logarithmic from here on, and even below."""

    def x(self, across: float) -> float:
        return LEFT + across * ACROSS

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - min(self._share(value), 1.0) * (HEIGHT - TOP - BOTTOM)

    def _share(self, value: float) -> float:
        if not self.least:
            return value / self.top
        return math.asinh(value / self.least) / math.asinh(self.top / self.least)

    def marks(self) -> list[float]:
        """Where lines are drawn: every `step`, or at powers of ten."""
        if not self.least:
            return [number * self.step for number in range(round(self.top / self.step) + 1)]
        first, last = (math.floor(math.log10(value)) for value in (self.least, self.top))
        return [0.0, *(10.0**power for power in range(first, last + 1) if 10.0**power >= self.least)]


@dataclass(frozen=True, slots=True)
class Axis:
    """Hours on the way from 0 to 1 across a chart, thinned where there are too many to see."""

    across: Floats
    breaks: Floats
    """1 where hours are missing before a point."""
    width: float
    """Of one point, of 1."""
    times: tuple[str, ...]
    labels: tuple[tuple[float, str], ...]
    each: int
    """Hours that one point stands for."""

    def thin(self, column: Floats, how: str = "max") -> Floats:
        if self.each == 1:
            return column
        padded = np.concatenate([column, np.full(-len(column) % self.each, np.nan)]).reshape(-1, self.each)
        thin = np.full(len(padded), np.nan)
        is_known = ~np.isnan(padded).all(axis=1)
        thin[is_known] = FOLDS[how](padded[is_known], axis=1)
        return thin


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of the page, which the macro `chart` of `templates/parts.html.j2` shows."""

    title: str
    unit: str = ""
    description: str = ""
    drawing: str = ""
    """What is inside the SVG: its elements are made here, of numbers and escaped text."""
    legend: tuple[tuple[str, str], ...] = ()
    """A class and a word for each mark."""
    height: int = HEIGHT
    width: int = WIDTH
    note: str = ""
    """A sentence below the drawing."""
    texts: tuple[str, ...] = ()
    """What a tooltip says at each point of the axis."""
    missing: str = ""
    """Why there is no drawing; empty: there is one."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Charts of one axis, one below the other, as the macro `stack` of `templates/parts.html.j2` shows them."""

    charts: tuple[Chart, ...]
    tooltips: str = ""
    """What is inside an SVG that lies over all of them."""
    width: int = WIDTH
    height: int = HEIGHT


def escaped(text: str) -> str:
    """Fit for HTML and XML, text and attributes alike; what XML cannot hold is shown as `\\x00`."""
    shown = UNSHOWN.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return html.escape(shown).replace("\t", " ").replace("\n", " ")


def nice_top(value: float) -> tuple[float, float]:
    """The axis's end and the step between its lines: 1, 2 or 5 times a power of ten; four steps or five."""
    if not value > 0 or math.isinf(value):
        return 1.0, 0.5
    rough = value / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    return step * math.ceil(value / step - 1e-9), step


def nice_duration(seconds: float) -> tuple[float, float]:
    """As `nice_top`, with steps that are durations as people say them; two steps to five."""
    longest = DURATIONS[-1]
    step = next((step for step in DURATIONS if 5 * step >= seconds), longest * math.ceil(seconds / longest / 5))
    return step * max(1, math.ceil(seconds / step - 1e-9)), step


def grid(
    frame: Frame, labels: Sequence[tuple[float, str]], axis_word: Callable[[float], str] = formatting.short
) -> str:
    """Horizontal lines with values, and labels below at 0..1 across. `axis_word` formats the values."""
    parts = []
    for mark in frame.marks():
        y = frame.y(mark)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="num" x="{LEFT - 6}" y="{y + 4:.1f}">{escaped(axis_word(mark))}</text>')
    for across, text in labels:
        x = frame.x(across)
        parts.append(f'<path class="tick" d="M{x:.1f} {HEIGHT - BOTTOM}v4"/>')
        parts.append(f'<text class="mid" x="{x:.1f}" y="{HEIGHT - 6}">{escaped(text)}</text>')
    return "".join(parts)


def line(frame: Frame, axis: Axis, values: Floats, name: str) -> str:
    """A path through the known values; it stops where one is not known or where the next is far."""
    d = []
    for begin, end in _strokes(values, axis.breaks):
        points = _points(frame, axis, values, range(begin, end))
        d.append(f"M{_path(points)}" if len(points) > 1 else f"M{_path(points)}h.1")  # a value alone is seen as a dot
    return f'<path class="line {name}" d="{"".join(d)}"/>' if d else ""


def bar(frame: Frame, x: float, value: float, name: str) -> str:
    """As wide as its group's stroke; at least half a unit high, so that something is seen of it."""
    return (
        f'<path class="{name}" d="M{_short(x)} {_short(frame.y(0))}V{_short(min(frame.y(value), frame.y(0) - 0.5))}"/>'
    )


def limit_line(frame: Frame, value: float) -> str:
    return f'<path class="limit" d="M{LEFT} {frame.y(value):.1f}H{WIDTH - RIGHT}"/>'


def band(frame: Frame, axis: Axis, low: Floats, high: Floats) -> str:
    parts = []
    for begin, end in _strokes(low + high, axis.breaks):
        if end - begin > 1:
            forth = _points(frame, axis, high, range(begin, end))
            parts.append(f"M{_path([*forth, *_points(frame, axis, low, range(end - 1, begin - 1, -1))])}z")
    return f'<path class="band" d="{"".join(parts)}"/>' if parts else ""


def title(text: str) -> str:
    """A tooltip. Where it breaks does not matter, so narrow spaces, of three bytes, are plain ones."""
    shown = escaped(text.replace("\u202f", " "))
    return f"<title>{shown}</title>"


def tooltips(axis: Axis, texts: Sequence[str]) -> str:
    """Invisible columns around each point, with its time and numbers; neighbours with the same text share one."""
    stretch, wide, columns = np.cumsum(axis.breaks), max(axis.width * ACROSS, 1.0), []
    for (text, _), places in itertools.groupby(range(len(texts)), key=lambda at: (texts[at], stretch[at])):
        first, *others = places
        last = others[-1] if others else first
        begin, end = LEFT + axis.across[first] * ACROSS - wide / 2, LEFT + axis.across[last] * ACROSS + wide / 2
        time = axis.times[first] + (f" to {axis.times[last]}" if others else "")
        place = f"M{_short(begin)} {HEIGHT // 2}h{_short(end - begin)}"
        columns.append(f'<path d="{place}">{title(f"{time}: {text}")}</path>')
    return f'<g class="hit" stroke-width="{HEIGHT}">{"".join(columns)}</g>'


def stacked(axis: Axis, charts: Sequence[Chart]) -> Stack:
    """One tooltip at each point says the numbers of all charts."""
    texts = zip(*(chart.texts for chart in charts if chart.texts), strict=True)
    return Stack(tuple(charts), tooltips(axis, ["; ".join(of_point) for of_point in texts]))


def _strokes(values: Floats, breaks: Floats) -> list[tuple[int, int]]:
    """Begin and end of each stretch of known values in which no hour is missing."""
    return runs(~np.isnan(values), breaks > 0)


def runs(is_in: Flags, is_cut: Flags | None = None) -> list[tuple[int, int]]:
    """Begin and end of each stretch of True; it ends also before a place that is cut."""
    cut = np.zeros(len(is_in), np.bool_) if is_cut is None else is_cut
    begins = np.flatnonzero(is_in & (np.append(True, ~is_in[:-1]) | cut))
    ends = np.flatnonzero(is_in & np.append((~is_in | cut)[1:], True)) + 1
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def _points(frame: Frame, axis: Axis, values: Floats, places: Sequence[int]) -> list[tuple[int, int]]:
    """In tenths of the drawing's units. Of a level stretch only its ends."""
    points = [(round(10 * frame.x(axis.across[at])), round(10 * frame.y(values[at]))) for at in places]
    inner = zip(points, points[1:], points[2:], strict=False)
    kept = [here for before, here, after in inner if not before[1] == here[1] == after[1]]
    return [points[0], *kept, *points[-1:]] if len(points) > 1 else points


def _path(points: Sequence[tuple[int, int]]) -> str:
    """From the first point on in relative steps, which are shorter to write."""
    steps = [f"l{_joined((x - x0) / 10, (y - y0) / 10)}" for (x0, y0), (x, y) in itertools.pairwise(points)]
    return _joined(points[0][0] / 10, points[0][1] / 10) + "".join(steps)


def _joined(x: float, y: float) -> str:
    """Nothing needs to separate a minus from the number before it."""
    second = _short(y)
    return _short(x) + second if second.startswith("-") else f"{_short(x)} {second}"


def _short(value: float) -> str:
    """One digit after the point, and no zero that says nothing: `.5`, `-12`."""
    text = f"{round(10 * value) / 10:g}"
    return text.replace("0.", ".") if abs(value) < 1 else text
