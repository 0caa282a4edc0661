"""Writes the offset history: accepts the sample of each cycle at once, and writes files in its own thread.

Imported only if a history is kept, because it imports pyarrow."""

import logging
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import is_

import pyarrow as pa

from adapter.clock import Clock
from adapter.conditions import HISTORY, HISTORY_RETENTION, HISTORY_ROWS
from adapter.history.buffer import FILE_BYTES, SAMPLE_BYTES, Buffer
from adapter.history.clock_mark import ClockMark
from adapter.history.clock_runs import ClockRuns
from adapter.history.contract import SAMPLES_FOLDER
from adapter.history.errors import HistoryUnwritable
from adapter.history.files import Files
from adapter.history.notes import AUTOSCALERS, NoteNow, Notes
from adapter.history.parquet import encoded
from adapter.history.retention import Retention
from adapter.history.rows import Rows, by_hour, rows_of
from adapter.history.sample import Sample
from adapter.history.writer_election import Marks, SoleWriter, WriterElection, is_covered
from adapter.repeating import Repeating
from adapter.settings.models import History
from adapter.telemetry import HistoryTelemetry

logger = logging.getLogger(__name__)

TABLES_THAT_AGE = (SAMPLES_FOLDER, "hours", AUTOSCALERS)
"""Tables with a row per sample, or per partition and hour, or with documents. Samples are deleted first: deltas derive
from them."""
EARLY_BYTES = SAMPLE_BYTES // 2
"""When samples use this much memory, they are written before the flush interval is over."""
RETRY_SECONDS = 30.0
TIDY_SECONDS = 3600.0
STANDBY_SECONDS = 2.0
"""How often a replica that does not write looks whether it should, and drops what another has written."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class NewFile:
    """An encoded file that is not yet in the location."""

    path: str
    day: str
    """`YYYY-MM-DD` of its samples."""
    content: pa.Buffer
    rows: int
    until: Marks

    @property
    def size(self) -> int:
        return int(self.content.size)


class HistoryWriter(Repeating):
    """Any thread may call `append`. Everything else runs in the history's own thread."""

    def __init__(
        self,
        settings: History,
        files: Files,
        telemetry: HistoryTelemetry,
        clock: Clock,
        writer: str,
        election: WriterElection | None = None,
        boot_id: str | None = None,
        autoscalers: NoteNow | None = None,
    ) -> None:
        super().__init__("history")
        self._settings = settings
        self._files = files
        self._telemetry = telemetry
        self._clock = clock
        self._writer = writer
        self._boot_id = boot_id
        self._election = election or SoleWriter()
        self._is_standing_by = False
        self._shed: deque[int] = deque()
        """Rows that were dropped while standing by, until another has written them."""
        self._samples: Buffer[Sample] = Buffer(SAMPLE_BYTES)
        self._unwritten: Buffer[NewFile] = Buffer(FILE_BYTES)
        self._under_way = 0
        """Rows in neither buffer: they are being encoded."""
        now = clock.monotonic()
        self._written_at, self._flush_at, self._retry_at, self._tidy_at = now, now + settings.flush_interval, now, now
        self._clock_runs = ClockRuns()
        self._days_written: set[str] = set()
        """Days that are not noted in the retention ledger yet."""
        self._notes = None if autoscalers is None else Notes(AUTOSCALERS, autoscalers, self._write_text, clock, writer)
        self._retention = Retention(files, settings.retention, clock.monotonic)
        self._conditions = telemetry.conditions
        telemetry.age.set_function(lambda: clock.monotonic() - self._written_at)
        telemetry.buffered.set_function(lambda: self.buffered_rows)
        telemetry.is_writer.set_function(self._election.is_ours)

    def append(self, sample: Sample) -> None:
        """Keeps the sample until it is written, here or by another; drops the oldest rows if the buffer is full."""
        dropped = self._samples.add(sample)
        if self._election.is_ours() and not self._is_standing_by:
            self._count_dropped(dropped)
        elif dropped:
            self._shed.append(dropped)
        if self._samples.size > EARLY_BYTES:
            self.wake()

    def stop(self, timeout_seconds: float) -> None:
        """Writes what is left, and logs the loss if that does not succeed in time."""
        super().stop(timeout_seconds)
        lost = self.buffered_rows
        if lost and self._is_standing_by:
            logger.info("history: %d rows are left to the replica that writes it", lost)
        elif lost:
            logger.error("history: %d rows could not be written before the end", lost)

    @property
    def buffered_rows(self) -> int:
        return self._samples.rows + self._unwritten.rows + self._under_way

    def turn(self) -> float:
        self._round(is_last=self._stopping.is_set())
        return self._pause()

    def end(self) -> None:
        self.turn()

    def _pause(self) -> float:
        if self._is_standing_by:
            return STANDBY_SECONDS
        due = [self._flush_at, self._tidy_at, *([self._retry_at] if self._unwritten.rows else [])]
        return max(min(due) - self._clock.monotonic(), 0.0)

    def _round(self, *, is_last: bool = False) -> None:
        now = self._clock.monotonic()
        if not self._may_write():
            self._stand_by(now)
            return
        if self._is_standing_by:
            self._take_over(now)
        days_left = None
        if now >= self._tidy_at and not is_last:
            self._tidy_at = now + TIDY_SECONDS
            # Before writing, as it may free the space that is needed.
            days_left = self._tidy()
        if is_last or now >= self._flush_at or self._samples.size > EARLY_BYTES:
            self._flush_at = now + self._settings.flush_interval
            self._encode()
        self._write(days_left)

    def _may_write(self) -> bool:
        """What nobody else writes is not lost with this process; if both write it, readers choose one."""
        return self._election.is_ours() or (self._stopping.is_set() and self._election.is_vacant())

    def _stand_by(self, now: float) -> None:
        self._is_standing_by = True
        self._written_at = now  # nothing is due
        self._conditions.holds(HISTORY)
        self._drop_covered()

    def _take_over(self, now: float) -> None:
        """Writes at once what no other has written."""
        self._is_standing_by = False
        self._drop_covered()
        self._count_dropped(sum(self._shed))
        self._shed.clear()
        self._flush_at = now

    def _drop_covered(self) -> None:
        written, oldest = self._election.written, self._samples.oldest
        if oldest is not None and is_covered(_until((oldest,)), written):
            self._shed.clear()  # older than this one, so written as well
        self._samples.remove(lambda each: is_covered(_until((each,)), written))
        self._unwritten.remove(lambda each: is_covered(each.until, written))

    def _encode(self) -> None:
        samples = self._samples.take()
        self._under_way = sum(sample.rows for sample in samples)
        try:
            for run, of_run in self._clock_runs.separated(samples).items():
                for of_hour in by_hour(of_run).values():
                    if rows := rows_of(of_hour):
                        mark = ClockMark(boot_id=self._boot_id, to_epoch=of_hour[-1].to_epoch)
                        file = self._new_file(rows, run, mark, _until(of_hour))
                        self._under_way -= file.rows
                        self._count_dropped(self._unwritten.add(file))
        finally:
            # After an unexpected error there are rows left.
            self._count_dropped(self._under_way)
            self._under_way = 0

    def _new_file(self, rows: Rows, run: int, mark: ClockMark, until: Marks) -> NewFile:
        day = f"{EPOCH + timedelta(microseconds=rows.first_sample):%Y-%m-%d}"
        return NewFile(path_for(self._writer, rows.first_sample, run), day, encoded(rows, mark), len(rows), until)

    def _write(self, days_left: Collection[str] | None) -> None:
        """Writes what waits, what HPAs there are, then the retention ledger: so an unwritable location is reported
        before a file is due."""
        # Set before the attempt, so that any error delays the next one.
        self._retry_at = self._clock.monotonic() + RETRY_SECONDS
        try:
            while (file := self._unwritten.oldest) is not None and self._may_write():
                self._files.write(file.path, file.content)
                self._unwritten.remove(partial(is_, file))
                self._election.note_written(file.until)
                self._days_written.add(file.day)
                self._telemetry.count_file(file.rows, file.size)
            if self._notes is not None and (day := self._notes.write_if_due()) is not None:
                self._days_written.add(day)
            self._retention.note(self._days_written, days_left)
            self._days_written.clear()
        except HistoryUnwritable as error:
            self._telemetry.failures.labels(error.cause).inc()
            self._conditions.fails(HISTORY, "NotWritten", "rows that are due wait in memory", details=str(error))
        else:
            self._written_at = self._clock.monotonic()
            self._conditions.holds(HISTORY, details=f"to {self._settings.location} as {self._writer}")
            self._conditions.holds(HISTORY_ROWS)

    def _write_text(self, path: str, content: bytes) -> None:
        self._files.write(path, pa.py_buffer(content))

    def _tidy(self) -> Collection[str] | None:
        """Deletes what is expired, and returns every day that was there; None if they could not be listed.

        A day that cannot be deleted does not stop the others; `stop` does."""
        days, troubles = None, list[HistoryUnwritable]()
        try:
            tables = {table: self._files.days(table) for table in TABLES_THAT_AGE}
            days = frozenset().union(*tables.values())
            if self._notes is not None:
                self._notes.found(tables[AUTOSCALERS])
            expired = self._retention.expired(days)
            for table, day in ((table, day) for table, listed in tables.items() for day in listed if day in expired):
                troubles += self._trouble_deleting(table, day)
        except HistoryUnwritable as error:
            troubles.append(error)
        for trouble in troubles:
            self._telemetry.failures.labels(trouble.cause).inc()
        if troubles:
            message = "old days cannot be deleted"
            self._conditions.fails(HISTORY_RETENTION, "NotDeleted", message, details=str(troubles[0]))
        else:
            self._conditions.holds(HISTORY_RETENTION)
        return days

    def _trouble_deleting(self, table: str, day: str) -> list[HistoryUnwritable]:
        try:
            if not self._stopping.is_set():
                self._files.delete_day(table, day)
                logger.info("history: deleted %s of %s, which is older than the retention", table, day)
        except HistoryUnwritable as error:
            return [error]
        return []

    def _count_dropped(self, rows: int) -> None:
        if rows:
            self._telemetry.dropped.inc(rows)
            self._conditions.fails(HISTORY_ROWS, "Dropped", "the memory for unwritten rows is full")


def _until(samples: Iterable[Sample]) -> Marks:
    return {sample.cluster: sample.sampled_at for sample in samples}


def path_for(writer: str, first_sample: int, clock_run: int = 1) -> str:
    """`first_sample` is in microseconds since the epoch. No file mixes samples of two clock runs."""
    at = EPOCH + timedelta(microseconds=first_sample)
    name = writer if clock_run == 1 else f"{writer}-clock{clock_run}"
    return f"{SAMPLES_FOLDER}/{at:date=%Y-%m-%d/hour=%H}/{name}-{at:%Y%m%dT%H%M%S.%fZ}.parquet"
