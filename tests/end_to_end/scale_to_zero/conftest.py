"""A control plane as it is before Kubernetes 1.37: without the feature gate HPAScaleToZero.

It has no nodes. Pods stay pending, which an HPA with an external metric does not mind."""

from collections.abc import Iterator

import pytest

from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.kubernetes.control_plane import control_plane as running_control_plane
from local.processes import scratch
from tests.support.real.asleep import Stage
from tests.support.real.asleep import stage as new_stage


@pytest.fixture(scope="package")
def gateless() -> Iterator[ControlPlane]:
    """In a folder of its own: `rig_home` stays when a process leaves this package, and may come back to it."""
    with (
        scratch("gateless") as home,
        running_control_plane(
            home, hpa_sync_seconds=1, downscale_stabilization_seconds=1, has_scale_to_zero=False
        ) as plane,
    ):
        yield plane


@pytest.fixture(scope="package")
def stage(gateless: ControlPlane, one_broker: Kafka) -> Stage:
    return new_stage(gateless, one_broker, gateless.home / "scale-to-zero")
