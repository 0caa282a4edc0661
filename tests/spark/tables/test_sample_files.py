from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapter.history.contract import SAMPLES
from adapter.history.reading.validity import fault_of, writer_of
from spark.storage.local import LocalFiles
from spark.storage.protocol import File
from spark.tables.sample_files import Skipped, Sound, examined
from spark.tables.sample_reader import PART_ROWS, HourReader
from tests.support.history.written_history import SCHEMA, START, sample, write_file

FOLDER = "samples/date=2026-11-20/hour=06"


def judged(root: Path, path: Path) -> Sound | Skipped:
    return examined(LocalFiles(root), File(str(path.relative_to(root)), path.stat().st_size), START)


def reason(root: Path, path: Path) -> str:
    result = judged(root, path)
    assert isinstance(result, Skipped)
    return result.reason


def foreign(root: Path, table: pa.Table, version: str | None = "1") -> Path:
    """A file of the history by its name."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    path = root / FOLDER / "a-20261120T060000.000000Z.parquet"
    metadata = {"kafka_lag_adapter.contract": version} if version is not None else None
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def rows() -> pa.Table:
    return pa.Table.from_pylist([sample(0, 1, 2)], SCHEMA)


def test_a_file_as_the_adapter_writes_it_is_sound(tmp_path: Path) -> None:
    path = write_file(tmp_path / FOLDER, [sample(0, 1, 2)], "adapter-7f-x2")

    sound = judged(tmp_path, path)

    assert isinstance(sound, Sound)
    assert (sound.writer, sound.rows, sound.is_of_its_hour) == ("adapter-7f-x2", 1, True)


@pytest.mark.parametrize("part_rows", [PART_ROWS, 1])
def test_a_file_of_an_earlier_release_is_sound_and_its_rows_have_no_owner(tmp_path: Path, part_rows: int) -> None:
    own = {"owner": "m-0", "offset_reset": "earliest", "last_commit": 3, "has_marker": True}
    newer = write_file(tmp_path / FOLDER, [sample(10, 1, 2, **own)], "b")
    older = foreign(tmp_path, rows().drop_columns([*own]), version="1")
    sound = [one for path in (newer, older) if isinstance(one := judged(tmp_path, path), Sound)]

    ((_, read),) = HourReader(LocalFiles(tmp_path), sound, part_rows).parts()
    owners = read.rows.texts["owner"].to_pylist()
    assert [None if code < 0 else owners[code] for code in read.rows["owner"].tolist()] == ["m-0", None]
    assert read.rows["last_commit"].tolist() == [3, -1], "unknown, and not 0"
    assert read.rows["has_marker"].tolist() == [True, False]


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = write_file(tmp_path / FOLDER, [sample(0, 1, 2)])
    path.write_bytes(path.read_bytes()[:-100])

    assert reason(tmp_path, path) == "is torn, or no Parquet file"


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    path = write_file(tmp_path / FOLDER, [sample(0, 1, 2)])
    path.write_bytes(b"")

    assert reason(tmp_path, path) == "is empty"


def test_a_parquet_file_of_somebody_else_is_named(tmp_path: Path) -> None:
    path = foreign(tmp_path, pa.table({"a": [1]}), version=None)

    assert reason(tmp_path, path) == "was not written by the adapter: it names no version of the contract"


def test_a_newer_contract_is_not_guessed_at(tmp_path: Path) -> None:
    path = foreign(tmp_path, rows(), version="3")

    assert reason(tmp_path, path) == "was written for version 3 of the contract, known is 2"


@pytest.mark.parametrize("version", ["", "one", "-1"])
def test_a_version_that_is_no_number_is_named(tmp_path: Path, version: str) -> None:
    path = foreign(tmp_path, rows(), version=version)

    assert reason(tmp_path, path).startswith("names no version of the contract that could be read")


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = foreign(tmp_path, rows().drop_columns(["log_end"]))

    assert reason(tmp_path, path) == "has no column log_end, or two of them"


@pytest.mark.parametrize(
    ("column", "found", "contract"), [("partition", pa.int64(), "int32"), ("topic", pa.binary(), "string")]
)
def test_a_column_of_another_type_is_named(tmp_path: Path, column: str, found: pa.DataType, contract: str) -> None:
    table = rows()
    place = table.schema.get_field_index(column)
    path = foreign(tmp_path, table.set_column(place, column, pa.nulls(1, found)))

    assert reason(tmp_path, path) == f"has the column {column} as {found}, not as {contract}"


def with_value(column: str, value: object) -> pa.Table:
    """Two rows, of which the second has this value of what may be any integer; times in microseconds."""
    of = SCHEMA.field(column).type
    table = pa.Table.from_pylist([sample(0, 1, 2), sample(10, 1, 2)], SCHEMA)
    first = table[column].chunk(0)[:1]
    second = pa.array([value], pa.int64()).cast(of) if pa.types.is_timestamp(of) else pa.array([value], of)
    return table.set_column(SCHEMA.get_field_index(column), column, pa.chunked_array([first, second]))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("interval_seconds", float("nan")),
        ("interval_seconds", float("inf")),
        ("interval_seconds", 0.0),
        ("log_end", 2**53 + 1),
        ("committed", -5),
        ("log_start", -1),
        ("partition", -1),
        ("members", -1),
        ("sampled_at", -1),
        ("received_at", 2**62),
    ],
)
def test_values_that_cannot_be_are_found(column: str, value: float) -> None:
    assert fault_of(with_value(column, value)) == f"has a {column} that cannot be"


@pytest.mark.parametrize("column", [column.name for column in SAMPLES if not column.is_nullable])
def test_values_that_are_missing_are_found(column: str) -> None:
    assert fault_of(with_value(column, None)) == f"has rows without {column}"


@pytest.mark.parametrize("column", [column.name for column in SAMPLES if column.is_nullable])
def test_values_that_may_be_missing_are_no_fault(column: str) -> None:
    assert fault_of(with_value(column, None)) is None


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("log_end", [0, 2**53]),
        ("interval_seconds", [0.001, 366 * 86400.0]),
        ("partition", [0, 2**31 - 1]),
        ("sampled_at", [0, 250_000_000_000_000_000]),
    ],
)
def test_the_least_and_the_largest_that_can_be_are_no_fault(column: str, values: list[float]) -> None:
    assert [fault_of(with_value(column, value)) for value in values] == [None, None]


def test_a_null_among_the_texts_of_a_dictionary_is_found() -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["orders", None]))
    place = SCHEMA.get_field_index("topic")
    table = with_value("topic", "orders").set_column(place, "topic", texts)

    assert fault_of(table) == "has rows without topic"
    assert fault_of(table[:1]) is None


def test_texts_that_are_none_are_found() -> None:
    texts = pa.Array.from_buffers(pa.string(), 2, pa.array([b"orders", b"\xff\xfe"]).buffers())
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), texts)
    place = SCHEMA.get_field_index("topic")
    table = with_value("topic", "orders")

    for column in (texts, dictionary):
        assert fault_of(table.set_column(place, "topic", column)) == "has a topic that is no text"


def test_columns_that_were_not_read_are_not_looked_for() -> None:
    assert fault_of(with_value("log_end", -1).drop_columns(["log_end"])) is None


def test_no_rows_have_no_fault() -> None:
    assert fault_of(SCHEMA.empty_table()) is None


def test_further_columns_do_no_harm(tmp_path: Path) -> None:
    path = foreign(tmp_path, rows().append_column("later", pa.array([1])))

    assert isinstance(judged(tmp_path, path), Sound)


def test_rows_of_another_hour_are_noticed(tmp_path: Path) -> None:
    path = write_file(tmp_path / FOLDER, [sample(0, 1, 2), sample(3600, 1, 2)])

    sound = judged(tmp_path, path)

    assert isinstance(sound, Sound)
    assert not sound.is_of_its_hour


def test_a_writer_s_name_may_have_dashes_and_figures() -> None:
    assert writer_of("host-20261120-1a2b-20261121T193737.123456Z.parquet") == "host-20261120-1a2b"


def test_a_name_without_a_time_is_a_writer_of_its_own() -> None:
    assert writer_of("export.parquet") == "export"
