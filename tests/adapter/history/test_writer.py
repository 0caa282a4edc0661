"""The history's writer: what it writes when, what it does while it cannot, and how it ends."""

import logging
import socket
import threading

import pyarrow as pa
import pytest

from adapter.history import writer as module
from adapter.history.clock_mark import ClockMark
from adapter.history.errors import HistoryUnwritable
from adapter.history.rows import Rows
from adapter.history.writer import HistoryWriter
from adapter.history.writer_election import WriterElection, process_name
from adapter.lag.layout import NO_LAYOUT
from adapter.telemetry import HistoryTelemetry, Telemetry
from tests.adapter.test_telemetry import samples_of
from tests.support import samples
from tests.support.history.histories import SAMPLED, FakeFiles, ledger, read_back, sample
from tests.support.samples import SteppedClock

FULL = HistoryUnwritable("no_space", "/history: No space left on device")
ONE_PARTITION = samples.layout([("billing", "orders", 0)])


class Rig:
    """A history whose rounds a test runs itself, or whose thread it starts."""

    def __init__(
        self,
        files: FakeFiles | None = None,
        election: WriterElection | None = None,
        writer: str = "pod-1",
        **settings: str,
    ) -> None:
        self.files = files or FakeFiles()
        self.clock = SteppedClock()
        self.telemetry = Telemetry()
        given = samples.settings(history={"location": "/history", **settings}).history
        own = HistoryTelemetry(self.telemetry)
        self.history = HistoryWriter(given, self.files, own, self.clock, writer, election)

    def round_after(self, seconds: float) -> None:
        self.clock.seconds += seconds
        self.history._round()

    def metric(self, name: str, *labels: str) -> float:
        return samples_of(self.telemetry)[f"kafka_lag_adapter_history_{name}", frozenset(labels)]


def test_nothing_is_written_before_the_interval_is_over_and_then_all_of_it() -> None:
    rig = Rig(flushInterval="1m")
    rig.history.append(sample())
    rig.history.append(sample(at=SAMPLED + 10))
    rig.round_after(59)
    assert rig.files.written == {}

    rig.round_after(1)
    ((_, content),) = rig.files.written.items()
    assert len(read_back(content)) == 4
    assert (rig.metric("files_total"), rig.metric("rows_total"), rig.metric("bytes_total")) == (1, 4, content.size)


def test_a_location_that_cannot_be_written_is_reported_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(FakeFiles(trouble=FULL))

    rig.round_after(0)

    assert "history: NotWritten: rows that are due wait in memory: /history: No space left on device" in caplog.messages
    assert rig.metric("failures_total", "no_space") >= 1
    assert not rig.files.written


def test_each_hour_touched_has_a_file_that_its_first_sample_names() -> None:
    rig = Rig()
    hour = 1_795_003_200.0  # 12:00 of a day
    for at in (hour - 20, hour - 10, hour, hour + 10):
        rig.history.append(sample(at=at))
    rig.round_after(300)

    assert list(rig.files.written) == [
        "samples/date=2026-11-18/hour=11/pod-1-20261118T115940.000000Z.parquet",
        "samples/date=2026-11-18/hour=12/pod-1-20261118T120000.000000Z.parquet",
    ]


def test_what_could_not_be_written_waits_is_tried_again_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(flushInterval="10m")
    rig.history.append(sample())
    rig.files.trouble = FULL
    with caplog.at_level(logging.INFO):
        for seconds in (600, 30, 30):
            rig.round_after(seconds)
        assert rig.metric("buffered_rows") == 2
        assert rig.metric("flush_age_seconds") == 660

        rig.files.trouble = None
        rig.round_after(30)

    assert [len(read_back(content)) for content in rig.files.written.values()] == [2]
    assert rig.metric("failures_total", "no_space") >= 3
    assert (rig.metric("buffered_rows"), rig.metric("dropped_rows_total"), rig.metric("rows_total")) == (0, 0, 2)
    assert rig.metric("flush_age_seconds") == 0
    reported = [record.message for record in caplog.records if "rit" in record.message]
    assert reported == [
        "history: NotWritten: rows that are due wait in memory: /history: No space left on device",
        "history: Written: all rows that are due are written: to /history as pod-1",
    ]


def test_samples_that_no_longer_fit_push_the_oldest_out_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_BYTES", 150)  # a row takes 59 bytes
    rig = Rig()
    for number in range(3):
        rig.history.append(sample(ONE_PARTITION, at=SAMPLED + 10 * number))
    assert (rig.metric("buffered_rows"), rig.metric("dropped_rows_total")) == (2, 1)

    rig.round_after(300)
    (content,) = rig.files.written.values()
    assert [row["sampled_at"].timestamp() for row in read_back(content)] == [SAMPLED + 10, SAMPLED + 20]


def test_an_early_flush_makes_room_before_the_interval_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EARLY_BYTES", 100)
    rig = Rig()
    rig.history.append(sample())
    rig.round_after(1)

    assert rig.metric("rows_total") == 2


def test_days_beyond_the_retention_go_samples_before_what_is_made_of_them() -> None:
    days = ["2026-11-15", "2026-11-16", "2026-11-17", "2026-11-18"]
    kept = ledger({"2026-11-15": 2.5, "2026-11-16": 1.5, "2026-11-17": 0.5, "2026-11-18": 0})
    copied = "2026-01-01"  # counts as written now
    tables = {"samples": [copied, *days], "hours": days[:1], "hourly": days}
    rig = Rig(FakeFiles(tables=tables, others=kept), retention="1d")
    rig.round_after(1)

    assert rig.files.deleted == [("samples", "2026-11-15"), ("samples", "2026-11-16"), ("hours", "2026-11-15")]


