"""The memory of a task, measured as the peak of its process: it is the same with ten times the rows."""

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from adapter.history.files import Folder
from adapter.history.parquet import encoded
from adapter.history.writer import path_for
from local.histories.large_day import flushes

PARTITIONS, ROWS_AT_ONCE, FLUSHES_OF_AN_HOUR = 500, 15_000, 12
BYTES_OF_A_ROW = 400
"""At most, of the rows at once; a task that held its whole hour would take these for each of its rows."""

TASKS = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from spark.pipeline.day_task import READ, DayTask, make_day
from spark.pipeline.batches import ExaminedHour
from spark.pipeline.hour_task import HoursTask, make_hours
from spark.pipeline.plan import found_in
from spark.storage.local import LocalFiles
from spark.tables.layout import hour_tables
from spark.tables.sample_files import examined

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

files, limit, now = LocalFiles(Path(sys.argv[1])), int(sys.argv[2]), datetime(2027, 1, 1, tzinfo=UTC)
peaks = [peak()]
(hour,) = found_in(files, now, now).hours
sound = tuple(examined(files, file, hour.start) for file in hour.files)
(made,) = make_hours(HoursTask(files, ".run", (ExaminedHour(hour, sound),), part_rows=limit))
peaks.append(peak())
(files.root / "hours").symlink_to(files.root / Path(made.files[0].folder).parents[1])
paths = {table: (tuple(hour_tables(hour.name, table, 1)),) for table in READ}
make_day(DayTask(files, ".run", "2026-11-09", paths, lags_at_once=limit // 10))
peaks.append(peak())
print(sum(each.rows for each in sound), *peaks)
"""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux reports a process's peak memory"),
]


def peaks(root: Path, interval: int) -> tuple[int, list[int]]:
    """Rows of an hour; megabytes before its task, after it, and after its day's."""
    for rows in islice(flushes(PARTITIONS, interval, days=1, seed=1), FLUSHES_OF_AN_HOUR):
        Folder(root).write(path_for("adapter-0", rows.first_sample), encoded(rows))
    command = [sys.executable, "-c", TASKS, str(root), str(ROWS_AT_ONCE)]
    # Arrow's own allocator keeps some 30 MB that its threads have freed, more or less by chance.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, env=environment).stdout
    number, *kilobytes = (int(each) for each in said.split())
    return number, [each // 1024 for each in kilobytes]


def test_a_task_needs_no_more_memory_for_ten_times_the_rows(tmp_path: Path) -> None:
    few, before = peaks(tmp_path / "few", 10)
    many, after = peaks(tmp_path / "many", 1)

    assert many == 10 * few
    assert before[1] - before[0] > 0
    growth = [large - small for large, small in zip(after, before, strict=True)]
    whole_hour = (many - few) * BYTES_OF_A_ROW >> 20
    assert max(growth) < whole_hour / 10, (before, after)
