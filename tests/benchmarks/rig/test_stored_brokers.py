"""The benchmarks' brokers, read by the adapter's own collector in the process that the benchmarks measure."""

from pathlib import Path

import pytest

from benchmarks.cycles.timed import CyclePlan, run
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import FIRST_OFFSET, REFUSED_AFTER, Refusal, StoredGroup, lag_of

GROUPS = (StoredGroup("billing", 2, 3), StoredGroup("shop", 1, 4))
OUTCOMES = {None: "complete", Refusal.GROUPS: "failed", Refusal.TOPICS: "failed"}


@pytest.mark.parametrize("refusal", OUTCOMES)
def test_no_lag_is_below_the_stored_one_and_refusals_begin_after_the_warm_up(
    refusal: Refusal | None, tmp_path: Path
) -> None:
    with stored_brokers(tmp_path / "brokers", GROUPS, 2, refusal) as cluster:
        plan = CyclePlan(cluster.bootstrap_servers, REFUSED_AFTER, 2, cluster.partitions, admin_rounds=refusal is None)
        costs = run(plan, tmp_path / "cycles")

    # Each log end is read after the commits, and meanwhile it moves.
    assert sum(lag_of(partition) for group in GROUPS for _, partition in group.places) <= costs.lag < FIRST_OFFSET
    assert len(costs.admin) == plan.admin_rounds
    assert costs.outcomes == [OUTCOMES[refusal]] * 2
