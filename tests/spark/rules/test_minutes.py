"""What each group did in each minute."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from spark.figures.model import Floats
from spark.pipeline.batches import DEFAULT_LIMITS, BatchLimits
from spark.rules.minutes import _rounded_whole, minutes_of
from spark.storage.local import LocalFiles
from spark.tables.columns import TableRows
from spark.tables.contract import MINUTES
from spark.tables.parquet_tables import CLOSELY, write_table
from tests.support.history.compacting import compacted
from tests.support.history.written_history import START, Row, read, sample, write

MINUTES_OF_A_YEAR = 365 * 24 * 60


def minutes(root: Path, *rows: Row, limits: BatchLimits = DEFAULT_LIMITS) -> list[Row]:
    write(root, rows)
    compacted(root, limits=limits)
    return sorted(read(root, "minutes"), key=lambda row: (str(row["group"]), str(row["minute"])))


def test_a_minute_has_what_changed_and_how_the_group_stood_in_its_last_sample(tmp_path: Path) -> None:
    first = [sample(at, at, at, members=2) for at in (0, 30)]
    second = [sample(60, 50, 80, members=3), sample(90, 90, 150, members=4), sample(90, 0, 50, partition=1, members=4)]

    rows = minutes(tmp_path, *first, *second)

    assert rows[1] == {
        "cluster": "main",
        "group": "billing",
        "minute": START.replace(minute=1),
        "produced": 120,
        "consumed": 60,
        "lag": 110,
        "wait_seconds": pytest.approx(26, rel=0.02),
        "wait_is_bound": True,
        "members_min": 3,
        "members_max": 4,
        "partitions_with_lag": 2,
        "skew": 1.0,
    }


def test_a_group_is_all_its_topics(tmp_path: Path) -> None:
    rows = [sample(at, 0, at, topic=topic, partition=part) for at in (0, 30) for topic in "ab" for part in (0, 1)]
    rows += [sample(30, 30, 30, topic="c"), sample(0, 0, 0, topic="c")]

    (row,) = minutes(tmp_path, *rows)

    assert (row["produced"], row["consumed"], row["lag"], row["partitions_with_lag"]) == (150, 30, 120, 4)
    assert row["skew"] == pytest.approx(0.2, rel=0.02)


def test_topics_that_are_computed_apart_are_one_group(tmp_path: Path) -> None:
    rows = [sample(at, 0, at, topic=topic) for at in range(0, 3600, 10) for topic in "abc"]

    whole = minutes(tmp_path / "whole", *rows)

    assert whole == minutes(tmp_path / "parts", *rows, limits=BatchLimits(of_part=100))
    assert len(whole) == 60


def test_a_lag_is_the_last_that_is_known_in_the_minute(tmp_path: Path) -> None:
    (row,) = minutes(tmp_path, sample(0, 0, 5), sample(10, 0, 7), sample(20, None, 9, state="unknown"))

    assert (row["lag"], row["partitions_with_lag"], row["produced"]) == (7, 1, 4)


def test_where_one_topics_lag_is_unknown_all_minute_that_of_the_group_is(tmp_path: Path) -> None:
    (row,) = minutes(tmp_path, sample(0, 0, 5), sample(0, None, 9, state="unknown", topic="payments"))

    names = ("lag", "wait_seconds", "partitions_with_lag", "skew")
    assert [row[name] for name in names] == [None] * 4
    assert row["wait_is_bound"] is False


@pytest.mark.parametrize(("lag", "kept"), [(0, 0), (63, 63), (64, 64), (12_345, 12_288), (2**53 - 1, 2**53)])
def test_a_lag_is_right_by_two_per_cent_and_exact_up_to_64(tmp_path: Path, lag: int, kept: int) -> None:
    (row,) = minutes(tmp_path, sample(0, 0, lag))

    assert row["lag"] == kept


def test_the_sum_of_lags_that_hardly_fits_into_64_bits_is_no_other_number() -> None:
    largest = np.array([np.iinfo(np.int64).max, 2**62, -1])

    assert _rounded_whole(largest).tolist() == largest.tolist()


def test_what_nobody_reads_or_never_committed_is_no_part_of_the_lag(tmp_path: Path) -> None:
    of_others = [sample(0, 1, 9, state="stale", topic="old"), sample(0, None, 9, topic="new")]

    (row,) = minutes(tmp_path, sample(0, 0, 5), *of_others)

    assert row["lag"] == 5


def test_a_late_hour_joins_the_minutes_of_its_day(tmp_path: Path) -> None:
    minutes(tmp_path, sample(0, 0, 0))

    rows = minutes(tmp_path, sample(7200, 0, 5))

    assert [row["minute"] for row in rows] == [START, START.replace(hour=8)]


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param(np.random.default_rng(1).lognormal(1, 2, 1000), id="most have a few messages a second"),
        pytest.param(np.full(1000, 400.0), id="all have 400 messages a second"),
    ],
)
def test_a_year_of_a_thousand_groups_takes_three_gigabytes_at_most(tmp_path: Path, rates: Floats) -> None:
    chance, rate = np.random.default_rng(2), np.repeat(rates, 60)
    produced, seconds = chance.poisson(60 * rate), chance.uniform(2, 12, len(rate))
    rows = TableRows(
        {
            "cluster": np.zeros(len(rate), np.int32),
            "group": np.repeat(np.arange(1000, dtype=np.int32), 60),
            "minute": np.tile(np.arange(60) * 60_000_000, 1000),
            "produced": produced,
            "consumed": chance.poisson(60 * rate),
            "lag": chance.poisson(rate * seconds),
            "wait_seconds": seconds + chance.uniform(0, 3, len(rate)),
            "wait_is_bound": np.zeros(len(rate), np.bool_),
            "members_min": np.repeat(chance.integers(1, 9, 1000), 60),
            "members_max": np.repeat(chance.integers(1, 9, 1000), 60),
            "partitions_with_lag": np.minimum(12, chance.poisson(rate)),
            "largest": chance.binomial(produced, 1 / 10),
            "unknown": np.zeros(len(rate), np.int32),
        },
        {"cluster": pa.array(["main"]), "group": pa.array([f"group-{number:03}" for number in range(1000)])},
    )

    write_table(LocalFiles(tmp_path), "minutes.parquet", minutes_of(rows), MINUTES, CLOSELY)

    of_row = (tmp_path / "minutes.parquet").stat().st_size / len(rate)
    assert of_row * 1000 * MINUTES_OF_A_YEAR <= 3e9
