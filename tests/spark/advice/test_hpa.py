import dataclasses
import math
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice import group_findings
from spark.advice.assessment import drain_seconds
from spark.advice.demand import load_of
from spark.advice.finding import Finding, Severity
from spark.advice.hpa import CHANGES_A_DAY, advice_for, expected_in_words, rounded
from spark.advice.presets import presets_for
from spark.advice.replay import Expected, Loop, replayed
from spark.figures.agreement import Agreement, Pause
from spark.figures.model import Above, Capacity, Group, Lag, Pace, Periods, Still, Times, Topic
from spark.figures.periods import between
from tests.support.history.report_groups import MONDAY, STEADY, group, hours, saturated, together, topic


def finding(of: Group, code: str) -> Finding | None:
    return next((it for it in advice_for(of).findings if it.code == code), None)


def changed(of: Periods, **columns: float) -> Periods:
    return dataclasses.replace(of, **{name: np.full(len(of), value) for name, value in columns.items()})


def read(of: Periods, **given: object) -> Group:
    return dataclasses.replace(group("billing", topic(of=of)), **given)  # type: ignore[arg-type]  # test's own words


def able(of: Periods) -> Group:
    """A member does 50/s, and the threshold is far away."""
    return group("billing", topic(of=of, threshold=10**6), capacity=saturated(60, 50))


def silent(number: int) -> Times:
    """So many hours of which nothing is there."""
    return np.datetime64("2026-06-02", "us") + np.arange(number) * np.timedelta64(1, "h")


def waited(seconds: float, of: Group | None = None) -> Group:
    """A group that produces 40/s, of which a member does 50/s, and that agreed on so long a wait."""
    busy = of or group("billing", topic(of=hours(production=lambda _: 40), threshold=10**9), capacity=saturated(60, 50))
    return dataclasses.replace(busy, agreement=Agreement(max_wait_seconds=seconds))


def test_the_target_is_what_a_member_does_in_the_agreed_wait_less_the_tolerance() -> None:
    a_minute, ten = (advice_for(waited(seconds)).hpa.target for seconds in (60, 600))

    assert (a_minute.value, ten.value) == (50 * 60 / 1.2, 50 * 600 / 1.2)
    assert "60 windows" in a_minute.reason


def test_a_threshold_that_is_reached_sooner_than_the_wait_lowers_the_target() -> None:
    low = group("billing", topic(of=hours(production=lambda _: 40), threshold=40 * 55), capacity=saturated(60, 50))

    assert advice_for(waited(600, low)).hpa.target.value == 2200  # 50 x 55 / 1.2, to two digits


DAY = hours(production=lambda _: 40)
HOT = dataclasses.replace(hours(production=lambda _: 40), skew=np.full(48, 0.9))


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (read(DAY), "never seen saturated"),
        (able(changed(DAY, consumed=0.0, lag_p50=500.0)), "more replicas do not help"),
        (able(HOT), "One partition of orders gets 90\u202f%: more replicas do not help"),
        (able(hours(12, production=lambda _: 40)), "Less than a day was seen"),
        (waited(49), "No HPA on lag keeps a wait of 49\u202fs"),
        (
            able(changed(hours(production=lambda _: 201), consumed=360_000.0)),
            "more than the 4 members that can have a partition do",
        ),
        (able(changed(DAY, produced=math.nan)), "not known"),
    ],
)
def test_no_target_is_recommended_where_none_can_be(of: Group, why: str) -> None:
    advice = advice_for(of)

    assert (advice.hpa.target.value, advice.expected) == (None, None)
    assert why in advice.hpa.target.reason
    assert advice.hpa.max_replicas.value == 4


def test_what_a_member_did_at_least_is_never_a_target() -> None:
    """0.05 messages/s were once a target of 9, and 12 pods at once."""
    slow = read(hours(production=lambda hour: 0.1 if hour % 9 else 60, partitions=12, members_max=2))
    hpa = advice_for(slow).hpa

    assert hpa.target.value is None
    assert hpa.up.pods.value == 4


def test_trouble_that_is_over_leaves_a_target() -> None:
    over = changed(hours(production=lambda _: 40), lag_p50=50.0)
    over.consumed[:5] = 0
    advice = advice_for(able(over))

    assert "stuck" in {it.code for it in advice.findings}
    assert advice.hpa.target.value is not None


