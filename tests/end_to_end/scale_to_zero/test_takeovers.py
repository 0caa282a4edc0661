"""Whoever scales to zero ends at any moment, on real parts: the next one continues from what is written."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from local.adapter import Adapter, process
from local.manifests.shipped import NAME
from local.processes import free_port, wait_until
from tests.support.real.asleep import WAIT_SECONDS, Stage, consumer

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}-leader"
HASTY = (
    "from apiservice.cluster_api import lease; "
    "lease.DURATION_SECONDS, lease.DEADLINE_SECONDS, lease.RETRY_SECONDS = 3.0, 2.0, 0.3; "
    "from apiservice.__main__ import main; main()"
)


def wait_for_the_end(one: Adapter) -> None:
    assert one.process.wait(WAIT_SECONDS) == 9, one.process.log_tail()


@pytest.mark.parametrize(("write", "left"), [(1, (1, True)), (2, (0, True))], ids=["marked", "scaled to zero"])
def test_a_process_that_is_killed_while_it_puts_to_sleep_leaves_what_the_next_one_can_continue(
    stage: Stage, write: int, left: tuple[int, bool]
) -> None:
    with consumer(stage, f"killed-asleep-{write}") as one:
        with stage.adapter(stage.killed_at(write), scaleToZero=True) as doomed:
            wait_for_the_end(doomed)
        assert one.state == left

        with stage.adapter(scaleToZero=True):
            one.wait_for(0, is_marked=True)
            one.produce(1)
            one.wait_for(1, is_marked=False)


@pytest.mark.parametrize(("write", "left"), [(1, (1, True)), (2, (1, False))], ids=["scaled up", "mark removed"])
def test_a_process_that_is_killed_while_it_wakes_leaves_what_the_next_one_can_continue(
    stage: Stage, write: int, left: tuple[int, bool]
) -> None:
    with consumer(stage, f"killed-awake-{write}") as one:
        with stage.adapter(scaleToZero=True):
            one.wait_for(0, is_marked=True)
        one.produce(1)
        with stage.adapter(stage.killed_at(write), scaleToZero=True) as doomed:
            wait_for_the_end(doomed)
        assert one.state == left

        with stage.adapter(scaleToZero=True):
            one.wait_for(1, is_marked=False)
            one.read_until(1)
            one.wait_for(0, is_marked=True)


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


def leader_of(running: list[Adapter]) -> tuple[Adapter, Adapter]:
    """The replica that holds the Lease, and the other one."""
    found: list[Adapter] = []

    def is_one() -> bool:
        found[:] = [one for one in running if "held by this replica" in one.get_plain("/readyz?verbose")[1].decode()]
        return len(found) == 1

    wait_until(is_one, "one leader", WAIT_SECONDS)
    (other,) = (one for one in running if one is not found[0])
    return found[0], other


def test_only_the_holder_of_the_lease_acts_and_the_next_one_wakes_what_sleeps(stage: Stage) -> None:
    with consumer(stage, "leased") as one, replicas(stage) as running:
        leader, other = leader_of(running)
        one.wait_for(0, is_marked=True)
        assert "scaled Deployment leased" in leader.process.log.read_text()

        leader.process.send(signal.SIGSTOP)
        one.produce(1)
        one.wait_for(1, is_marked=False)
        leader.process.send(signal.SIGCONT)
        one.read_until(1)
        one.wait_for(0, is_marked=True)
        one.produce(1)
        one.wait_for(1, is_marked=False)

        assert "from 0 to 1" in other.process.log.read_text()
        assert one.events() == ["ScaledToZero", "ScaledFromZero"] * 2
