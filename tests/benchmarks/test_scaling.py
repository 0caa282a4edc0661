from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation.consumers import Consumers
from benchmarks.scaling.picture import picture
from benchmarks.scaling.policies import LAG, ORACLE, POLICIES, REQUIRED, STARTED, foreseen
from benchmarks.scaling.rules import Flink, Keda, Packed, View, by_weight
from benchmarks.scaling.suite import Figures, Result, best_of, results_of
from benchmarks.scaling.table import worse_in_both
from benchmarks.scaling.workloads import Setting, settings, workloads

HOURS = 4
WAVE, CONSTANT, HOT, SPARSE = "wave 20K to 120K", "constant 85K", "one hot partition", "sparse bursts to zero"


def setting(name: str, assignor: Assignor = Assignor.COOPERATIVE_STICKY, start: float = 30.0) -> Setting:
    return Setting(next(it for it in workloads(HOURS) if it.name == name), assignor, start)


def figures(results: Sequence[Result], policy: str) -> Figures:
    (found,) = (result.figures for result in results if result.policy == policy)
    return found


@pytest.fixture(scope="module")
def on_wave() -> list[Result]:
    return results_of([setting(WAVE)], [LAG, REQUIRED])


def test_on_a_wave_a_promise_costs_a_third_less_than_the_best_lag_hpa_with_a_tenth_of_its_wait(
    on_wave: list[Result],
) -> None:
    lag, ours = figures(on_wave, LAG), figures(on_wave, REQUIRED)

    assert ours.replica_hours <= 0.7 * lag.replica_hours
    assert ours.wait_p99 <= 0.1 * lag.wait_p99


def test_on_a_wave_a_promise_costs_little_more_than_an_oracle(on_wave: list[Result]) -> None:
    assert figures(on_wave, REQUIRED).replica_hours <= 1.15 * figures(on_wave, ORACLE).replica_hours


@pytest.mark.parametrize("assignor", list(Assignor)[2:])
def test_a_constant_load_changes_nothing_after_ten_minutes(assignor: Assignor) -> None:
    found = figures(results_of([setting(CONSTANT, assignor)], [REQUIRED]), REQUIRED)

    assert (found.settled_changes, found.late_share) == (0, 0)


def test_one_hot_partition_never_runs_a_group_to_its_maximum() -> None:
    assert figures(results_of([setting(HOT)], [REQUIRED]), REQUIRED).most < 30


def test_bursts_far_apart_are_no_case_for_a_lag_hpa() -> None:
    assert not worse_in_both(results_of([setting(SPARSE)], [LAG, REQUIRED]))


def test_a_policy_that_costs_more_and_waits_longer_is_found() -> None:
    results = results_of([setting(CONSTANT)], [LAG, REQUIRED])
    late = [
        replace(it, figures=replace(it.figures, replica_hours=1e6, wait_p99=1e6)) if it.policy == REQUIRED else it
        for it in results
    ]

    assert [it.policy for it in worse_in_both(late)] == [REQUIRED]
    assert not worse_in_both(results)


def test_every_run_gives_the_same() -> None:
    first, second = (results_of([setting(WAVE)], [REQUIRED]) for _ in range(2))

    assert first == second


def test_the_suite_has_every_workload_with_every_assignor_and_start() -> None:
    of = [(it.workload.name, it.assignor, it.start_seconds) for it in settings(1)]

    assert len(of) == len(set(of)) == 17 * 3 * 3


def test_the_oracle_has_as_many_members_as_this_minute_and_the_next_one_need() -> None:
    """110,000 in a minute are 1,833/s: 20 members with two of 40 partitions each; 40,000 need 7 with six at most."""
    members = foreseen(setting("steps 40K and 110K"))

    assert members[[0, 28, 29, 30, 59, 60]].tolist() == [7, 7, 20, 20, 20, 7]


def test_with_slow_pods_not_even_an_oracle_of_the_next_minute_has_a_tenth_of_a_lag_hpas_wait() -> None:
    """Its replicas are late by what pods need beyond that minute."""
    slow = results_of([setting(WAVE, Assignor.RANGE, 120.0)], [LAG, REQUIRED, STARTED])
    lag, ours, foreseen = (figures(slow, policy).wait_p99 for policy in (LAG, REQUIRED, STARTED))

    assert 0.1 * lag < foreseen < ours < lag


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ([(10, 0.0), (8, 0.01), (5, 0.02)], 8),
        ([(10, 0.3), (8, 0.2), (5, 0.4)], 8),
    ],
)
def test_the_best_is_the_cheapest_that_keeps_the_promise_or_the_least_late(
    found: list[tuple[float, float]], best: float
) -> None:
    usual = Figures(60, 0.0, 0.0, 1.0, 1.0, 0.0, 0, 0, 0, 1)
    of = [replace(usual, replica_hours=hours, late_share=late) for hours, late in found]

    assert best_of(of).replica_hours == best


def view(arriving: Sequence[float], lag: Sequence[float], now: float = 900.0, replicas: int = 4) -> View:
    owners = np.arange(len(lag), dtype=np.int32) % replicas
    rates = np.array(arriving, float)
    return View(now, np.array(lag, float), rates, rates, sum(arriving), replicas, owners, replicas)


def test_keda_serves_at_most_a_replica_for_each_partition_and_stays_active_for_a_while() -> None:
    rule = Keda(Consumers(100.0, (4,)), threshold=10.0)
    values = [
        rule.value(view([0] * 4, [lag] * 4, now))
        for now, lag in ((30.0, 0.0), (45.0, 5.0), (60.0, 5.0), (75.0, 500.0), (345.0, 0.0), (360.0, 0.0))
    ]

    assert values == [0, 0, 20, 40, 0.001, 0]


def test_flink_waits_between_changes_and_takes_whole_shares_of_the_partitions() -> None:
    """350/s at 70 % with what restarts cost: 5.6 members, so 6 of 12 partitions; then nothing for five minutes."""
    rule = Flink(Consumers(100.0, (12,)))
    busy = [rule.value(view([350 / 12] * 12, [0] * 12, now, replicas=2)) for now in (900.0, 1185.0)]
    idle = [rule.value(view([1 / 12] * 12, [0] * 12, now, replicas=6)) for now in (1199.0, 3000.0)]

    assert busy == [6, 6]
    assert idle == [6, 4]


def test_partitions_are_packed_into_as_few_members_as_hold_them() -> None:
    rates = [60.0, 60, 40, 40, 150]

    assert Packed(Consumers(100.0, (5,))).value(view(rates, [0] * 5)) == 3
    assert Packed(Consumers(100.0, (5,)), promised=30.0).value(view(rates, [3000.0] * 5)) == 5


def test_an_assignor_by_weight_gives_the_largest_partition_to_a_member_of_its_own() -> None:
    owners = by_weight(np.array([5.0, 1, 1, 1, 1, 1]))[2]

    assert np.count_nonzero(owners == owners[0]) == 1


def test_the_picture_shows_every_policy() -> None:
    figures = Figures(60, 10.0, 0.0, 5.0, 9.0, 0.01, 3, 1, 2, 4)
    results = [Result("w", "range", 30.0, policy.key, figures, 1.0 + at / 10) for at, policy in enumerate(POLICIES)]
    root = ET.fromstring(picture(results))  # noqa: S314 - it is our own
    shown = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}

    assert {policy.name.replace("`", "") for policy in POLICIES} <= shown
