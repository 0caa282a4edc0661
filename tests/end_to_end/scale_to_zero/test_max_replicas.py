"""`maxReplicas` follows the partitions of a real topic, by server-side apply on a real kube-apiserver."""

import sys
import time
from collections.abc import Iterator

import pytest

from apiservice.autoscalers.annotations import MAX_REPLICAS, MAX_REPLICAS_BEFORE
from apiservice.autoscalers.hpa_writes import MAX_REPLICAS_MANAGER
from local.adapter import Adapter
from local.kafka.tools import create_topic, delete_topic
from local.kubernetes.control_plane import Manifest
from local.processes import wait_until
from tests.end_to_end.scale_to_zero.test_activator import wait_for_cycles
from tests.support.real.asleep import WAIT_SECONDS, Consumer, Stage, consumer, hpa
from tests.support.real.changes import add_partitions
from tests.support.real.programs import MAIN

LOWER_SECONDS = 5.0
PROMISED_SECONDS = 30.0
BUSY_SECONDS = 60.0
"""What a busy machine may add to a look that is due every 30 s, to the reads that follow it, and to a write."""
HASTY = (
    f"from apiservice.autoscalers import cap; cap.LOWER_SECONDS = {LOWER_SECONDS}; "
    "from adapter.collector.inventory import Inventory; Inventory._is_due.__defaults__ = (1.0,); "
    f"{MAIN}"
)
"""The installed command, which reads Metadata every second."""
ASKS = {MAX_REPLICAS: "partitions"}


@pytest.fixture
def adapter(stage: Stage) -> Iterator[Adapter]:
    with stage.adapter((sys.executable, "-c", HASTY), maxReplicas=True) as running:
        yield running


def maximum(one: Consumer) -> int:
    return int(one.plane.get(one.hpa)["spec"]["maxReplicas"])


def owners(one: Consumer) -> set[str]:
    fields = one.plane.get(one.hpa)["metadata"]["managedFields"]
    return {each["manager"] for each in fields if "f:maxReplicas" in each["fieldsV1"].get("f:spec", {})}


def before(one: Consumer) -> str | None:
    found: str | None = one.plane.get(one.hpa)["metadata"].get("annotations", {}).get(MAX_REPLICAS_BEFORE)
    return found


def without_maximum(name: str) -> Manifest:
    document = hpa(name, ASKS)
    return {**document, "spec": {key: each for key, each in document["spec"].items() if key != "maxReplicas"}}


def hand_over(one: Consumer) -> None:
    """As docs/max-replicas.md says: the HPA's owner leaves the field out once it has a second owner."""
    wait_until(lambda: owners(one) == {"local", MAX_REPLICAS_MANAGER}, "a second owner", WAIT_SECONDS)
    one.plane.apply([without_maximum(one.name)])
    assert owners(one) == {MAX_REPLICAS_MANAGER}


def test_it_grows_as_soon_as_the_topic_does(stage: Stage) -> None:
    """By the adapter as it is; those of the other tests read Metadata more often."""
    with consumer(stage, "growing", annotations=ASKS, most=1) as one, stage.adapter(maxReplicas=True):
        hand_over(one)
        add_partitions(stage.kafka, "growing", 3)
        began = time.monotonic()
        wait_until(lambda: maximum(one) == 3, "3", WAIT_SECONDS)
        seconds = time.monotonic() - began

    assert seconds <= PROMISED_SECONDS + BUSY_SECONDS


def test_it_shrinks_late_stays_without_the_topic_and_returns(stage: Stage, adapter: Adapter) -> None:
    with consumer(stage, "shrinking", annotations=ASKS, most=1) as one:
        hand_over(one)
        add_partitions(stage.kafka, "shrinking", 3)
        wait_until(lambda: (maximum(one), before(one)) == (3, "1"), "3", WAIT_SECONDS)

        delete_topic(stage.kafka, "shrinking")
        began = time.monotonic()
        create_topic(stage.kafka, "shrinking", 1)
        one.read_until(0)
        wait_until(lambda: maximum(one) == 1, "1", WAIT_SECONDS)
        assert time.monotonic() - began >= LOWER_SECONDS

        add_partitions(stage.kafka, "shrinking", 2)
        wait_until(lambda: maximum(one) == 2, "2", WAIT_SECONDS)
        delete_topic(stage.kafka, "shrinking")
        wait_for_cycles(adapter, int(2 * LOWER_SECONDS))
        assert maximum(one) == 2

        one.annotate(max_replicas=None)
        wait_until(lambda: (maximum(one), before(one)) == (1, None), "the former value", WAIT_SECONDS)
        wait_until(lambda: one.events()[-1:] == ["MaxReplicasRestored"], "the Event", WAIT_SECONDS)


def test_where_somebody_else_sets_it_an_event_says_so_and_the_value_stays(stage: Stage, adapter: Adapter) -> None:
    with consumer(stage, "shared", annotations=ASKS, most=7) as one:
        wait_until(lambda: one.events() == ["MaxReplicasRefused"], "the Event", WAIT_SECONDS)
        wait_for_cycles(adapter, int(2 * LOWER_SECONDS))
        assert maximum(one) == 7

        one.plane.apply([hpa("shared", ASKS, 5)])
        wait_until(lambda: owners(one) == {"local", MAX_REPLICAS_MANAGER}, "a second owner again", WAIT_SECONDS)
        assert maximum(one) == 5


def test_whoever_takes_the_field_back_has_it(stage: Stage, adapter: Adapter) -> None:
    with consumer(stage, "forced", annotations=ASKS, most=4) as one:
        hand_over(one)
        wait_until(lambda: maximum(one) == 1, "the partitions", WAIT_SECONDS)
        one.plane.apply([hpa("forced", ASKS, 6)])
        wait_for_cycles(adapter, int(2 * LOWER_SECONDS))

        assert maximum(one) == 6