def test_the_recommended_hpa_keeps_the_agreed_wait_in_its_replay() -> None:
    daily = hours(
        168, lambda hour: 300 + 250 * math.sin(hour / 24 * 2 * math.pi), partitions=24, skew=0.05, members_max=24
    )
    advice = advice_for(waited(120, group("billing", topic(of=daily, threshold=10**9), capacity=saturated(60, 50))))
    expected = advice.expected

    assert expected is not None
    assert expected.kept_share >= 0.95
    assert 0 <= expected.wait_p50 < expected.wait_p95 <= 120
    assert 300 / 50 * 0.9 < expected.replicas_mean < 300 / 50 * 2
    assert expected.changes_a_day > 0
    assert "changes a day" in expected_in_words(advice)


def test_replicas_that_would_change_often_are_kept_longer_before_they_are_taken_away() -> None:
    """The shortest window that is calm enough is taken."""
    busy = hours(production=lambda hour: 100 + 50 * math.sin(hour / 3), partitions=24, skew=0.05, members_max=24)
    often = waited(120, able(busy))
    advice = advice_for(often)
    window = advice.hpa.down.window_seconds
    least, most, pods = (it.value for it in (advice.hpa.min_replicas, advice.hpa.max_replicas, advice.hpa.up.pods))
    loop = Loop(advice.hpa.target.value or 0, least, most, pods, 300, 50.0, 40.0, 10.0)
    hasty = replayed(busy.production_rate, loop, 120)

    assert advice.expected is not None
    assert (window.value, "times a day in the replay" in window.reason) == (1800, True)
    assert advice.expected.changes_a_day <= CHANGES_A_DAY < hasty.changes_a_day
    assert "many_changes" not in {it.code for it in advice.findings}


def test_an_hpa_whose_replicas_change_often_whatever_its_window_is_recommended_with_a_doubt() -> None:
    """From 2 members to 38 and back in a day: on the way up, no window for scaling down has an effect."""
    daily = hours(production=lambda hour: 1000 + 900 * math.sin(hour / 24 * 2 * math.pi), partitions=40, skew=1 / 40)
    doubt = finding(waited(120, able(changed(daily, members_max=40.0))), "many_changes")

    assert doubt is not None
    assert (doubt.severity, "times a day" in doubt.words, "replicas" in doubt.to_do) == (Severity.NOTE, True, True)


def test_a_target_is_refused_where_the_lag_shows_the_commits_and_not_the_load() -> None:
    """One commit in five minutes; the interval is 10 s. A wait of 12 minutes is twice as long with its tolerance."""
    rare = dataclasses.replace(able(hours(production=lambda _: 40)), pace=Pace(lagging=300, moving=10))
    short, long = (advice_for(waited(seconds, rare)).hpa.target for seconds in (60, 720))

    assert short.value is None
    assert "commits come about every 5\u202fmin" in short.reason
    assert "allow a wait of 12\u202fmin, or keep" in short.reason
    assert long.value == 50 * 720 / 1.2


def test_where_a_share_group_may_read_all_members_that_there_were_can_work() -> None:
    """Its members share partitions; whether it is one is not known where the history has no assignment."""
    shared, alone = (read(hours(members_max=7), is_spread=spread, capacity=saturated()) for spread in (None, False))

    assert [advice_for(of).hpa.max_replicas.value for of in (shared, alone)] == [7, 4]
    assert "share" in advice_for(shared).hpa.max_replicas.reason


@pytest.mark.parametrize("per_member", [5, 500])
def test_a_hot_partition_has_one_voice(per_member: int) -> None:
    """Whether one member can read it or not."""
    hot = read(hours(skew=0.9, lag=lambda hour: 900.0 * hour), capacity=saturated(60, per_member=per_member))
    advice = advice_for(dataclasses.replace(hot, hours=changed(hot.hours, consumed=18_000.0)))
    said = [f"{it.words} {it.to_do}" for it in advice.findings if it.severity > Severity.NOTE]

    assert all("more replicas do not help" in words for words in said)
    assert advice.hpa.target.reason.endswith("more replicas do not help.")


def test_what_waits_in_a_planned_pause_drains_when_it_ends() -> None:
    """Two members read 40 messages/s of 4 partitions until Tuesday, the planned day off, and do 50/s each."""
    of = hours(48, production=lambda _: 40, lag=lambda hour: 900.0 if hour >= 24 else 0.0)
    of.members_max[24:], of.consumed[24:] = 0, 0
    home = group("billing", topic(of=of), capacity=saturated(60, 50))
    pause = Pause(frozenset({1}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))
    paused = dataclasses.replace(home, agreement=Agreement(pauses=(pause,)))

    assert math.isinf(drain_seconds(home.topics[0], advice_for(home)) or 0)
    assert drain_seconds(paused.topics[0], advice_for(paused)) == pytest.approx(1800 / (2 * 50 - 40))
    assert load_of(paused).members_now == 2


