"""Both ways to compact, for tests that show something of each."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.pipeline.compact import DEFAULT_LIMITS, Limits, Outcome, compact
from spark.storage.local import LocalFiles

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def no_session() -> SparkSession:
    raise AssertionError("no session is needed")


IN_MEMORY, BY_SPARK = DEFAULT_LIMITS, Limits(in_memory=0)


@dataclass(frozen=True, slots=True)
class Way:
    """One of the two to compact; in memory no session may be asked for."""

    limits: Limits
    session: Callable[[], SparkSession]


def way_of(name: str, request: pytest.FixtureRequest) -> Way:
    if name == "in_memory":
        return Way(IN_MEMORY, no_session)
    session = request.getfixturevalue("spark_session")
    return Way(BY_SPARK, lambda: session)


def compacted(root: Path, way: Way, until: datetime = NOW) -> Outcome:
    return compact(LocalFiles(root), way.session, until, NOW, lambda _: None, limits=way.limits)


def hours_of(outcome: Outcome) -> list[int]:
    return [hour.hour for hour in outcome.hours]
