"""A batch of hours -> their staged tables, by Spark's tasks.

Hours chain: each starts from the values that the one before carries. So where they are divided among several tasks,
what every hour's samples carry on is found first, from few columns, and folded in the driver; a task then starts from
the result. A single task needs none of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from spark.engine.tasks import outcomes, results_of
from spark.errors import SampleFilesDamaged
from spark.pipeline.batches import Batch, ExaminedHour, neighbours
from spark.pipeline.hour_task import HoursTask, StagedHour, count_rows, make_hours, stage_tails
from spark.pipeline.runs import Run
from spark.rules.deltas import carried_on
from spark.rules.writer_choice import Chosen, chosen_of
from spark.tables import layout
from spark.tables.columns import none_of
from spark.tables.contract import CARRIED
from spark.tables.parquet_tables import read_table, write_table
from spark.tables.sample_files import micros_of, minute_of

Made = TypeVar("Made")
MINUTES = 60


def stage_batch(run: Run, batch: Batch) -> list[StagedHour]:
    """Raises SampleFilesDamaged, which names the files, and TableUnreadable where the table to start from is."""
    groups = neighbours(batch.hours, lambda hour: hour.rows, max(run.limits.of_task, _share(run, batch)))
    chosen = _chosen(run, batch, groups)
    tasks = [_task(run, [replace(hour, chosen=_of_hour(hour, chosen)) for hour in hours]) for hours in groups]
    return [hour for hours in _results(run, make_hours, _chained(run, tasks, batch.carry)) for hour in hours]


def _share(run: Run, batch: Batch) -> int:
    """Rows of a task if the cores of this machine share the batch, and half an hour's rows for what does not divide
    evenly: fewer tasks read fewer samples twice. A cluster's executors may still be starting."""
    context = run.session().sparkContext
    if not str(context.master).startswith("local"):
        return 0
    rows = [hour.rows for hour in batch.hours]
    return sum(rows) // context.defaultParallelism + max(rows) // 2


def _task(run: Run, hours: Iterable[ExaminedHour]) -> HoursTask:
    return HoursTask(run.files, run.staging, tuple(hours), part_rows=run.limits.of_part)


def _results(run: Run, kernel: Callable[[HoursTask], Made], tasks: Sequence[HoursTask]) -> list[Made]:
    run.check()
    results = outcomes(run.session(), kernel, tasks)
    damaged = [each.reasons for each in results if isinstance(each, SampleFilesDamaged)]
    if damaged:
        raise SampleFilesDamaged({path: reason for reasons in damaged for path, reason in reasons.items()})
    return results_of(results)


def _chained(run: Run, tasks: Sequence[HoursTask], carry: str | None) -> list[HoursTask]:
    """With what each of them starts from."""
    chained = [replace(tasks[0], carry=carry)]
    if len(tasks) == 1:
        return chained
    tails = _results(run, stage_tails, tasks[:-1])
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
    counts = _results(run, count_rows, [_task(run, hours) for hours in groups])
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