def test_without_lag_and_with_replicas_enough_nothing_waits_and_nothing_changes() -> None:
    loop = Loop(1000, 3, 6, 4, 300, 50.0, 40.0, 10.0)
    expected = replayed(np.full(30, 100.0), loop, 60.0)

    assert expected == Expected(0.0, 0.0, 0.0, 1.0, 3.0, 0.0)


@pytest.mark.parametrize(
    ("value", "to"), [(0, 1), (0.2, 1), (9.1, 9), (10.5, 10), (99.9, 99), (120.1, 120), (2291, 2200), (8836, 8800)]
)
def test_targets_are_rounded_down_to_two_digits(value: float, to: int) -> None:
    assert rounded(value) == to


def test_an_idle_group_may_go_to_zero() -> None:
    hpa = advice_for(read(hours(production=lambda hour: 0 if hour % 4 == 0 else 10))).hpa

    assert hpa.min_replicas.value == 0
    assert "HPAScaleToZero" in hpa.min_replicas.reason


def test_the_least_replicas_carry_the_off_peak_load() -> None:
    busy = hours(number=240, production=lambda hour: 100 if hour % 2 else 900, partitions=40, members_max=40)
    hpa = advice_for(read(busy, capacity=saturated(60, 50))).hpa

    assert hpa.min_replicas.value == 3  # 100/s at 80 % of 50/s each: 16 partitions each, so three members


def test_without_a_capacity_no_more_than_one_replica_is_asked_for() -> None:
    assert advice_for(read(hours(production=lambda _: 900))).hpa.min_replicas.value == 1


def test_the_most_replicas_are_the_partitions_unless_a_week_shows_that_fewer_do() -> None:
    a_day = hours(number=24, production=lambda _: 100, partitions=40, skew=1 / 40)
    a_week = hours(number=168, production=lambda _: 100, partitions=40, skew=1 / 40)
    of_a_day, of_a_week = (advice_for(read(it, capacity=saturated(60, 50))).hpa.max_replicas for it in (a_day, a_week))

    assert of_a_day.value == 40
    assert of_a_week.value == 4  # 1.5 times 100/s at 50/s each: 13 partitions each
    assert advice_for(read(a_week)).hpa.max_replicas.value == 40


def test_a_steep_rise_is_followed_at_once() -> None:
    steep = hours(production=lambda hour: 1000 if hour >= 24 else 10, partitions=40, members_max=40)
    up = advice_for(read(steep, capacity=saturated(60, 50))).hpa.up

    assert up.pods.value == 20
    assert up.window_seconds.value == 0


def test_dips_that_come_back_make_the_group_wait_before_it_shrinks() -> None:
    dipping = hours(production=lambda hour: 10 if hour % 6 == 3 else 100)

    assert advice_for(read(dipping)).hpa.down.window_seconds.value == 900
    assert advice_for(read(hours())).hpa.down.window_seconds.value == 300


def test_every_number_has_a_reason() -> None:
    hpa = advice_for(group(capacity=saturated())).hpa
    numbers = [hpa.min_replicas, hpa.max_replicas]
    for behavior in (hpa.up, hpa.down):
        numbers += [behavior.window_seconds, behavior.pods, behavior.percent]

    assert hpa.target.reason.endswith(".")
    assert all(number.reason.endswith(".") for number in numbers if number.value or number is hpa.up.window_seconds)


@pytest.mark.parametrize("capacity", [None, saturated(60)])
def test_production_that_is_not_known_is_not_taken_for_none(capacity: Capacity | None) -> None:
    of = read(
        changed(hours(number=400, lag=lambda _: 9.0), produced=math.nan, consumed=math.nan, covered_seconds=600.0),
        capacity=capacity,
    )
    advice = advice_for(of)

    assert (advice.hpa.min_replicas.value, advice.hpa.max_replicas.value) == (1, of.partitions)
    assert "nothing_produced" not in {each.code for each in advice.findings}
    assert drain_seconds(of.topics[0], advice) is None
    assert [preset.hpa.min_replicas.value for preset in presets_for(of, advice, ZoneInfo("UTC"))] == [1, 1, 1, 4, 1]


def test_a_few_hours_on_both_sides_of_a_gap_are_no_week() -> None:
    of = hours(number=4, production=lambda _: 7 * 86400 / 3600, covered_seconds=7 * 86400.0)

    assert advice_for(read(of, capacity=saturated(60, per_member=50))).hpa.max_replicas.value == 4


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


def read_code(of: Topic) -> str:
    found = finding(group("a", of), "samples_gone")
    assert found is not None
    return found.words


