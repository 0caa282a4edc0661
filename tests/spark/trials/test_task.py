"""Trials from the minutes of a compacted history."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spark.errors import Unusable
from spark.figures.periods import Wanted
from spark.storage.local import LocalFiles
from spark.tables import layout
from spark.tables.topic_parts import Names
from spark.trials.task import TrialsTask, trial_tasks, trials_in
from spark.trials.trial import Question, Trial, Untried
from tests.spark.trials.test_trial import QUESTION
from tests.support.history.minutes import read_by, written

WAVE = read_by(60 * (100 + 80 * np.sin(np.arange(720) / 720 * 2 * np.pi)), np.full(720, 3.0), 50.0)
BILLING, GONE, SHOP = ("main", "billing"), ("main", "gone"), ("main", "shop")
QUICK = replace(QUESTION, candidates=QUESTION.candidates[:1])


def task(place: Path, *groups: Names, wanted: Wanted = Wanted()) -> TrialsTask:  # noqa: B008 - frozen
    paths = [str(file.relative_to(place)) for file in place.glob(f"{layout.MINUTES}/*.parquet")]
    (only,) = trial_tasks(LocalFiles(place), paths, wanted, dict.fromkeys(groups, QUICK), 1)
    return only


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("history"), billing=WAVE, shop=WAVE)


def test_each_group_is_replayed_on_its_own_minutes(place: Path) -> None:
    first, gone, second = trials_in(task(place, SHOP, GONE, BILLING))

    assert isinstance(first, Trial)
    assert first == second
    assert first.calibration.misfit == ""
    assert first.today.replica_hours == 36
    assert gone == Untried("The history holds no minutes of the group")


def test_a_history_without_minutes_is_a_reason(tmp_path: Path) -> None:
    assert trials_in(task(tmp_path, BILLING)) == [Untried("The history holds no minutes of the range")]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / layout.MINUTES).mkdir()
    (tmp_path / layout.minutes_table("2026-11-01")).write_bytes(b"PAR1")

    with pytest.raises(Unusable, match="cannot be read"):
        trials_in(task(tmp_path, BILLING))


def test_groups_are_divided_among_the_tasks_that_run_side_by_side() -> None:
    asked: dict[Names, Question] = {("main", f"group-{number:03}"): QUESTION for number in range(600)}
    many, few = (
        trial_tasks(LocalFiles(Path()), [], Wanted(), dict(list(asked.items())[:number]), 2) for number in (600, 8)
    )

    assert [len(it.groups) for it in many] == [150] * 4
    assert [len(it.groups) for it in few] == [4, 4]
