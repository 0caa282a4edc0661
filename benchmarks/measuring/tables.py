"""A benchmark's result as a value and as Markdown: figures with their goals, and misses as visible as the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

BEGIN, END = "<!-- figures of one run -->", "<!-- end of the figures -->"


class Verdict(StrEnum):
    MET = "met"
    MISSED = "**missed**"
    NO_GOAL = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was measured, the figure with its unit, its upper limit, and whether it was met."""

    what: str
    figure: str
    goal: str = ""
    verdict: Verdict = Verdict.NO_GOAL


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    how: str
    """How it was measured, in a few sentences."""
    rows: tuple[Row, ...]


def row(what: str, figure: float, most: float | None = None, unit: str = "", form: str = ".2f") -> Row:
    """Returns a row; its goal, if any, is an upper limit in the same unit."""
    shown = f"{figure:{form}}{unit}"
    if most is None:
        return Row(what, shown)
    return Row(what, shown, f"≤ {most:g}{unit}", Verdict.MET if figure <= most else Verdict.MISSED)


def markdown(table: Table) -> str:
    return "\n".join([f"## {table.title}", "", table.how, "", *_lines(table.rows), ""])


def with_figures(page: str, figures: str) -> str:
    """Replaces the figures between the page's two marks; raises ValueError if a mark is missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{figures.strip()}\n\n{end}{after}"


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    yield "| what | measured | goal | |"
    yield "|---|---|---|---|"
    for each in rows:
        yield f"| {each.what} | {each.figure} | {each.goal} | {each.verdict} |"
