"""The trials of several groups as a Spark task, which reads their minutes and replays them beside one another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark.figures.periods import Wanted
from spark.storage.protocol import HistoryFiles
from spark.tables.topic_parts import Names
from spark.trials.minutes import MinutesRead, by_group, minutes_of, rows_of_groups
from spark.trials.trial import Question, Trial, Untried, trials_of

GROUPS_OF_A_TASK = 200
"""More groups beside one another cost less each. Two weeks of one take 3 MB: half of it for its minutes."""


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
    rows = rows_of_groups(MinutesRead(task.files, task.paths, task.groups))
    of_groups = zip(by_group(rows, task.groups), task.questions, strict=True)
    minutes = [minutes_of([of_group], task.wanted, question.shape) for of_group, question in of_groups]
    asked = [(of, question) for of, question in zip(minutes, task.questions, strict=True) if of is not None]
    answers = iter(trials_of(asked))
    return [Untried("The history holds no minutes of the group") if of is None else next(answers) for of in minutes]


def trial_tasks(
    files: HistoryFiles, paths: Sequence[str], wanted: Wanted, asked: Mapping[Names, Question], at_once: int
) -> list[TrialsTask]:
    """`at_once`: how many tasks run side by side."""
    keys = sorted(asked)
    each = min(GROUPS_OF_A_TASK, -(-len(keys) // at_once) if keys else 1)
    parts = [tuple(keys[at : at + each]) for at in range(0, len(keys), each)]
    return [TrialsTask(files, tuple(paths), wanted, part, tuple(asked[key] for key in part)) for part in parts]
