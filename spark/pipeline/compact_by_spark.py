"""Compaction by Spark, many hours at once: where hours do not fit into the driver's memory, or lie in a bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from adapter.history_contract import Column
from spark.errors import Damaged, Spoilt, is_about
from spark.pipeline.batches import Batch, Staged, at_of, minute_of
from spark.pipeline.deltas_by_spark import carried_of, deltas_of, digests_of, partitions_of, series_hours_of, totals_of
from spark.pipeline.hourly_by_spark import daily_of, hourly_of
from spark.pipeline.labels import labels_in, labels_of
from spark.pipeline.lineage import ANY
from spark.pipeline.publish import Staging, stage
from spark.pipeline.read_by_spark import empty, samples_of, schema_of
from spark.pipeline.writers_by_spark import clusters_at, counts_of, of_chosen
from spark.rules.writers import chosen_before, chosen_of
from spark.storage.protocol import Files
from spark.tables.contract import CARRIED, DELTAS, PARTITIONS, TOTALS
from spark.tables.sample_files import DAMAGED, HOUR

AT = T.StructField("at", T.IntegerType())
"""Of a staged table's folders: hours since the epoch. A number costs less per row than the date and hour in words."""


@dataclass(frozen=True, slots=True)
class BySpark:
    """An Engine for any location."""

    files: Files
    staging: Staging
    start: Callable[[], SparkSession]
    """The session, started when it is first asked for."""
    check: Callable[[], None]
    """Raises Interrupted when the run is to end."""

    def stage_batch(self, batch: Batch) -> Staged:
        try:
            return self._stage_batch(batch)
        except (PySparkException, Py4JError) as error:
            self.check()
            if batch.starts_from and is_about(error, f"/{batch.starts_from}/"):
                raise Spoilt("_carry", batch.starts_from) from error
            reasons = {each.file.path: DAMAGED for each in batch.files if is_about(error, each.file.path)}
            if not reasons:
                raise
            raise Damaged(reasons) from error

    def _stage_batch(self, batch: Batch) -> Staged:
        staging, session = self.staging, self.start()
        carried = self._read(CARRIED, [f"_carry/{batch.starts_from}"] if batch.starts_from else [])
        samples, writers = self._counting(batch)
        stage(deltas_of(samples, carried, self._labels(batch, samples)), staging, "deltas", by=("at",))
        self.check()
        deltas = self._staged("deltas", DELTAS)
        with _beside(lambda: stage(totals_of(deltas), staging, "totals", by=("at",))):
            stage(series_hours_of(deltas), staging, "series", by=("at",))
            self.check()
            series = session.read.parquet(staging.uri("series")) if self._has("series") else None
            if series is not None:
                stage(partitions_of(series), staging, "partitions", by=("at",))
            self._stage_carried(batch, series, carried)
        digests = self._digests()
        carries = {hour.start: digests[at_of(hour.start)] for hour in batch.hours if at_of(hour.start) in digests}
        return Staged(carries, writers)

    def stage_day(self, day: str, folders: Collection[str]) -> None:
        try:
            self._stage_day(day, folders)
        except (PySparkException, Py4JError) as error:
            self.check()
            spoilt = next((folder for folder in folders if is_about(error, f"/{folder}/")), None)
            if spoilt is None:
                raise
            raise Spoilt("totals or partitions", spoilt) from error

    def _stage_day(self, day: str, folders: Collection[str]) -> None:
        totals = self._read(TOTALS, [f"totals/{folder}" for folder in folders])
        partitions = self._read(PARTITIONS, [f"partitions/{folder}" for folder in folders])
        hourly, daily = hourly_of(totals, partitions), daily_of(totals, partitions)
        with _beside(lambda: stage(_in_one_file(hourly, "hour"), self.staging, f"hourly/date={day}")):
            stage(_in_one_file(daily, "day"), self.staging, f"daily/{day}")

    def _labels(self, batch: Batch, samples: DataFrame) -> DataFrame:
        """Pages that cannot be read are left to Spark's own job, which fails on them as on all others."""
        paths = [self.files.local_path(each.file) for each in batch.files]
        local = [path for path in paths if path is not None]
        if len(local) == len(paths):
            with contextlib.suppress(OSError, pa.ArrowException):
                return labels_in(self.start(), local)
        return labels_of(samples)

    def _counting(self, batch: Batch) -> tuple[DataFrame, dict[datetime, dict[str, str]]]:
        """The rows of the writers that count, and who counted in each hour's last minute."""
        session = self.start()
        samples = samples_of(session, self.files, batch.files)
        writers = {start: sorted({each.writer for each in sound}) for start, sound in batch.sound.items()}
        alone = {start: dict(zip([ANY], names, strict=False)) for start, names in writers.items() if len(names) <= 1}
        if len({name for names in writers.values() for name in names}) <= 1:
            return samples, alone
        chosen = chosen_of(counts_of(samples), chosen_before(batch, self._clusters_at))
        ends = {hour.start: minute_of(hour.start + HOUR) - 1 for hour in batch.hours}
        at_end = {
            start: {cluster: writer for (cluster, minute), writer in chosen.items() if minute == end}
            for start, end in ends.items()
        }
        return of_chosen(session, samples, chosen), at_end | alone

    def _clusters_at(self, folder: str, minute: int) -> list[str]:
        return clusters_at(self._read(TOTALS, [f"totals/{folder}"]), minute)

    def _stage_carried(self, batch: Batch, series: DataFrame | None, carried: DataFrame) -> None:
        hours = self.start().createDataFrame(
            pa.table(
                {
                    "at": pa.array([at_of(hour.start) for hour in batch.hours], pa.int32()),
                    "place": pa.array(range(len(batch.hours)), pa.int32()),
                    "ends_at": pa.array([hour.start + HOUR for hour in batch.hours], pa.timestamp("us", tz="UTC")),
                }
            )
        )
        of_hours = empty(self.start(), T.StructType([*schema_of(CARRIED), AT])) if series is None else series
        stage(carried_of(of_hours, carried, hours), self.staging, "carried", by=("at",))

    def _digests(self) -> Mapping[int, str]:
        """Of each hour's (`at`) carried values; an hour that carries none is not among them."""
        rows = digests_of(self._staged("carried", CARRIED)).collect() if self._has("carried") else []
        return {row["at"]: f"{row['series']}-{row['digest']:x}" for row in rows}

    def _read(self, contract: Sequence[Column], folders: Iterable[str]) -> DataFrame:
        """The rows of those folders that exist."""
        session, schema = self.start(), schema_of(contract)
        there = [self.files.uri(folder) for folder in folders if self.files.exists(folder)]
        return session.read.schema(schema).parquet(*there) if there else empty(session, schema)

    def _staged(self, table: str, contract: Sequence[Column]) -> DataFrame:
        """With the folders' `at`."""
        whole = T.StructType([*schema_of(contract), AT])
        if not self._has(table):
            return empty(self.start(), whole)
        return self.start().read.schema(whole).parquet(self.staging.uri(table))

    def _has(self, table: str) -> bool:
        return bool(self.staging.files.listed(self.staging.path(table), 1))


@contextlib.contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """The work is done in a thread of its own, and has ended without an error where the block is left without one:
    while one job is planned, another one computes."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(work)
        yield
        other.result()


def _in_one_file(rows: DataFrame, time: str) -> DataFrame:
    return rows.repartition(1).sortWithinPartitions("cluster", "group", "topic", time)
