"""Fixtures that tests in several folders share, and the order in which `make test` runs all tests."""

import itertools
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest import mock

import hypothesis
import pytest
from pyspark.sql import SparkSession

from local.s3.object_store import OWNER, ObjectStore, object_store
from spark.engine import session
from spark.engine.class_archive import archive_here
from spark.engine.jobs import context_of
from spark.engine.session import SparkSettings, started
from tests.support.history.fake_store import FakeStore, fake_store
from tests.support.history.real_bucket import RealBucket

# How long an example takes, and to make one, depends on what else the machine does. The examples are the same in every
# run of the same test, so that none fails by chance: `--hypothesis-profile=default` looks for others.
hypothesis.settings.register_profile(
    "loaded", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("loaded")

# Writing an archive of Spark's classes takes longer than the few runs of one checkout's tests would save.
if (archive := archive_here()) is None or not archive.path.exists():
    os.environ["KAFKA_LAG_REPORT_CDS"] = f"{os.devnull}/none"

NUMBERS = itertools.count(1)
SPARK_FIXTURES = {"spark_session", "s3_server"}
SHARED = {"one_broker", "three_brokers", "gateless", "spark_session"}
"""Expensive fixtures that tests of several files use, beside the first control plane."""
INSTALLING = {"plane", "guarded", "documented"}
"""The control plane on which adapters are installed, and the broker with an authorizer."""


IMAGES = Path(__file__).with_name("images")
PARTS = ("e2e", "spark", "unit", "images")
LONGEST = ("history", "spark", "install", "cluster")
"""Groups that take minutes in one process. Were they not the first, they would still run when all else has ended."""
ENDED_AT: dict[str, list[float]] = {part: [] for part in PARTS}
BEGAN_AT = time.monotonic()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Building the images needs root and minutes, so their tests run only for `-m images`."""
    return True if collection_path == IMAGES and config.getoption("markexpr") != "images" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests: the longest groups, then by part. Tests that share expensive fixtures run in one process."""
    groups: dict[pytest.Item, str | None] = {}
    parts = {item: _part_of(item) for item in items}
    sharing = {item.path for item in items if SHARED.intersection(getattr(item, "fixturenames", ()))}
    for item, part in parts.items():
        item.user_properties.append(("part", part))
        if part != "unit":
            item.add_marker(part)
        groups[item] = group = _group_of(item, part, shares=item.path in sharing)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
            if getattr(item.config.option, "loadgroup", False):
                # pytest-xdist 3.8 adds the group to an attribute that pytest 9.2 no longer reads, and ignores groups.
                item._id = type(item._id).parse(f"{item.nodeid}@{group}")
    # Within a part, those that any process may take come last.
    items.sort(key=lambda item: (_place(groups[item], parts[item]), groups[item] is None))


def _place(group: str | None, part: str) -> int:
    """The many short tests come last, because they keep every process busy until the end."""
    return LONGEST.index(group) if group in LONGEST else len(LONGEST) + PARTS.index(part)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        ENDED_AT[str(dict(report.user_properties)["part"])].append(time.monotonic())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for part, ends in ENDED_AT.items():
        if ends:
            terminalreporter.write_line(
                f"{part}: {len(ends)} tests, the last one {ends[-1] - BEGAN_AT:.0f} s after the start"
            )


def _part_of(item: pytest.Item) -> str:
    """`images`, `e2e` and `spark` by these rules or by a mark in its file, `unit` otherwise."""
    if folder_part := _folder_part(item.path):
        return folder_part
    needs_spark = SPARK_FIXTURES.intersection(getattr(item, "fixturenames", ())) or item.get_closest_marker("spark")
    return "spark" if needs_spark else "unit"


@cache
def _folder_part(path: Path) -> str | None:
    """Of all tests in the file; None if each is looked at."""
    if IMAGES in path.parents:
        return "images"
    return "e2e" if "end_to_end" in path.parts else None


def _group_of(item: pytest.Item, part: str, *, shares: bool) -> str | None:
    """End-to-end tests are grouped by folder if they share real parts with other files, by file otherwise; all that
    need the control plane are one group, all that install adapters another, and all that need the session of Spark a
    third. Each file with tests of the images is a group, because they wait more than they compute. Tests that share a
    fixture of their file run in one process, or each process would make it anew. Any process may take the others."""
    fixtures = getattr(item, "fixturenames", ())
    if part == "images":
        return item.path.stem
    if "control_plane" in fixtures:
        return "cluster"
    if not INSTALLING.isdisjoint(fixtures):
        return "install"
    if part == "e2e":
        return item.path.parent.name if shares else item.path.stem
    if "spark_session" in fixtures:
        return "spark"
    return f"{item.path.parent.name}.{item.path.stem}" if _shares_a_fixture_of_its_file(item) else None


def _shares_a_fixture_of_its_file(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    # pytest has no public way to learn the scope of a test's fixtures.
    return any(found[-1].scope == "module" for found in item._fixtureinfo.name2fixturedefs.values())


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """As the commands start it, on one core, with SQL."""
    with mock.patch.object(session, "tasks_at_once", return_value=1), started(SparkSettings()) as running:
        yield session.with_sql(context_of(running))


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
