"""What all tests share: one SparkSession for all that need one, and the two ways to compact."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import Machine, started
from tests.compacting import Way, way_of


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with started(Machine("local[1]", is_brief=True, writes_archive=False)) as session:
        yield session


@pytest.fixture(params=["in_memory", "by_spark"])
def way(request: pytest.FixtureRequest) -> Way:
    return way_of(request.param, request)
