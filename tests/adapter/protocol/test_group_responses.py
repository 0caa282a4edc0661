"""What listings and descriptions say of groups of every kind: as brokers and clients wrote it, or anything else."""

import struct
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from adapter.cluster.groups import Description, Kind, Phase, Standing
from adapter.protocol.codes import MalformedResponse
from adapter.protocol.group_responses import descriptions_in, listing_in, shares_in


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)


def assignment(partitions: dict[str, Sequence[int]]) -> bytes:
    entries = b"".join(
        struct.pack(f">h{len(topic)}si{len(numbers)}i", len(topic), topic.encode(), len(numbers), *numbers)
        for topic, numbers in partitions.items()
    )
    return struct.pack(">hi", 1, len(partitions)) + entries + struct.pack(">i", -1)


def group(name: str, *members: tuple[bytes, bytes], state: str = "Stable", error: int = 0) -> SimpleNamespace:
    told = [SimpleNamespace(member_metadata=metadata, member_assignment=assigned) for metadata, assigned in members]
    return SimpleNamespace(group_id=name, error_code=error, group_state=state, members=told)


def described(kind: Kind, *groups: SimpleNamespace) -> dict[str, Description | None]:
    return descriptions_in(SimpleNamespace(groups=groups), kind)


def read(*groups: SimpleNamespace) -> dict[str, frozenset[str]]:
    """Of classic groups."""
    return {name: one.topics for name, one in described(Kind.CLASSIC, *groups).items() if one and one.topics}


def assigned(**topics: Sequence[int]) -> SimpleNamespace:
    return SimpleNamespace(
        topic_partitions=[SimpleNamespace(topic_name=name, partitions=numbers) for name, numbers in topics.items()]
    )


def new_group(name: str, state: str = "Stable", error: int = 0, **parts: object) -> SimpleNamespace:
    return SimpleNamespace(group_id=name, error_code=error, group_state=state, **{"members": [], **parts})


def listed(
    name: str, state: str | None = "Stable", kind: str | None = "Classic", protocol: str = "consumer"
) -> SimpleNamespace:
    return SimpleNamespace(group_id=name, group_state=state, group_type=kind, protocol_type=protocol)


def listing(*groups: SimpleNamespace, error: int = 0) -> SimpleNamespace:
    return SimpleNamespace(groups=groups, error_code=error)


def test_a_group_reads_what_any_member_is_subscribed_to_or_assigned() -> None:
    members = (subscription("orders", "refunds"), b""), (b"", assignment({"payments": [0, 1], "trail": []}))

    assert read(group("billing", *members)) == {"billing": {"orders", "refunds", "payments", "trail"}}


def test_only_what_stable_groups_read_is_told() -> None:
    member = subscription("orders"), b""
    others = group("a", member, state="Empty"), group("b", member, error=30), group("c")

    assert read(group("billing", member), *others) == {"billing": {"orders"}}


@pytest.mark.parametrize(
    "member",
    [
        (b"\0", b""),
        (b"\0\0\x7f\xff\xff\xff" + b"\xff\xfe" * 4, b""),
        (struct.pack(">hih", 0, 1, 9) + b"orders", b""),
        (struct.pack(">hih", 0, 1, 1) + b"\xff", b""),
        (subscription("orders"), struct.pack(">hih1si", 0, 2**31 - 1, 1, b"a", -1) * 2),
        (subscription("orders"), struct.pack(">hih1si", 0, 1, 1, b"a", 2**31 - 1)),
    ],
    ids=["too short", "steps on the spot", "too long a name", "no text", "steps back", "too many partitions"],
)
def test_a_member_that_sends_nonsense_hides_its_own_group_and_no_other(member: tuple[bytes, bytes]) -> None:
    assert read(group("odd", member), group("billing", (subscription("orders"), b""))) == {"billing": {"orders"}}
    assert described(Kind.CLASSIC, group("odd", member)) == {"odd": Description(1, True)}


def test_every_member_counts_whatever_the_group_is_doing() -> None:
    member = b"", b""
    groups = group("moving", member, member, state="PreparingRebalance"), group("empty", state="Empty")

    assert described(Kind.CLASSIC, *groups) == {"moving": Description(2, False), "empty": Description(0, False)}


