"""What is said of a group's trouble, of its data, and of planned pauses."""

import dataclasses
import math
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice.demand import load_of
from spark.advice.finding import Severity
from spark.advice.incidents.above import above_threshold
from spark.figures.agreement import Agreement, Pause
from spark.figures.incidents import Happened, HotHours, TopicIncidents
from spark.figures.model import Above, Group, Lag, Pace, Periods, Still, Times, TopicFigures
from spark.figures.periods import between
from tests.support.history.advised_groups import advice_for, changed, finding, read
from tests.support.history.report_groups import MONDAY, STEADY, group, hours, saturated, together, topic


def silent(number: int) -> Times:
    """So many hours of which nothing is there."""
    return np.datetime64("2026-06-02", "us") + np.arange(number) * np.timedelta64(1, "h")


def test_a_healthy_group_has_no_findings() -> None:
    assert advice_for(group(capacity=saturated(60))).findings == ()


def test_samples_that_are_gone_leave_the_lag_of_hours_known_and_percentiles_unknown() -> None:
    whole = topic(of=hours(48, lag=lambda hour: 10.0 * hour), seconds_above=7200)
    gone = dataclasses.replace(whole, lag=None)
    late = dataclasses.replace(whole.lag, since=MONDAY + timedelta(hours=30)) if whole.lag else None
    partly = dataclasses.replace(whole, lag=late)
    said = {it.code: it.words for of in (gone, partly) for it in advice_for(group("a", of)).findings}

    assert "no_lag" not in said
    assert (gone.largest_lag, partly.largest_lag) == (940, 940)
    assert "cover none of the hours with a known lag" in read_code(gone)
    assert "cover only 18 of the 48 hours with a known lag" in read_code(partly)
    assert finding(group("a", whole), "samples_gone") is None


def read_code(of: TopicFigures) -> str:
    found = finding(group("a", of), "samples_gone")
    assert found is not None
    return found.words


def first_day() -> Periods:
    """A history's: its first sample covers no time."""
    of = hours(number=24)
    of.covered_seconds[0] = 3590
    return of


def begun_late() -> Periods:
    """A history whose first sample is the last of an hour, as that of a clock which is slow."""
    of = hours(number=3)
    of.covered_seconds[0], of.samples[0] = 0, 1
    return of


STUCK = changed(hours(lag=lambda _: 500), consumed=0.0)
COOLER = hours(production=lambda hour: 10.0 if hour < 20 else 1.0, skew=0.9)
"""In the last day, a member could do what the hot partition got."""
ABOVE = Above(600, False, 9000, 48 * 3600, 3, 4000, None)


@pytest.mark.parametrize(
    ("code", "of", "severity"),
    [
        ("stuck", read(STUCK), Severity.URGENT),
        ("lag_without_members", read(changed(STUCK, members_max=0.0)), Severity.URGENT),
        ("no_lag", read(changed(hours(), lag_p50=math.nan, samples=0.0)), Severity.URGENT),
        ("falling_behind", read(changed(hours(lag=lambda hour: 900.0 * hour), consumed=18_000.0)), Severity.URGENT),
        ("above_threshold", group("billing", dataclasses.replace(topic(), above=ABOVE)), Severity.WATCH),
        ("hot_partition", read(hours(skew=0.9)), Severity.WATCH),
        ("hot_partition", read(hours(skew=0.9), capacity=saturated(60, per_member=5)), Severity.URGENT),
        ("hot_partition", read(COOLER, capacity=saturated(60, per_member=5)), Severity.WATCH),
        ("idle_members", read(hours(members_max=5), is_spread=False), Severity.WATCH),
        ("rewinds", read(hours(rewinds=1)), Severity.WATCH),
        ("skips", read(hours(skips=1)), Severity.WATCH),
        ("recreations", read(hours(recreations=1)), Severity.WATCH),
        ("resets", read(hours(resets=1)), Severity.NOTE),
        ("barely_saturated", read(hours(), capacity=saturated(3)), Severity.NOTE),
        ("rare_commits", read(hours(lag=lambda _: 50), pace=Pace(lagging=300, moving=100)), Severity.NOTE),
        ("little_data", read(hours(number=12)), Severity.NOTE),
        ("little_data", read(hours(number=24, covered_seconds=3590)), Severity.NOTE),
        ("incomplete", read(hours(samples=300)), Severity.NOTE),
        ("incomplete", read(hours(samples=100)), Severity.WATCH),
        ("incomplete", read(hours(), silent=silent(10)), Severity.NOTE),
        ("incomplete", read(hours(), silent=silent(60)), Severity.WATCH),
        ("nothing_produced", read(hours(production=lambda _: 0)), Severity.NOTE),
    ],
)
def test_what_the_data_shows_is_said(code: str, of: Group, severity: Severity) -> None:
    found = finding(of, code)

    assert found is not None
    assert found.severity is severity
    assert found.words.endswith(".")
    assert bool(found.to_do) is (severity > Severity.NOTE or code == "incomplete")


