"""A benchmark's result as a value, and as Markdown: figures beside their goals, misses as visible as the rest."""

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
    """One line: what was measured, the figure with its unit, what it should be at most, and whether it is."""

    what: str
    figure: str
    goal: str = ""
    verdict: Verdict = Verdict.NO_GOAL


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    how: str
    """How it was measured, in a sentence or two."""
    rows: tuple[Row, ...]


def row(what: str, figure: float, most: float | None = None, unit: str = "", form: str = ".2f") -> Row:
    """A row whose goal, if it has one, is an upper limit in the same unit."""
    shown = f"{figure:{form}}{unit}"
    if most is None:
        return Row(what, shown)
    return Row(what, shown, f"≤ {most:g}{unit}", Verdict.MET if figure <= most else Verdict.MISSED)


def markdown(table: Table) -> str:
    return "\n".join([f"## {table.title}", "", table.how, "", *_lines(table.rows), ""])


def with_figures(page: str, figures: str) -> str:
    """The page with these figures in place of those between its two marks; ValueError where it has no marks."""
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
