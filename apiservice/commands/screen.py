"""The live table of `top` on a terminal: one key sorts it, another one filters it."""

import contextlib
import os
import select
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from adapter import clock
from adapter.overview.cells import HEADINGS, RIGHT, cells_of, trend_of
from adapter.overview.lines import URGENCY, Attention, GroupLine

TREND = 12
"""Lags of each group that its small line shows."""
COLOURS = {
    Attention.UNKNOWN: "magenta",
    Attention.NO_MEMBERS: "red",
    Attention.STUCK: "red",
    Attention.GROWING: "yellow",
    Attention.LAGGING: "cyan",
    Attention.NONE: "",
}
ORDERS: dict[str, Callable[[GroupLine], tuple[float | str, ...]]] = {
    "attention": lambda line: (URGENCY.index(line.attention), -(line.lag or 0)),
    "lag": lambda line: (-1 if line.lag is None else -line.lag,),
    "wait": lambda line: (-(line.wait or 0.0),),
    "group": lambda line: (line.cluster, line.group),
}
ENTER, ESCAPE, ERASE, END = "\r\n", "\x1b", "\x7f\b", "\x03\x04"
HELP = "s sort · / filter · q quit"


@dataclass(frozen=True, slots=True)
class View:
    """What the user has chosen."""

    order: str = "attention"
    filter: str = ""
    is_typing: bool = False
    is_over: bool = False

    def after(self, key: str) -> "View":
        if key in END:
            return replace(self, is_over=True)
        if self.is_typing:
            return self._after_typing(key)
        match key:
            case "q":
                return replace(self, is_over=True)
            case "s":
                orders = list(ORDERS)
                return replace(self, order=orders[(orders.index(self.order) + 1) % len(orders)])
            case "/":
                return replace(self, filter="", is_typing=True)
            case _:
                return replace(self, filter="") if key == ESCAPE else self

    def _after_typing(self, key: str) -> "View":
        if key in ENTER:
            return replace(self, is_typing=False)
        if key == ESCAPE:
            return replace(self, filter="", is_typing=False)
        if key in ERASE:
            return replace(self, filter=self.filter[:-1])
        return replace(self, filter=self.filter + key) if key.isprintable() else self

    def shown(self, lines: Sequence[GroupLine]) -> list[GroupLine]:
        return sorted((line for line in lines if self.filter.lower() in line.group.lower()), key=ORDERS[self.order])


class Trends:
    """The latest lags of each group; those of groups that are gone are forgotten."""

    def __init__(self) -> None:
        self._lags: dict[tuple[str, str], deque[int]] = {}

    def add(self, lines: Sequence[GroupLine]) -> None:
        known = {(line.cluster, line.group): line.lag for line in lines if line.lag is not None}
        self._lags = {place: self._lags.get(place, deque(maxlen=TREND)) for place in known}
        for place, lag in known.items():
            self._lags[place].append(lag)

    def of(self, line: GroupLine) -> str:
        return trend_of(self._lags.get((line.cluster, line.group), ()))


def show(look: Callable[[], list[GroupLine]], interval: float, *, names_cluster: bool) -> None:
    """Shows what `look` returns, until the user ends it."""
    view, trends, lines, due = View(), Trends(), list[GroupLine](), clock.monotonic()
    with _keys() as read, Live(console=Console(), screen=True, auto_refresh=False) as live:
        while not view.is_over:
            if clock.monotonic() >= due:
                lines, due = look(), clock.monotonic() + interval
                trends.add(lines)
            room = max(live.console.height - 4, 1)
            live.update(table_of(view, lines, trends, room, names_cluster=names_cluster), refresh=True)
            for key in read(max(due - clock.monotonic(), 0.0)):
                view = view.after(key)


def table_of(view: View, lines: Sequence[GroupLine], trends: Trends, room: int, *, names_cluster: bool) -> Table:
    """Returns as many groups as fit into `room` lines."""
    shown = view.shown(lines)
    more = f" · {len(shown) - room} more below" if len(shown) > room else ""
    filtered = f" · filter: {view.filter}{'_' if view.is_typing else ''}" if view.filter or view.is_typing else ""
    caption = f"{len(shown)} of {len(lines)} groups by {view.order}{more}{filtered} · {HELP}"
    table = Table(box=None, expand=True, pad_edge=False, caption=Text(caption, "dim"), caption_justify="left")
    for heading in (*HEADINGS[:-1], "TREND", HEADINGS[-1]):
        ratio = {"GROUP": 3, "ATTENTION": 2}.get(heading)
        table.add_column(
            heading,
            justify="right" if heading in RIGHT else "left",
            ratio=ratio,
            no_wrap=True,
            overflow="ellipsis",
        )
    for line in shown[:room]:
        *cells, attention = cells_of(line, names_cluster=names_cluster)
        table.add_row(*map(Text, cells), Text(trends.of(line)), Text(attention), style=COLOURS[line.attention])
    return table


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yields a function that waits for keys, at most the given seconds. Keys are not echoed and need no Enter."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def read(seconds: float) -> str:
        is_there, _, _ = select.select([terminal], [], [], seconds)
        # A closed terminal is always readable, and empty.
        return (os.read(terminal, 64).decode(errors="ignore") or END) if is_there else ""

    tty.setcbreak(terminal)
    try:
        yield read
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
