import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark.compact import Outcome, compact
from spark.files import LocalFiles
from tests.history_oracle import tables_of
from tests.random_histories import history, lay
from tests.written_history import Row, keyed, read

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TOPIC = ("cluster", "group", "topic")
KEYS = {
    "deltas": (*TOPIC, "partition", "topic_id", "sampled_at"),
    "totals": (*TOPIC, "sampled_at"),
    "partitions": (*TOPIC, "partition", "starts_at"),
    "hourly": (*TOPIC, "hour"),
    "daily": (*TOPIC, "day"),
}


def compacted(root: Path, session: SparkSession, until: datetime = NOW, batch_rows: int = 8_000_000) -> Outcome:
    return compact(LocalFiles(root), lambda: session, until, NOW, lambda _: None, batch_rows=batch_rows)


def differences(found: Mapping[tuple[object, ...], Row], wanted: Mapping[tuple[object, ...], Row]) -> list[str]:
    told = [f"{key}: missing" for key in wanted.keys() - found.keys()]
    told += [f"{key}: not wanted" for key in found.keys() - wanted.keys()]
    for key in found.keys() & wanted.keys():
        assert found[key].keys() == wanted[key].keys()
        told += [
            f"{key}: {name} is {value}, not {wanted[key][name]}"
            for name, value in found[key].items()
            if not is_same(value, wanted[key][name])
        ]
    return told


def is_same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


def assert_as_the_oracle_says(root: Path, rows: list[Row]) -> None:
    for table, wanted in tables_of(rows).items():
        told = differences(keyed(read(root, table), *KEYS[table]), keyed(wanted, *KEYS[table]))
        assert not told, f"{table}: {told[:5]}"


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_random_histories_become_the_tables_that_the_oracle_makes(
    spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Forty histories at once, each a cluster; the late files come after a first compaction."""
    chance = Random(seed)  # noqa: S311 -- a history, no secret
    root = tmp_path_factory.mktemp("history")
    written = [part for number in range(40) for part in history(f"c{number:02d}", chance)]
    early = [part for part in written if not part.is_late]

    lay(root, early)
    compacted(root, spark_session, batch_rows=chance.choice([400, 10_000]))
    assert_as_the_oracle_says(root, [row for part in early for row in part.rows])

    lay(root, written)
    compacted(root, spark_session, batch_rows=chance.choice([400, 10_000]))
    assert_as_the_oracle_says(root, [row for part in written for row in part.rows])
