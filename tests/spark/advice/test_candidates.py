"""What is asked of a replay."""

import math
from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from adapter.verdicts.capacity import Capacity
from adapter.verdicts.hpa import MetricTarget
from adapter.verdicts.owners import Assignor
from adapter.verdicts.promised import Promised
from spark.advice.candidates import TOO_LARGE, Tried, asked_of, question_of, tried_of
from spark.advice.demand import load_of
from spark.advice.hpa import draft_of
from spark.figures.agreement import Agreement
from spark.figures.model import Group
from spark.trials.trial import Question
from tests.support.history.advised_groups import UTC, advice_for
from tests.support.history.report_groups import group, hours, saturated, together, topic

BERLIN = ZoneInfo("Europe/Berlin")
DAYTIME = (math.nan,) * 8 + (40.0,) * 10 + (100.0,) * 4 + (math.nan,) * 2
SLOW_BY_DAY = Capacity(700, 42_000.0, 40.0, 40.0, 100.0, (0,) * 8 + (50,) * 14 + (0,) * 2, DAYTIME, DAYTIME)


def asked(of: Group, zone: ZoneInfo = UTC) -> Question:
    question = asked_of(of, load_of(of), [], 60.0, zone)
    assert question is not None
    return question


def of_two_topics() -> Group:
    quiet = topic("quiet", hours(24, lambda _: 1.0, partitions=2, skew=0.5))
    busy = topic("busy", hours(24, lambda _: 99.0, partitions=4, skew=0.4))
    return replace(group("billing", quiet, busy, capacity=saturated(60, 50)), hours=together([quiet.hours, busy.hours]))


def test_the_topic_with_the_busiest_partition_comes_first_and_partitions_weigh_what_they_get() -> None:
    question = asked(of_two_topics())
    assert question.shape.weights is not None

    assert question.consumers.partitions == (4, 2)
    assert question.shape.weights == pytest.approx([1, 1, 1, 1, 2 / 99, 2 / 99])
    assert question.shape.skew == pytest.approx([0.4 * 0.99] * 24)


def test_the_past_is_replayed_with_the_median_and_hpas_with_the_lower_quartile() -> None:
    capacity = replace(saturated(60, 50), p25=45.0)
    question = asked(group("billing", capacity=capacity))

    assert (question.seen_capacity, question.consumers.capacity, question.shape.pace) == (50, 45, None)


def test_a_capacity_that_differs_by_the_hour_is_replayed_by_the_local_hour() -> None:
    """Hours without enough windows have the capacity of the hour before: those of the night that of the evening. It
    is June, in which Berlin is two hours ahead."""
    question = asked(group("billing", topic(of=hours(24)), capacity=SLOW_BY_DAY), BERLIN)
    assert question.shape.pace is not None

    assert (question.seen_capacity, question.consumers.capacity) == (40, 40)
    assert np.roll(question.shape.pace, 2).tolist() == [2.5] * 8 + [1.0] * 10 + [2.5] * 6


def test_members_share_topics_as_the_last_assignment_shows() -> None:
    two = of_two_topics()

    assert asked(replace(two, is_spread=True)).consumers.assignor is Assignor.UNIFORM
    assert asked(replace(two, is_spread=False)).consumers.assignor is Assignor.RANGE


def of_many_partitions(number: int) -> Group:
    busy = topic(of=hours(48, lambda _: 40.0, partitions=number, skew=1 / number), threshold=10**9)
    return replace(group("billing", busy, capacity=saturated(60, 50)), agreement=Agreement(max_wait_seconds=120))


def test_a_group_with_too_many_partitions_is_not_replayed_and_gets_no_hpa() -> None:
    draft = draft_of(of_many_partitions(1001), UTC)
    tried = tried_of(draft)

    assert tried
    assert question_of(draft, tried, UTC) is None
    assert advice_for(draft.group).hpa.target.reason.startswith(TOO_LARGE.replace("groups", "Groups"))
    assert question_of(draft_of(of_many_partitions(1000), UTC), tried, UTC) is not None


def tried_for(of: Group) -> dict[str, Tried]:
    return {it.name: it for it in tried_of(draft_of(of, UTC))}


def test_minima_are_tried_for_hours_that_are_busier_than_off_peak() -> None:
    wave = hours(48, lambda hour: 50 + 150 * (hour % 4), partitions=24, skew=1 / 24)
    of = replace(
        group("billing", topic(of=wave, threshold=10**9), capacity=saturated(60, 50)),
        agreement=Agreement(max_wait_seconds=120),
    )
    minima = {it.candidate.hpa.min_replicas for it in tried_for(of).values() if it.hpa is not None}

    assert len(minima) == 3


def test_what_is_recommended_instead_of_an_hpa_is_replayed_beside_the_hpas() -> None:
    tried = tried_for(of_many_partitions(12))

    assert tried["1 replica all the time"].hpa is None
    assert tried["1 replica all the time"].candidate.hpa.max_replicas == 1


def test_the_number_that_keeps_the_promise_is_replayed_for_comparison() -> None:
    wave = hours(48, lambda hour: 50 + 150 * (hour % 4), partitions=24, skew=1 / 24)
    of = replace(
        group("billing", topic(of=wave, threshold=10**9), capacity=saturated(60, 50)),
        agreement=Agreement(max_wait_seconds=120),
    )
    (promised,) = (it for it in tried_for(of).values() if it.candidate.rule is not None)
    hpa = promised.candidate.hpa

    assert (promised.candidate.rule, promised.hpa, hpa.min_replicas) == (Promised(120.0), None, 1)
    assert hpa.metrics[0].source.target == MetricTarget(type="AverageValue", average_value=1)
    assert hpa.behavior is not None
    assert hpa.behavior.scale_up.tolerance == 0