def test_a_day_that_cannot_be_deleted_keeps_no_other_day(caplog: pytest.LogCaptureFixture) -> None:
    days = ["2026-11-15", "2026-11-16"]
    kept = ledger(dict.fromkeys(days, 2))
    rig = Rig(FakeFiles(tables={"samples": days, "hours": days}, others=kept), retention="1d")
    delete = rig.files.delete_day

    def delete_all_but_one(table: str, day: str) -> None:
        if (table, day) == ("samples", "2026-11-15"):
            raise HistoryUnwritable("denied", "/history/samples/date=2026-11-15: Permission denied")
        delete(table, day)

    rig.files.delete_day = delete_all_but_one  # type: ignore[method-assign]  # somebody else's files lie there
    rig.round_after(1)
    assert rig.files.deleted == [("samples", "2026-11-16"), ("hours", "2026-11-15"), ("hours", "2026-11-16")]
    assert rig.metric("failures_total", "denied") == 1

    rig.files.delete_day, rig.files.deleted = delete, []  # type: ignore[method-assign]  # as above
    rig.round_after(3600)
    assert ("samples", "2026-11-15") in rig.files.deleted
    reported = [record.message for record in caplog.records if "cannot" in record.message]
    assert reported == [
        "history-retention: NotDeleted: old days cannot be deleted: /history/samples/date=2026-11-15: Permission denied"
    ]


def test_the_end_does_not_wait_until_all_old_days_are_deleted() -> None:
    days = ["2026-11-14", "2026-11-15", "2026-11-16"]
    rig = Rig(FakeFiles(tables={"samples": days}, others=ledger(dict.fromkeys(days, 2))), retention="1d")
    is_deleting = threading.Event()
    delete = rig.files.delete_day

    def delete_until_the_end(table: str, day: str) -> None:
        is_deleting.set()
        assert rig.history._stopping.wait(60)
        delete(table, day)

    rig.files.delete_day = delete_until_the_end  # type: ignore[method-assign]  # a slow store
    rig.history.append(sample())
    rig.history.start()
    assert is_deleting.wait(60)

    rig.history.stop(60.0)
    assert rig.files.deleted == [("samples", "2026-11-14")]
    assert rig.metric("rows_total") == 2


def test_old_days_are_looked_for_once_an_hour() -> None:
    rig = Rig()
    for _ in range(12):
        rig.round_after(300)

    assert rig.files.listed == ["samples", "hours", "autoscalers"]
    rig.round_after(300)
    assert rig.files.listed == ["samples", "hours", "autoscalers"] * 2


def test_the_end_writes_what_is_left_by_itself() -> None:
    rig = Rig(flushInterval="1h")
    rig.history.start()
    rig.history.append(sample())

    rig.history.stop(60.0)
    assert [len(read_back(content)) for content in rig.files.written.values()] == [2]


def test_the_end_waits_no_longer_than_it_may_for_a_store_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(flushInterval="1h")
    goes_on = threading.Event()

    def hang(path: str, content: pa.Buffer) -> None:
        goes_on.wait()
        raise HistoryUnwritable("timed_out", f"{path} of {content.size} bytes")

    rig.files.write = hang  # type: ignore[method-assign]  # a store that hangs
    rig.history.start()
    rig.history.append(sample())
    try:
        rig.history.stop(0.2)
        assert rig.history.is_hanging
    finally:
        goes_on.set()

    assert "history: 2 rows could not be written before the end" in caplog.messages


def test_appending_goes_on_while_a_store_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EARLY_BYTES", 1)
    rig = Rig()
    is_hanging, goes_on = threading.Event(), threading.Event()
    write = rig.files.write

    def hang(path: str, content: pa.Buffer) -> None:
        is_hanging.set()
        goes_on.wait()
        write(path, content)

    rig.files.write = hang  # type: ignore[method-assign]  # a slow store
    rig.history.start()
    rig.history.append(sample())
    assert is_hanging.wait(60)
    for number in range(1, 5):
        rig.history.append(sample(at=SAMPLED + 10 * number))
    assert rig.metric("buffered_rows") == 10

    goes_on.set()
    rig.history.stop(60.0)
    assert (rig.metric("rows_total"), rig.metric("dropped_rows_total")) == (10, 0)


def test_rows_that_cannot_be_encoded_are_counted_as_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.history.append(sample())

    def broken(rows: Rows, _mark: ClockMark) -> pa.Buffer:
        raise RuntimeError(f"{len(rows)} rows are too many")

    monkeypatch.setattr(module, "encoded", broken)
    with pytest.raises(RuntimeError):
        rig.round_after(300)
    assert (rig.metric("dropped_rows_total"), rig.metric("buffered_rows")) == (2, 0)


def test_an_unexpected_failure_of_the_store_loses_nothing() -> None:
    rig = Rig()
    rig.round_after(0)  # the hourly look for old days
    rig.history.append(sample())
    rig.files.trouble = RuntimeError("a library's own mistake")
    with pytest.raises(RuntimeError):
        rig.round_after(300)
    rig.files.trouble = None
    rig.round_after(30)
    assert [len(read_back(content)) for content in rig.files.written.values()] == [2]


def test_a_sample_without_rows_makes_no_file() -> None:
    rig = Rig()
    rig.history.append(sample(NO_LAYOUT))
    rig.round_after(300)

    assert (rig.files.written, rig.metric("buffered_rows")) == ({}, 0)


def test_two_processes_of_one_machine_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: ".pod_1.example/..")
    one, other = process_name(), process_name()

    assert one != other
    assert one.rpartition("-")[0] == "pod-1-example"


def test_no_metric_of_the_history_is_shown_where_none_is_kept() -> None:
    assert "history" not in Telemetry().exposition()[0].decode()
