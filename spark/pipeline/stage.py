"""A batch of hours -> their staged tables, by Spark's tasks.

Hours chain: each starts from the values that the one before carries. So where they are divided among several tasks,
what every hour's samples carry on is found first, from few columns, and folded in the driver; a task then starts from
the result. A single task needs none of it.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from spark.engine.jobs import is_on_one_machine, parallelism
from spark.engine.tasks import arriving, results_of
from spark.errors import SampleFilesDamaged
from spark.pipeline.batches import Batch, ExaminedHour, neighbours
from spark.pipeline.hour_task import HoursTask, StagedHour, count_rows, make_hours, stage_tails
from spark.pipeline.runs import Run
from spark.pipeline.wording import announced, progress_of
from spark.rules.carry import carried_on
from spark.rules.writer_choice import Chosen, chosen_of
from spark.tables import layout
from spark.tables.columns import none_of
from spark.tables.contract import CARRIED
from spark.tables.parquet_tables import read_table, write_table
from spark.tables.sample_files import micros_of, minute_of

Made = TypeVar("Made")
MINUTES = 60


def staged_hours(run: Run, batch: Batch) -> Generator[StagedHour, None, None]:
    """In order of time, as they arrive. Raises SampleFilesDamaged, which names the files, and TableUnreadable where the
    table to start from is."""
    groups = neighbours(batch.hours, lambda hour: hour.rows, max(run.limits.of_task, _share(run, batch)))
    chosen = _chosen(run, batch, groups)
    tasks = [_task(run, [replace(hour, chosen=_of_hour(hour, chosen)) for hour in hours]) for hours in groups]
    for hours in _arriving(run, make_hours, _chained(run, tasks, batch.carry), "deltas"):
        yield from hours


def _share(run: Run, batch: Batch) -> int:
    """Rows of a task if the cores of this machine share the batch, and half an hour's rows for what does not divide
    evenly: fewer tasks read fewer samples twice. A cluster's executors may still be starting."""
    if not is_on_one_machine(run.session()):
        return 0
    rows = [hour.rows for hour in batch.hours]
    return sum(rows) // parallelism(run.session()) + max(rows) // 2


def _task(run: Run, hours: Iterable[ExaminedHour]) -> HoursTask:
    return HoursTask(run.files, run.staging, tuple(hours), part_rows=run.limits.of_part)


def _arriving(run: Run, kernel: Callable[[HoursTask], Made], tasks: Sequence[HoursTask], what: str) -> Iterator[Made]:
    """Raises after all tasks have ended; what arrived before the first error is good."""
    run.check()
    hours = [hour for task in tasks for hour in task.hours]
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


def _chained(run: Run, tasks: Sequence[HoursTask], carry: str | None) -> list[HoursTask]:
    """With what each of them starts from."""
    chained = [replace(tasks[0], carry=carry)]
    if len(tasks) == 1:
        return chained
    tails = list(_arriving(run, stage_tails, tasks[:-1], "last values of"))
    carried = none_of(CARRIED) if carry is None else read_table(run.files, carry, CARRIED)
    for task, paths, following in zip(tasks, tails, tasks[1:], strict=False):
        for hour, path in zip(task.hours, paths, strict=True):
            carried = carried_on(carried, read_table(run.files, path, CARRIED), micros_of(hour.start))
        path = f"{run.staging}/starts/{following.hours[0].name}.parquet"
        write_table(run.files, path, carried, CARRIED)
        chained.append(replace(following, carry=path))
    return chained


def _chosen(run: Run, batch: Batch, groups: Iterable[Iterable[ExaminedHour]]) -> Chosen | None:
    """None: no hour has more than one writer."""
    if all(len(hour.writers) <= 1 for hour in batch.hours):
        return None
    counts = _arriving(run, count_rows, [_task(run, hours) for hours in groups], "writers of")
    return chosen_of((count for of_task in counts for count in of_task), _chosen_before(batch))


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
