"""One real control plane with one node for the whole test run, and real brokers beside it.

Each test works in a namespace of its own.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.control_plane import ControlPlane
from local.control_plane import control_plane as running_control_plane
from local.node import Node
from local.node import node as running_node
from local.processes import scratch
from tests.end_to_end.kafka_fixtures import one_broker, three_brokers  # noqa: F401 - found here by the tests

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def rig_home() -> Iterator[Path]:
    """Where the parts keep their state and their logs."""
    with scratch("tests") as home:
        yield home


@pytest.fixture(scope="session")
def control_plane(rig_home: Path) -> Iterator[ControlPlane]:
    with running_control_plane(rig_home / "control-plane") as plane:
        yield plane


@pytest.fixture(scope="session")
def node(control_plane: ControlPlane, rig_home: Path) -> Iterator[Node]:
    with running_node(control_plane, rig_home) as stand_in:
        yield stand_in


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace, deleted with all that is in it."""
    name = f"test-{next(_numbers)}"
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    control_plane.apply([document])
    yield name
    control_plane.delete([document])
