"""Events about HPAs on a real kube-apiserver: each on its HPA, once per change, and with the right that is shipped."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from local.adapter import Adapter
from local.kafka.tools import commit, create_topic
from local.manifests.check import MANIFESTS, load
from local.processes import wait_until
from tests.support.real.asleep import LEASE, WAIT_SECONDS, Consumer, Stage, consumer, hpa
from tests.support.real.changes import commit_as_member, member
from tests.support.real.programs import MAIN, PATIENT_LEASE

HASTY = (
    "from apiservice.hpa_events import poster, states; states.SETTLED_SECONDS = 6.0; poster.LOOK_SECONDS = 1.0; "
    "from adapter.overview import lines; lines.SURE_SECONDS = 10.0; "
    f"{MAIN}"
)
"""The installed command, which reports a state after 6 s, and a group whose commits stand still for 10 s."""
TYPO = "refunds-of-today"
ABOVE, UNKNOWN, SERVED = "MaxReplicasAbovePartitions", "GroupUnknown", "ValueServed"


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


@contextlib.contextmanager
def frozen(stage: Stage, leader: Adapter) -> Iterator[None]:
    """Stops the leader's process; ends when it runs again and knows that another replica leads."""
    leader.process.send(signal.SIGSTOP)
    try:
        yield
    finally:
        leader.process.send(signal.SIGCONT)
    news = f"held by {stage.plane.get(LEASE)['spec']['holderIdentity']}"
    wait_until(lambda: news in leader.get_plain("/readyz?verbose")[1].decode(), "news of the other", WAIT_SECONDS)


def wait_for_events(one: Consumer, *reasons: str) -> None:
    wait_until(lambda: one.events() == [*reasons], f"the Events {reasons} about {one.name}", WAIT_SECONDS)


def test_each_state_is_on_its_hpa_once_also_after_a_restart(stage: Stage) -> None:
    with consumer(stage, "above", annotations={}, most=3) as above, hpa_on(stage, TYPO) as typo:
        with adapter(stage):
            wait_for_events(above, ABOVE)
            wait_for_events(typo, UNKNOWN)
            event = only_event(typo, UNKNOWN)
            assert event["type"] == "Warning"
            assert f"no group '{TYPO}' is known" in event["note"]
        with adapter(stage), hpa_on(stage, "asked-later") as later:
            # It is looked at after the others, and its Event is posted after theirs.
            wait_for_events(later, UNKNOWN)
            assert (above.events(), typo.events()) == ([ABOVE], [UNKNOWN])
            assert series(typo, UNKNOWN) == {}

            create_topic(stage.kafka, TYPO)
            commit(stage.kafka, TYPO, {(TYPO, 0): 0})
            wait_for_events(typo, UNKNOWN, SERVED)

            typo.plane.apply([hpa(TYPO, {}, 1, group="unknown-again")])
            wait_until(lambda: series(typo, UNKNOWN).get("count") == 2, "the same Event again", WAIT_SECONDS)
            assert typo.events() == [UNKNOWN, SERVED]


def test_a_stuck_group_is_one_event_and_another_one_once_it_moves(stage: Stage) -> None:
    with consumer(stage, "stuck", annotations={}, most=1) as one, adapter(stage):
        one.produce(10)
        with member(stage.kafka, "stuck", "stuck") as reader:
            wait_for_events(one, "GroupStuck")
            event = only_event(one, "GroupStuck")
            assert event["type"] == "Warning"
            assert event["note"] == "group stuck in cluster main has members and a lag of 10, and no commit moves"

            commit_as_member(reader, "stuck", 10)
            wait_for_events(one, "GroupStuck", "GroupMoves")
            assert only_event(one, "GroupMoves")["type"] == "Normal"
            assert series(one, "GroupStuck") == {}


def test_two_replicas_post_each_event_once_and_a_takeover_repeats_and_loses_nothing(stage: Stage) -> None:
    program = (sys.executable, "-c", PATIENT_LEASE + HASTY)
    patient = replace(stage, max_age="10m")  # or what a replica has read before it is frozen is too old
    with hpa_on(stage, "known-later") as before, patient.replicas(program, events=True) as running:
        wait_for_events(before, UNKNOWN)
        first, _ = stage.leader_of(running)
        (second,) = (one for one in running if one is not first)
        with contextlib.ExitStack() as hpas:
            with frozen(stage, first):
                between = hpas.enter_context(hpa_on(stage, "while-nobody-leads"))
                wait_for_events(between, UNKNOWN)

            with frozen(stage, second):
                # The first replica has posted that this group is unknown, so it is sure to say that it is served.
                stage.prepare("known-later")
                wait_for_events(before, UNKNOWN, SERVED)

            first.process.send(signal.SIGKILL)
            last = hpas.enter_context(hpa_on(stage, "last"))
            # It is posted after all that the one that takes over would repeat.
            wait_for_events(last, UNKNOWN)
            assert (before.events(), between.events()) == ([UNKNOWN, SERVED], [UNKNOWN])
            assert [series(before, each) for each in (UNKNOWN, SERVED)] == [{}, {}]
            assert series(between, UNKNOWN) == series(last, UNKNOWN) == {}


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


def only_event(one: Consumer, reason: str) -> dict[str, Any]:
    path = f"/apis/events.k8s.io/v1/namespaces/{one.namespace}/events"
    found = (each for each in one.plane.get(path)["items"] if each["regarding"]["name"] == one.name)
    (event,) = (each for each in found if each["reason"] == reason)
    return dict(event)


def series(one: Consumer, reason: str) -> dict[str, Any]:
    """How often the Event came again; empty: it did not."""
    return dict(only_event(one, reason).get("series") or {})