@pytest.mark.parametrize("error", [14, 15, 16, 30, -1])
def test_a_group_whose_description_failed_is_left_out(error: int) -> None:
    assert described(Kind.CLASSIC, group("billing", error=error, state="")) == {}


def test_a_group_that_does_not_exist_as_that_kind_is_described_as_none() -> None:
    """By an old broker as Dead without an error, by a newer one as not found; also where it is of another kind."""
    assert described(Kind.CLASSIC, group("old", state="Dead"), group("new", state="Dead", error=69)) == {
        "old": None,
        "new": None,
    }
    assert described(Kind.CONSUMER, new_group("billing", state="", error=69)) == {"billing": None}


def test_members_of_the_new_kind_read_what_they_subscribe_to_and_what_they_have_or_will_have() -> None:
    first = SimpleNamespace(
        subscribed_topic_names=["orders"], assignment=assigned(orders=[0]), target_assignment=assigned(refunds=[0, 1])
    )
    by_pattern = SimpleNamespace(
        subscribed_topic_names=[], assignment=assigned(trail=[0]), target_assignment=assigned(trail=[0])
    )

    billing = described(Kind.CONSUMER, new_group("billing", members=[first, by_pattern]))["billing"]
    assert billing == Description(2, True, frozenset({"orders", "refunds", "trail"}))


def test_members_of_a_share_group_read_what_they_subscribe_to() -> None:
    member = SimpleNamespace(subscribed_topic_names=["orders"], assignment=assigned(orders=[0, 1]))

    assert described(Kind.SHARE, new_group("workers", members=[member, member])) == {
        "workers": Description(2, True, frozenset({"orders"}))
    }


def test_a_streams_application_reads_sources_and_its_own_repartition_topics() -> None:
    parts = [
        SimpleNamespace(source_topics=["orders"], repartition_source_topics=[]),
        SimpleNamespace(source_topics=[], repartition_source_topics=[SimpleNamespace(name="app-by-key-repartition")]),
    ]
    topology = SimpleNamespace(subtopologies=parts)

    assert described(Kind.STREAMS, new_group("app", topology=topology, members=[object()] * 3)) == {
        "app": Description(3, True, frozenset({"orders", "app-by-key-repartition"}))
    }


@pytest.mark.parametrize("topology", [None, SimpleNamespace(subtopologies=None)])
def test_a_streams_application_without_topology_reads_nothing_that_is_known(topology: object) -> None:
    assert described(Kind.STREAMS, new_group("app", topology=topology)) == {"app": Description(0, True)}


@pytest.mark.parametrize(
    ("one", "standing"),
    [
        (listed("g"), Standing(Kind.CLASSIC, Phase.STABLE)),
        (listed("g", kind=None), Standing(Kind.CLASSIC, Phase.STABLE)),
        (listed("g", "PreparingRebalance"), Standing(Kind.CLASSIC, Phase.MOVING)),
        (listed("g", "Empty", protocol=""), Standing(Kind.CLASSIC, Phase.EMPTY)),
        (listed("g", "Reconciling", "Consumer"), Standing(Kind.CONSUMER, Phase.MOVING)),
        (listed("g", "Stable", "share", "share"), Standing(Kind.SHARE, Phase.STABLE)),
        (listed("g", "NotReady", "streams", "streams"), Standing(Kind.STREAMS, Phase.MOVING)),
        (listed("g", kind="unheard-of"), None),
        (listed("g", protocol="sr"), None),
        (listed("g", state=None), None),
    ],
)
def test_a_listing_tells_kind_and_phase_of_groups_whose_members_read_topics(
    one: SimpleNamespace, standing: Standing | None
) -> None:
    told = listing_in(listing(one))

    assert told.groups == {"g"}
    assert told.standings.get("g") == standing


def test_workers_of_kafka_connect_and_dead_groups_are_not_listed() -> None:
    told = listing_in(listing(listed("connect-cluster", protocol="connect"), listed("gone", "Dead"), listed("billing")))

    assert told.groups == told.standings.keys() == {"billing"}


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


def test_share_groups_tell_start_lag_and_error_of_each_partition() -> None:
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
