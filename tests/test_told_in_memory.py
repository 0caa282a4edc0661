"""The driver's way beside Spark's, which has an oracle of its own: the same samples tell both the same."""

from dataclasses import astuple
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark.advice.assessment import decided
from spark.errors import Unusable
from spark.figures.model import Windows
from spark.pipeline.compact import compact
from spark.report.build import gathered, requested
from spark.report.json_export import json_of
from spark.report.tables import Tables
from spark.report.told_by_spark import told_by_spark
from spark.rules.lag_statistics import told_in_memory
from spark.rules.told import Key, Measured, Told
from spark.storage.local import LocalFiles
from tests.test_told_by_spark import START as BEGINS
from tests.test_told_by_spark import THRESHOLD, Row, random_rows, sample, totals
from tests.written_history import START, write
from tests.written_history import sample as written_sample

QUIET = [False] * 300 + [True]
NEVER = 10**9


def backlogs(seed: int) -> list[Row]:
    """Groups of one to three topics that mostly work off a backlog; everything that spoils a window happens."""
    chance = Random(seed)  # noqa: S311 -- a history, no secret
    rows = []
    for group in range(24):
        interval = chance.choice([5.0, 10.0, 30.0])
        members: int | None = 2
        for number in range(chance.randint(30, 90)):
            members = chance.choice([0, 1, 2, 9, None]) if chance.choice(QUIET) else members
            interval = chance.choice([5.0, 10.0]) if chance.choice(QUIET) else interval
            for topic in range(1 + group % 3):
                of: Row = {
                    "group": f"g{group}",
                    "interval_seconds": interval,
                    "members": members,
                    "seconds": interval,
                    "produced": chance.choice([0, 5, 40, 40, 200]),
                    "consumed": None if chance.choice(QUIET) else chance.randint(0, 90),
                    "is_after_gap": chance.choice(QUIET),
                    "rewinds": int(chance.choice(QUIET)),
                    "skips": int(chance.choice(QUIET)),
                    "recreations": chance.choice([None, 0, int(chance.choice(QUIET))]),
                }
                lag = None if chance.choice(QUIET) else chance.randint(20, 90) * 100
                rows.append(sample(f"t{topic}", number * 10, lag) | of)
    return rows


def arrow(rows: list[Row]) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns["sampled_at"] = pa.array(columns["sampled_at"], pa.timestamp("us", tz="UTC"))
    columns["recreations"] = pa.array(columns["recreations"], pa.int32())
    columns["interval_seconds"] = pa.array(columns["interval_seconds"], pa.float32())
    return pa.table(columns)


def told_both_ways(session: SparkSession, rows: list[Row], thresholds: dict[Key, int]) -> tuple[Told, Told]:
    mixed = Random(7).sample(rows, len(rows))  # noqa: S311 -- an order, no secret
    by_spark = told_by_spark(totals(session, mixed), thresholds, len(rows), lambda: None)
    return by_spark, told_in_memory(arrow(mixed), thresholds)


def test_lags_thresholds_and_episodes_are_the_same(spark_session: SparkSession) -> None:
    rows = random_rows(3)
    keys: list[Key] = sorted({(row["cluster"], row["group"], row["topic"]) for row in rows})
    thresholds = {key: NEVER if number % 5 == 0 else THRESHOLD for number, key in enumerate(keys[1:])}
    by_spark, in_memory = told_both_ways(spark_session, rows, thresholds)

    assert in_memory.measured.keys() == by_spark.measured.keys()
    for key, measured in by_spark.measured.items():
        assert numbers_of(in_memory.measured[key]) == pytest.approx(numbers_of(measured), rel=1e-12)
    assert in_memory.episodes == by_spark.episodes
    assert len(in_memory.measured) > len(in_memory.episodes) > 10
    assert keys[0] not in in_memory.measured


def numbers_of(measured: Measured) -> list[float]:
    return [*astuple(measured.lag), measured.seconds_above, measured.known_seconds, *astuple(measured.pace)]


def sorted_windows(windows: Windows) -> list[tuple[float, ...]]:
    return sorted(zip(windows.seconds, windows.consumed, windows.members, strict=True))


