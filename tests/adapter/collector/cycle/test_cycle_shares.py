"""Share groups from one cycle to the next: a row like any other, or a refusal that says why."""

from uuid import UUID

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from adapter.cluster.groups import Kind
from adapter.kafka.client import CALL_SECONDS
from adapter.lag.snapshot import State
from adapter.metrics.problems import NoMatch
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.coordinators import LEADERS, READ
from tests.support.kafka.coordinators import cluster as cluster_of
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.remembering import Adapter, Shelf, restarted
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0, ORDERS_1, kafka, running
from tests.support.samples import wants


def cluster() -> Kafka:
    """billing is 13 behind; workers, a share group of broker 3, has 4 of partition 0 and 5 of partition 1 to do."""
    shared = kafka()
    shared.commits["workers"] = {}
    shared.kinds["workers"], shared.coordinators["workers"] = Kind.SHARE, 3
    shared.shares["workers"] = {ORDERS_0: (2, 4), ORDERS_1: (15, -1)}
    return shared


def test_a_share_group_has_the_lag_that_the_broker_counts_or_else_what_is_behind_its_start() -> None:
    shared = cluster()
    rig = running(shared)

    assert rig.lag("workers") == 4 + (20 - 15)
    assert rig.lag() == 13

    shared.shares["workers"][ORDERS_0] = (2, 11)
    rig.run()
    assert rig.lag("workers") == 10 + 5, "the log was cut after the broker had counted"


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

    assert "the progress of share group workers cannot be read: broker 3 does not offer" in str(
        rig.refusal(group="workers")
    )
    assert rig.lag() == 13


def test_what_was_read_is_served_until_it_is_too_old_and_then_refused() -> None:
    shared = cluster()
    rig = running(shared)
    shared.share_errors["workers"] = 87
    rig.run()
    assert rig.lag("workers") == 9

    rig.run(6)
    assert "broker 3 returned error 87 for group workers" in str(rig.refusal(group="workers"))
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


@pytest.mark.parametrize(("reported", "error"), [((10, 7), 3), ((-7, -1), 0), ((2**62, -1), 0), ((-7, -7), 0)])
def test_progress_that_can_be_no_offset_is_an_error_of_its_partition(reported: tuple[int, int], error: int) -> None:
    shared = cluster()
    shared.shares["workers"][ORDERS_0], shared.share_row_errors[ORDERS_0] = reported, error
    rig = running(shared)
    rows = rig.view.layout.spans["workers"]

    assert rig.view.snapshot.state[rows].tolist() == [State.ERROR, State.OK, State.NO_COMMIT]
    assert str(rig.refusal(group="workers")).endswith("orders/0: the share group's progress cannot be read")


def test_a_topic_without_progress_counts_on_until_three_answers_lack_it() -> None:
    shared = cluster()
    shared.topics["refunds"], shared.ends["refunds", 0] = [1], 50
    shared.shares["workers"]["refunds", 0] = (0, 50)
    rig = running(shared)
    del shared.shares["workers"]["refunds", 0]
    lags, uncommitted = [], []
    for _ in range(3):
        rig.run()
        lags.append(rig.lag("workers"))
        uncommitted.append(rig.read("uncommitted_partitions", wants(group="workers")).values[0].milli // 1000)

    assert (lags, uncommitted) == ([9 + 50, 9 + 50, 9], [1, 1, 1])


def test_progress_of_a_coordinator_that_was_silent_is_not_believed_where_it_steps_backward() -> None:
    shared = cluster()
    rig = running(shared)
    shared.silent = {3}
    rig.run()
    shared.silent, shared.shares["workers"][ORDERS_0] = set(), (0, 9)
    rig.run()
    assert rig.lag("workers") == 9

    rig.run()
    assert rig.lag("workers") == 14


def test_a_share_group_that_becomes_another_kind_counts_by_its_commits() -> None:
    shared = cluster()
    rig = running(shared)
    del shared.kinds["workers"], shared.shares["workers"]
    shared.commits["workers"] = {ORDERS_0: 9, ORDERS_1: 20}
    rig.run(3)

    assert rig.lag("workers") == 1


def test_a_coordinator_that_waited_for_a_silent_keeper_of_state_is_not_asked_again_for_the_group() -> None:
    shared = cluster()
    shared.nodes, shared.topics[SHARE_STATE_TOPIC] = (1, 2, 3, 4), [4]
    shared.generations["orders"] = str(UUID(int=7))
    rig = running(shared)
    shared.silent = {4}
    rig.run(7)
    assert rig.run().failures == (), "other brokers may reach it: only we do not"

    shared.delays["DescribeShareGroupOffsets", 3] = (CALL_SECONDS, 0.0)
    rig.run()
    shared.delays.clear()
    asked = [rig.run() and rig.counted()["DescribeShareGroupOffsets"] for _ in range(4)]
    assert asked == [0, 0, 0, 1], "it may have been silent for a reason of its own"


def test_a_share_group_that_a_rule_names_is_unknown_until_its_coordinator_has_listed_its_groups() -> None:
    """OffsetFetch reports no commits, as for a group that does not exist."""
    shared = cluster()
    shared.loading = {3}
    rig = Rig(shared, samples.settings(rules=[{"group": "workers", "topics": ["orders"], "offsetReset": "latest"}]))
    shared.move_on_to = lambda _: shared.loading.clear()
    rig.run()
    refused = str(rig.refusal(group="workers"))
    rig.run()

    assert "broker 3 has not listed its groups yet" in refused
    assert rig.lag("workers") == 9


def test_a_share_group_that_a_rule_names_is_unknown_while_its_new_coordinator_lists_no_groups() -> None:
    shared = cluster_of(LEADERS)
    shared.commits[READ], shared.kinds[READ], shared.shares[READ] = {}, Kind.SHARE, {ORDERS_0: (2, 4)}
    shared.end_errors, shared.unlisted = {(OFFSETS_TOPIC, 0): 78}, {READ}
    rig = Rig(shared, samples.settings(rules=[{"group": READ, "topics": ["orders"], "offsetReset": "latest"}]))
    rig.brokers.before["ListGroups"] = shared.end_errors.clear
    rig.run()
    refused = str(rig.refusal(group=READ))
    shared.unlisted.clear()
    rig.run()

    assert "broker 1 has not listed its groups yet" in refused
    assert rig.lag(READ) == 4


def test_records_that_wait_again_after_their_coordinator_moved_count_at_once() -> None:
    """Progress goes backward when records that were delivered are not acknowledged."""
    shared = cluster()
    rig = running(shared)
    shared.coordinators["workers"], shared.shares["workers"][ORDERS_0] = 2, (2, 8)
    rig.run(3)

    assert rig.lag("workers") == 8 + 5


def test_records_that_wait_again_after_a_restart_count_at_once() -> None:
    shared, shelf = cluster(), Shelf()
    shared.generations["orders"] = "id-1"
    settings = samples.settings(rules=[{"group": "workers"}])
    before = Adapter(shared, settings, shelf)
    before.remember()
    shared.shares["workers"][ORDERS_0] = (2, 8)

    assert restarted(before, shelf).lag("workers") == 8 + 5
