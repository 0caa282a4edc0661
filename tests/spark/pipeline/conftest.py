"""What all tests of compaction share."""

import pytest


@pytest.fixture(autouse=True)
def _session(spark_session: object) -> None:
    """Days are made by DataFrames, also where tasks run in the test's own process."""
