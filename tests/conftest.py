"""What all tests share: one SparkSession for all that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import Machine, started


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with started(Machine("local[1]", is_brief=True, writes_archive=False)) as session:
        yield session
