"""What the live table shows, and what its keys do."""

import io

import pytest
from rich.console import Console

from adapter.overview.cells import cells_of, duration, trend_of
from adapter.overview.lines import Attention, GroupLine
from apiservice.commands.screen import TREND, Trends, View, table_of
from apiservice.commands.top import csv_cells

LINES = [
    GroupLine("main", "billing", "stable", Attention.STUCK, 3, 12, 1200, 95.0, production=4.0, consumption=0.0),
    GroupLine("main", "mail", "empty", Attention.NO_MEMBERS, 0, 1, 7, 4000.0, wait_is_bound=True),
    GroupLine("main", "audit", "stable", Attention.NONE, 1, 1, 0, 0.0, production=12.5, consumption=1234.5),
]


def typed(keys: str) -> View:
    view = View()
    for key in keys:
        view = view.after(key)
    return view


def text_of(view: View, room: int = 10, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    trends = Trends()
    for lag in (0, 600, 1200):
        trends.add([GroupLine("main", "billing", "", Attention.NONE, lag=lag)])
    console.print(table_of(view, LINES, trends, room, names_cluster=False))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("keys", "groups"),
    [
        ("", ["mail", "billing", "audit"]),
        ("s", ["billing", "mail", "audit"]),
        ("ss", ["mail", "billing", "audit"]),
        ("sss", ["audit", "billing", "mail"]),
        ("ssss", ["mail", "billing", "audit"]),
        ("/IL\r", ["mail", "billing"]),
        ("/ma\r", ["mail"]),
        ("/mx\x7fa", ["mail"]),
        ("/ma\x1b", ["mail", "billing", "audit"]),
        ("/ma\r\x1b", ["mail", "billing", "audit"]),
        ("/s", ["audit"][:0]),
    ],
)
def test_keys_sort_and_filter(keys: str, groups: list[str]) -> None:
    assert [line.group for line in typed(keys).shown(LINES)] == groups


@pytest.mark.parametrize(("keys", "ends"), [("q", True), ("\x03", True), ("/q", False), ("/q\x04", True), ("x", False)])
def test_q_ends_it_unless_it_is_part_of_a_filter(keys: str, *, ends: bool) -> None:
    assert typed(keys).is_over is ends


def test_the_table_has_the_trend_and_says_which_groups_are_shown() -> None:
    text = text_of(typed("s/i"))

    (billing,) = (line for line in text.splitlines() if line.startswith("billing"))
    assert billing.split() == ["billing", "stable", "3", "1,200", "95s", "4.0", "0", "▁▅█", "stuck"]
    assert "3 of 3 groups by lag · filter: i_ · s sort" in text


def test_what_does_not_fit_is_counted() -> None:
    text = text_of(View(), room=1)

    assert "billing" not in text
    assert "2 more below" in text


def test_a_narrow_terminal_keeps_every_group_on_one_line() -> None:
    assert len(text_of(View(), width=60).splitlines()) == len(LINES) + 2


def test_only_the_latest_lags_of_groups_that_are_there_are_kept() -> None:
    trends = Trends()
    for lag in range(TREND + 3):
        trends.add([GroupLine("main", "mail", "", Attention.NONE, lag=lag)])
    assert len(trends.of(LINES[1])) == TREND
    trends.add([])

    assert trends.of(LINES[1]) == ""


def test_a_lag_that_stays_0_is_the_lowest_bar() -> None:
    assert trend_of([0, 0]) == "▁▁"


def test_unknown_is_a_dash_and_never_0() -> None:
    line = GroupLine("main", "mail", "", Attention.UNKNOWN, reason="orders/0: broker 2 does not answer")

    assert cells_of(line, names_cluster=True) == (
        "main/mail",
        *["-"] * 6,
        "unknown: orders/0: broker 2 does not answer",
    )


def test_a_wait_that_is_a_lower_bound_says_so() -> None:
    assert cells_of(LINES[1], names_cluster=False)[4] == ">66m"


def test_a_lower_bound_of_no_time_is_no_wait() -> None:
    line = GroupLine("main", "mail", "", Attention.LAGGING, lag=7, wait=0.0, wait_is_bound=True)

    assert cells_of(line, names_cluster=False)[4] == "-"


def test_names_cannot_write_to_the_terminal() -> None:
    line = GroupLine("main", "a\x1b[2Jb\nc", "", Attention.NONE)

    assert cells_of(line, names_cluster=False)[0] == "a [2Jb c"


def test_names_that_are_no_text_can_be_written_as_csv() -> None:
    line = GroupLine("main", "a\udcff", "", Attention.NONE)

    assert csv_cells(line)[1] == "a\\udcff"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (99, "99s"), (100, "1m"), (5999, "99m"), (12_000, "3h20m"), (400_000, "4d")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
