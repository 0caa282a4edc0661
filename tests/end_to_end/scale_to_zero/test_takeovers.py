"""Whoever scales to zero ends at any moment, on real parts: the next one continues from what is written."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from local.adapter import EXTERNAL_METRICS, Adapter, process
from local.manifests.check import MANIFESTS, load
from local.manifests.shipped import NAME
from local.processes import free_port, wait_until
from tests.support.real.asleep import WAIT_SECONDS, Stage, consumer

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}-leader"
HASTY = (
    "from apiservice.cluster_api import lease; "
    "lease.DURATION_SECONDS, lease.DEADLINE_SECONDS, lease.RETRY_SECONDS = 8.0, 6.0, 0.3; "
    "from apiservice.__main__ import main; main()"
)


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


@contextmanager
def replicas(stage: Stage) -> Iterator[list[Adapter]]:
    """Two that share the Lease."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                process(
                    stage.home / f"replica-{number}",
                    stage.settings(scaleToZero=True),
                    stage.kubeconfig,
                    port=free_port(),
                    service=f"{NAME}/{NAME}",
                    program=(sys.executable, "-c", HASTY),
                )
            )
            for number in range(2)
        ]


def whose_log_says(text: str, running: list[Adapter]) -> Adapter:
    """Waits for the line, which a replica writes after it has acted."""
    found: list[Adapter] = []

    def is_there() -> bool:
        found[:] = [one for one in running if text in one.process.log.read_text()]
        return bool(found)

    wait_until(is_there, f"a log with {text!r}", WAIT_SECONDS)
    (one,) = found
    return one


def transitions(stage: Stage) -> int:
    """How often the Lease has had another holder."""
    return int(stage.plane.get(LEASE)["spec"].get("leaseTransitions", 0))


def leader_of(running: list[Adapter], stage: Stage) -> tuple[Adapter, int]:
    """The replica that holds the Lease, and the transitions that made it the holder."""
    found: list[tuple[Adapter, int]] = []

    def is_one() -> bool:
        before = transitions(stage)
        holders = [one for one in running if "held by this replica" in one.get_plain("/readyz?verbose")[1].decode()]
        found[:] = [(one, before) for one in holders]
        return len(holders) == 1 and transitions(stage) == before

    wait_until(is_one, "one leader", WAIT_SECONDS)
    return found[0]


def test_only_the_holder_of_the_lease_acts_and_the_next_one_wakes_what_sleeps(stage: Stage) -> None:
    with consumer(stage, "leased") as one, replicas(stage) as running:
        holder, before = leader_of(running, stage)
        one.wait_for(0, is_marked=True)
        leader = whose_log_says("scaled Deployment leased from 1 to 0", running)
        # A Lease that lasts so briefly may change hands on a busy machine.
        assert leader is holder or transitions(stage) > before
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
