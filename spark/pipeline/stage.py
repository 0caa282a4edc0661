"""A batch of hours -> their staged tables, by Spark's tasks.

Hours chain: each starts from the values that the one before carries. So where they are divided among several tasks,
what every hour's samples carry on is found first, from few columns, and added up by a second round of tasks, each for
some topics; a task then starts from the result. Where every task has all hours of its topics, none of it is needed.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TypeVar

from adapter.verdicts.writers import Chosen, chosen_of
from spark.engine.division import neighbours
from spark.engine.jobs import is_on_one_machine, parallelism
from spark.engine.tasks import arriving, results_of
from spark.engine.tasks import run as run_tasks
from spark.errors import SampleFilesDamaged
from spark.pipeline.batches import Batch, ExaminedHour, TopicsFile
from spark.pipeline.fold_task import FoldTask, TailOfHour, fold_tails
from spark.pipeline.hour_task import HoursTask, StagedRange, count_rows, make_hours, stage_tails
from spark.pipeline.runs import Run
from spark.pipeline.wording import announced, progress_of
from spark.rules.writer_choice import summed
from spark.tables import layout
from spark.tables.sample_files import micros_of, minute_of
from spark.tables.topic_parts import Part

Made = TypeVar("Made")
MINUTES = 60


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring hours with the same bounds: one task for each range."""

    hours: tuple[ExaminedHour, ...]
    tasks: tuple[HoursTask, ...]


def staged_hours(run: Run, batch: Batch) -> Generator[list[StagedRange], None, None]:
    """The ranges of each hour, in order of time, as they arrive. Raises SampleFilesDamaged, which names the files, and
    TableUnreadable where the table to start from is."""
    groups = [_group(run, hours) for hours in _grouped(run, batch)]
    chosen = _chosen(run, batch, groups)
    groups = [_group(run, [replace(hour, chosen=_of_hour(hour, chosen)) for hour in each.hours]) for each in groups]
    groups = _chained(run, batch, groups)
    results = _arriving(run, make_hours, groups, "deltas")
    for group in groups:
        ranges = list(islice(results, len(group.tasks)))
        yield from (list(of_hour) for of_hour in zip(*ranges, strict=True))


def _grouped(run: Run, batch: Batch) -> list[list[ExaminedHour]]:
    """A group's hours have the same bounds, and its tasks not many more rows than their share."""
    limit = max(run.limits.of_task, _share(run, batch))
    runs = groupby(batch.hours, lambda hour: hour.bounds)
    return [hours for _, alike in runs for hours in neighbours(alike, lambda hour: hour.rows_of_range, limit)]


def _share(run: Run, batch: Batch) -> int:
    """Rows of a task if the cores of this machine share the batch, and half an hour's rows for what does not divide
    evenly: fewer tasks read fewer samples twice. A cluster's executors may still be starting."""
    if not is_on_one_machine(run.session()):
        return 0
    rows = sum(hour.rows for hour in batch.hours)
    return rows // parallelism(run.session()) + max(hour.rows_of_range for hour in batch.hours) // 2


def _group(run: Run, hours: Sequence[ExaminedHour]) -> Group:
    tasks = (
        HoursTask(run.files, run.staging, tuple(hours), number, part_rows=run.limits.of_part)
        for number in range(len(hours[0].ranges))
    )
    return Group(tuple(hours), tuple(tasks))


def _arriving(run: Run, kernel: Callable[[HoursTask], Made], groups: Sequence[Group], what: str) -> Iterator[Made]:
    """Raises after all tasks have ended; what arrived before the first error is good."""
    run.check()
    hours = [hour for group in groups for hour in group.hours]
    tasks = [task for group in groups for task in group.tasks]
    said = f"{what} {announced(hours)}"
    errors: list[Exception] = []
    for result in arriving(run.session(), kernel, tasks, said, run.shown(progress_of(said, hours))):
        if isinstance(result, Exception):
            errors.append(result)
        elif not errors:
            yield result
    damaged = [each.reasons for each in errors if isinstance(each, SampleFilesDamaged)]
    if damaged:
        raise SampleFilesDamaged({path: reason for reasons in damaged for path, reason in reasons.items()})
    results_of(errors)


def _chained(run: Run, batch: Batch, groups: Sequence[Group]) -> list[Group]:
    """With what each of them starts from."""
    starts = [batch.carry, *(_starts(run, batch, groups[:-1]) if len(groups) > 1 else ())]
    return [_starting(group, files) for group, files in zip(groups, starts, strict=True)]


def _starting(group: Group, carry: Sequence[TopicsFile]) -> Group:
    return replace(group, tasks=tuple(replace(task, carry=_with(task.topics, carry)) for task in group.tasks))


def _starts(run: Run, batch: Batch, groups: Sequence[Group]) -> list[list[TopicsFile]]:
    """What the groups after each of these start from."""
    tails = _tails(run, groups)
    tasks = [
        FoldTask(
            run.files,
            run.staging,
            lane,
            number,
            _with(lane, batch.carry),
            tuple(TailOfHour(start, _with(lane, files), is_followed) for start, files, is_followed in tails),
        )
        for number, lane in enumerate(batch.lanes)
    ]
    said = f"starts of {announced([hour for group in groups for hour in group.hours])}"
    folded = run_tasks(run.session(), fold_tails, tasks, said)
    run.check()
    return [
        [TopicsFile(task.topics, path) for task, path in zip(tasks, paths, strict=True)]
        for paths in zip(*folded, strict=True)
    ]


def _tails(run: Run, groups: Sequence[Group]) -> list[tuple[int, list[TopicsFile], bool]]:
    """Of each hour its start, what its samples alone carry on, and whether it is its group's last."""
    staged = _arriving(run, stage_tails, groups, "last values of")
    tails = []
    for group in groups:
        ranges = list(islice(staged, len(group.tasks)))
        for hour, paths in zip(group.hours, zip(*ranges, strict=True), strict=True):
            files = [TopicsFile(task.topics, path) for task, path in zip(group.tasks, paths, strict=True)]
            tails.append((micros_of(hour.start), files, hour is group.hours[-1]))
    return tails


def _with(topics: Part, files: Iterable[TopicsFile]) -> tuple[str, ...]:
    """Paths of the files that may have rows of these topics."""
    return tuple(file.path for file in files if file.topics.overlaps(topics))


def _chosen(run: Run, batch: Batch, groups: Sequence[Group]) -> Chosen | None:
    """None: no hour has more than one writer."""
    if all(len(hour.writers) <= 1 for hour in batch.hours):
        return None
    counts = _arriving(run, count_rows, groups, "writers of")
    return chosen_of(summed(count for of_task in counts for count in of_task), _chosen_before(batch))


def _chosen_before(batch: Batch) -> Chosen:
    """Who counted in the minute before the batch."""
    before = batch.before
    if before is None or before.is_lost or before.record is None:
        return {}
    if before.start + layout.HOUR != batch.hours[0].start:
        return {}
    minute = minute_of(batch.hours[0].start) - 1
    return {(cluster, minute): writer for cluster, writer in before.record.writers.items()}


def _of_hour(hour: ExaminedHour, chosen: Chosen | None) -> Chosen | None:
    if chosen is None or len(hour.writers) <= 1:
        return None
    first = minute_of(hour.start)
    return {key: writer for key, writer in chosen.items() if first <= key[1] < first + MINUTES}
