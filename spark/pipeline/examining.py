"""Hours that are to be compacted -> what their footers say, some hours ahead of what is asked for."""

from collections.abc import Iterator, Mapping, Sequence

from spark.engine.tasks import run as run_tasks
from spark.figures import formatting
from spark.pipeline.batches import BatchLimits, ExaminedHour
from spark.pipeline.examine_task import ExamineTask, examine_hours
from spark.pipeline.plan import FoundHour
from spark.pipeline.runs import Run

HOURS_AHEAD = 24
"""At least. On a cluster, an hour for each task that runs at once."""
FILES_OF_THE_DRIVER = 500
"""At most. A footer takes 4 ms on a disk, and in a bucket as long as a request; a job takes some tenths of a second."""


def examining(
    run: Run, hours: Sequence[FoundHour], limits: BatchLimits, damaged: Mapping[str, str], at_once: int
) -> Iterator[ExaminedHour]:
    """`damaged`: as tasks have it; `at_once`: how many of them run side by side."""
    ahead = max(HOURS_AHEAD, at_once)
    for first in range(0, len(hours), ahead):
        block = hours[first : first + ahead]
        yield from _examined(run, ExamineTask(run.files, tuple(block), limits, damaged))


def _examined(run: Run, block: ExamineTask) -> list[ExaminedHour]:
    files = sum(len(hour.files) for hour in block.hours)
    if files <= FILES_OF_THE_DRIVER:
        return examine_hours(block)
    tasks = [ExamineTask(run.files, (hour,), block.limits, block.damaged) for hour in block.hours]
    said = f"footers of {formatting.plural(files, 'file')}"
    return [hour for of_task in run_tasks(run.session(), examine_hours, tasks, said) for hour in of_task]
