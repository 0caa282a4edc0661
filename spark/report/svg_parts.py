"""Pure: the parts that every chart is made of: a frame with axes, lines that break where nothing is known, tooltips.

Colors are CSS classes, so that one drawing serves light, dark and print. All text passes `escaped`.
"""

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spark.figures import formatting
from spark.figures.model import Floats

WIDTH, HEIGHT = 480, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 24
ACROSS = WIDTH - LEFT - RIGHT
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
        thin[is_known] = np.nanmax(padded[is_known], axis=1) if how == "max" else np.nanmean(padded[is_known], axis=1)
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
    missing: str = ""
    """Why there is no drawing; empty: there is one."""


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
    d, pen = [], "M"
    for x, value, is_break in zip(axis.across, values, axis.breaks, strict=True):
        if math.isnan(value):
            pen = "M"
            continue
        d.append(f"{'M' if is_break else pen}{frame.x(x):.1f} {frame.y(value):.1f}")
        if pen == "M" or is_break:
            d.append("h.1")  # a value alone is seen as a dot
        pen = "L"
    return f'<path class="line {name}" d="{"".join(d)}"/>' if d else ""


def limit_line(frame: Frame, value: float) -> str:
    return f'<path class="limit" d="M{LEFT} {frame.y(value):.1f}H{WIDTH - RIGHT}"/>'


def band(frame: Frame, axis: Axis, low: Floats, high: Floats) -> str:
    across, breaks, is_known = axis.across, axis.breaks, ~(np.isnan(low) | np.isnan(high))
    starts = np.flatnonzero(is_known & (np.roll(~is_known, 1) | (breaks > 0) | (np.arange(len(is_known)) == 0)))
    parts = []
    for start in starts:
        end = start + 1
        while end < len(is_known) and is_known[end] and not breaks[end]:
            end += 1
        forth = [f"{frame.x(across[at]):.1f} {frame.y(high[at]):.1f}" for at in range(start, end)]
        back = [f"{frame.x(across[at]):.1f} {frame.y(low[at]):.1f}" for at in reversed(range(start, end))]
        if len(forth) > 1:
            parts.append(f"M{'L'.join(forth)}L{'L'.join(back)}Z")
    return f'<path class="band" d="{"".join(parts)}"/>' if parts else ""


def tooltips(frame: Frame, axis: Axis, texts: Sequence[str]) -> str:
    """Invisible columns around each point, with its time and numbers."""
    size = max(axis.width * ACROSS, 1.0)
    place = f'y="{TOP}" width="{size:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
    columns = [
        f'<rect x="{frame.x(x) - size / 2:.1f}" {place}><title>{escaped(f"{at}: {text}")}</title></rect>'
        for x, at, text in zip(axis.across, axis.times, texts, strict=True)
    ]
    return f'<g class="hit">{"".join(columns)}</g>'
