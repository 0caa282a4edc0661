"""The data source `kafka_lag_history` in a real session. Files that need not be read are spoilt, so that a query that
reads them fails."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter
from pyspark.sql.types import StructType

from spark.datasource import OffsetHistory
from spark.pipeline.batches import BatchLimits
from spark.storage.protocol import File
from spark.tables.public import PUBLIC, SHARE_BYTES, Piece, shares_of
from tests.support.history.compacting import compacted
from tests.support.history.real_bucket import RealBucket
from tests.support.history.written_history import START, paths_of, read, sample, write

HOURS = 20
"""From 06:00 on the 20th to 02:00 on the 21st."""


@pytest.fixture(scope="module")
def session(spark_session: SparkSession) -> Iterator[SparkSession]:
    spark_session.dataSource.register(OffsetHistory)
    spark_session.conf.set("spark.sql.python.filterPushdown.enabled", True)
    yield spark_session
    spark_session.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history")
    names = [("main", "billing", "orders"), ("main", "mail", "orders"), ("other", "billing", "refunds")]
    write(
        root,
        [
            sample(hour * 3600 + at, hour, 2 * hour + at, cluster=cluster, group=group, topic=topic)
            for hour in range(HOURS)
            for at in (0, 60)
            for cluster, group, topic in names
        ],
    )
    compacted(root, limits=BatchLimits(of_part=1))  # a group of rows for each topic
    return root


@pytest.fixture
def history(written: Path, tmp_path: Path) -> Path:
    """One that a test may spoil."""
    for path in (path for path in written.rglob("*.parquet") if path.is_file()):
        (tmp_path / path.relative_to(written)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(written)).write_bytes(path.read_bytes())
    return tmp_path


def table(session: SparkSession, root: object, name: str, **options: str) -> DataFrame:
    return session.read.format("kafka_lag_history").options(table=name, **options).load(str(root))


def spoil(root: Path, *kept: str) -> None:
    """All files without one of these words in their path."""
    for path in root.rglob("*.parquet"):
        if not any(word in str(path.relative_to(root)) for word in kept):
            path.write_bytes(b"spoilt")


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in frame.toArrow().to_pylist())


def test_every_public_table_has_the_rows_of_its_files(session: SparkSession, written: Path) -> None:
    for name, public in PUBLIC.items():
        columns = [column.name for column in public.columns]
        expected = sorted(tuple(row[column] for column in columns) for row in read(written, name))
        assert rows(table(session, written, name).select(*columns)) == expected, name
        assert len(expected) > 0


def test_folders_are_the_columns_date_and_hour(session: SparkSession, written: Path) -> None:
    folders = table(session, written, "totals").select("date", "hour").distinct()

    starts = [START + timedelta(hours=hour) for hour in range(HOURS)]
    assert rows(folders) == sorted((start.date(), start.hour) for start in starts)


@pytest.mark.parametrize(
    ("name", "wanted", "kept"),
    [
        ("samples", "date = '2026-11-21'", "date=2026-11-21"),
        ("deltas", "date = '2026-11-20' and hour = 7", "date=2026-11-20/hour=07"),
        ("deltas", "date > '2026-11-20' and hour in (1, 5)", "date=2026-11-21/hour=01"),
        ("totals", "sampled_at >= timestamp '2026-11-21 01:00:00Z'", "date=2026-11-21/hour=01"),
        ("partitions", "starts_at < timestamp '2026-11-20 07:00:00Z'", "date=2026-11-20/hour=06"),
        ("hourly", "hour = timestamp '2026-11-21 01:00:00Z'", "date=2026-11-21"),
        ("daily", "day = timestamp '2026-11-21 00:00:00Z'", "2026-11-21"),
    ],
)
def test_files_of_other_days_and_hours_are_not_opened(
    session: SparkSession, history: Path, name: str, wanted: str, kept: str
) -> None:
    expected = rows(table(session, history, name).where(wanted))
    spoil(history, kept)

    assert rows(table(session, history, name).where(wanted)) == expected
    assert len(expected) > 0


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ("group = 'mail'", {("main", "mail", "orders")}),
        ("cluster = 'other'", {("other", "billing", "refunds")}),
        ("topic in ('refunds', 'none')", {("other", "billing", "refunds")}),
        ("group < 'm' and cluster = 'main'", {("main", "billing", "orders")}),
    ],
)
def test_rows_of_other_groups_and_topics_are_not_read(
    session: SparkSession, history: Path, wanted: str, kept: set[tuple[str, str, str]]
) -> None:
    expected = rows(table(session, history, "deltas").where(wanted))
    for path in paths_of(history, "deltas"):
        spoil_groups(path, kept)

    assert rows(table(session, history, "deltas").where(wanted)) == expected
    assert len(expected) == 2 * HOURS
    with pytest.raises(PySparkException, match=r"deltas\.parquet cannot be read"):
        table(session, history, "deltas").toArrow()


def spoil_groups(path: Path, kept: set[tuple[str, str, str]]) -> None:
    """The row groups of other topics; each has one."""
    metadata, content = pq.read_metadata(path), bytearray(path.read_bytes())
    places = [metadata.schema.names.index(name) for name in ("cluster", "group", "topic")]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if tuple(group.column(place).statistics.min for place in places) not in kept:
            first = group.column(0)
            start = first.dictionary_page_offset or first.data_page_offset
            content[start : start + group.total_byte_size // 4] = bytes(group.total_byte_size // 4)
    path.write_bytes(content)


def test_only_the_columns_that_are_asked_for_are_read(session: SparkSession, written: Path) -> None:
    by_option = table(session, written, "totals", columns="group, lag, date")
    by_schema = (
        session.read.format("kafka_lag_history")
        .option("table", "totals")
        .schema("group string, lag bigint, date date")
        .load(str(written))
    )

    assert by_option.columns == by_schema.columns == ["group", "lag", "date"]
    assert rows(by_option) == rows(by_schema) == rows(table(session, written, "totals").select("group", "lag", "date"))


def test_a_filter_that_no_file_shows_is_left_to_spark(session: SparkSession, written: Path) -> None:
    deltas = table(session, written, "deltas")

    late = deltas.where("log_end >= 98 or group = 'mail'").where("partition = 0 and topic <> 'refunds'")

    assert late.count() == sum(
        (row["log_end"] >= 98 or row["group"] == "mail") and row["topic"] != "refunds"  # type: ignore[operator]
        for row in read(written, "deltas")
    )


def test_files_of_earlier_releases_have_nulls_in_columns_that_they_lack(session: SparkSession, history: Path) -> None:
    first = paths_of(history, "samples")[0]
    pq.write_table(pq.ParquetFile(first).read().drop_columns(["owner", "last_commit"]), first)

    samples = table(session, history, "samples", columns="owner, last_commit, hour")

    assert samples.where("hour = 6").distinct().toArrow().to_pylist() == [
        {"owner": None, "last_commit": None, "hour": 6}
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "lags"}, "option `table` is 'lags'; must be one of samples, deltas"),
        ({"table": "totals", "columns": "lag,no"}, "totals has no column no; it has sampled_at"),
    ],
)
def test_a_table_or_column_that_does_not_exist_is_named(
    session: SparkSession, written: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        session.read.format("kafka_lag_history").options(**options).load(str(written)).toArrow()


def test_a_bucket_is_read_with_the_environment_s_credentials(written: Path, real_bucket: RealBucket) -> None:
    """By the calls that Spark makes in its Python processes."""
    real_bucket.lay(written)
    source = OffsetHistory({"table": "totals", "path": real_bucket.location, "columns": "group,topic,lag"})
    reader = source.reader(StructType().add("group", "string").add("topic", "string").add("lag", "long"))
    pushed: list[Filter] = [EqualTo(("date",), date(2026, 11, 21)), EqualTo(("group",), "mail"), EqualTo(("lag",), 1)]
    left = list(reader.pushFilters(pushed))

    batches = [batch for share in reader.partitions() for batch in reader.read(share)]

    assert left == [pushed[2]]
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"group": "mail", "topic": "orders", "lag": row["lag"]}
        for row in sorted(read(written, "totals"), key=lambda row: str(row["sampled_at"]))
        if row["group"] == "mail" and row["sampled_at"] >= datetime(2026, 11, 21, tzinfo=UTC)  # type: ignore[operator]
    ]


def test_large_files_are_divided_among_tasks_and_small_ones_share_one() -> None:
    files = [File("deltas-a", 100), File("deltas-b", 100), File("deltas-c", 3 * SHARE_BYTES)]

    shares = shares_of(files)

    assert shares[0] == (Piece("deltas-a"), Piece("deltas-b"))
    assert sorted(piece.first for share in shares[1:] for piece in share) == [0, 1, 2]
    assert {piece.path for share in shares[1:] for piece in share} == {"deltas-c"}