def first_day() -> Periods:
    """A history's: its first sample covers no time."""
    of = hours(number=24)
    of.covered_seconds[0] = 3590
    return of


STUCK = changed(hours(lag=lambda _: 500), consumed=0.0)
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
        ("idle_members", read(hours(members_max=5), is_spread=False), Severity.WATCH),
        ("rewinds", read(hours(rewinds=1)), Severity.WATCH),
        ("skips", read(hours(skips=1)), Severity.WATCH),
        ("recreations", read(hours(recreations=1)), Severity.WATCH),
        ("resets", read(hours(resets=1)), Severity.NOTE),
        ("never_saturated", read(hours()), Severity.NOTE),
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
    assert "ended before the last hour" in over.words


def test_nobody_is_told_to_delete_a_group_that_had_members() -> None:
    alone = changed(STUCK, members_max=0.0)
    night_shift = together((hours(24), between(alone, np.arange(48) >= 24)))
    never, at_times = (finding(read(of), "lag_without_members") for of in (alone, night_shift))

    assert never is not None
    assert at_times is not None
    assert "delete" in never.to_do
    assert (at_times.severity, "delete" in at_times.to_do, "HPA" in at_times.to_do) == (Severity.URGENT, False, True)


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


def test_a_group_that_goes_home_for_a_planned_pause_is_not_stuck() -> None:
    """It reads until a minute before Tuesday, its day off, and its members leave."""
    of = hours(48, lag=lambda hour: 900.0 if hour >= 24 else 0.0)
    of.members_max[24:], of.consumed[24:] = 0, 0
    still = Still(2, (0, 1), MONDAY + timedelta(hours=23, minutes=59), True, MONDAY + timedelta(days=2), 900, ())
    resting = group("billing", dataclasses.replace(topic(of=of), still=still))
    pause = Pause(frozenset({1}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))

    assert finding(dataclasses.replace(resting, agreement=Agreement(pauses=(pause,))), "stuck") is None


def test_a_hot_partition_never_lowers_the_most_replicas() -> None:
    """With fewer members, the one that reads the hot partition would read others as well."""
    weeks = (hours(168, lambda _: 100, partitions=40, skew=skew) for skew in (1 / 40, 0.4))
    even, hot = (read(week, capacity=saturated(60, 50)) for week in weeks)

    assert [advice_for(it).hpa.max_replicas.value for it in (even, hot)] == [4, 40]


def test_what_one_replica_for_each_partition_can_do_is_that_of_the_largest_topic() -> None:
    """The RangeAssignor assigns all topics to the same members, so 12 members get partitions, not 18."""
    loud, quiet = (hours(production=lambda _: 400, partitions=number, skew=1 / number) for number in (12, 6))
    both = group("billing", topic("loud", loud, 10**9), topic("quiet", quiet, 10**9), capacity=saturated(60, 50))
    busy = dataclasses.replace(both, hours=changed(together([loud, quiet]), consumed=360_000.0))

    assert "more than the 12 members that can have a partition do" in advice_for(busy).hpa.target.reason


def test_hours_whose_samples_are_gone_explain_nothing_of_the_time_that_is_left() -> None:
    of = hours(48, lag=lambda _: 900.0)
    of.members_max[:30] = 0
    lag = Lag(12, 900, 900, 900, 900, 900, 900, MONDAY + timedelta(hours=36), MONDAY + timedelta(hours=48))
    above = Above(600, False, 12 * 3600.0, 12 * 3600.0, 1, 12 * 3600.0, None)
    late = group("billing", dataclasses.replace(topic(of=of), lag=lag, above=above))

    assert group_findings.above_threshold(late, load_of(late)) is not None


def test_a_replay_says_no_wait_that_is_shorter_than_its_steps() -> None:
    idle = advice_for(able(hours(production=lambda _: 10)))

    assert idle.expected is not None
    assert (idle.expected.wait_max, "up to 15\u202fs for" in expected_in_words(idle)) == (0, True)


def test_a_threshold_that_was_given_for_one_topic_is_kept_beside_a_busier_one() -> None:
    quiet, loud = topic("a", hours(production=lambda _: 10)), topic("b", hours(production=lambda _: 30))
    given = dataclasses.replace(quiet, above=dataclasses.replace(quiet.above, threshold=550, is_given=True))
    far = dataclasses.replace(loud, above=dataclasses.replace(loud.above, threshold=10**9))
    both = group("billing", given, far, capacity=saturated(60, 50))
    both = dataclasses.replace(both, hours=together([quiet.hours, loud.hours]))

    assert advice_for(waited(600, both)).hpa.target.value == 2200  # 50 x 55 / 1.2, to two digits
