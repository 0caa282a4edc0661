"""Compaction in the driver's memory, an hour at a time and without Spark: for hours that fit into it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import xor

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history_contract import Column, Type
from spark.pipeline.batches import Batch, Staged, at_of, minute_of
from spark.pipeline.lineage import ANY
from spark.pipeline.publish import PLAIN_NUMBERS, Staging
from spark.rules.deltas import Hour as Ordered
from spark.rules.deltas import carried_of, deltas_of, hour_of
from spark.rules.hourly import summaries_of
from spark.rules.totals import partitions_of, totals_of
from spark.rules.writer_choice import clusters_at, counts_of, is_chosen
from spark.rules.writers import Chosen, chosen_before, chosen_of
from spark.storage.protocol import Files
from spark.tables.columns import Rows, none_of, table_of
from spark.tables.contract import CARRIED, DAILY, DELTAS, HOURLY, PARTITIONS, REMEMBERED, TOTALS
from spark.tables.parquet_reader import samples_in, table_in
from spark.tables.sample_files import HOUR, micros_of

HASHED = 15
"""Hexadecimal digits: of a row's hash, as much as a signed number of 64 bits holds."""
SEPARATOR = "\x1f"
# Numbers that seldom repeat. pyarrow takes differences in blocks of 256 values, from the least of them on: the way
# down from one series to the next one widens a whole block of offsets, and zstd alone makes less of these.
ENCODINGS = {
    **dict.fromkeys(PLAIN_NUMBERS, "DELTA_BINARY_PACKED"),
    "received_at": "DELTA_BINARY_PACKED",
    **dict.fromkeys(("committed", "log_end"), "PLAIN"),
}


@dataclass(frozen=True, slots=True)
class InMemory:
    """An Engine for files that this process reads and writes by itself; its batches have one hour each."""

    files: Files
    staging: Staging

    def stage_batch(self, batch: Batch) -> Staged:
        (hour,) = batch.hours
        ordered, writers = self._ordered(batch)
        deltas = deltas_of(ordered)
        with ThreadPoolExecutor(1) as pool:  # the largest of the tables is written while the others are made
            written = pool.submit(self._stage, f"deltas/at={at_of(hour.start)}", deltas, DELTAS)
            self._stage(f"totals/at={at_of(hour.start)}", totals_of(deltas), TOTALS)
            self._stage(f"partitions/at={at_of(hour.start)}", partitions_of(deltas), PARTITIONS)
            now_carried = carried_of(ordered, REMEMBERED // timedelta(microseconds=1))
            self._stage(f"carried/at={at_of(hour.start)}", now_carried, CARRIED)
            written.result()
        digests = {hour.start: digest_of(now_carried)} if len(now_carried) else {}
        return Staged(digests, {hour.start: writers})

    def stage_day(self, day: str, folders: Collection[str]) -> None:
        hours = (
            (self._of_hour("totals", each, TOTALS), self._of_hour("partitions", each, PARTITIONS)) for each in folders
        )
        hourly, daily = summaries_of(hours)
        self._stage(f"hourly/date={day}", hourly, HOURLY)
        self._stage(f"daily/{day}", daily, DAILY)

    def _ordered(self, batch: Batch) -> tuple[Ordered, Mapping[str, str]]:
        """The hour's samples by series, and who counted in its last minute; the samples as read are forgotten here."""
        carried = self._of_hour("_carry", batch.starts_from, CARRIED) if batch.starts_from else none_of(CARRIED)
        samples, writers = self._counting(batch)
        return hour_of(samples, carried, micros_of(batch.hours[0].start)), writers

    def _counting(self, batch: Batch) -> tuple[Rows, Mapping[str, str]]:
        """The rows of the writers that count, and who counted in the last minute."""
        (hour,) = batch.hours
        writers = sorted({each.writer for each in batch.files})
        samples, writer = samples_in(self.files, batch.files, writers)
        if len(writers) <= 1:
            return samples, ({ANY: writers[0]} if writers else {})
        chosen = chosen_of(counts_of(samples, writer, writers), self._chosen_before(batch))
        last = minute_of(hour.start + HOUR) - 1
        at_end = {cluster: name for (cluster, minute), name in chosen.items() if minute == last}
        return samples.taken(is_chosen(samples, writer, writers, chosen)), at_end

    def _chosen_before(self, batch: Batch) -> Chosen:
        return chosen_before(batch, lambda folder, minute: clusters_at(self._of_hour("totals", folder, TOTALS), minute))

    def _of_hour(self, table: str, folder: str, contract: Sequence[Column]) -> Rows:
        return table_in(self.files, f"{table}/{folder}", contract)

    def _stage(self, table: str, rows: Rows, contract: Sequence[Column]) -> None:
        """No file where there are no rows."""
        if len(rows):
            with self.files.created(self.staging.path(f"{table}/part-0.parquet")) as target:
                write(target, rows, contract)


def write(target: str | pa.NativeFile, rows: Rows, contract: Sequence[Column]) -> None:
    """One Parquet file."""
    own = {name: encoding for name, encoding in ENCODINGS.items() if any(name == column.name for column in contract)}
    pq.write_table(
        table_of(rows, contract),
        target,
        compression="zstd",
        column_encoding=own,
        use_dictionary=[column.name for column in contract if column.name not in own and column.type is not Type.FLAG],
        store_schema=False,
    )


def digest_of(carried: Rows) -> str:
    """Of CARRIED's rows in any order: their number and what their hashes come to."""
    texts = {name: [*values.to_pylist(), ""] for name, values in carried.texts.items()}
    columns = [
        [texts[column.name][code] for code in carried[column.name].tolist()]
        if column.type is Type.TEXT
        else map(str, carried[column.name].tolist())
        for column in CARRIED
    ]
    hashes = (
        int(hashlib.sha256(SEPARATOR.join(row).encode()).hexdigest()[:HASHED], 16) for row in zip(*columns, strict=True)
    )
    return f"{len(carried)}-{reduce(xor, hashes, 0):x}"
