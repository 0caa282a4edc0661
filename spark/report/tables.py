"""The tables of a history, read by pyarrow in Spark's tasks. Every location is read in the same way, each process finds
its own credentials, and only wanted rows and columns leave a task."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, groupby
from zoneinfo import ZoneInfo

import pyarrow as pa

from adapter.history.arrow import empty_table
from adapter.history.contract import Column
from spark.engine.jobs import Spark, parallelism
from spark.engine.tasks import Result, Task, run
from spark.figures import formatting
from spark.figures.model import NUMBERS
from spark.figures.periods import DAY, Wanted
from spark.pipeline.runs import Say
from spark.pipeline.wording import tasks_of
from spark.report.rows_task import TableRead, rows_in
from spark.report.samples_task import ExpectedSamples, SampleFold, folded, slices_of
from spark.storage.protocol import HistoryFiles
from spark.tables import layout
from spark.tables.contract import DAILY, HOURLY, NAMES, PARTITIONS
from spark.tables.sample_files import micros_of
from spark.tables.topic_parts import Names
from spark.trials.task import trial_tasks, trials_in
from spark.trials.trial import Question, Trial, Untried

SHARES = ("partition", "produced", "consumed", "lag_max")


@dataclass(frozen=True, slots=True)
class Tables:
    session: Spark
    files: HistoryFiles
    show: Say | None = None
    """Shows how far a job is, in a line that replaces the one before; None: nobody looks."""

    def hours_and_days(self, wanted: Wanted) -> tuple[pa.Table, pa.Table]:
        """The hourly and the daily table."""
        of_hours = [path for day, path in self._days().items() if wanted.may_have(day)]
        stored = self.files.listed(layout.DAILY, 0)
        of_days = [file.path for file in stored if wanted.may_have(file.name.removesuffix(".parquet"))]
        hourly = self._reading(of_hours, HOURLY, ("hour", *NUMBERS), "hour", layout.HOUR, wanted)
        daily = self._reading(of_days, DAILY, ("day", *NUMBERS), "day", DAY, wanted)
        first = hourly.tasks()
        tables = self._done(rows_in, [*first, *daily.tasks()], "hourly and daily tables of the range")
        return hourly.together(tables[: len(first)]), daily.together(tables[len(first) :])

    def production(self, groups: Collection[str], wanted: Wanted) -> pa.Table:
        """`produced` and `covered_seconds` of the topics of these groups, hour by hour."""
        paths = [path for day, path in self._days().items() if wanted.may_have(day)]
        columns = ("hour", "produced", "covered_seconds")
        reading = replace(
            self._reading(paths, HOURLY, columns, "hour", layout.HOUR, wanted), groups=tuple(sorted(groups))
        )
        return reading.together(self._done(rows_in, reading.tasks(), "production before the range"))

    def partitions(self, topics: Mapping[datetime, Collection[Names]]) -> pa.Table:
        """Of these topics in each hour. No other row leaves a task: an hour may have a million partitions."""
        paths = [path for hour in self._of_hours(layout.PARTITIONS, topics) for path in hour]
        columns = ("starts_at", *SHARES)
        reading = self._reading(paths, PARTITIONS, columns, "starts_at", layout.HOUR, Wanted())
        reading = replace(reading, topics={micros_of(hour): frozenset(names) for hour, names in topics.items()})
        return reading.together(self._done(rows_in, reading.tasks(), "partitions of the busiest hours"))

    def folded(
        self, fold: SampleFold, hours: Iterable[datetime], topics: Iterable[ExpectedSamples], zone: ZoneInfo
    ) -> pa.Table:
        """The fold's result of the topics over these hours. `zone`: of the hours of the day."""
        of_hours = self._of_hours(fold.table, hours)
        tasks = slices_of(self.files, fold, of_hours, topics, parallelism(self.session), zone)
        said = f"samples of {fold.table}, {formatting.plural(len(of_hours), 'hour')}"
        return pa.concat_tables([empty_table(fold.schema), *self._done(folded, tasks, said)])

    def minutes(self, wanted: Wanted) -> list[str]:
        """Files of the days of a range."""
        stored = self.files.listed(layout.MINUTES, 0)
        return [file.path for file in stored if wanted.may_have(file.name.removesuffix(".parquet"))]

    def trials(self, asked: Mapping[Names, Question], wanted: Wanted) -> dict[Names, Trial | Untried]:
        """The answers of all groups, each replayed on its own minutes of the range."""
        tasks = trial_tasks(self.files, self.minutes(wanted), wanted, asked, parallelism(self.session))
        answers = self._done(trials_in, tasks, f"replays of {formatting.plural(len(asked), 'group')}")
        groups = (group for task in tasks for group in task.groups)
        return dict(zip(groups, chain.from_iterable(answers), strict=True))

    def end_of_newest_day(self) -> datetime | None:
        """Of those that the hourly table has."""
        days = [day for name in self._days() if (day := layout.start_of_day(name)) is not None]
        return max(days) + DAY if days else None

    def _done(self, kernel: Callable[[Task], Result], tasks: Sequence[Task], said: str) -> list[Result]:
        """`said`: what Spark's UI and the line on a terminal call the job."""
        show, words = self.show, tasks_of(said)
        watch = None if show is None else lambda progress: show(words(progress))
        return run(self.session, kernel, tasks, said, watch)

    def _reading(
        self,
        paths: Sequence[str],
        contract: Sequence[Column],
        names: Collection[str],
        start: str,
        length: timedelta,
        wanted: Wanted,
    ) -> TableRead:
        columns = tuple(column for column in contract if column.name in NAMES or column.name in names)
        return TableRead(self.files, tuple(paths), columns, start, length, wanted)

    def _days(self) -> dict[str, str]:
        """`2026-11-20` -> its file of the hourly table."""
        return {file.folder.rpartition("=")[2]: file.path for file in self.files.listed(layout.HOURLY, 1)}

    def _of_hours(self, table: str, hours: Iterable[datetime]) -> list[tuple[str, ...]]:
        """The table's files of each hour, in order of time; of some hours nothing may be left."""
        wanted = {layout.hour_folder(layout.hour_name(hour)) for hour in hours}
        stored = [file for file in self.files.listed(layout.HOURS, 2) if layout.is_of_table(file.name, table)]
        by_hour = groupby((file for file in stored if file.folder in wanted), lambda file: file.folder)
        return [tuple(file.path for file in of_hour) for _, of_hour in by_hour]
