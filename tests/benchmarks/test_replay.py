"""The arithmetic of the replay on larger clusters."""

import json
from typing import Any

import pytest

from benchmarks.history.replay import Costs, History, Store, costs_in, replayed, scheduled
from spark.pipeline import publishing
from spark.pipeline.batches import BatchLimits

RANGE = BatchLimits().of_range


def test_a_task_goes_to_the_core_that_is_free_first() -> None:
    assert scheduled([4, 1, 1, 1, 2], 2) == 5
    assert scheduled([1] * 9, 4) == 3
    assert scheduled([], 4) == 0


def test_an_hour_has_a_task_for_each_range_of_its_topics() -> None:
    """And all hours but the last one for what they carry on, a quarter of the time."""
    month = History(hours=16, rows=2 * RANGE, series=1000, files=12)
    costs = Costs(footer=0, tail=1 / RANGE / 4, fold=0, delta=1 / RANGE, start=0)

    replay = replayed(month, costs, 8)

    assert replay.work == pytest.approx(32 + 30 / 4)
    assert replay.makespan == pytest.approx(4 + 4 / 4)
    assert replay.ratio == pytest.approx(5 / ((32 + 30 / 4) / 8))


def test_what_is_carried_is_added_up_hour_after_hour_by_a_few_tasks() -> None:
    month = History(hours=4, rows=RANGE, series=1000, files=1)

    replay = replayed(month, Costs(0, 0, fold=1e-3, delta=0, start=5), 512)

    assert replay.makespan == pytest.approx(5 + 3 / 4)
    assert replay.work == pytest.approx(3)


def test_an_hour_is_published_when_the_results_of_its_job_have_arrived_beside_a_few_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight jobs of two hours each arrive one second after another."""
    monkeypatch.setattr(publishing, "AT_ONCE", 4)
    month = History(hours=16, rows=RANGE, series=1000, files=1)

    quick, slow = (
        replayed(month, Costs(0, 0, 0, delta=1 / RANGE, start=0), 2, Store(request=0, copy=copy)) for copy in (0.5, 4)
    )

    assert quick.makespan == pytest.approx(8 + 0.5)
    assert slow.makespan == pytest.approx(2 + 4 * 4), "the second job's hours begin at 2"
    assert quick.work == slow.work == pytest.approx(16)


def test_a_publication_is_four_requests_and_copies_of_which_several_are_side_by_side() -> None:
    assert Store(request=1, copy=10).publication(ranges=1) == 4 + 10
    assert Store(request=1, copy=10).publication(ranges=15) == 4 + 40


@pytest.mark.parametrize(("files", "seconds"), [(1, 16), (40, 40)], ids=["by the driver", "by tasks"])
def test_footers_of_many_files_are_read_by_tasks(files: int, seconds: float) -> None:
    month = History(hours=16, rows=RANGE, series=1, files=files)

    assert replayed(month, Costs(1, 0, 0, 0, 0), 16).makespan == pytest.approx(seconds)


def job(number: int, said: str, began: int, *seconds: float) -> list[dict[str, Any]]:
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
    ]


def test_costs_are_those_of_the_event_log() -> None:
    events = [
        {"Event": "SparkListenerApplicationStart", "Timestamp": 1_000},
        *job(0, "last values of 2026-11-20 00:00, 36 million rows", 4_000, 4, 5),
        *job(2, "deltas 2026-11-20 00:00, 54 million rows", 8_200, 11, 13),
        *job(3, "deltas 2026-11-20 00:00, 54 million rows", 8_200, 30),
        *job(4, "hourly, daily and minutes 2026-11-20", 20_000, 1),
    ]
    hours = [History(1, 36_000_000, 1000, 12), History(1, 18_000_000, 1000, 6)]

    costs = costs_in(map(json.dumps, events), 0.5, 0.25, hours)

    assert (costs.footer, costs.fold) == (0.5, 0.25)
    assert costs.tail == pytest.approx(9 / 36e6)
    assert costs.delta == pytest.approx(54 / 54e6)
    assert costs.start == pytest.approx(3)
