"""The trials of several groups as a Spark task, which reads their minutes and replays them beside one another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark.figures.periods import Wanted
from spark.storage.protocol import HistoryFiles
from spark.tables.topic_parts import Names
from spark.trials.minutes import Minutes, MinutesRead, by_group, minutes_of, rows_of_groups
from spark.trials.trial import Question, Trial, Untried, trials_of

GROUPS_OF_A_TASK = 250
"""At most. More groups beside one another cost less each. Two weeks of one take less than 3 MB."""


@dataclass(frozen=True, slots=True)
class TrialsTask:
    files: HistoryFiles
    paths: tuple[str, ...]
    wanted: Wanted
    groups: tuple[Names, ...]
    """In order."""
    questions: tuple[Question, ...]
    """Of each group."""


def trials_in(task: TrialsTask) -> list[Trial | Untried]:
    """The kernel. Raises Unusable for a file that cannot be read."""
    if not task.paths:
        return [Untried("The history holds no minutes of the range")] * len(task.groups)
    places: list[int] = []
    trials: list[Trial | Untried] = [Untried("The history holds no minutes of the group")] * len(task.groups)
    for place, trial in zip(places, trials_of(_asked(task, places)), strict=True):
        trials[place] = trial
    return trials


def _asked(task: TrialsTask, places: list[int]) -> Iterator[tuple[Minutes, Question]]:
    """Yields the groups that have minutes, and adds their places in the task. The rows are dropped after the last."""
    rows = rows_of_groups(MinutesRead(task.files, task.paths, task.groups))
    for place, (of_group, question) in enumerate(zip(by_group(rows, task.groups), task.questions, strict=True)):
        if (minutes := minutes_of([of_group], task.wanted, question.shape)) is not None:
            places.append(place)
            yield minutes, question


def trial_tasks(
    files: HistoryFiles, paths: Sequence[str], wanted: Wanted, asked: Mapping[Names, Question], at_once: int
) -> list[TrialsTask]:
    """Tasks of equal size. `at_once`: how many of them run side by side."""
    keys = sorted(asked)
    rounds = max(1, -(-len(keys) // (GROUPS_OF_A_TASK * at_once)))
    each = max(1, -(-len(keys) // (rounds * at_once)))
    parts = [tuple(keys[at : at + each]) for at in range(0, len(keys), each)]
    return [TrialsTask(files, tuple(paths), wanted, part, tuple(asked[key] for key in part)) for part in parts]
