import dataclasses
import math
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from adapter.verdicts.capacity import Capacity
from adapter.verdicts.simulation.consumers import Consumers
from spark.advice.advised import expected_in_words
from spark.advice.assessment import drain_seconds
from spark.advice.demand import load_of
from spark.advice.finding import Severity
from spark.advice.hpa import draft_of, rounded
from spark.advice.recommendation import Promise, Reads
from spark.figures.agreement import Agreement, Pause
from spark.figures.incidents import MemberHours
from spark.figures.model import Group, Pace, Periods
from tests.support.history.advised_groups import UTC, advice_for, changed, read
from tests.support.history.report_groups import group, hours, saturated, together, topic


def able(of: Periods) -> Group:
    """A member does 50/s, and the threshold is far away."""
    return group("billing", topic(of=of, threshold=10**6), capacity=saturated(60, 50))


CONSUMERS = Consumers(50.0, (1,), assignor=None)
"""Each does 50/s."""


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


def test_members_that_do_more_at_night_may_read_a_peak_of_the_night() -> None:
    """Four of them do 400/s from 20:00 to 8:00, and 160/s by day."""
    windows, rates = (6,) * 24, tuple(100.0 if hour >= 20 or hour < 8 else 40.0 for hour in range(24))
    capacity = Capacity(144, 8640.0, 40.0, 70.0, 100.0, windows, rates, rates)

    def refusal(most: float) -> str:
        of = hours(production=lambda hour: most if hour % 24 == 2 else 40.0)
        return draft_of(group("billing", topic(of=of), capacity=capacity), UTC).refusal

    assert "more than the 4 members" not in refusal(300.0)
    assert "more than the 4 members" in refusal(450.0)


DAY = hours(production=lambda _: 40)


HOT = dataclasses.replace(hours(production=lambda _: 40), skew=np.full(48, 0.9))
"""One partition gets 36/s."""


def beyond_a_member(of: Periods) -> Group:
    return dataclasses.replace(able(of), capacity=saturated(60, 30))


def test_an_hpa_is_recommended_where_one_member_can_read_the_hot_partition() -> None:
    """The members of the others may be more or fewer."""
    advice = advice_for(able(HOT))

    assert advice.hpa.target.value is not None
    assert advice.findings[0].words.endswith("one can read this one, and more replicas help only with the others.")
    assert advice.findings[0].to_do.startswith("Spread the keys over the partitions, before it is more than one member")


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (read(DAY), "never seen saturated"),
        (able(changed(DAY, consumed=0.0, lag_p50=500.0)), "more replicas do not help"),
        (beyond_a_member(HOT), "One partition of orders gets 90\u202f% of the messages: more replicas do not help"),
        (able(hours(12, production=lambda _: 40)), "Less than a day was seen"),
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


def test_an_hpa_is_tried_on_members_that_come_and_go_only_if_an_hpa_may_be_why() -> None:
    """In the last three of two days."""
    starts = DAY.start[-3:]
    columns = (np.full(3, value) for value in (8.0, 0.0, 1.0, 4.0))
    unsteady = dataclasses.replace(able(DAY), member_hours=MemberHours(starts, *columns))

    assert draft_of(unsteady, UTC).refusal == (
        "Members come and go, and the replay counts on replicas that stay. If an HPA on this lag, or on a number of "
        "replicas that the adapter serves, adds and removes them, name its file (--hpa); no other can be replayed."
    )
    assert not draft_of(unsteady, UTC, has_hpa=True).refusal


def test_a_single_partition_is_no_each() -> None:
    one = able(hours(production=lambda _: 101, partitions=1, members_max=1))
    said = draft_of(one, UTC).hpa

    assert said.max_replicas.reason.startswith("One for its only partition; another member ")
    assert "than the only member that can have a partition does. " in said.target.reason


@pytest.mark.parametrize(
    ("wait", "interval", "says"),
    [
        (60, 60.0, "Allow a wait of 1\u202fmin 30\u202fs, take a sample at least every 20 s, or run "),
        (47, 10.0, "Allow a wait of 50\u202fs, take a sample at least every 5 s, or run "),
        (40, 10.0, "Allow a wait of 50\u202fs, or run "),
    ],
)
def test_a_wait_that_samples_are_too_rare_for_says_how_often_they_must_come(
    wait: float, interval: float, says: str
) -> None:
    of = dataclasses.replace(waited(wait), interval_seconds=interval)

    assert says in draft_of(of, UTC).hpa.target.reason


def test_a_wait_that_is_too_short_for_a_lag_is_kept_by_a_promise() -> None:
    """A steady load, sampled every 10 s."""
    hpa = advice_for(waited(49)).hpa

    assert (hpa.reads, hpa.target.value) == (Reads.REQUIRED_REPLICAS, 1)
    assert isinstance(hpa.rule, Promise)
    assert (hpa.rule.max_wait_seconds.value, hpa.rule.capacity) == (49, 50)


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
    assert 0 <= expected.wait_p50 <= expected.wait_p95 <= 120
    assert 450 / 50 < expected.replicas_mean < 18  # of the busier half of the day
    assert expected.changes_a_day > 0
    assert "changes a day" in expected_in_words(advice)


