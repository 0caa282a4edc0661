"""Tables that compaction makes, as Parquet: read as rows, and written part by part."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history.contract import VERSION, VERSION_KEY, Column, Type
from spark.errors import TableUnreadable, Unusable, is_of_system
from spark.storage.protocol import HistoryFiles, read_again
from spark.tables.columns import TableRows, none_of, rows_of, table_of
from spark.tables.contract import NAMES
from spark.tables.topic_parts import WHOLE, Names, Part


@dataclass(frozen=True, slots=True)
class Packing:
    """How the columns of a table are written; those that are not named, with a dictionary."""

    encodings: Mapping[str, str]
    level: int
    """Of zstd."""


# Numbers that seldom repeat. pyarrow takes differences in blocks of 256 values, from the least of them on: the way
# down from one series to the next one widens a whole block of offsets, and zstd alone makes less of these.
QUICKLY = Packing(
    {
        **dict.fromkeys(("log_start", "produced", "lag", "received_at"), "DELTA_BINARY_PACKED"),
        **dict.fromkeys(("committed", "log_end"), "PLAIN"),
    },
    level=1,
)
CLOSELY = Packing(dict.fromkeys(("produced", "consumed", "lag", "skew"), "BYTE_STREAM_SPLIT"), level=9)
"""Of numbers that hardly ever repeat, in a table that is kept for years: their upper bytes, side by side, are alike."""

Write = Callable[[TableRows], None]


def read_table(files: HistoryFiles, path: str, contract: Sequence[Column]) -> TableRows:
    """A column that the file does not have is unknown in its rows. Raises TableUnreadable."""
    names = [column.name for column in contract]

    def read() -> TableRows:
        with unreadable(path), opened(files, path, contract) as file:
            return rows_of(file.read(names), contract)

    return read_again(read)


def read_part(files: HistoryFiles, path: str, contract: Sequence[Column], part: Part) -> TableRows:
    """As `read_table`, the rows of some topics."""
    if part == WHOLE:
        return read_table(files, path, contract)
    with unreadable(path):
        return part.of(rows_of(read_topics(files, path, contract, part.may_be_in), contract))


def read_topics(
    files: HistoryFiles, path: str, contract: Sequence[Column], may_have: Callable[[Names, Names], bool]
) -> pa.Table:
    """The row groups that may have a wanted topic: `may_have` is asked with names that bound a group's topics. Parquet
    has no bounds where names are long."""
    columns = [column.name for column in contract]

    def read() -> pa.Table:
        with opened(files, path, contract) as file:
            return file.read_row_groups(groups_with(file.metadata, may_have), columns)

    return read_again(read)


def groups_with(
    metadata: pq.FileMetaData, may_have: Callable[[Names, Names], bool], key: Sequence[str] = NAMES
) -> list[int]:
    """Numbers of the row groups that may have a wanted topic, as in `read_topics`, or whatever else has that key."""
    return [number for number, bounds in enumerate(topics_of_groups(metadata, key)) if not bounds or may_have(*bounds)]


def topics_of_groups(metadata: pq.FileMetaData, key: Sequence[str] = NAMES) -> list[tuple[Names, Names] | None]:
    """For each row group names that bound its topics: none is smaller than the first or larger than the second."""
    places = [metadata.schema.names.index(name) for name in key]
    return [_bounds_in(metadata.row_group(number), places) for number in range(metadata.num_row_groups)]


def _bounds_in(group: pq.RowGroupMetaData, places: Iterable[int]) -> tuple[Names, Names] | None:
    names = [group.column(place).statistics for place in places]
    if not all(each is not None and each.has_min_max for each in names):
        return None
    try:
        return tuple(it.min for it in names), tuple(it.max for it in names)
    except UnicodeDecodeError:
        return None


@contextlib.contextmanager
def unreadable(path: str) -> Iterator[None]:
    """Raises TableUnreadable for what shows that a table is missing or damaged."""
    try:
        yield
    except FileNotFoundError as error:
        raise TableUnreadable(path) from error
    except (OSError, pa.ArrowException) as error:
        if is_of_system(error):
            raise
        raise TableUnreadable(path) from error


@contextlib.contextmanager
def or_refused(files: HistoryFiles, path: str) -> Iterator[None]:
    """Raises Unusable where the file cannot be read."""
    try:
        yield
    except pa.ArrowException as error:
        raise Unusable(f"{files.shown(path)} cannot be read: {str(error).splitlines()[0]}") from error


@contextlib.contextmanager
def opened(
    files: HistoryFiles, path: str, contract: Sequence[Column], metadata: pq.FileMetaData | None = None
) -> Iterator[pq.ParquetFile]:
    """Texts are read as dictionaries. A file may lack columns: reading those returns no column. In a bucket, ranges of
    the columns that are read are requested together. `metadata`: of the file, if they have been read before. Raises
    Replaced at the end."""
    with files.reading(path) as source:
        known = metadata or pq.read_metadata(source)
        names = set(known.schema.names)
        texts = [column.name for column in contract if column.type is Type.TEXT and column.name in names]
        is_ranged = not isinstance(source, str)
        with pq.ParquetFile(source, metadata=known, read_dictionary=texts, pre_buffer=is_ranged) as file:
            yield file


@contextlib.contextmanager
def written_table(
    files: HistoryFiles, path: str, contract: Sequence[Column], packing: Packing = QUICKLY
) -> Iterator[Write]:
    """A table that is whole at the end; without any rows it has columns alone."""
    own = {
        name: encoding
        for name, encoding in packing.encodings.items()
        if any(name == column.name for column in contract)
    }
    schema = table_of(none_of(contract), contract).schema.with_metadata({VERSION_KEY: str(VERSION)})
    with (
        files.created(path) as target,
        pq.ParquetWriter(
            target,
            schema,
            compression="zstd",
            compression_level=packing.level,
            column_encoding=own,
            use_dictionary=[each.name for each in contract if each.name not in own and each.type is not Type.FLAG],
            store_schema=False,
        ) as writer,
    ):
        yield lambda rows: writer.write_table(table_of(rows, contract))


def write_table(
    files: HistoryFiles,
    path: str,
    rows: TableRows,
    contract: Sequence[Column],
    packing: Packing = QUICKLY,
) -> None:
    with written_table(files, path, contract, packing) as write:
        write(rows)
