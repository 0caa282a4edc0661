"""Messages that wait longer than agreed on: now, in the past, seldom, or for a reason that is no trouble."""

import dataclasses
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from spark.advice.demand import load_of
from spark.advice.finding import Finding, Severity
from spark.advice.hpa import PAST
from spark.advice.incidents.above import above_threshold
from spark.advice.incidents.late import rare_commits, reads_late
from spark.advice.recommendation import Target
from spark.figures.agreement import Agreement, Pause
from spark.figures.model import Above, Group, Pace, TopicFigures, Waits
from tests.support.history.advised_groups import advice_for
from tests.support.history.report_groups import MONDAY, group, hours, saturated, topic

HOUR, DAYS = 3600.0, 6
UTC = ZoneInfo("UTC")
AS_WELL = "Other topics were above their thresholds as well"


def above(hours_above: float, *, last_until: float, longest_quiet: float = 0.0, longest: float = 2.0) -> Above:
    """Of six days; the last episode ends so many hours after their beginning, and lasts as long as the longest."""
    until = MONDAY + timedelta(hours=last_until)
    began = until - timedelta(hours=longest)
    known = DAYS * 24 * HOUR
    figures = (600, False, hours_above * HOUR, known, 3, longest * HOUR, began, began, until)
    return Above(*figures, longest_quiet_seconds=longest_quiet * HOUR)


def of(figures: Above, **given: object) -> Group:
    figures_of = dataclasses.replace(topic(of=hours(DAYS * 24, lag=lambda _: 10.0)), above=figures)
    return dataclasses.replace(group("billing", figures_of), **given)  # type: ignore[arg-type]  # test's own words


def found(group: Group) -> Finding | None:
    return above_threshold(group, load_of(group), zone=UTC)


