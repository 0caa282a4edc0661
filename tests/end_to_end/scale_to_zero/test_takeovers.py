"""Whoever scales to zero ends at any moment, on real parts: the next one continues from what is written."""

import signal
import sys

from local.adapter import EXTERNAL_METRICS, Adapter
from local.manifests.check import MANIFESTS, load
from local.processes import wait_until
from tests.support.real.asleep import WAIT_SECONDS, Stage, consumer
from tests.support.real.programs import MAIN, PATIENT_LEASE

PROGRAM = (sys.executable, "-c", PATIENT_LEASE + MAIN)


def test_a_process_that_is_killed_after_any_write_leaves_what_the_next_one_can_continue(stage: Stage) -> None:
    with consumer(stage, "killed") as one:

        def state_after(writes: int) -> tuple[int, bool]:
            assert stage.status_when_killed_after(writes) == 9
            return one.state

        assert state_after(1) == (1, True), "marked"
        assert state_after(1) == (1, False), "the mark is removed, because it has replicas"
        assert state_after(2) == (0, True), "marked and scaled to zero"
        one.produce(1)
        assert state_after(1) == (1, True), "scaled up"
        assert state_after(1) == (1, False), "the mark is removed"
        one.read_until(1)
        with stage.adapter(scaleToZero=True):
            one.wait_for(0, is_marked=True)
            one.produce(1)
            one.wait_for(1, is_marked=False)


def whose_log_says(text: str, running: list[Adapter]) -> Adapter:
    """Waits for the line, which a replica writes after it has acted."""
    found: list[Adapter] = []

    def is_there() -> bool:
        found[:] = [one for one in running if text in one.process.log.read_text()]
        return bool(found)

    wait_until(is_there, f"a log with {text!r}", WAIT_SECONDS)
    (one,) = found
    return one


def test_only_the_holder_of_the_lease_acts_and_the_next_one_wakes_what_sleeps(stage: Stage) -> None:
    with consumer(stage, "leased") as one, stage.replicas(PROGRAM, scaleToZero=True) as running:
        holder, before = stage.leader_of(running)
        one.wait_for(0, is_marked=True)
        leader = whose_log_says("scaled Deployment leased from 1 to 0", running)
        # The Lease may change hands on a busy machine.
        assert leader is holder or stage.transitions() > before
        wait_until(
            lambda: one.events() == ["ScaledToZero"], "the Event, which the frozen one could not post", WAIT_SECONDS
        )
        leader.process.send(signal.SIGSTOP)
        one.produce(1)
        one.wait_for(1, is_marked=False)
        leader.process.send(signal.SIGCONT)
        assert whose_log_says("scaled Deployment leased from 0 to 1", running) is not leader
        wait_until(lambda: len(one.events()) == 2, "two Events", WAIT_SECONDS)
        one.read_until(1)
        one.wait_for(0, is_marked=True)
        wait_until(lambda: len(one.events()) == 3, "three Events", WAIT_SECONDS)
        one.produce(1)
        one.wait_for(1, is_marked=False)

        wait_until(lambda: len(one.events()) == 4, "four Events", WAIT_SECONDS)
        assert one.events() == ["ScaledToZero", "ScaledFromZero"] * 2


def test_without_the_rights_everything_else_works_and_it_is_said_once(stage: Stage) -> None:
    rights = load(MANIFESTS / "autoscalers")
    stage.plane.delete(rights)
    with consumer(stage, "unallowed") as one, stage.adapter(scaleToZero=True) as running:

        def remarks() -> str:
            return running.get_plain("/readyz?verbose")[1].decode()

        wait_until(lambda: "warn: autoscaler-changes: Forbidden" in remarks(), "the condition", WAIT_SECONDS)
        read = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=group%3Dunallowed"
        wait_until(lambda: stage.plane.raw(read)[0] == 200, "a value", WAIT_SECONDS)
        assert one.state == (1, False)
        stage.plane.apply(rights)
        one.wait_for(0, is_marked=True)
        wait_until(lambda: "info: autoscaler-changes: Written" in remarks(), "the condition", WAIT_SECONDS)

        assert running.process.log.read_text().count("autoscaler-changes: Forbidden") == 1
