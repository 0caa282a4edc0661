"""What the driver does with neighbouring hours, or Spark tasks if they are many: reads the footers of their files, and
divides large hours into ranges of topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from spark.pipeline.batches import BatchLimits, ExaminedHour
from spark.pipeline.plan import FoundHour
from spark.storage.protocol import HistoryFiles, each_of
from spark.tables.sample_files import MISPLACED, Skipped, Sound, examined
from spark.tables.topic_parts import Bounds, GroupOfRows, bounds_of, most_rows

LANES_OF_A_RANGE = 4
OUTGROWN = 2
"""Times as many rows as an hour's files should have, until it is divided into more of them."""
UNEVEN = 1.2
"""Times as many rows as a range should have, until an hour is divided otherwise than the one before."""


@dataclass(frozen=True, slots=True)
class ExamineTask:
    files: HistoryFiles
    hours: tuple[FoundHour, ...]
    limits: BatchLimits
    damaged: Mapping[str, str]
    """Paths of files that are left out although their footers are sound, and what is wrong with them."""


def examine_hours(task: ExamineTask) -> list[ExaminedHour]:
    hours: list[ExaminedHour] = []
    for hour in task.hours:
        before = hours[-1].bounds if hours else ()
        hours.append(_divided(_examined(task.files, hour, task.damaged), task.limits, before))
    return hours


def _examined(files: HistoryFiles, hour: FoundHour, damaged: Mapping[str, str]) -> ExaminedHour:
    paths = [file.path for file in hour.files if file.path in damaged]
    readable = [file for file in hour.files if file.path not in damaged]
    results = each_of(files, partial(examined, files, hour=hour.start), readable)
    sound = tuple(result for result in results if isinstance(result, Sound))
    skipped = [
        *(result for result in results if isinstance(result, Skipped)),
        *(Skipped(each.file.path, MISPLACED) for each in sound if not each.is_of_its_hour),
        *(Skipped(path, damaged[path]) for path in paths),
    ]
    return ExaminedHour(hour, sound, tuple(skipped))


def _divided(hour: ExaminedHour, limits: BatchLimits, before: Bounds) -> ExaminedHour:
    """With its bounds, and without what they were found from. `before`: those of the hour before it."""
    groups = [group for file in hour.sound for group in file.groups]
    sound = tuple(replace(file, groups=()) for file in hour.sound)
    bounds = _bounds(hour, groups, limits.of_range, before)
    lanes = bounds_of(groups, max(1, limits.of_range // LANES_OF_A_RANGE))
    return replace(hour, sound=sound, bounds=bounds, lanes=lanes)


def _bounds(hour: ExaminedHour, groups: Sequence[GroupOfRows], limit: int, before: Bounds) -> Bounds:
    """An hour that is made again keeps its files, so that a reader who finds some of the old files and some of the new
    ones still finds each topic once. Neighbours with the same bounds can share a task."""
    record = hour.found.record
    if record and hour.rows <= OUTGROWN * limit * (len(record.bounds) + 1):
        return record.bounds
    if hour.rows > limit and before and most_rows(groups, before) <= limit * UNEVEN:
        return before
    return bounds_of(groups, limit)
