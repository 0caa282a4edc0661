"""Which groups a broker that cannot be reached may know: these are refused, and what was read is answered.

Groups belong to the partitions of the offsets topic by their names, as in Kafka. Node 4 of these clusters is the one
that is away.
"""

import contextlib
from collections.abc import Callable

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.metrics.problems import Reason, ValueUnavailable
from tests.support import samples
from tests.support.kafka.coordinators import (
    LEADERS,
    NODES,
    PARTITIONS,
    READ,
    UNREAD,
    cluster,
    is_absent,
    move,
    named,
    rig_of,
)
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0
from tests.support.samples import wants, without

SILENT_4 = "broker 4 at kafka-4:9092 does not answer"


def test_a_broker_that_joins_and_leads_nothing_matters_to_no_group() -> None:
    kafka = cluster([1, 2, 3] * 2 + [1, 2], READ)
    kafka.nodes = (1, 2, 3)
    rig = rig_of(kafka, 3)
    kafka.nodes, kafka.silent = NODES, {4}
    for _ in range(20):
        rig.run()

        assert rig.lag(READ) == 3
        assert rig.read("records_lag_max", wants(topic="orders")).values[0].milli // 1000 == 3
        assert rig.read("lag").warnings == ()
        assert is_absent(rig, "nobody")


def test_after_a_start_beside_a_silent_broker_only_its_groups_are_refused() -> None:
    kafka = cluster(LEADERS, READ, UNREAD)
    kafka.silent = {4}
    rig = rig_of(kafka)
    for _ in range(8):
        assert rig.lag(READ) == 3
        assert rig.reasons(group=UNREAD) == rig.reasons(topic="orders") == [Reason.GROUP_MAY_EXIST]
        assert is_absent(rig, named(0, 1))
        assert rig.reasons("lag", without(group=READ)) == [Reason.GROUP_MAY_EXIST]
        assert rig.reasons(group=[READ, named(7)]) == [Reason.GROUP_MAY_EXIST]
        (warning,) = rig.read("lag").warnings
        assert warning.endswith(f"broker 4 at kafka-4:9092 has not listed its groups yet: {SILENT_4}")
        rig.run()

    kafka.silent.clear()
    rig.run(2)
    assert rig.lag(UNREAD) == 3
    assert rig.read("records_lag_max", wants(topic="orders")).values[0].milli // 1000 == 3


def test_a_group_that_a_rule_names_is_refused_while_only_a_silent_broker_can_know_it() -> None:
    kafka = cluster(LEADERS, READ)
    kafka.silent = {4}
    rules = [{"group": group, "topics": ["orders"], "offsetReset": "earliest"} for group in (named(0, 1), UNREAD)]
    rig = rig_of(kafka, 5, rules=rules)

    assert rig.lag(named(0, 1)) == 10
    assert SILENT_4 in str(rig.refusal(group=UNREAD))


def test_a_group_that_came_to_be_after_its_coordinator_fell_silent_is_not_taken_for_none() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 4)
    assert is_absent(rig, UNREAD)
    kafka.silent = {4}
    kafka.commits[UNREAD] = {ORDERS_0: 0}
    rig.run(3)
    for _ in range(12):
        rig.run()

        assert not is_absent(rig, UNREAD)
        assert rig.lag(READ) == 3


def test_sums_are_refused_when_a_list_of_groups_is_old_and_not_before() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 4)
    kafka.silent = {4}
    rig.run(8)
    assert rig.read("records_lag_max", wants(topic="orders")).values[0].milli // 1000 == 3
    rig.run(2)

    assert rig.reasons(topic="orders") == [Reason.GROUP_MAY_EXIST]


def test_a_deleted_group_is_gone_though_a_broker_cannot_be_reached() -> None:
    kafka = cluster(LEADERS, READ, named(1))
    kafka.silent = {4}
    rig = rig_of(kafka, 2)
    del kafka.commits[READ]
    rig.run(12)

    assert is_absent(rig, READ)


def test_a_group_whose_coordinator_became_unreachable_by_a_move_is_not_lost() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 4)
    move(kafka, 0, 4)
    kafka.silent = {4}
    for _ in range(20):
        rig.run()
        assert not is_absent(rig, READ)

    assert SILENT_4 in str(rig.refusal(group=READ))
    kafka.silent.clear()
    rig.run(3)
    assert rig.lag(READ) == 3


