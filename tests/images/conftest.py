"""The images of this tree, and the real parts that the end-to-end tests use as well."""

from collections.abc import Iterator

import pytest

from local.images import built
from local.images.built import Images
from local.images.container import OF_OPENSHIFT, User, of_manifests
from local.kafka.broker import Kafka
from tests.end_to_end.cluster.conftest import old_authority, plane, somebody_elses
from tests.end_to_end.conftest import documented, guarded, one_broker, pytest_runtest_makereport, rig_home
from tests.support.real import groups_to_read

__all__ = [
    "documented",
    "guarded",
    "old_authority",
    "one_broker",
    "plane",
    "pytest_runtest_makereport",
    "rig_home",
    "somebody_elses",
]


@pytest.fixture(scope="session")
def images() -> Iterator[Images]:
    with built.images() as found:
        yield found


@pytest.fixture(scope="package")
def groups(one_broker: Kafka) -> Kafka:
    """A broker with the groups that the adapters read."""
    groups_to_read.prepare(one_broker)
    return one_broker


@pytest.fixture(scope="module", params=["manifests", "openshift"])
def user(request: pytest.FixtureRequest) -> User:
    """The user of the shipped manifests, and one as OpenShift chooses it. No image knows either."""
    return OF_OPENSHIFT if request.param == "openshift" else of_manifests()