def test_saturated_windows_are_the_same(spark_session: SparkSession) -> None:
    by_spark, in_memory = told_both_ways(spark_session, backlogs(5), {("main", "g0", "t0"): THRESHOLD})

    assert in_memory.windows.keys() == by_spark.windows.keys()
    for pair, windows in by_spark.windows.items():
        np.testing.assert_allclose(sorted_windows(in_memory.windows[pair]), sorted_windows(windows), rtol=1e-12)
    assert sum(len(windows.seconds) for windows in in_memory.windows.values()) > 50


def test_what_commits_jumped_is_the_same(spark_session: SparkSession) -> None:
    by_spark, in_memory = told_both_ways(spark_session, backlogs(6), {("main", "g0", "t0"): THRESHOLD})

    assert in_memory.jumps.keys() == by_spark.jumps.keys()
    for pair, jumps in by_spark.jumps.items():
        for mine, theirs in zip(astuple(in_memory.jumps[pair]), astuple(jumps), strict=True):
            assert (mine == theirs).all()
    assert len(in_memory.jumps) > 10


def test_what_commits_jumped_is_summed_by_hour_and_what_they_moved_without_a_member_apart() -> None:
    rows = [
        *(sample("t", 10 * at, 500) for at in range(5)),
        sample("t", 50, 500, rewinds=1, consumed=7),
        sample("u", 50, 500, skips=1, consumed=8),
        sample("t", 60, 500, is_after_gap=True, consumed=None),
        sample("t", 70, 500, members=0, consumed=900),
        sample("t", 3650, 500, recreations=4, resets=1, consumed=40),
        sample("t", 3660, 500, members=0, is_after_gap=True, consumed=2),
    ]
    (jumps,) = told_in_memory(arrow(rows), {}).jumps.values()

    assert jumps.start.tolist() == [BEGINS.replace(tzinfo=None) + timedelta(hours=number) for number in (0, 1)]
    assert (jumps.disturbed.tolist(), jumps.alone.tolist()) == ([15, 42], [900, 0])


def test_of_no_samples_nothing_is_told() -> None:
    assert told_in_memory(arrow([sample("t", 0, 1)]).slice(0, 0), {("main", "billing", "t"): 1}) == Told()


@pytest.fixture(scope="module")
def history(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history")
    chance = Random(11)  # noqa: S311 -- a history, no secret
    rows = []
    for partition in (0, 1, 2):
        end = committed = 0
        for number in range(2000):
            end += chance.randint(0, 60)
            committed = min(end, committed + chance.randint(0, 70))
            rows.append(written_sample(10 * number, committed, end, partition=partition))
    write(root, rows)
    now = START + timedelta(days=2)
    compact(LocalFiles(root), lambda: spark_session, now, now, lambda _: None)
    return root


@pytest.mark.parametrize("since", [None, "2026-11-20T08:00Z"])
def test_a_whole_report_is_the_same_whoever_reads_the_tables(
    spark_session: SparkSession, history: Path, since: str | None
) -> None:
    files = LocalFiles(history)
    request = requested(str(history), "unused", (since, None), "Europe/Berlin", None, START + timedelta(days=2))
    ways = [
        Tables(no_session, files),
        Tables(lambda: spark_session, files, by_spark=True),
        Tables(lambda: spark_session, files, in_memory_rows=0),
    ]
    in_memory, by_spark, totals_by_spark = (
        json_of(decided(gathered(request, tables, lambda _: None, lambda: None))) for tables in ways
    )

    assert in_memory == by_spark == totals_by_spark
    assert '"lag"' in in_memory


def no_session() -> SparkSession:
    raise AssertionError("a session was asked for")


def test_a_damaged_table_is_named_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "hourly/date=2026-11-20").mkdir(parents=True)
    (tmp_path / "hourly/date=2026-11-20/part.parquet").write_bytes(b"PAR1 no more")
    request = requested(str(tmp_path), "unused", (None, None), "UTC", None, START)

    with pytest.raises(Unusable, match=r"part\.parquet"):
        gathered(request, Tables(no_session, LocalFiles(tmp_path)), lambda _: None, lambda: None)
