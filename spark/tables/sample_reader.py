"""An hour's files of samples -> rows, in parts that fit into a task's memory.

A part has whole topics, so that whatever is computed of an hour is computed part by part. The adapter sorts a file's
rows by topic and writes them in groups of some ten thousand: of these a part reads only those that its topics lie in.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history.contract import SAMPLES, Column
from adapter.history.reading.validity import fault_of
from spark.errors import SampleFilesDamaged, is_of_system
from spark.storage.protocol import HistoryFiles, each_of
from spark.tables.columns import Ints, TableRows, joined, none_of, rows_of
from spark.tables.contract import NAMES
from spark.tables.layout import HOUR, hour_of, start_of
from spark.tables.parquet_tables import groups_with, opened, topics_of_groups
from spark.tables.sample_files import DAMAGED, Sound, micros_of
from spark.tables.topic_parts import WHOLE, Names, Part, parts_of, topics_in

PART_ROWS = 250_000
"""A part has hardly more, unless a single topic has."""
PARTS_AT_ONCE = 12
"""Are read together: a sample takes 92 bytes, and four to five times as much while its part is computed."""
NAME_COLUMNS = tuple(column for column in SAMPLES if column.name in NAMES)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """TableRows that belong to their hour, and the place of each one's writer in `writers`."""

    rows: TableRows
    writer: Ints
    writers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Contents:
    """Of a file: its footer, the first and the last topic of each group of rows, and the rows of each topic."""

    metadata: pq.FileMetaData
    groups: list[tuple[Names, Names] | None]
    rows: Counter[Names]

    def groups_of(self, part: Part) -> "_Groups":
        numbers = [number for number, topics in enumerate(self.groups) if topics and part.may_be_in(*topics)]
        return _Groups(self.metadata, numbers)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Of a file's rows, and its footer."""

    metadata: pq.FileMetaData
    numbers: list[int]

    def rows_in(self, part: Part) -> int:
        """About so many: half of those of a group that has other topics, too."""
        bounds, rows = topics_of_groups(self.metadata), 0
        for number in self.numbers:
            topics, in_group = bounds[number], self.metadata.row_group(number).num_rows
            rows += in_group // 2 if topics and not all(map(part.has, topics)) else in_group
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """A file's rows in the order of their topics, and where each topic begins."""

    topics: list[Names]
    begins: list[int]
    rows: TableRows

    @property
    def counts(self) -> Counter[Names]:
        return Counter(dict(zip(self.topics, np.diff(self.begins).tolist(), strict=True)))

    def of(self, part: Part) -> TableRows:
        """A view, not a copy."""
        first, last = part.places(self.topics)
        return self.rows.taken(slice(self.begins[first], self.begins[last]))


