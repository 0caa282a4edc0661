"""What leaves the tasks that read small tables: only rows that are wanted."""

from datetime import timedelta
from pathlib import Path

from spark.figures.periods import Wanted
from spark.report.rows_task import TableRead, rows_in
from spark.storage.local import LocalFiles
from spark.tables import layout
from spark.tables.contract import PARTITIONS
from spark.tables.sample_files import micros_of
from tests.support.history.compacting import compacted
from tests.support.history.written_history import START, sample, write

NAMES = ("cluster", "group", "topic", "partition", "starts_at")


def test_of_an_hour_only_the_partitions_of_wanted_topics_leave_the_task(tmp_path: Path) -> None:
    write(tmp_path, [sample(at, 0, at, topic=topic, partition=p) for at in (0, 3600) for topic in "ab" for p in (0, 1)])
    compacted(tmp_path)
    files, second = LocalFiles(tmp_path), START + timedelta(hours=1)
    paths = tuple(layout.hour_tables(layout.hour_name(at), layout.PARTITIONS, 1)[0] for at in (START, second))
    columns = tuple(column for column in PARTITIONS if column.name in NAMES)
    wanted = {micros_of(START): {("main", "billing", "b")}, micros_of(second): {("main", "billing", "a")}}

    rows = rows_in(TableRead(files, paths, columns, "starts_at", layout.HOUR, Wanted(), wanted)).to_pylist()

    assert sorted((row["topic"], row["partition"], row["starts_at"]) for row in rows) == [
        *(("a", number, second) for number in (0, 1)),
        *(("b", number, START) for number in (0, 1)),
    ]