def test_a_group_falls_behind_since_its_lag_is_above_the_threshold_and_not_since_yesterday() -> None:
    def behind(first: int) -> Group:
        return read(changed(hours(lag=lambda hour: 900.0 * max(hour - first, 0)), consumed=18_000.0))

    begun = [finding(behind(first), "falling_behind") for first in (0, 30)]

    assert [it and it.since for it in begun] == [MONDAY + timedelta(hours=1), MONDAY + timedelta(hours=31)]


@pytest.mark.parametrize(
    ("code", "of"),
    [
        ("stuck", read(changed(STUCK, members_max=0.0))),
        ("stuck", read(changed(STUCK, lag_p50=0.0))),
        ("falling_behind", read(changed(hours(lag=lambda hour: 900.0 * (48 - hour)), consumed=18_000.0))),
        ("hot_partition", read(hours(skew=1.0, partitions=1))),
        ("hot_partition", read(hours(production=lambda _: 0.001, skew=1.0))),
        ("rare_commits", read(STUCK, pace=Pace(lagging=300, moving=1))),
        ("above_threshold", group("billing", dataclasses.replace(topic(of=hours(covered_seconds=0)), above=ABOVE))),
        ("incomplete", read(hours(), silent=silent(2))),
        ("incomplete", read(begun_late())),
        ("little_data", read(first_day())),
        ("rare_commits", read(hours(), pace=STEADY)),
        ("idle_members", read(hours(members_max=math.nan))),
        ("idle_members", read(hours(members_max=5))),
    ],
)
def test_what_the_data_does_not_show_is_not_said(code: str, of: Group) -> None:
    assert finding(of, code) is None


@pytest.mark.parametrize(
    ("code", "trouble"),
    [("stuck", STUCK), ("lag_without_members", changed(STUCK, members_max=0.0))],
)
def test_trouble_that_was_over_at_the_end_is_worth_watching_and_no_more_urgent(code: str, trouble: Periods) -> None:
    over = finding(
        read(together((between(trouble, np.arange(48) < 40), hours(since=MONDAY + timedelta(days=3))))), code
    )

    assert over is not None
    assert over.severity is Severity.WATCH
    assert "40 hours" in over.words or "1\u202fd 16\u202fh" in over.words
    assert over.words.startswith("Over since Tue 2026-06-02 16:00: ")
    assert over.to_do.startswith("Nothing now")


def test_nobody_is_told_to_delete_a_group_that_had_members() -> None:
    alone = changed(STUCK, members_max=0.0)
    night_shift = together((hours(24), between(alone, np.arange(48) >= 24)))
    never, at_times = (finding(read(of), "lag_without_members") for of in (alone, night_shift))

    assert never is not None
    assert at_times is not None
    assert "delete" in never.to_do
    assert (at_times.severity, at_times.to_do) == (Severity.URGENT, "Start its consumers.")


def seen_again(consumed_before: float, consumed_since: float) -> Group:
    """24 hours, a gap of two days, and ten hours: 36,000 messages an hour, of which so many were consumed."""
    parts = (
        changed(hours(24, lag=lambda _: 900.0), consumed=consumed_before),
        changed(hours(10, lag=lambda hour: 5000.0 + hour, since=MONDAY + timedelta(days=3)), consumed=consumed_since),
    )
    return read(together(parts))


def test_a_group_that_fell_behind_before_a_gap_of_days_is_not_falling_behind() -> None:
    assert finding(seen_again(consumed_before=0.0, consumed_since=36_000.0), "falling_behind") is None


def test_the_last_day_is_one_by_the_clock_and_says_how_much_of_it_was_seen() -> None:
    found = finding(seen_again(consumed_before=36_000.0, consumed_since=18_000.0), "falling_behind")

    assert found is not None
    assert "50\u202f% of the 360\u202f000 messages of the last 24 hours (10 of them seen)" in found.words


def test_less_than_a_day_is_not_called_one() -> None:
    found = finding(read(changed(hours(6, lag=lambda hour: 900.0 * hour), consumed=18_000.0)), "falling_behind")

    assert found is not None
    assert "messages of the last 6 hours were" in found.words


def test_of_topics_that_stood_still_one_after_another_the_last_one_is_told() -> None:
    def stood_still(name: str, first: int, last: int) -> TopicFigures:
        since, until = (MONDAY + timedelta(hours=at) for at in (first, last))
        return dataclasses.replace(topic(name), still=Still(1, (3,), since, True, until, 900, ()))

    apart, together_with = (
        finding(group("billing", stood_still("orders", 2, 4), stood_still("returns", since, 22)), "stuck")
        for since in (20, 3)
    )

    assert apart is not None
    assert together_with is not None
    assert (apart.subject, apart.since) == ("partition 3 of returns", MONDAY + timedelta(hours=20))
    assert together_with.subject == "partition 3 of orders, partition 3 of returns"
    assert together_with.since == MONDAY + timedelta(hours=2)


