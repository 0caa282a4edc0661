"""How many bytes the real S3 server sends for what is read of a large hour: hardly more than the columns have."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapter.history.contract import SAMPLES, VERSION, VERSION_KEY, Column
from spark.pipeline.hour_task import OF_A_TAIL
from spark.storage.location import files_at
from spark.storage.protocol import File, HistoryFiles
from spark.tables.layout import start_of
from spark.tables.parquet_tables import read_topics
from spark.tables.sample_files import Sound, examined
from spark.tables.sample_reader import NAME_COLUMNS, PARTS_AT_ONCE, HourReader
from spark.tables.topic_parts import bounds_of, parts_between
from tests.support.history.real_bucket import RealBucket
from tests.support.history.written_history import SCHEMA, START

HOUR = "date=2026-11-20/hour=06"
ROWS, GROUP_ROWS, TOPICS = 400_000, 10_000, 200
AT_MOST = 1.2


class Counting(socketserver.ThreadingTCPServer):
    """Passes connections on to the server, and counts what it sends, headers too."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.port, self.sent, self.lock = port, 0, threading.Lock()


class Passing(socketserver.BaseRequestHandler):
    server: Counting

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            asking = threading.Thread(target=self._pass_questions, args=(there,), daemon=True)
            asking.start()
            while answer := there.recv(1 << 20):
                with self.server.lock:
                    self.server.sent += len(answer)
                self.request.sendall(answer)
            asking.join()

    def _pass_questions(self, there: socket.socket) -> None:
        while question := self.request.recv(1 << 16):
            there.sendall(question)
        there.shutdown(socket.SHUT_WR)


@pytest.fixture
def counting(real_bucket: RealBucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    """Between the clients of this test and the server."""
    with Counting(real_bucket.server.port) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.server_address[1]}")
        yield proxy
        proxy.shutdown()


def write_large(root: Path) -> Path:
    """A file with groups of rows of five topics each, as the adapter sorts them; nothing in it repeats."""
    chance = np.random.default_rng(3)
    offsets = pa.array(chance.integers(0, 2**50, ROWS))
    times = np.datetime64(START.replace(tzinfo=None), "us") + chance.integers(0, 3_600_000_000, ROWS)
    columns = {
        "sampled_at": pa.array(times).cast(SCHEMA.field("sampled_at").type),
        "received_at": pa.array(times).cast(SCHEMA.field("received_at").type),
        "interval_seconds": pa.array(np.full(ROWS, 10, np.float32)),
        "topic": pa.array([f"topic-{row * TOPICS // ROWS:03}" for row in range(ROWS)]),
        "partition": pa.array(np.arange(ROWS, dtype=np.int32)),
        **dict.fromkeys(("committed", "log_end", "log_start", "last_commit"), offsets),
        "members": pa.array(np.ones(ROWS, np.int32)),
        "has_marker": pa.array(np.zeros(ROWS, np.bool_)),
    }
    words = ("cluster", "group", "state", "isolation", "offset_reset", "topic_id", "owner")
    columns |= dict.fromkeys(words, pa.array(["word"] * ROWS))
    arrays = [columns.get(name, pa.nulls(ROWS, SCHEMA.field(name).type)) for name in SCHEMA.names]
    table = pa.Table.from_arrays(arrays, SCHEMA.names).replace_schema_metadata({VERSION_KEY: str(VERSION)})
    path = root / "samples" / HOUR / "adapter-0-20261120T060000Z.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, row_group_size=GROUP_ROWS, column_encoding=None)
    return path


@pytest.fixture
def large(real_bucket: RealBucket, tmp_path: Path) -> tuple[HistoryFiles, Path]:
    path = write_large(tmp_path)
    real_bucket.lay(tmp_path)
    return files_at(real_bucket.location), path


def sent(proxy: Counting, read: Callable[[], object]) -> int:
    """Bytes of the server's answers while this is read."""
    before = proxy.sent
    read()
    return proxy.sent - before


def needed(path: Path, columns: Iterable[Column], groups: Iterable[int] | None = None) -> int:
    metadata, names = pq.read_metadata(path), {column.name for column in columns}
    return sum(
        column.total_compressed_size
        for number in (range(metadata.num_row_groups) if groups is None else groups)
        for column in map(metadata.row_group(number).column, range(metadata.num_columns))
        if column.path_in_schema in names
    )


def sound(files: HistoryFiles, path: Path) -> Sound:
    hour = start_of(HOUR)
    assert hour is not None
    found = examined(files, File(f"samples/{HOUR}/{path.name}", path.stat().st_size), hour)
    assert isinstance(found, Sound)
    return found


@pytest.mark.parametrize("columns", [SAMPLES, OF_A_TAIL], ids=["all", "what is carried on"])
def test_an_hour_that_is_read_in_parts_is_sent_once(
    counting: Counting, large: tuple[HistoryFiles, Path], columns: tuple[Column, ...]
) -> None:
    """And once more the names, which divide it into parts."""
    files, path = large
    reader = HourReader(files, [sound(files, path)], part_rows=ROWS // 4 // PARTS_AT_ONCE)
    rows: list[int] = []

    taken = sent(counting, lambda: rows.extend(len(part.rows) for _, part in reader.parts(columns)))

    assert (sum(rows), len(rows) > PARTS_AT_ONCE) == (ROWS, True)
    assert path.stat().st_size > 5_000_000
    least = needed(path, columns) + needed(path, NAME_COLUMNS)
    assert least <= taken <= AT_MOST * least


def test_an_hour_that_several_tasks_read_by_ranges_is_sent_once(
    counting: Counting, large: tuple[HistoryFiles, Path]
) -> None:
    """And the footer to each of them."""
    files, path = large
    found = sound(files, path)
    ranges = parts_between(bounds_of(found.groups, ROWS // 4))
    rows: list[int] = []

    def read() -> None:
        readers = (HourReader(files, [found], within=each) for each in ranges)
        rows.extend(sum(len(part.rows) for _, part in reader.parts()) for reader in readers)

    taken = sent(counting, read)

    assert rows == [ROWS // 4] * 4
    least = needed(path, SAMPLES) + len(ranges) * int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert least <= taken <= AT_MOST * least


def test_some_topics_are_sent_without_the_others(counting: Counting, large: tuple[HistoryFiles, Path]) -> None:
    files, path = large
    first, last = ("word", "word", "topic-050"), ("word", "word", "topic-149")
    columns = tuple(column for column in SAMPLES if column.name in {"cluster", "group", "topic", "log_end"})
    tables: list[pa.Table] = []

    taken = sent(
        counting,
        lambda: tables.append(
            read_topics(
                files, f"samples/{HOUR}/{path.name}", columns, lambda least, most: least <= last and first <= most
            )
        ),
    )

    footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert tables[0].num_rows == ROWS // 2
    least = needed(path, columns, groups=range(10, 30)) + footer
    assert least <= taken <= AT_MOST * least


def test_a_footer_is_sent_without_the_rows(counting: Counting, large: tuple[HistoryFiles, Path]) -> None:
    files, path = large

    footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert footer <= sent(counting, lambda: sound(files, path)) <= footer + 20_000