@pytest.mark.parametrize(
    ("last_until", "longest_quiet", "is_over"),
    [(100.0, 0.0, True), (130.0, 0.0, False), (100.0, 60.0, False), (72.0, 60.0, True)],
    ids=["for two days", "for half a day", "for less time than it was before", "for longer than ever"],
)
def test_a_lag_is_over_if_it_is_quiet_for_a_day_and_longer_than_ever(
    last_until: float,
    longest_quiet: float,
    is_over: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    said = found(of(above(30, last_until=last_until, longest_quiet=longest_quiet)))

    assert said is not None
    assert (said.is_over, said.severity) == (is_over, Severity.NOTE if is_over else Severity.WATCH)
    assert said.words.startswith("Over since " if is_over else "The lag was above 600 messages for ")


def test_what_is_over_asks_for_no_hpa() -> None:
    past = of(above(30, last_until=72), capacity=saturated())
    advice = advice_for(past)
    (said,) = (it for it in advice.findings if it.code == "above_threshold")

    assert said.to_do == "Nothing now: it is over, and no HPA is needed for what is past."
    assert advice.hpa.target == Target(None, PAST)


def test_what_goes_on_in_one_topic_is_not_hidden_by_what_is_over_in_another() -> None:
    now = of(above(20, last_until=140))
    past = dataclasses.replace(of(above(90, last_until=72)).topics[0], name="returns")
    said = found(dataclasses.replace(now, topics=(*now.topics, past)))

    assert said is not None
    assert (said.is_over, said.subject) == (False, "orders")
    assert said.words.startswith("The lag of orders was above 600 messages for 13.9\u202f% of the time; ")
    assert said.words.endswith(f" {AS_WELL}: returns (62.5\u202f% of the time, in the past).")


def test_every_topic_that_is_late_is_named_the_worst_one_first() -> None:
    late = of(above(20, last_until=140))
    topics = [
        dataclasses.replace(late.topics[0], name=name, above=above(hours_above, last_until=140))
        for name, hours_above in (("orders", 20), ("mail", 0.5), ("returns", 30))
    ]
    said = found(dataclasses.replace(late, topics=tuple(topics)))

    assert said is not None
    assert said.subject == "returns, orders"
    assert said.words.startswith("The lag of returns was above ")
    assert said.words.endswith(f" {AS_WELL}: orders (13.9\u202f% of the time).")


def test_with_planned_pauses_every_topic_that_is_late_is_named_by_its_hours() -> None:

    def late_since(name: str, since: int) -> TopicFigures:
        of = hours(DAYS * 24, lag=lambda hour: 900.0 if hour >= since else 10.0)
        return dataclasses.replace(topic(of=of), name=name, above=above(20, last_until=140))

    pause = Pause(frozenset({6}), timedelta(0), timedelta(days=1), UTC)
    of = group("billing", late_since("orders", 108), late_since("returns", 72))
    said = found(dataclasses.replace(of, agreement=Agreement(pauses=(pause,))))

    assert said is not None
    assert said.subject == "returns, orders"
    assert said.words == (
        "Outside of planned pauses, the median lag of returns was above 600 messages in 50\u202f% of the hours, first "
        f"on Thu 2026-06-04 00:00. {AS_WELL}: orders (25\u202f% of the hours)."
    )


def test_with_planned_pauses_the_share_of_what_is_over_is_that_of_all_hours() -> None:
    """The lag is high for twelve hours of six days. The last day is a planned pause."""
    of = topic(of=hours(DAYS * 24, lag=lambda hour: 900.0 if 24 <= hour < 36 else 10.0))
    pause = Pause(frozenset({5}), timedelta(0), timedelta(days=1), UTC)
    said = found(dataclasses.replace(group("billing", of), agreement=Agreement(pauses=(pause,))))

    assert said is not None
    assert (said.brief, said.since) == ("Lag above its threshold in the past", MONDAY + timedelta(days=1))
    assert said.words == (
        "Over since Tue 2026-06-02 12:00: outside of planned pauses, the median lag was above 600 messages in "
        "10\u202f% of the hours, first on Tue 2026-06-02 00:00."
    )


@pytest.mark.parametrize(("longest", "is_said"), [(2.0, True), (0.9, False)])
def test_a_lag_that_is_seldom_above_is_noted_if_it_lasted_an_hour(longest: float, is_said: bool) -> None:  # noqa: FBT001
    said = found(of(above(3, last_until=140, longest=longest)))

    assert (said is not None) is is_said
    assert said is None or said.severity is Severity.NOTE


def late(p50: float, p95: float, **given: object) -> Group:
    """Above its threshold all the time."""
    always = of(above(DAYS * 24, last_until=DAYS * 24, longest=DAYS * 24), **given)
    waits = dataclasses.replace(always.topics[0], waits=Waits(p50, p95, p95, p95, p50, p50, 0))
    return dataclasses.replace(always, topics=(waits,))


@pytest.mark.parametrize(
    ("group", "is_late"),
    [
        (late(600, 640), True),
        (late(600, 900), False),
        (late(600, 640, capacity=saturated()), False),
        (of(above(60, last_until=140)), False),
    ],
    ids=["always the same", "now longer, now shorter", "saturated", "at times"],
)
def test_who_always_reads_as_late_and_was_never_saturated_reads_late(group: Group, is_late: bool) -> None:  # noqa: FBT001
    said = reads_late(group, load_of(group))

    assert (said is not None) is is_late
    assert said is None or "above_threshold" not in {it.code for it in advice_for(group).findings}


@pytest.mark.parametrize(("wait", "severity"), [(350.0, Severity.WATCH), (900.0, Severity.NOTE)])
def test_rare_commits_explain_a_lag_that_lasts_no_longer_than_the_time_between_two(
    wait: float, severity: Severity
) -> None:
    """A commit every 30 samples of 10 s; else it is told beside the lag."""
    rare = late(wait, wait, pace=Pace(3000, 100), capacity=saturated())
    said = rare_commits(rare, load_of(rare))
    codes = {it.code for it in advice_for(rare).findings}

    assert said is not None
    assert said.severity is severity
    assert ("above_threshold" in codes) is (severity is Severity.NOTE)
