"""Share groups from one cycle to the next: a row like any other, or a refusal that says why."""

import pytest

from adapter.cluster.groups import Kind
from adapter.metrics.problems import NoMatch
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, kafka, refusal, running
from tests.support.samples import wants


def cluster() -> Kafka:
    """billing is 13 behind; workers, a share group of broker 3, has 4 of partition 0 and 5 of partition 1 to do."""
    shared = kafka()
    shared.commits["workers"] = {}
    shared.kinds["workers"], shared.coordinators["workers"] = Kind.SHARE, 3
    shared.shares["workers"] = {ORDERS_0: (2, 4), ORDERS_1: (15, -1)}
    return shared


def test_a_share_group_has_the_lag_that_the_broker_counts_or_else_what_is_behind_its_start() -> None:
    rig = running(cluster())

    assert rig.lag("workers") == 4 + (20 - 15)
    assert rig.lag() == 13


def test_share_groups_cost_one_request_per_coordinator_and_cycle() -> None:
    rig = running(cluster())
    rig.run()

    offsets = {"OffsetFetch": 2, "DescribeShareGroupOffsets": 1, "ListOffsets read_uncommitted": 3}
    assert rig.counted() == {**offsets, "Metadata living": 1}


def test_a_partition_that_was_not_begun_counts_by_the_groups_rule() -> None:
    rule = {"group": "workers", "topics": ["orders"], "offsetReset": "earliest"}
    rig = running(cluster(), samples.settings(rules=[rule]))

    assert rig.lag("workers") == 4 + 5 + 5
    assert sum(item.milli // 1000 for item in rig.read("uncommitted_partitions", wants(group="workers")).values) == 1


@pytest.mark.parametrize(
    "settings", [samples.settings(), samples.settings(rules=[{"group": "workers", "topics": ["orders"]}])]
)
def test_a_share_group_that_was_never_read_is_refused_and_never_0(settings: Settings) -> None:
    shared = cluster()
    shared.ignorant_of_shares = {3}
    rig = running(shared, settings)

    assert "broker 3 is too old to report the progress of share group workers" in refusal(rig, group="workers")
    assert rig.lag() == 13


def test_what_was_read_is_served_until_it_is_too_old_and_then_refused() -> None:
    shared = cluster()
    rig = running(shared)
    shared.share_errors["workers"] = 87
    rig.run()
    assert rig.lag("workers") == 9

    rig.run(6)
    assert "broker 3 returned error 87 for share group workers" in refusal(rig, group="workers")
    assert rig.lag() == 13


def test_a_share_group_whose_coordinator_moves_is_never_0() -> None:
    """The old coordinator lists nothing, the new one not yet; OffsetFetch says that the group has no commits."""
    shared = cluster()
    rig = running(shared)
    shared.unlisted = {"workers"}
    shared.coordinators["workers"] = 2
    for _ in range(4):
        rig.run()
        assert rig.lag("workers") == 9


def test_a_share_group_that_is_gone_is_not_found() -> None:
    shared = cluster()
    rig = running(shared)
    del shared.commits["workers"], shared.shares["workers"]

    rig.run(12)
    with pytest.raises(NoMatch):
        rig.lag("workers")


def test_a_topic_that_is_no_longer_shared_is_stale() -> None:
    shared = cluster()
    shared.topics["left"] = [1]
    shared.ends["left", 0] = 50
    shared.shares["workers"]["left", 0] = (0, 50)
    shared.members["workers"] = {"orders"}

    assert running(shared).lag("workers") == 9
