"""What a Spark task does with hours of samples: reads them by pyarrow, applies the rules, and stages their tables.

A task has neighbouring hours, of which each starts from what the one before carries; of large hours it has one range of
topics. What has more rows than fit into memory is made part by part; its tables grow by each.
"""

from contextlib import ExitStack
from dataclasses import dataclass

from adapter.history.arrow import texts_of
from adapter.history.contract import SAMPLES
from adapter.verdicts.writers import Chosen, Count
from spark.engine.progress import Counts
from spark.engine.tasks import attempt
from spark.pipeline.batches import ExaminedHour
from spark.pipeline.lineage import Digest, digest_of
from spark.rules.carry import carried_on, last_known_of
from spark.rules.deltas import OrderedSamples, deltas_of, ordered_samples
from spark.rules.hourly import summary_of
from spark.rules.minutes import per_minute_of
from spark.rules.totals import partitions_of, topic_totals_of
from spark.rules.waits import waits_of
from spark.rules.writer_choice import clusters_at, counts_of, is_chosen, summed
from spark.storage.protocol import File, HistoryFiles
from spark.tables import contract, layout
from spark.tables.columns import TableRows, joined, none_of
from spark.tables.parquet_tables import read_part, write_table, written_table
from spark.tables.sample_files import micros_of, minute_of
from spark.tables.sample_reader import PART_ROWS, HourReader, Samples
from spark.tables.topic_parts import Part

TABLES = {
    layout.DELTAS: contract.DELTAS,
    layout.TOTALS: contract.TOTALS,
    layout.PARTITIONS: contract.PARTITIONS,
    layout.SUMMARY: contract.SUMMARY,
    layout.PER_MINUTE: contract.PER_MINUTE,
    layout.CARRY: contract.CARRIED,
}
UNREAD = ("received_at", "members", "isolation", "owner", "offset_reset", "last_commit")
OF_A_TAIL = tuple(column for column in SAMPLES if column.name not in UNREAD)


@dataclass(frozen=True, slots=True)
class HoursTask:
    """Neighbouring hours with the same bounds, or a range of them."""

    files: HistoryFiles
    staging: str
    """The run's folder."""
    hours: tuple[ExaminedHour, ...]
    range_number: int = 0
    carry: tuple[str, ...] = ()
    """Files of the table that the first hour starts from; none: from nothing."""
    part_rows: int = PART_ROWS

    @property
    def topics(self) -> Part:
        return self.hours[0].ranges[self.range_number]

    @property
    def counts(self) -> Counts:
        sound = [file for hour in self.hours for file in hour.sound]
        ranges = len(self.hours[0].ranges)
        skipped = sum(len(hour.skipped) for hour in self.hours) if self.range_number == 0 else 0
        return Counts(
            sum(file.rows for file in sound) // ranges, sum(file.file.size for file in sound) // ranges, skipped
        )

    def reader(self, hour: ExaminedHour) -> HourReader:
        return HourReader(self.files, hour.sound, self.part_rows, self.topics)

    def carried(self) -> TableRows:
        """What the first hour starts from, of the task's topics. Raises TableUnreadable."""
        tables = [read_part(self.files, path, contract.CARRIED, self.topics) for path in self.carry]
        return joined(tables) if tables else none_of(contract.CARRIED)

    def staged(self, folder: str) -> str:
        """Of this attempt alone."""
        return f"{self.staging}/{attempt()}/{folder}"


@dataclass(frozen=True, slots=True)
class StagedRange:
    """An hour, or a range of it."""

    files: tuple[File, ...]
    """Of its tables."""
    carried: Digest
    """Of what it carries on."""
    clusters: frozenset[str]
    """Those with a sample in the hour's last minute."""


def make_hours(task: HoursTask) -> list[StagedRange]:
    """Stages the tables of each. Raises SampleFilesDamaged, and TableUnreadable where the table to start from is."""
    carried = task.carried()
    staged = []
    for hour in task.hours:
        staged_hour, carried = _make(task, hour, carried)
        staged.append(staged_hour)
    return staged


def stage_tails(task: HoursTask) -> list[str]:
    """For each hour the path of a table of what its samples alone carry on; reads few columns."""
    paths = []
    for hour in task.hours:
        paths.append(task.staged(f"tails/{hour.name}-{task.range_number}.parquet"))
        write_table(task.files, paths[-1], _tail(task, hour), contract.CARRIED)
    return paths


def count_rows(task: HoursTask) -> list[Count]:
    """Known rows of each writer, per cluster and minute."""
    parts = (samples for hour in task.hours for _, samples in task.reader(hour).parts(OF_A_TAIL))
    return summed(count for samples in parts for count in counts_of(samples.rows, samples.writer, samples.writers))


def _make(task: HoursTask, hour: ExaminedHour, before: TableRows) -> tuple[StagedRange, TableRows]:
    folder, ranges = task.staged(layout.hour_folder(hour.name)), len(hour.ranges)
    carried, clusters = [], set[str]()
    with ExitStack() as stack:
        names = {table: layout.table_files(table, ranges)[task.range_number] for table in TABLES}
        write = {
            table: stack.enter_context(written_table(task.files, f"{folder}/{names[table]}", columns))
            for table, columns in TABLES.items()
        }
        for part, samples in task.reader(hour).parts():
            start, of_part = micros_of(hour.start), part.of(before)
            ordered = ordered_samples(_counting(samples, hour.chosen), of_part, start)
            del samples
            deltas = deltas_of(ordered)
            deltas = deltas.extended(waits_of(ordered, deltas))
            carried.append(carried_on(of_part, last_known_of(ordered), start))
            del ordered
            write[layout.DELTAS](deltas)
            totals, partitions = topic_totals_of(deltas), partitions_of(deltas)
            clusters |= clusters_at(totals, minute_of(hour.start + layout.HOUR) - 1)
            write[layout.TOTALS](totals)
            write[layout.PARTITIONS](partitions)
            write[layout.SUMMARY](summary_of(totals, partitions))
            write[layout.PER_MINUTE](per_minute_of(deltas, totals))
            write[layout.CARRY](carried[-1])
    after = joined(carried)
    staged = tuple(file for file in task.files.listed(folder, 0) if file.name in names.values())
    return StagedRange(staged, digest_of(after), frozenset(clusters)), after


def _tail(task: HoursTask, hour: ExaminedHour) -> TableRows:
    parts = []
    for _, samples in task.reader(hour).parts(OF_A_TAIL):
        ordered = _from_nothing(samples, hour)
        if ordered.repeated:  # which of two counts is decided by all columns
            return joined([last_known_of(_from_nothing(each, hour)) for _, each in task.reader(hour).parts()])
        parts.append(last_known_of(ordered))
    return joined(parts)


def _from_nothing(samples: Samples, hour: ExaminedHour) -> OrderedSamples:
    return ordered_samples(_counting(samples, hour.chosen), none_of(contract.CARRIED), micros_of(hour.start))


def _counting(samples: Samples, chosen: Chosen | None) -> TableRows:
    """The rows of the writers that count, and the writer of each."""
    rows = samples.rows.with_text("writer", samples.writer, texts_of(samples.writers))
    if chosen is None or not len(rows):
        return rows
    return rows.taken(is_chosen(rows, samples.writer, samples.writers, chosen))
