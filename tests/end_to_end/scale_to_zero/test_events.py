"""Events about HPAs on a real kube-apiserver: each on its HPA, once per change, and with the right that is shipped."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from local.adapter import Adapter
from local.kafka.tools import commit, create_topic
from local.manifests.check import MANIFESTS, load
from local.processes import wait_until
from tests.support.real.asleep import WAIT_SECONDS, Consumer, Stage, consumer, hpa

HASTY = (
    "from apiservice.hpa_events import poster, states; states.SETTLED_SECONDS = 6.0; poster.LOOK_SECONDS = 1.0; "
    "from apiservice.__main__ import main; main()"
)
"""The installed command, which tells a state after 6 s."""
TYPO = "refunds-of-today"
ABOVE, UNKNOWN = "MaxReplicasAbovePartitions", "GroupUnknown"


@contextlib.contextmanager
def adapter(stage: Stage) -> Iterator[Adapter]:
    """On a busy machine, a late cycle must not make a value unknown, which would be another Event."""
    with replace(stage, max_age="60s").adapter((sys.executable, "-c", HASTY), events=True) as running:
        yield running


@contextlib.contextmanager
def hpa_on(stage: Stage, name: str, most: int = 1) -> Iterator[Consumer]:
    """An HPA that names a group and a topic like itself, whether these exist or not."""
    documents = [hpa(name, {}, most)]
    stage.plane.apply(documents)
    try:
        yield Consumer(stage.plane, stage.kafka, name)
    finally:
        stage.plane.delete(documents)


def wait_for_events(one: Consumer, *reasons: str) -> None:
    wait_until(lambda: one.events() == [*reasons], f"the Events {reasons} about {one.name}", WAIT_SECONDS)


def test_each_state_is_on_its_hpa_once_also_after_a_restart(stage: Stage) -> None:
    with consumer(stage, "above", annotations={}, most=3) as above, hpa_on(stage, TYPO) as typo:
        with adapter(stage):
            wait_for_events(above, ABOVE)
            wait_for_events(typo, UNKNOWN)
            event = only_event(typo)
            assert event["type"] == "Warning"
            assert f"no group '{TYPO}' is known" in event["note"]
        with adapter(stage), hpa_on(stage, "asked-later") as later:
            # It is looked at after the others, and its Event is posted after theirs.
            wait_for_events(later, UNKNOWN)
            assert (above.events(), typo.events()) == ([ABOVE], [UNKNOWN])
            assert series(typo) == {}

            create_topic(stage.kafka, TYPO)
            commit(stage.kafka, TYPO, {(TYPO, 0): 0})
            wait_for_events(typo, UNKNOWN, "ValueServed")

            typo.plane.apply([hpa(TYPO, {}, 1, group="unknown-again")])
            wait_until(lambda: series(typo).get("count") == 2, "the same Event again", WAIT_SECONDS)
            assert typo.events() == [UNKNOWN, "ValueServed"]


def test_a_missing_right_is_a_condition(stage: Stage) -> None:
    bindings = [
        document
        for component in ("autoscalers", "events")
        for document in load(MANIFESTS / component)
        if document["kind"] == "ClusterRoleBinding"
    ]
    stage.plane.delete(bindings)
    try:
        with adapter(stage) as running, hpa_on(stage, "nobody-knows"):
            said = "warn: autoscaler-events: Forbidden"
            wait_until(lambda: said in running.get_plain("/readyz?verbose")[1].decode(), "the condition", WAIT_SECONDS)
    finally:
        stage.plane.apply(bindings)


def only_event(one: Consumer) -> dict[str, Any]:
    path = f"/apis/events.k8s.io/v1/namespaces/{one.namespace}/events"
    found = (each for each in one.plane.get(path)["items"] if each["regarding"]["name"] == one.name)
    (event,) = (each for each in found if each["reason"] == UNKNOWN)
    return dict(event)


def series(one: Consumer) -> dict[str, Any]:
    """How often the Event came again; empty: it did not."""
    return dict(only_event(one).get("series") or {})
