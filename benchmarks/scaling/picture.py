"""Pure: the policies as points between what they cost and how often messages wait too long."""

from collections.abc import Sequence

import numpy as np

from benchmarks.scaling.policies import ORACLE, POLICIES, REQUIRED
from benchmarks.scaling.suite import Result
from spark.report.svg_parts import HEIGHT, WIDTH, Frame, escaped, grid, nice_top

STYLE = (
    ".grid{stroke:#ddd}.tick{stroke:#999}text{font:11px sans-serif;fill:#333}.num{text-anchor:end}"
    ".mid{text-anchor:middle}.point{fill:#3b6ea5}.ours{fill:#c1440e}.each{fill:#3b6ea5;opacity:.15}"
    ".each.ours{fill:#c1440e;opacity:.3}.on{fill:#fff;font-size:9px}"
)
LEAST, MOST = 0.8, 3.2
"""Replica-hours as a multiple of the oracle's. What costs more is drawn at the edge."""
ABOVE, LINE, COLUMNS = 20, 15, 2
FRAME = Frame(*nice_top(60.0), least=0.5)


def picture(results: Sequence[Result]) -> str:
    """Each small point is a workload with one assignor and start time; each large one is the median of a policy."""
    labels = [(_across(of), f"{of:g}") for of in (1.0, 1.5, 2.0, 2.5, 3.0)]
    points = "".join(
        _each(result) for result in sorted(results, key=lambda it: it.policy == REQUIRED) if result.policy != "fixed"
    )
    rows = -(-len(POLICIES) // COLUMNS)
    height = ABOVE + HEIGHT + LINE * (rows + 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-ABOVE} {WIDTH} {height}">'
        f"<style>{STYLE}</style>"
        f'<rect y="{-ABOVE}" width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text x="4" y="-6">minutes in which a message waits longer than 30 s, in %</text>'
        f"{grid(FRAME, labels, lambda value: f'{value:g}')}{points}"
        f'<text class="mid" x="{WIDTH / 2}" y="{HEIGHT + 10}">replica-hours, as a multiple of an oracle\'s</text>'
        f"{''.join(_policy(number, results, rows) for number in range(len(POLICIES)))}</svg>\n"
    )


def medians_of(policy: str, results: Sequence[Result]) -> tuple[float, float]:
    """Returns replica-hours as a multiple of the oracle's, and the mean share of late minutes, without workloads on
    which every policy is late."""
    hopeless = {it.workload for it in results if it.policy == ORACLE and it.figures.late_share > 0.5}
    own = [result for result in results if result.policy == policy and result.workload not in hopeless]
    return float(np.median([it.of_oracle for it in own])), float(np.mean([it.figures.late_share for it in own]))


def _across(of_oracle: float) -> float:
    return (float(np.clip(of_oracle, LEAST, MOST)) - LEAST) / (MOST - LEAST)


def _each(result: Result) -> str:
    x, y = FRAME.x(_across(result.of_oracle)), FRAME.y(100 * result.figures.late_share)
    return f'<circle class="each{_kind(result.policy)}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'


def _policy(number: int, results: Sequence[Result], rows: int) -> str:
    """Its point, and its line in the legend."""
    policy = POLICIES[number]
    of_oracle, late = medians_of(policy.key, results)
    column, row = divmod(number, rows)
    name, kind = escaped(policy.name.replace("`", "")), _kind(policy.key)
    left, top = 24 + column * WIDTH / COLUMNS, HEIGHT + LINE * (row + 2)
    return (
        _numbered(number + 1, FRAME.x(_across(of_oracle)), FRAME.y(100 * late), kind)
        + _numbered(number + 1, left, top - 4, kind)
        + f'<text x="{left + 12:.1f}" y="{top:.1f}">{name}</text>'
    )


def _numbered(number: int, x: float, y: float, kind: str) -> str:
    return (
        f'<circle class="point{kind}" cx="{x:.1f}" cy="{y:.1f}" r="6.5"/>'
        f'<text class="mid on" x="{x:.1f}" y="{y + 3.2:.1f}">{number}</text>'
    )


def _kind(policy: str) -> str:
    return " ours" if policy == REQUIRED else ""
