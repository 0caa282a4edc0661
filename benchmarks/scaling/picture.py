"""Pure: the policies as points between what they cost and how often messages wait too long."""

from collections.abc import Sequence

import numpy as np

from benchmarks.scaling.policies import POLICIES, REQUIRED
from benchmarks.scaling.suite import Result
from spark.report.svg_parts import HEIGHT, WIDTH, Frame, escaped, grid, nice_top

STYLE = (
    ".grid{stroke:#ddd}.tick{stroke:#999}text{font:11px sans-serif;fill:#333}.num{text-anchor:end}"
    ".mid{text-anchor:middle}.point{fill:#3b6ea5}.ours{fill:#c1440e}.each{fill:#3b6ea5;opacity:.15}"
    ".each.ours{fill:#c1440e;opacity:.3}"
)
LEAST, MOST = 0.8, 3.2
"""Replica-hours as a multiple of the oracle's. What costs more is drawn at the edge."""
CAPTION = 40
FRAME = Frame(*nice_top(60.0), least=0.5)


def picture(results: Sequence[Result]) -> str:
    """Each small point is a workload with one assignor and start time; each large one is the median of a policy."""
    labels = [(_across(of), f"{of:g}") for of in (1.0, 1.5, 2.0, 2.5, 3.0)]
    points = "".join(
        _each(result) for result in sorted(results, key=lambda it: it.policy == REQUIRED) if result.policy != "fixed"
    )
    named = "".join(_named(policy.key, policy.name, results) for policy in POLICIES)
    height = HEIGHT + CAPTION
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-CAPTION // 2} {WIDTH} {height}">'
        f"<style>{STYLE}</style>"
        f'<rect y="{-CAPTION // 2}" width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text x="4" y="-6">minutes in which a message waits longer than 30 s, in %</text>'
        f"{grid(FRAME, labels, lambda value: f'{value:g}')}{points}{named}"
        f'<text class="mid" x="{WIDTH / 2}" y="{HEIGHT + 12}">replica-hours, as a multiple of an oracle\'s</text>'
        "</svg>\n"
    )


def medians_of(policy: str, results: Sequence[Result]) -> tuple[float, float]:
    """Returns replica-hours as a multiple of the oracle's, and the mean share of late minutes."""
    own = [result for result in results if result.policy == policy]
    return float(np.median([it.of_oracle for it in own])), float(np.mean([it.figures.late_share for it in own]))


def _across(of_oracle: float) -> float:
    return (float(np.clip(of_oracle, LEAST, MOST)) - LEAST) / (MOST - LEAST)


def _each(result: Result) -> str:
    x, y = FRAME.x(_across(result.of_oracle)), FRAME.y(100 * result.figures.late_share)
    return f'<circle class="each{_kind(result.policy)}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'


def _named(key: str, name: str, results: Sequence[Result]) -> str:
    of_oracle, late = medians_of(key, results)
    x, y = FRAME.x(_across(of_oracle)), FRAME.y(100 * late)
    side, shift = ("end", -7) if x > WIDTH * 0.6 else ("start", 7)
    text = (
        f'<text x="{x + shift:.1f}" y="{y + 4:.1f}" style="text-anchor:{side}">{escaped(name.replace("`", ""))}</text>'
    )
    return f'<circle class="point{_kind(key)}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>{text}'


def _kind(policy: str) -> str:
    return " ours" if policy == REQUIRED else ""