@pytest.mark.parametrize("events", ["rewinds", "skips", "recreations"])
def test_what_happened_more_than_a_week_ago_is_noted_and_not_watched(events: str) -> None:
    """In the second hour of eight days; then once more on the last."""
    of = changed(hours(number=8 * 24), **{events: 0.0})
    getattr(of, events)[1] = 1
    old = finding(read(of), events)
    getattr(of, events)[-20] = 1
    new = finding(read(of), events)

    assert old is not None
    assert new is not None
    assert (old.severity, new.severity) == (Severity.NOTE, Severity.WATCH)


@pytest.mark.parametrize(
    ("events", "seen", "when"),
    [
        ([5], (1, 5.25, 5.25), "on Mon 2026-06-01 05:15"),
        ([5], (1, 5.25, 5.27), "on Mon 2026-06-01 05:15"),
        ([5, 8], (2, 5.25, 8.5), "2 times, first on Mon 2026-06-01 05:15, last on Mon 2026-06-01 08:30"),
        ([5, 8], (1, 8.5, 8.5), "2 times, first on Mon 2026-06-01 05:00, last on Mon 2026-06-01 08:30"),
    ],
    ids=["once", "once, in two samples", "twice", "samples of the first are gone"],
)
def test_an_event_is_said_to_have_been_when_its_samples_show_it(
    events: list[int], seen: tuple[int, float, float], when: str
) -> None:
    of = changed(hours(), rewinds=0.0)
    of.rewinds[events] = 1
    number, first, last = seen
    happened = Happened(number, MONDAY + timedelta(hours=first), MONDAY + timedelta(hours=last))
    found = finding(read(of, happened={"rewinds": happened}), "rewinds")

    assert found is not None
    assert found.words.startswith(f"Commits went backward {when}: ")
    assert found.since is not None
    assert found.until is not None
    assert all(f"{at:%H:%M}" in when for at in (found.since, found.until))


def test_a_threshold_of_one_message_is_said_as_one() -> None:
    above = dataclasses.replace(ABOVE, threshold=1)
    (said,) = (
        finding.words
        for finding in advice_for(group("billing", dataclasses.replace(topic(), above=above))).findings
        if finding.code == "above_threshold"
    )

    assert said.startswith("The lag was above 1 message for ")


def test_the_worst_comes_first() -> None:
    severities = [it.severity for it in advice_for(read(changed(STUCK, rewinds=1.0))).findings]

    assert severities == sorted(severities, reverse=True)
    assert severities[0] is Severity.URGENT


def test_of_what_is_worth_watching_what_goes_on_comes_before_what_is_over() -> None:
    """It stood still on its first day, of three; a partition is hot on all of them."""
    of = changed(hours(72, lag=lambda hour: 500.0 if hour < 6 else 0.0), skew=0.9)
    of.consumed[:6] = 0
    stuck_and_hot, rewound = read(of), dataclasses.replace(of, rewinds=np.full(72, 1.0))
    found = [[(it.code, it.state) for it in advice_for(each).findings] for each in (stuck_and_hot, read(rewound))]

    assert found == [
        [("hot_partition", "still"), ("stuck", "over")],
        [("hot_partition", "still"), ("rewinds", "over"), ("stuck", "over")],
    ]


def test_hours_of_a_planned_pause_are_no_trouble() -> None:
    """Nobody reads on Monday, the first of the two days; on Tuesday all is well."""
    of = hours(48, lag=lambda hour: 900.0 if hour < 24 else 0.0)
    of.members_max[:24], of.consumed[:24] = 0, 0
    above = Above(600, False, 24 * 3600, 48 * 3600, 1, 24 * 3600, None)
    unplanned = dataclasses.replace(group("billing", dataclasses.replace(topic(of=of), above=above)))
    pause = Pause(frozenset({0}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))
    planned = dataclasses.replace(unplanned, agreement=Agreement(pauses=(pause,)))
    found = [{it.code for it in advice_for(each).findings} for each in (unplanned, planned)]

    assert "lag_without_members" in found[0]
    assert not {"lag_without_members", "above_threshold", "falling_behind"} & found[1]


def test_nobody_is_told_to_apply_an_hpa_that_is_not_recommended() -> None:
    above = dataclasses.replace(topic(), above=ABOVE)
    without, with_target = (
        finding(group("billing", dataclasses.replace(above, above=ABOVE), capacity=capacity), "above_threshold")
        for capacity in (None, saturated())
    )

    assert without is not None
    assert with_target is not None
    assert without.to_do == "No HPA is recommended for it: see why below."
    assert with_target.to_do == "Apply the recommended HPA."