def test_a_target_is_refused_where_the_lag_shows_the_commits_and_not_the_load() -> None:
    """One commit in five minutes; the interval is 10 s. A wait of 12 minutes is twice as long with its tolerance."""
    rare = dataclasses.replace(able(hours(production=lambda _: 40)), pace=Pace(lagging=300, moving=10))
    short, longer, long = (draft_of(waited(seconds, rare), UTC) for seconds in (60, 600, 720))

    assert short.refusal == short.hpa.target.reason
    assert "commits come about every 5\u202fmin, and a message waits until its offset is committed" in short.refusal
    assert short.refusal.endswith("Commit every 25\u202fs, or allow a wait of 12\u202fmin.")
    assert (longer.refusal, longer.hpa.target.value) == ("", None)
    assert "allow a wait of 12\u202fmin, or run" in longer.hpa.target.reason
    assert long.hpa.target.value == 50 * 720 / 1.2


def test_where_a_share_group_may_read_all_members_that_there_were_can_work() -> None:
    """Its members share partitions; whether it is one is not known where the history has no assignment."""
    shared, alone = (read(hours(members_max=7), is_spread=spread, capacity=saturated()) for spread in (None, False))

    assert [advice_for(of).hpa.max_replicas.value for of in (shared, alone)] == [7, 4]
    assert "share" in advice_for(shared).hpa.max_replicas.reason


@pytest.mark.parametrize(("per_member", "is_said"), [(5, True), (500, False), (None, True)])
def test_a_hot_partition_has_one_voice(per_member: int | None, *, is_said: bool) -> None:
    """Whether one member can read it, cannot, or nobody knows."""
    capacity = None if per_member is None else saturated(60, per_member=per_member)
    hot = read(hours(skew=0.9, lag=lambda hour: 900.0 * hour), capacity=capacity)
    advice = advice_for(dataclasses.replace(hot, hours=changed(hot.hours, consumed=18_000.0)))
    said = [f"{it.words} {it.to_do}" for it in advice.findings if it.severity > Severity.NOTE]

    assert said
    assert {"more replicas do not help" in words for words in said} == {is_said}


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


def test_what_is_stuck_before_a_planned_pause_of_a_day_still_prevents_an_hpa() -> None:
    """It stands still from noon of Monday on; Tuesday is the planned day off."""
    of = hours(48, production=lambda hour: 40 if hour < 24 else 0, lag=lambda hour: 900.0 if hour >= 12 else 0.0)
    of.consumed[12:], of.members_max[24:] = 0, 0
    pause = Pause(frozenset({1}), timedelta(0), timedelta(days=1), ZoneInfo("UTC"))
    paused = dataclasses.replace(able(of), agreement=Agreement(pauses=(pause,)))
    draft = draft_of(paused, UTC)

    assert "stuck" in {it.code for it in draft.findings}
    assert draft.refusal == "No commit of the group moves: more replicas do not help."


def test_what_is_stuck_prevents_an_hpa_also_where_its_last_day_was_hardly_seen() -> None:
    of = hours(60, production=lambda _: 40, lag=lambda hour: 900.0 if hour >= 12 else 0.0)
    of.consumed[12:], of.covered_seconds[30:] = 0, 600

    assert draft_of(able(of), UTC).refusal == "No commit of the group moves: more replicas do not help."


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
    assert [preset.hpa.min_replicas.value for preset in advice.presets] == [1, 1, 1, 4, 1]


def test_a_few_hours_on_both_sides_of_a_gap_are_no_week() -> None:
    of = hours(number=4, production=lambda _: 7 * 86400 / 3600, covered_seconds=7 * 86400.0)

    assert advice_for(read(of, capacity=saturated(60, per_member=50))).hpa.max_replicas.value == 4


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


def test_a_replay_says_no_wait_that_is_shorter_than_its_steps() -> None:
    idle = advice_for(able(hours(production=lambda _: 10)))

    assert idle.expected is not None
    assert (idle.expected.wait_max, "up to 15\u202fs in" in expected_in_words(idle)) == (0, True)


def test_a_threshold_that_was_given_for_one_topic_is_kept_beside_a_busier_one() -> None:
    quiet, loud = topic("a", hours(production=lambda _: 10)), topic("b", hours(production=lambda _: 30))
    given = dataclasses.replace(quiet, above=dataclasses.replace(quiet.above, threshold=550, is_given=True))
    far = dataclasses.replace(loud, above=dataclasses.replace(loud.above, threshold=10**9))
    both = group("billing", given, far, capacity=saturated(60, 50))
    both = dataclasses.replace(both, hours=together([quiet.hours, loud.hours]))

    assert advice_for(waited(600, both)).hpa.target.value == 2200  # 50 x 55 / 1.2, to two digits


@pytest.mark.parametrize(
    ("steepest", "replicas", "words"),
    [
        (100.0, 3, "run 3 replicas all the time, enough for the busiest five minutes."),
        (290.0, 6, "run 6 replicas all the time, enough for the busiest five minutes."),
        (
            900.0,
            12,
            "run 12 replicas all the time, one for each partition, although the busiest five minutes bring more than",
        ),
    ],
)
def test_without_an_hpa_replicas_are_kept_for_the_busiest_five_minutes(
    steepest: float, replicas: int, words: str
) -> None:
    """100/s in each hour, at 80 % of 50/s a member in twelve partitions."""
    draft = draft_of(able(hours(48, lambda _: 100.0, partitions=12, production_rate_max=steepest)), ZoneInfo("UTC"))

    assert draft.instead_of_it == replicas
    assert draft.instead.startswith(words)
