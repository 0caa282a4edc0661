"""What is asked of a replay."""

import math
from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from adapter.verdicts.capacity import Capacity
from adapter.verdicts.hpa import MetricTarget
from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation.promised import Promised
from spark.advice.candidates import TOO_LARGE, Tried, asked_of, question_of, tried_of
from spark.advice.demand import load_of
from spark.advice.hpa import draft_of
from spark.advice.hpa_files.adapter_settings import keys_of
from spark.advice.recommendation import Reads
from spark.figures.agreement import Agreement
from spark.figures.model import Group
from spark.trials.trial import Question
from tests.support.history.advised_groups import UTC, advice_for
from tests.support.history.report_groups import group, hours, saturated, together, topic

BERLIN = ZoneInfo("Europe/Berlin")
DAYTIME = (math.nan,) * 8 + (40.0,) * 10 + (100.0,) * 4 + (math.nan,) * 2
SLOW_BY_DAY = Capacity(700, 42_000.0, 40.0, 40.0, 100.0, (0,) * 8 + (50,) * 14 + (0,) * 2, DAYTIME, DAYTIME)


WAVE = replace(
    group(
        "billing",
        topic(of=hours(48, lambda hour: 50 + 150 * (hour % 4), partitions=24, skew=1 / 24), threshold=10**9),
        capacity=saturated(60, 50),
    ),
    agreement=Agreement(max_wait_seconds=120),
)


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
    assert question_of(draft, tried) is None
    assert advice_for(draft.group).hpa.target.reason.startswith(TOO_LARGE.replace("groups", "Groups"))
    assert question_of(draft_of(of_many_partitions(1000), UTC), tried) is not None


def tried_for(of: Group) -> dict[str, Tried]:
    return {it.name: it for it in tried_of(draft_of(of, UTC))}


def test_minima_are_tried_for_hours_that_are_busier_than_off_peak() -> None:
    hpas = [it.hpa for it in tried_for(WAVE).values() if it.hpa is not None]

    assert len({hpa.min_replicas.value for hpa in hpas if hpa.reads is Reads.LAG}) == 3


def test_what_is_recommended_instead_of_an_hpa_is_replayed_beside_the_hpas() -> None:
    tried = tried_for(of_many_partitions(12))

    assert tried["1 replica all the time"].hpa is None
    assert tried["1 replica all the time"].candidate.hpa.max_replicas == 1


def promised_for(of: Group) -> list[Tried]:
    return [it for it in tried_for(of).values() if isinstance(it.candidate.rule, Promised)]


def test_the_number_that_keeps_the_promise_is_tried_as_its_example_says_with_the_capacity_as_a_hint() -> None:
    (first,) = promised_for(WAVE)
    hpa = first.candidate.hpa
    assert first.hpa is not None
    assert hpa.behavior is not None
    (metric,) = hpa.metrics

    assert (first.candidate.rule, hpa.min_replicas, hpa.max_replicas) == (Promised(120.0), 1, 24)
    assert metric.source.metric.name == "kafka_consumergroup_required_replicas"
    assert metric.source.target == MetricTarget(type="AverageValue", average_value=1)
    assert (hpa.behavior.scale_up.tolerance, hpa.behavior.scale_down.stabilization_window_seconds) == (0, 120)
    assert [(key, value) for key, value, _ in keys_of(first.hpa)] == [("maxWait", "120s"), ("capacityHint", "50")]


@pytest.mark.parametrize(
    ("capacity", "hint"), [(39.99, "39.9"), (1234567.0, "1230000"), (0.01666666, "0.0166"), (0.1 + 0.2, "0.3")]
)
def test_a_hint_is_the_capacity_with_three_digits_rounded_down(capacity: float, hint: str) -> None:
    of = replace(WAVE, capacity=saturated(60, capacity), hours=replace(WAVE.hours, produced=WAVE.hours.produced * 1e-4))
    (first,) = promised_for(of)
    assert first.hpa is not None

    assert keys_of(first.hpa)[1][:2] == ("capacityHint", hint)


def test_a_wait_that_is_too_short_for_a_lag_is_promised_all_the_same() -> None:
    """No lag target settles with less than half a minute of work."""
    short = replace(WAVE, agreement=Agreement(max_wait_seconds=30))

    assert draft_of(short, UTC).hpa.target.value is None
    assert {it.hpa.reads for it in tried_for(short).values() if it.hpa is not None} == {Reads.REQUIRED_REPLICAS}


@pytest.mark.parametrize(
    "of",
    [
        replace(WAVE, capacity=None),
        replace(WAVE, capacity=replace(saturated(60, 50), p95=200.0)),
        replace(WAVE, capacity=saturated(60, 10)),
        group("billing", topic(of=hours(4, lambda _: 50.0)), capacity=saturated(60, 50)),
    ],
    ids=["never saturated", "scatters", "less than arrives", "less than a day"],
)
def test_without_a_capacity_or_with_too_little_of_it_nothing_is_tried(of: Group) -> None:
    assert tried_for(of) == {}
