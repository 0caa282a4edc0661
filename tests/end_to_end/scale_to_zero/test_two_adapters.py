"""Two adapters in one cluster, each for groups of its own: neither undoes what the other has done to an HPA.

Both see both HPAs, because the metric's name is that of both. Each has its own account, Service and Lease."""

import contextlib
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from apiservice.autoscalers.annotations import ASLEEP_BY, MAX_REPLICAS, MAX_REPLICAS_BY
from local.adapter import Adapter, process
from local.kubernetes.control_plane import ControlPlane
from local.manifests import rendered
from local.manifests.shipped import NAME
from local.processes import free_port, wait_until
from tests.end_to_end.scale_to_zero.test_activator import put_to_sleep, wait_for_cycles
from tests.end_to_end.scale_to_zero.test_max_replicas import HASTY, before, hand_over, maximum
from tests.support.real.asleep import WAIT_SECONDS, Consumer, Stage, consumer, hpa
from tests.support.real.changes import add_partitions

RELEASE = "green"
ALLOWED = [f"autoscalers.{key}=true" for key in ("scaleToZero", "maxReplicas", "events")]
NO_PODS = {"Deployment", "Pod"}
BLUE, GREEN = "blue", "green"
NAMES = [f"{side}-{what}" for what in ("released", "deleted", "capped") for side in (BLUE, GREEN)]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Side:
    """One of the two adapters, which reads the groups whose names begin with its own."""

    stage: Stage
    name: str
    service: str
    kubeconfig: Path

    def settings(self, **autoscalers: bool) -> dict[str, object]:
        settings = self.stage.settings(**autoscalers)
        return {**settings, "collection": {**settings["collection"], "groups": {"include": [f"{self.name}-.*"]}}}

    @contextlib.contextmanager
    def running(self, program: Sequence[str] = (), **autoscalers: bool) -> Iterator[Adapter]:
        """Runs it as the holder of its Lease; `autoscalers` as for `Stage.adapter`."""
        with process(
            self.stage.home / f"{self.name}-{next(_numbers)}",
            self.settings(**autoscalers),
            self.kubeconfig,
            port=free_port(),
            service=self.service,
            program=program,
        ) as one:

            def is_leader() -> bool:
                return "held by this replica" in one.get_plain("/readyz?verbose")[1].decode()

            wait_until(is_leader, f"{self.name} to hold its Lease", WAIT_SECONDS, alive=[one.process])
            yield one


def account_of_a_second_release(plane: ControlPlane) -> Path:
    """Applies what the chart contains besides pods, and returns a kubeconfig of its account."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE}}
    documents = rendered.chart(release=RELEASE, namespace=RELEASE, settings=ALLOWED)
    plane.apply([namespace, *(each for each in documents if each["kind"] not in NO_PODS)])
    return plane.kubeconfig_for_service_account(RELEASE, f"{RELEASE}-{NAME}")


@pytest.fixture(scope="module")
def sides(stage: Stage) -> tuple[Side, Side]:
    stage.prepare(*NAMES)
    kubeconfig = account_of_a_second_release(stage.plane)
    return (
        Side(stage, BLUE, f"{NAME}/{NAME}", stage.kubeconfig),
        Side(stage, GREEN, f"{RELEASE}/{RELEASE}-{NAME}", kubeconfig),
    )


@contextlib.contextmanager
def consumers(
    stage: Stage, what: str, *, annotations: Mapping[str, str] | None = None, most: int = 3
) -> Iterator[tuple[Consumer, Consumer]]:
    """One for each adapter, as `consumer` has it."""
    with (
        consumer(stage, f"{BLUE}-{what}", annotations=annotations, most=most) as one,
        consumer(stage, f"{GREEN}-{what}", annotations=annotations, most=most) as other,
    ):
        yield one, other


def signed(one: Consumer, by: str) -> str | None:
    annotations: dict[str, str] = one.plane.get(one.hpa)["metadata"].get("annotations") or {}
    return annotations.get(by)


def test_what_one_adapter_put_to_sleep_is_woken_by_it_and_by_no_other(stage: Stage, sides: tuple[Side, Side]) -> None:
    blue, green = sides
    with consumers(stage, "released") as (one, other):
        with green.running(scaleToZero=True) as second:
            with blue.running(scaleToZero=True) as first:
                put_to_sleep(one)
                put_to_sleep(other)
                assert (signed(one, ASLEEP_BY), signed(other, ASLEEP_BY)) == (blue.service, green.service)
                one.produce(1)
                one.wait_for(1, is_marked=False)
                one.read_until(1)
                put_to_sleep(one)
            assert "Deployment blue-released" not in second.process.log.read_text()
            assert "Deployment green-released" not in first.process.log.read_text()

            one.annotate(scale_to_zero=None)
            other.annotate(scale_to_zero=None)
            other.wait_for(1, is_marked=False)  # what comes after it was seen as well
            wait_for_cycles(second, 2)
            assert one.state == (0, True)
            other.annotate(scale_to_zero="true")
            put_to_sleep(other)
            second.settings.write_text(yaml.safe_dump(green.settings(scaleToZero=False)))
            other.wait_for(1, is_marked=False)
            wait_for_cycles(second, 2)
            assert one.state == (0, True)
        with green.running(scaleToZero=True) as second:
            put_to_sleep(other)
            wait_for_cycles(second, 2)
            assert one.state == (0, True)
        with blue.running(scaleToZero=True):
            one.wait_for(1, is_marked=False)
            assert signed(one, ASLEEP_BY) is None


def test_the_target_of_a_deleted_hpa_is_woken_by_the_adapter_that_put_it_to_sleep(
    stage: Stage, sides: tuple[Side, Side]
) -> None:
    blue, green = sides
    with consumers(stage, "deleted") as (one, other), green.running(scaleToZero=True) as second:
        with blue.running(scaleToZero=True):
            put_to_sleep(one)
            put_to_sleep(other)
        wait_for_cycles(second, 2)  # it has seen both marks
        stage.plane.delete([hpa(one.name)])
        stage.plane.delete([hpa(other.name)])
        wait_until(lambda: other.replicas == 1, "its own target to wake", WAIT_SECONDS)
        wait_for_cycles(second, 2)

        assert one.replicas == 0


def wait_for_maximum(one: Consumer, most: int, former: str | None) -> None:
    wait_until(lambda: (maximum(one), before(one)) == (most, former), f"{most}, before {former}", WAIT_SECONDS)


def test_maxreplicas_is_restored_by_the_adapter_that_changed_it(stage: Stage, sides: tuple[Side, Side]) -> None:
    blue, green = sides
    program = (sys.executable, "-c", HASTY)
    with (
        consumers(stage, "capped", annotations={MAX_REPLICAS: "partitions"}, most=1) as (one, other),
        green.running(program, maxReplicas=True) as second,
    ):
        with blue.running(program, maxReplicas=True):
            for each in (one, other):
                hand_over(each)
                add_partitions(stage.kafka, each.name, 3)
            wait_for_maximum(one, 3, "1")
            wait_for_maximum(other, 3, "1")
            assert (signed(one, MAX_REPLICAS_BY), signed(other, MAX_REPLICAS_BY)) == (blue.service, green.service)

        one.annotate(max_replicas=None)
        other.annotate(max_replicas=None)
        wait_for_maximum(other, 1, None)
        wait_for_cycles(second, 2)
        assert (maximum(one), before(one)) == (3, "1")
        with blue.running(program, maxReplicas=True):
            wait_for_maximum(one, 1, None)