def test_where_no_number_of_members_is_enough_it_is_said_what_is() -> None:
    loud = dataclasses.replace(topic(of=hours(production=lambda _: 700, partitions=4, skew=1 / 4)), above=ABOVE)

    above = finding(group("billing", loud, capacity=saturated(100, 100)), "above_threshold")

    assert above is not None
    assert above.to_do == (
        "No HPA is recommended, see why below; give it more partitions, make its work faster, or allow a longer wait."
    )


def test_a_group_that_goes_home_for_a_planned_pause_is_not_stuck() -> None:
    """It reads until a minute before Tuesday, its day off, and its members leave."""
    of = hours(48, lag=lambda hour: 900.0 if hour >= 24 else 0.0)
    of.members_max[24:], of.consumed[24:] = 0, 0
    still = Still(2, (0, 1), MONDAY + timedelta(hours=23, minutes=59), True, MONDAY + timedelta(days=2), 900, ())
    resting = group("billing", dataclasses.replace(topic(of=of), still=still))
    pause = Pause(frozenset({1}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))

    assert finding(dataclasses.replace(resting, agreement=Agreement(pauses=(pause,))), "stuck") is None


def test_what_was_stuck_on_the_day_before_a_planned_pause_explains_that_the_group_fell_behind() -> None:
    """Its hours begin on Friday. It stood still from 6:00 to 20:00 on Monday; Tuesday is the planned day off."""
    friday = MONDAY - timedelta(days=3)
    of = hours(120, lambda hour: 10.0 if hour < 96 else 0.0, lambda hour: 900.0 * min(max(hour - 77, 0), 14), friday)
    of.consumed[78:92], of.members_max[96:] = 0, 0
    pause = Pause(frozenset({1}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))
    paused = dataclasses.replace(read(of), agreement=Agreement(pauses=(pause,)))
    found = {it.code: it.state for it in advice_for(paused).findings}

    assert found["stuck"] == "over"
    assert "falling_behind" not in found


@pytest.mark.parametrize("members", [0, 2], ids=["lag_without_members", "stuck"])
@pytest.mark.parametrize(("consumed_since", "is_behind"), [(18_000.0, True), (36_000.0, False), (72_000.0, False)])
def test_what_is_over_does_not_hide_that_the_group_has_fallen_further_behind_since(
    members: int,
    consumed_since: float,
    *,
    is_behind: bool,
) -> None:
    """Nothing was read in the first half of the last day; 36,000 messages are produced in an hour."""
    of = hours(48, lag=lambda hour: 36_000.0 * min(max(hour - 23, 0), 12))
    of.consumed[24:36], of.members_max[24:36], of.consumed[36:] = 0, members, consumed_since
    found = [(it.severity.word, it.code, it.state) for it in advice_for(read(of)).findings]
    over = ("watch", "stuck" if members else "lag_without_members", "over")

    assert found == ([("act now", "falling_behind", "still"), over] if is_behind else [over])


@pytest.mark.parametrize(("consumed", "severity"), [(36_000.0, "watch"), (18_000.0, "act now")])
def test_a_hot_partition_that_moves_is_urgent_while_the_group_falls_behind(consumed: float, severity: str) -> None:
    of = changed(hours(lag=lambda hour: 900.0 * hour, skew=0.9), consumed=consumed)
    moving = HotHours(hours=len(of), partition=3, most_hours=len(of) // 4, partitions=4, since=MONDAY)
    hot = dataclasses.replace(topic(of=of), incidents=TopicIncidents(hot=moving))
    found = [(it.severity.word, it.code) for it in advice_for(group("billing", hot)).findings]

    assert found[0] == (severity, "hot_partition")
    assert all(code != "falling_behind" for _, code in found)


def test_a_group_that_is_always_in_a_planned_pause_is_not_stuck() -> None:
    pause = Pause(frozenset(range(7)), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))
    resting = read(hours(48, members_max=0))

    assert finding(dataclasses.replace(resting, agreement=Agreement(pauses=(pause,))), "stuck") is None


def test_hours_whose_samples_are_gone_explain_nothing_of_the_time_that_is_left() -> None:
    of = hours(48, lag=lambda _: 900.0)
    of.members_max[:30] = 0
    lag = Lag(12, 900, 900, 900, 900, 900, 900, MONDAY + timedelta(hours=36), MONDAY + timedelta(hours=48))
    above = Above(600, False, 12 * 3600.0, 12 * 3600.0, 1, 12 * 3600.0, None)
    late = group("billing", dataclasses.replace(topic(of=of), lag=lag, above=above))

    assert above_threshold(late, load_of(late), zone=ZoneInfo("UTC")) is not None
