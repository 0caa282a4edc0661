"""The arithmetic of the replay on larger clusters."""

import json
from typing import Any

import pytest

from benchmarks.history.replay import Costs, History, costs_in, replayed, scheduled


def test_a_task_goes_to_the_core_that_is_free_first() -> None:
    assert scheduled([4, 1, 1, 1, 2], 2) == 5
    assert scheduled([1] * 9, 4) == 3
    assert scheduled([], 4) == 0


def test_a_month_takes_a_round_of_hours_for_each_time_that_it_fills_the_cores() -> None:
    """Two hours to a core, and a quarter of the time before for what all but the last carry on."""
    month = History(hours=16, rows=1_000_000, series=1000)
    costs = Costs(tail=1e-6 / 4, delta=1e-6, fold=0, start=0)

    replay = replayed(month, costs, 8)

    assert replay.makespan == pytest.approx(2 + 2 / 4)
    assert replay.work == pytest.approx(16 + 15 / 4)
    assert replay.ratio == pytest.approx(2.5 / ((16 + 15 / 4) / 8))


def test_what_the_driver_folds_is_done_by_no_core() -> None:
    month = History(hours=3, rows=1_000_000, series=1000)

    assert replayed(month, Costs(0, 0, 1e-3, 5), 512).makespan == pytest.approx(5 + 2)


def job(number: int, said: str, began: int, ended: int, *seconds: float) -> list[dict[str, Any]]:
    properties = {"spark.job.description": said}
    return [
        {
            "Event": "SparkListenerJobStart",
            "Job ID": number,
            "Stage IDs": [number + 10],
            "Submission Time": began,
            "Properties": properties,
        },
        *(
            {
                "Event": "SparkListenerTaskEnd",
                "Stage ID": number + 10,
                "Task Info": {"Launch Time": began, "Finish Time": began + 1000 * each},
            }
            for each in seconds
        ),
        {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": ended},
    ]


def test_costs_are_those_of_the_event_log() -> None:
    events = [
        {"Event": "SparkListenerApplicationStart", "Timestamp": 1_000},
        *job(0, "last values of 2026-11-20 00:00, 12 million rows", 4_000, 7_000, 3),
        *job(1, "deltas 2026-11-20 00:00, 24 million rows", 8_200, 20_000, 11, 13),
        *job(2, "hourly, daily and minutes 2026-11-20", 20_000, 21_000, 1),
    ]

    costs = costs_in(map(json.dumps, events), History(hours=24, rows=1_000_000, series=10_000))

    assert costs.tail == pytest.approx(3 / 12e6)
    assert costs.delta == pytest.approx(24 / 24e6)
    assert costs.fold == pytest.approx(1.2 / (12 * 10_000))
    assert costs.start == pytest.approx(3)
