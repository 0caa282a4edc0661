"""Members that come and go, and stretches without any."""

import dataclasses
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice.demand import load_of
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.members import lag_without_members, unsteady_members
from spark.figures.agreement import Agreement, Pause
from spark.figures.incidents import MemberHours
from spark.figures.model import Group
from tests.support.history.report_groups import MONDAY, group, hours, topic

UTC = ZoneInfo("UTC")


def of(*places: int, changes: float = 8, without: float = 0, fewest: float = 1, lag: float = 0.0) -> Group:
    """Two days, with members that change in these hours."""
    number = len(places)
    starts = np.datetime64(MONDAY.replace(tzinfo=None), "us") + np.array(places) * np.timedelta64(1, "h")
    columns = (np.full(number, each) for each in (changes, without, fewest, 4.0))
    figures = group("billing", topic(of=hours(48, lag=lambda _: lag)))
    return dataclasses.replace(figures, member_hours=MemberHours(starts, *columns))


def found(group: Group) -> Finding | None:
    return unsteady_members(group, load_of(group), zone=UTC)


@pytest.mark.parametrize(
    "group",
    [of(45, 46), of(10, 20, 30, 40), of(45, 46, 47, changes=5), of(45, 46, 47, changes=2, without=200, fewest=0)],
    ids=["two hours, as a rolling update has", "hours apart", "few changes", "hardly a minute without any"],
)
def test_members_that_change_now_and_then_are_not_unsteady(group: Group) -> None:
    assert found(group) is None


def test_unsteady_members_are_urgent_only_if_they_go_on_and_messages_wait() -> None:
    calm, late, over = found(of(44, 46, 47)), found(of(44, 46, 47, lag=900.0)), found(of(20, 22, 23, lag=900.0))

    assert calm is not None
    assert late is not None
    assert over is not None
    assert [it.severity for it in (calm, late, over)] == [Severity.WATCH, Severity.URGENT, Severity.WATCH]
    assert (calm.since, calm.until) == (MONDAY + timedelta(hours=44), None)
    assert over.until == MONDAY + timedelta(hours=24)
    assert over.words == (
        "Over since Tue 2026-06-02 00:00: from Mon 2026-06-01 20:00 until then, 4\u202fh, members came and went, "
        "8 changes an hour, between 1 and 4."
    )


def test_members_that_are_gone_for_much_of_each_hour_are_unsteady() -> None:
    said = found(of(44, 45, 46, 47, changes=2, without=3000, fewest=0))

    assert said is not None
    assert said.words.endswith("2 changes an hour, between 0 and 4; 50\u202fmin of each hour without any.")


def test_a_planned_pause_is_not_unsteady() -> None:
    pause = Pause(frozenset({1}), timedelta(0), timedelta(days=1), UTC)
    planned = dataclasses.replace(of(44, 45, 46, 47), agreement=Agreement(pauses=(pause,)))

    assert found(planned) is None


def test_the_last_stretch_without_members_is_told_and_all_of_them_are_counted() -> None:
    alone = group("billing", topic(of=hours(48, lag=lambda _: 500.0)))
    alone.hours.members_max[[5, 6, 20, 21, 22, 46, 47]] = 0
    said = lag_without_members(alone, load_of(alone), zone=UTC)

    assert said is not None
    assert (said.since, said.until) == (MONDAY + timedelta(hours=46), None)
    assert said.words == (
        "The group has had no member since Tue 2026-06-02 22:00, 2\u202fh, while messages waited, 1\u202f000 at the "
        "end. There were 7 such hours in all."
    )


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([40, 41, 44, 47], "The group had no member in 4 of the 8 hours since Tue 2026-06-02 16:00, while messages "),
        ([20, 21, 24], " the group had no member in 3 of these hours while messages waited, 1\u202f000 at the end."),
    ],
    ids=["still", "over"],
)
def test_members_that_came_back_for_an_hour_were_there(places: list[int], words: str) -> None:
    alone = group("billing", topic(of=hours(48, lag=lambda _: 500.0)))
    alone.hours.members_max[places] = 0
    said = lag_without_members(alone, load_of(alone), zone=UTC)

    assert said is not None
    assert words in said.words


@pytest.mark.parametrize(
    ("members", "lag", "to_do"),
    [
        (2, 500.0, "Nothing now: its members are back."),
        (0, 0.0, "Nothing now: no message waits."),
        (0, np.nan, "See whether its members are back."),
        (np.nan, 500.0, "See whether its members are back."),
    ],
)
def test_members_are_said_to_be_back_only_if_they_were_counted(members: float, lag: float, to_do: str) -> None:
    alone = group("billing", topic(of=hours(48, lag=lambda _: 500.0)))
    alone.hours.members_max[40:47], alone.hours.members_max[47], alone.hours.lag_p50[47] = 0, members, lag
    said = lag_without_members(alone, load_of(alone), zone=UTC)

    assert said is not None
    assert (said.state, said.to_do) == ("over", to_do)