def test_a_group_that_moves_away_from_an_unreachable_coordinator_is_read_again() -> None:
    """The old one stays in Metadata: only we cannot reach it."""
    kafka = cluster([4, 2, 3, 1, 2, 3, 1, 2], READ)
    rig = rig_of(kafka, 4)
    assert rig.lag(READ) == 3
    kafka.silent = {4}
    rig.run()
    move(kafka, 0, 2)
    kafka.ends[ORDERS_0] = 11
    rig.run(4)

    assert rig.lag(READ) == 4


@pytest.mark.parametrize("kind", ["ListGroups", "OffsetFetch", "ListOffsets read_uncommitted"])
def test_a_partition_that_moves_in_the_middle_of_the_first_cycle_hides_no_group(kind: str) -> None:
    """Its leader of before lists nothing any more, and its leader of now cannot be reached."""
    kafka = cluster([1] * PARTITIONS, READ)
    rig = Rig(kafka)

    def moved() -> None:
        move(kafka, 0, 4)
        kafka.silent = {4}

    rig.brokers.before = {kind: moved}
    for _ in range(12):
        rig.run()
        with contextlib.suppress(ValueUnavailable):
            assert rig.lag(READ) == 3
        with contextlib.suppress(ValueUnavailable):
            assert rig.read("lag", wants(topic="orders")).values


def test_metadata_of_a_broker_that_is_behind_does_not_make_a_group_absent() -> None:
    kafka = cluster(LEADERS)
    rig = rig_of(kafka, 4)
    kafka.believed = {2: {OFFSETS_TOPIC: (list(kafka.topics[OFFSETS_TOPIC]), list(kafka.epochs[OFFSETS_TOPIC]))}}
    move(kafka, 0, 4)
    rig.run(4)
    kafka.silent = {4}
    kafka.commits[READ] = {ORDERS_0: 0}
    rig.run(3)
    for _ in range(12):
        rig.run()

        assert not is_absent(rig, READ)


def test_a_partition_without_leader_may_have_unknown_groups() -> None:
    kafka = cluster([1, 2, 3, 1, 2, 3, -1, 3], READ, UNREAD)
    kafka.coordinators[UNREAD] = -1
    rig = rig_of(kafka)

    assert rig.lag(READ) == 3
    assert rig.reasons(group=UNREAD) == rig.reasons(topic="orders") == [Reason.GROUP_MAY_EXIST]
    assert str(rig.refusal(group=UNREAD)).endswith(f"partition 6 of {OFFSETS_TOPIC} has no leader")


def hide(kafka: Kafka) -> None:
    kafka.hidden = {OFFSETS_TOPIC}


def place_otherwise(kafka: Kafka) -> None:
    """As after the number of partitions was changed while the brokers ran."""
    kafka.coordinators[READ] = 2


@pytest.mark.parametrize("make", [hide, place_otherwise])
def test_without_known_placement_a_silent_broker_matters_to_every_unknown_group(
    make: Callable[[Kafka], None],
) -> None:
    kafka = cluster([1, 2, 3] * 2 + [1, 2], READ)
    make(kafka)
    kafka.silent = {4}
    rig = rig_of(kafka, 3)

    assert rig.lag(READ) == 3
    assert rig.reasons(group="nobody") == rig.reasons(topic="orders") == [Reason.GROUP_MAY_EXIST]


def test_a_lost_group_is_refused_while_a_silent_broker_may_coordinate_it_and_found_at_another() -> None:
    """Metadata hides the offsets topic, and two brokers are silent: one of them is named."""
    kafka = cluster([1] * PARTITIONS, READ, named(1))
    hide(kafka)
    kafka.coordinators[READ] = 1
    rig = rig_of(kafka, 4)
    kafka.silent, kafka.coordinators[READ] = {3, 4}, 4
    rig.run(8)

    assert SILENT_4 in str(rig.refusal(group=READ))
    assert rig.lag(named(1)) == 3
    kafka.coordinators[READ] = 2
    rig.run(4)
    assert rig.lag(READ) == 3


def test_a_group_that_no_broker_coordinates_is_unknown_once_the_offsets_topic_exists() -> None:
    kafka = Kafka(topics={"orders": [1]}, ends={ORDERS_0: 10}, coordinators={"billing": NOBODY})
    rig = Rig(kafka, samples.settings(rules=[{"group": "billing", "topics": ["orders"]}]))
    rig.run(6)
    kafka.topics[OFFSETS_TOPIC] = [1]
    rig.run(7)

    assert rig.reasons(group="billing") == [Reason.NOT_READ_SINCE]
