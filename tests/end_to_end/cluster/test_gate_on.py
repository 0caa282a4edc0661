"""With the feature gate HPAScaleToZero on, the HPA scales to zero itself, and the activator leaves it alone."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.adapter import Adapter, own_kubeconfig, process
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS, load
from local.processes import wait_until
from tests.support.real import groups_to_read
from tests.support.real.asleep import WAIT_SECONDS, Consumer, hpa, target

GROUP = "gate-on"


@pytest.fixture
def activator(control_plane: ControlPlane, one_broker: Kafka, tmp_path: Path) -> Iterator[Adapter]:
    """A second adapter, which may scale to zero; the shared one serves the metrics."""
    rights = load(MANIFESTS / "autoscalers")
    control_plane.apply(rights)
    settings = {**groups_to_read.settings(one_broker), "autoscalers": {"scaleToZero": True}}
    with process(tmp_path, settings, own_kubeconfig(control_plane)) as running:
        yield running
    control_plane.delete(rights)


@contextlib.contextmanager
def consumer(plane: ControlPlane, kafka: Kafka) -> Iterator[Consumer]:
    """An HPA that scales to zero itself and also asks the adapter to."""
    document = hpa(GROUP)
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 1}}
    documents = [target(GROUP), {**document, "spec": {**document["spec"], "minReplicas": 0, "behavior": behavior}}]
    plane.apply(documents)
    yield Consumer(plane, kafka, GROUP)
    plane.delete(documents)


@pytest.mark.usefixtures("adapter", "activator")
def test_an_hpa_with_a_minimum_of_zero_scales_to_zero_and_back_without_the_activator(
    control_plane: ControlPlane, one_broker: Kafka
) -> None:
    create_topic(one_broker, GROUP)
    commit(one_broker, GROUP, {(GROUP, 0): 0})
    with consumer(control_plane, one_broker) as one:
        wait_until(lambda: one.events() == ["ScaleToZeroRefused"], "the Event", WAIT_SECONDS)
        one.wait_for(0, is_marked=False)
        one.produce(3000)
        one.wait_for(3, is_marked=False)
        one.read_until(3000)
        one.wait_for(0, is_marked=False)

        assert one.events() == ["ScaleToZeroRefused"]
