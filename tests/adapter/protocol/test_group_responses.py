"""What listings say of groups of every kind, who coordinates a group, and how far share groups are."""

from types import SimpleNamespace

import pytest
from kafka.protocol.metadata import FindCoordinatorResponse

from adapter.cluster.groups import GroupStatus, Kind, Phase
from adapter.protocol.codes import MalformedResponse
from adapter.protocol.group_responses import FoundCoordinator, coordinators_in, listing_in, shares_in


def listed(
    name: str, state: str | None = "Stable", kind: str | None = "Classic", protocol: str = "consumer"
) -> SimpleNamespace:
    return SimpleNamespace(group_id=name, group_state=state, group_type=kind, protocol_type=protocol)


def listing(*groups: SimpleNamespace, error: int = 0) -> SimpleNamespace:
    return SimpleNamespace(groups=groups, error_code=error)


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (listed("g"), GroupStatus(Kind.CLASSIC, Phase.STABLE)),
        (listed("g", kind=None), GroupStatus(Kind.CLASSIC, Phase.STABLE)),
        (listed("g", "PreparingRebalance"), GroupStatus(Kind.CLASSIC, Phase.MOVING)),
        (listed("g", "Empty", protocol=""), GroupStatus(Kind.CLASSIC, Phase.EMPTY)),
        (listed("g", "Reconciling", "Consumer"), GroupStatus(Kind.CONSUMER, Phase.MOVING)),
        (listed("g", "Stable", "share", "share"), GroupStatus(Kind.SHARE, Phase.STABLE)),
        (listed("g", "NotReady", "streams", "streams"), GroupStatus(Kind.STREAMS, Phase.MOVING)),
        (listed("g", kind="unheard-of"), None),
        (listed("g", protocol="sr"), None),
        (listed("g", state=None), GroupStatus(Kind.CLASSIC, Phase.UNKNOWN)),
    ],
)
def test_a_listing_has_kind_and_phase_of_groups_whose_members_read_topics(
    one: SimpleNamespace, status: GroupStatus | None
) -> None:
    reported = listing_in(listing(one))

    assert reported.groups == {"g"}
    assert reported.statuses.get("g") == status


def test_workers_of_kafka_connect_and_dead_groups_are_not_listed() -> None:
    reported = listing_in(
        listing(listed("connect-cluster", protocol="connect"), listed("gone", "Dead"), listed("billing"))
    )

    assert reported.groups == reported.statuses.keys() == {"billing"}


def test_a_broker_that_is_loading_says_so() -> None:
    assert listing_in(listing(error=14)).loading


def shares(*partitions: tuple[int, int, int, int]) -> SimpleNamespace:
    """A response about one topic: partition, start, lag and error code."""
    rows = [
        SimpleNamespace(partition_index=partition, start_offset=start, lag=lag, error_code=error)
        for partition, start, lag, error in partitions
    ]
    topics = [SimpleNamespace(topic_name="orders", partitions=rows)]
    return SimpleNamespace(groups=[SimpleNamespace(group_id="workers", error_code=0, topics=topics)])


def test_share_groups_have_start_lag_and_error_of_each_partition() -> None:
    orders = shares_in(shares((1, 10, 7, 0), (0, -1, -1, 29)))["workers"].topics["orders"]

    assert [column.tolist() for column in (orders.partition, orders.start, orders.lag, orders.error)] == [
        [1, 0],
        [10, -1],
        [7, -1],
        [0, 29],
    ]


def test_a_topic_of_a_share_group_may_have_no_partitions() -> None:
    assert shares_in(shares())["workers"].topics["orders"].partition.tolist() == []


def test_a_share_groups_negative_partition_is_malformed() -> None:
    with pytest.raises(MalformedResponse):
        shares_in(shares((-1, 0, 0, 0)))


def test_before_version_4_the_coordinator_is_that_of_the_group_that_was_asked_for() -> None:
    found = coordinators_in(["billing"], FindCoordinatorResponse(node_id=2, error_code=0, version=3))

    assert found == {"billing": FoundCoordinator(node=2, error=0)}


def test_a_response_without_the_group_tells_no_coordinator() -> None:
    assert coordinators_in(["billing"], FindCoordinatorResponse(coordinators=[], version=4)) == {}