@dataclass(frozen=True, slots=True)
class HourReader:
    """Of one hour's files, all of them sound."""

    files: HistoryFiles
    sound: Sequence[Sound]
    part_rows: int = PART_ROWS
    within: Part = WHOLE
    """Topics that are wanted."""

    @property
    def writers(self) -> tuple[str, ...]:
        return tuple(sorted({each.writer for each in self.sound}))

    def parts(self, columns: Sequence[Column] = SAMPLES) -> Iterator[tuple[Part, Samples]]:
        """In the order of their topics, at least one. Raises SampleFilesDamaged, which names every file that is."""
        for chunk, groups in self._chunks():
            wanted = dict(zip(self.sound, groups, strict=True))
            files = self._each(lambda each: self._sorted(each, wanted[each], chunk, columns))  # noqa: B023 -- used here
            rows = sum((each.counts for each in files), Counter())
            for part in parts_of(rows, self.part_rows, chunk):
                yield part, self._joined([each.of(part) for each in files], columns)
            del files  # before the next chunk is read

    def _chunks(self) -> Iterator[tuple[Part, Sequence[_Groups | None]]]:
        """Topics that are read at once, and of each file the row groups that may have them; None: all.
        Files whose rows are in no order are read once for each chunk."""
        limit = PARTS_AT_ONCE * self.part_rows
        if self.within == WHOLE and sum(each.rows for each in self.sound) <= limit:
            yield WHOLE, [None] * len(self.sound)
            return
        within = self._each(self._groups_within) if self.within != WHOLE else []
        if within and sum(each.rows_in(self.within) for each in within) <= limit:
            yield self.within, within
            return
        contents = self._each(self._contents_of)
        for chunk in parts_of(sum((each.rows for each in contents), Counter()), limit, self.within):
            yield chunk, [each.groups_of(chunk) for each in contents]

    def _sorted(self, sound: Sound, groups: _Groups | None, chunk: Part, columns: Sequence[Column]) -> _Sorted:
        rows = self._rows_of(sound, groups, chunk, columns)
        topics, place = topics_in(rows)
        ends = np.cumsum(np.bincount(place, minlength=len(topics)))
        is_in_order = not (place[1:] < place[:-1]).any()
        return _Sorted(
            topics, [0, *ends.tolist()], rows if is_in_order else rows.taken(np.argsort(place, kind="stable"))
        )

    def _joined(self, parts: Sequence[TableRows], columns: Sequence[Column]) -> Samples:
        """`found`: of each file."""
        place = [self.writers.index(each.writer) for each in self.sound]
        writer = np.repeat(np.array(place, np.int64), np.array([len(rows) for rows in parts], np.int64))
        return Samples(joined(parts) if parts else none_of(columns), writer, self.writers)

    def _each(self, read: Callable[[Sound], Result]) -> list[Result]:
        """What is read of each file."""
        results = each_of(self.files, lambda each: _or_fault(read, each), self.sound)
        reasons = {
            each.file.path: str(result)
            for each, result in zip(self.sound, results, strict=True)
            if isinstance(result, _Faulty)
        }
        if reasons:
            raise SampleFilesDamaged(reasons)
        return [result for result in results if not isinstance(result, _Faulty)]

    def _groups_within(self, sound: Sound) -> _Groups:
        metadata = pq.read_metadata(self.files.footer_source(sound.file))
        return _Groups(metadata, groups_with(metadata, self.within.may_be_in))

    def _contents_of(self, sound: Sound) -> _Contents:
        counts: Counter[Names] = Counter()
        groups: list[tuple[Names, Names] | None] = []
        with opened(self.files, sound.file.path, NAME_COLUMNS) as file:
            wanted = groups_with(file.metadata, self.within.may_be_in)
            for number in range(file.num_row_groups):
                if number not in wanted:
                    groups.append(None)
                    continue
                rows = self.within.of(_checked(file.read_row_group(number, list(NAMES)), NAME_COLUMNS))
                topics, place = topics_in(rows)
                counts.update(dict(zip(topics, np.bincount(place).tolist(), strict=True)))
                groups.append((topics[0], topics[-1]) if topics else None)
            return _Contents(file.metadata, groups, counts)

    def _rows_of(self, sound: Sound, groups: _Groups | None, part: Part, columns: Sequence[Column]) -> TableRows:
        names = [column.name for column in columns]
        with opened(self.files, sound.file.path, columns, groups.metadata if groups else None) as file:
            if groups is None:
                return _of_its_hour(_checked(file.read(names), columns), sound)
            tables = (file.read_row_group(number, names) for number in groups.numbers)
            parts = [part.of(_of_its_hour(_checked(table, columns), sound)) for table in tables]
        return joined(parts) if parts else none_of(columns)


class _Faulty(Exception):
    """Why no row of a file can be used."""


def _or_fault(read: Callable[[Sound], Result], sound: Sound) -> Result | _Faulty:
    try:
        return read(sound)
    except _Faulty as faulty:
        return faulty
    except (OSError, pa.ArrowException) as error:
        if is_of_system(error):
            raise
        return _Faulty(DAMAGED)


def _checked(table: pa.Table, columns: Sequence[Column]) -> TableRows:
    if fault := fault_of(table):
        raise _Faulty(fault)
    return rows_of(table, columns)


def _of_its_hour(rows: TableRows, sound: Sound) -> TableRows:
    if sound.is_of_its_hour:
        return rows
    hour = start_of(hour_of(sound.file.path))
    assert hour is not None, "only files of an hour's folder are examined"
    start, end = (micros_of(at) for at in (hour, hour + HOUR))
    return rows.taken((rows["sampled_at"] >= start) & (rows["sampled_at"] < end))
