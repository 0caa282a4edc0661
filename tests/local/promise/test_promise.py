"""What a run says of waits and replicas, what the simulator says of it, and the picture of both."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from local.processes import RigError
from local.promise import scenario
from local.promise.figures import FIGURES, Run, measured, table
from local.promise.picture import picture
from local.promise.predicted import predicted


@pytest.fixture(scope="module")
def foreseen() -> dict[str, Run]:
    return {group: predicted(group, number=1)[0] for group in scenario.GROUPS}


def test_waits_are_read_from_all_consumers_and_a_message_that_was_read_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "one.waits").write_text("0 0 100.0 101.0\n0 1 100.5 103.5\n")
    (tmp_path / "two.waits").write_text("0 1 100.5 110.5\n1 0 100.0 100.0\n0 2 10")

    run = measured(tmp_path, 100.0, [2, 2, 3])

    assert sorted(run.waits.tolist()) == [0.0, 1.0, 10.0]
    assert (run.replica_seconds, run.changes, run.wait(50), run.wait(100)) == (7.0, 1, 1.0, 10.0)


def test_a_group_that_has_committed_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.waits").write_text("0 2 10")

    with pytest.raises(RigError, match=f"the consumers of group {tmp_path.name} committed no message"):
        measured(tmp_path, 100.0, [2])


def test_waits_are_weighed_by_messages() -> None:
    run = Run(np.array([1]), np.array([0.0, 0.0]), np.array([1.0, 9.0]), np.array([99.0, 1.0]))

    assert (run.wait(99), run.wait(99.5)) == (1.0, 9.0)


def test_what_came_before_does_not_count() -> None:
    run = Run(np.array([5, 1, 1]), np.array([0.5, 1.5]), np.array([7.0, 2.0]), np.ones(2)).since(1.0)

    assert (run.replica_seconds, run.changes, run.wait(100)) == (2.0, 0, 2.0)


def test_the_longest_wait_of_each_second_is_that_of_its_messages() -> None:
    run = Run(np.array([1, 1]), np.array([0.1, 0.9, 1.2]), np.array([3.0, 4.0, 1.0]), np.ones(3))

    assert run.longest_by_second().tolist() == [4.0, 1.0]


def test_in_the_simulator_the_promise_is_kept_with_fewer_replicas_than_the_lag_takes(foreseen: dict[str, Run]) -> None:
    by_lag, by_promise = (foreseen[group].since(scenario.LEVEL_SECONDS) for group in scenario.GROUPS)

    assert by_promise.wait(99) < scenario.MAX_WAIT
    assert by_promise.wait(99) < by_lag.wait(99)
    assert by_promise.replica_seconds < by_lag.replica_seconds


def test_in_the_simulator_every_message_is_read(foreseen: dict[str, Run]) -> None:
    written = scenario.rates().sum()

    assert [run.weights.sum() for run in foreseen.values()] == [pytest.approx(written, rel=0.01)] * 2


def test_both_hpas_differ_only_in_what_they_read() -> None:
    by_lag, by_promise = scenario.hpas()
    metric = by_lag["spec"].pop("metrics")[0]["external"]["metric"]
    promised = by_promise["spec"].pop("metrics")[0]["external"]["metric"]
    for each in (by_lag, by_promise):
        del each["spec"]["scaleTargetRef"]["name"]

    assert by_lag["spec"] == by_promise["spec"]
    assert (metric["name"], promised["name"]) == ("kafka_consumergroup_lag", "kafka_consumergroup_required_replicas")


def test_the_table_has_a_column_for_each_run(foreseen: dict[str, Run]) -> None:
    lines = table([("a", [foreseen[scenario.BY_LAG]]), ("b", [foreseen[scenario.BY_PROMISE]])])

    assert lines[0].split() == ["a", "b"]
    assert [line.strip().split("  ")[0] for line in lines[1:]] == list(FIGURES)


def test_of_several_runs_the_table_shows_the_median() -> None:
    runs = [
        Run(np.array([count]), np.zeros(1), np.array([wait]), np.ones(1)) for count, wait in ((1, 3), (2, 9), (9, 4))
    ]

    assert [line.split()[-1] for line in table([("a", runs)])[1:2]] == ["2"]
    assert [line.split()[-2] for line in table([("a", runs)])[2:4]] == ["4.0", "4.0"]


def test_the_picture_is_svg_with_both_courses_in_two_charts(foreseen: dict[str, Run]) -> None:
    drawn = ET.fromstring(picture(*foreseen.values()))  # noqa: S314 - our own

    classes = [path.get("class", "") for path in drawn.iter("{http://www.w3.org/2000/svg}path")]
    assert [name for name in classes if name.startswith("line")] == ["line load", *["line lag", "line promise"] * 2]
