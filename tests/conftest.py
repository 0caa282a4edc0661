"""What all tests share: one SparkSession for all that need one, and the two ways to compact."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark.engine.session import Machine, started
from tests.compacting import Way, way_of
from tests.fake_store import FakeStore, fake_store


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with started(Machine("local[1]", is_brief=True, writes_archive=False)) as session:
        yield session


@pytest.fixture(params=["in_memory", "by_spark"])
def way(request: pytest.FixtureRequest) -> Way:
    return way_of(request.param, request)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStore]:
    """With the bucket `lag`, and an environment that leads to it."""
    with fake_store("lag") as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "alice")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wonderland")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield running
