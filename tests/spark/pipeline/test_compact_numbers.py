"""The largest numbers that the contract allows, and what becomes of sums that 64 bits do not hold."""

from pathlib import Path

import numpy as np
import pytest

from spark.tables.columns import numbered
from spark.tables.contract import HOUR_MICROS
from tests.support.history.compacting import compacted
from tests.support.history.random_histories import LAST_OFFSET, LAST_PARTITION
from tests.support.history.written_history import read, sample, write


def test_a_topics_lag_that_64_bits_do_not_hold_is_unknown(tmp_path: Path) -> None:
    rows = [sample(at, 0, LAST_OFFSET, partition=part) for at in (0, 10) for part in range(1024)]
    write(tmp_path, rows + [row | {"topic": "few"} for row in rows if row["partition"]])

    compacted(tmp_path)

    lags = {row["topic"]: (row["lag_max"], row["lag_partition_max"]) for row in read(tmp_path, "hourly")}
    assert lags == {"orders": (None, LAST_OFFSET), "few": (1023 * LAST_OFFSET, LAST_OFFSET)}


def test_a_mean_of_lags_is_right_where_their_sum_has_more_than_64_bits(tmp_path: Path) -> None:
    write(tmp_path, [sample(each, 0, LAST_OFFSET, members=LAST_PARTITION) for each in range(1200)])

    compacted(tmp_path)

    (row,) = read(tmp_path, "daily")
    assert row["lag_mean"] == pytest.approx(LAST_OFFSET, rel=1e-12)
    assert (row["lag_p99"], row["members_mean"]) == (LAST_OFFSET, LAST_PARTITION)


def test_production_that_64_bits_do_not_hold_is_unknown(tmp_path: Path) -> None:
    """A log that is emptied after each sample: no reset is production, but the way up is."""
    write(tmp_path, [sample(each, 0, each % 2 * LAST_OFFSET) for each in range(2100)])

    compacted(tmp_path)

    (row,) = read(tmp_path, "daily")
    assert (row["produced"], row["production_rate"], row["resets"]) == (None, None, 1049)


def test_rows_are_told_apart_where_names_and_partitions_are_many_and_large() -> None:
    """Five million rows of an hour, each a series of its own: what is multiplied stays below 2^63."""
    number = 5_000_000
    names, partitions = np.arange(number, dtype=np.int32), LAST_PARTITION - np.arange(number, dtype=np.int32)

    place = numbered(numbered(names, names, names), partitions)

    assert np.array_equal(place, names)
    assert int(place.max()) * HOUR_MICROS + HOUR_MICROS < 2**63
