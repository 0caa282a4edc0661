"""What all tests share: one SparkSession for all that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.session import Machine, started

QUICK = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
"""For many small jobs on one core."""


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with started(Machine("local[1]", java_options=("-XX:TieredStopAtLevel=1",)), QUICK) as session:
        yield session
