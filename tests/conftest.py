"""Fixtures that tests in several folders share, and the parts that `make test` runs one after the other."""

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from local.s3.object_store import OWNER, ObjectStore, object_store
from spark.engine.session import SparkSettings, started
from tests.support.history.fake_store import FakeStore, fake_store
from tests.support.history.real_bucket import RealBucket

NUMBERS = itertools.count(1)
SPARK_FIXTURES = {"spark_session", "s3_server"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assigns each test to its part: `e2e` and `spark` by these rules or by a mark in its file, `unit` otherwise."""
    for item in items:
        if "end_to_end" in item.path.parts:
            item.add_marker("e2e")
        elif SPARK_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    with started(SparkSettings("local[1]", writes_archive=False)) as session:
        yield session


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("object-store")) as running:
        yield running


@pytest.fixture
def real_bucket(s3_server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> RealBucket:
    """A new one, and an environment that leads to it."""
    for name, value in OWNER.environment(s3_server.url).items():
        monkeypatch.setenv(name, value)
    bucket = RealBucket(f"bucket-{next(NUMBERS)}", s3_server)
    s3_server.bucket(bucket.name)
    return bucket


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
