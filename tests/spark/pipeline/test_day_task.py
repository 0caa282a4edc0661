"""What a day's task hands back to the driver."""

import pickle
from pathlib import Path

from spark.pipeline.day_task import READ, DayTask, make_day
from spark.storage.local import LocalFiles
from spark.tables import layout
from tests.support.history.compacting import compacted
from tests.support.history.written_history import START, sample, write


def test_no_row_of_a_day_leaves_its_task_however_many_partitions_it_has(tmp_path: Path) -> None:
    """A result of each partition would grow above what Spark's driver takes."""
    write(tmp_path, [sample(at, 0, at, partition=number) for at in (0, 10) for number in range(2000)])
    compacted(tmp_path)
    hours = {table: (tuple(layout.hour_tables(layout.hour_name(START), table, 1)),) for table in READ}

    staged = make_day(DayTask(LocalFiles(tmp_path), ".compacting-test", "2026-11-20", hours))

    assert (tmp_path / staged.daily).is_file()
    assert len(pickle.dumps(staged)) < 1000
