"""What descriptions say of groups of every kind: as brokers and clients wrote it, or anything else."""

import struct
import tracemalloc
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from adapter.cluster.groups import Client, Description, Kind, Owned
from adapter.kafka.group_descriptions import descriptions_in
from adapter.verdicts.assignment import Sharing


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)


def assignment(partitions: dict[str, Sequence[int]]) -> bytes:
    entries = b"".join(
        struct.pack(f">h{len(topic)}si{len(numbers)}i", len(topic), topic.encode(), len(numbers), *numbers)
        for topic, numbers in partitions.items()
    )
    return struct.pack(">hi", 1, len(partitions)) + entries + struct.pack(">i", -1)


def group(
    name: str, *members: tuple[bytes, bytes], state: str = "Stable", error: int = 0, assignor: str = "range"
) -> SimpleNamespace:
    reported = [
        SimpleNamespace(member_id=f"m{number}", member_metadata=metadata, member_assignment=assigned)
        for number, (metadata, assigned) in enumerate(members)
    ]
    return SimpleNamespace(group_id=name, error_code=error, group_state=state, protocol_data=assignor, members=reported)


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
    return SimpleNamespace(
        group_id=name, error_code=error, group_state=state, **{"members": [], "assignor_name": "uniform", **parts}
    )


def test_a_group_reads_what_any_member_is_subscribed_to_or_assigned() -> None:
    members = (subscription("orders", "refunds"), b""), (b"", assignment({"payments": [0, 1], "trail": []}))

    assert read(group("billing", *members)) == {"billing": {"orders", "refunds", "payments", "trail"}}


def test_members_of_a_classic_group_own_what_their_leader_assigned_to_them() -> None:
    members = [(subscription("orders"), assignment({"orders": numbers, "trail": []})) for numbers in ([0, 2], [1], [])]

    (billing,) = described(Kind.CLASSIC, group("billing", *members)).values()
    assert billing is not None
    assert billing.owned == (Owned("m0", "orders", (0, 2)), Owned("m1", "orders", (1,)))


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_a_member_may_announce_a_version_without_its_fields_or_its_user_data(version: int) -> None:
    def without_the_rest(body: bytes) -> bytes:
        return struct.pack(">h", version) + body[2:-4]

    member = without_the_rest(subscription("orders")), without_the_rest(assignment({"orders": [0]}))
    expected = Description(1, frozenset({"orders"}), (Owned("m0", "orders", (0,)),))
    assert described(Kind.CLASSIC, group("billing", member)) == {"billing": expected}


def test_only_the_topics_of_stable_groups_are_returned() -> None:
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
    assert described(Kind.CLASSIC, group("odd", member)) == {"odd": Description(1)}


def test_every_member_counts_in_any_state_of_the_group() -> None:
    member = b"", b""
    groups = group("moving", member, member, state="PreparingRebalance"), group("empty", state="Empty")

    assert described(Kind.CLASSIC, *groups) == {"moving": Description(2), "empty": Description(0)}


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
        member_id="m0",
        subscribed_topic_names=["orders"],
        assignment=assigned(orders=[0]),
        target_assignment=assigned(refunds=[0, 1]),
    )
    by_pattern = SimpleNamespace(
        member_id="m1", subscribed_topic_names=[], assignment=assigned(trail=[0]), target_assignment=assigned(trail=[0])
    )

    billing = described(Kind.CONSUMER, new_group("billing", members=[first, by_pattern]))["billing"]
    owned = Owned("m0", "orders", (0,)), Owned("m1", "trail", (0,))
    assert billing == Description(2, frozenset({"orders", "refunds", "trail"}), owned, Sharing.TOGETHER)


def test_members_of_a_share_group_read_what_they_subscribe_to_and_own_what_they_do_not_share() -> None:
    members = [
        SimpleNamespace(member_id=f"m{number}", subscribed_topic_names=["orders"], assignment=assigned(orders=numbers))
        for number, numbers in enumerate(([0, 1], [1], [1]))
    ]

    assert described(Kind.SHARE, new_group("workers", members=members)) == {
        "workers": Description(3, frozenset({"orders"}), (Owned("m0", "orders", (0,)),), Sharing.SEVERAL_READERS)
    }


def test_a_streams_application_reads_sources_and_its_own_repartition_topics() -> None:
    """A task reads the same partition of every source topic of its part of the topology."""
    parts = [
        SimpleNamespace(subtopology_id="0", source_topics=["orders"], repartition_source_topics=[]),
        SimpleNamespace(
            subtopology_id="1",
            source_topics=["rates"],
            repartition_source_topics=[SimpleNamespace(name="app-by-key-repartition")],
        ),
    ]
    topology = SimpleNamespace(subtopologies=parts)
    tasks = [("0", [0]), ("1", [0, 2])], [("0", [1]), ("7", [0])]
    members = [
        SimpleNamespace(
            member_id=f"m{number}",
            assignment=SimpleNamespace(
                active_tasks=[SimpleNamespace(subtopology_id=part, partitions=numbers) for part, numbers in own]
            ),
        )
        for number, own in enumerate(tasks)
    ]

    owned = [
        Owned("m0", "app-by-key-repartition", (0, 2)),
        Owned("m0", "orders", (0,)),
        Owned("m0", "rates", (0, 2)),
        Owned("m1", "orders", (1,)),
    ]
    assert described(Kind.STREAMS, new_group("app", topology=topology, members=members)) == {
        "app": Description(2, frozenset({"orders", "rates", "app-by-key-repartition"}), tuple(owned), Sharing.TOGETHER)
    }


def test_tasks_of_a_single_subtopology_are_as_many_as_its_largest_topic_has_partitions() -> None:
    part = SimpleNamespace(subtopology_id="0", source_topics=["orders", "rates"], repartition_source_topics=[])
    app = described(Kind.STREAMS, new_group("app", topology=SimpleNamespace(subtopologies=[part])))["app"]

    assert app is not None
    assert app.sharing is Sharing.BY_TOPIC


@pytest.mark.parametrize(
    ("assignor", "sharing"),
    [
        ("range", Sharing.BY_TOPIC),
        ("roundrobin", Sharing.TOGETHER),
        ("sticky", Sharing.TOGETHER),
        ("cooperative-sticky", Sharing.TOGETHER),
    ],
)
def test_a_classic_group_shares_topics_as_the_assignor_does_that_its_members_chose(
    assignor: str, sharing: Sharing
) -> None:
    """Two members with two partitions each: no assignment would show it."""
    members = [(subscription("orders", "refunds"), assignment({"orders": [n], "refunds": [n]})) for n in range(2)]
    billing = described(Kind.CLASSIC, group("billing", *members, assignor=assignor))["billing"]

    assert billing is not None
    assert billing.sharing is sharing


@pytest.mark.parametrize(("last", "sharing"), [("refunds", Sharing.TOGETHER), ("orders", Sharing.BY_TOPIC)])
def test_an_assignor_that_is_not_known_is_judged_by_its_assignment(last: str, sharing: Sharing) -> None:
    members = [(b"", assignment({topic: [number]})) for topic, number in (("orders", 0), (last, 1))]
    billing = described(Kind.CLASSIC, group("billing", *members, assignor="by-weight"))["billing"]

    assert billing is not None
    assert billing.sharing is sharing


def test_a_group_of_the_new_kind_may_have_the_range_assignor() -> None:
    member = SimpleNamespace(
        member_id="m", subscribed_topic_names=["orders"], assignment=assigned(), target_assignment=assigned()
    )
    billing = described(Kind.CONSUMER, new_group("billing", members=[member], assignor_name="range"))["billing"]

    assert billing is not None
    assert billing.sharing is Sharing.BY_TOPIC


@pytest.mark.parametrize("topology", [None, SimpleNamespace(subtopologies=None)])
def test_a_streams_application_without_topology_reads_nothing_that_is_known(topology: object) -> None:
    assert described(Kind.STREAMS, new_group("app", topology=topology)) == {"app": Description(0)}


IDENTITY = {"client_id": "web-0-consumer", "client_host": "/10.0.0.1"}


@pytest.mark.parametrize(("field", "kind"), [("group_instance_id", Kind.CLASSIC), ("instance_id", Kind.CONSUMER)])
@pytest.mark.parametrize("instance", ["web-0", None])
def test_who_the_members_are_is_told_only_if_it_is_asked_for(field: str, kind: Kind, instance: str | None) -> None:
    body = {"member_metadata": subscription("orders"), "member_assignment": b""}
    parts = {"subscribed_topic_names": ["orders"], "assignment": assigned(), "target_assignment": assigned()}
    member = SimpleNamespace(member_id="m0", **IDENTITY, **{field: instance}, **body, **parts)
    response = SimpleNamespace(groups=[new_group("billing", members=[member], protocol_data="range")])
    asked, plain = (descriptions_in(response, kind, with_clients=each)["billing"] for each in (True, False))

    assert asked is not None
    assert plain is not None
    assert asked.clients == (Client("m0", instance or "", "web-0-consumer", "/10.0.0.1"),)
    assert plain.clients == ()


@pytest.mark.parametrize(
    ("client_id", "kept"),
    [
        ("consumer-billing-1", ""),
        ("consumer-billing-12", ""),
        ("consumer-billing-1-0", "consumer-billing-1-0"),
        ("consumer-orders-1", "consumer-orders-1"),
        ("consumer-billing-", "consumer-billing-"),
        ("consumer-1", "consumer-1"),
        ("1", "1"),
    ],
)
def test_the_default_client_id_of_java_names_no_process(client_id: str, kept: str) -> None:
    body = {"member_metadata": subscription("orders"), "member_assignment": b"", "group_instance_id": None}
    member = SimpleNamespace(member_id="m0", client_id=client_id, client_host="/10.0.0.1", **body)
    response = SimpleNamespace(groups=[new_group("billing", members=[member], protocol_data="range")])
    described = descriptions_in(response, Kind.CLASSIC, with_clients=True)["billing"]

    assert described is not None
    assert [client.client for client in described.clients] == [kept]


def test_nothing_is_kept_of_what_former_members_sent() -> None:
    tracemalloc.start()
    for number in range(40):
        read(
            group(
                "g", (subscription(*(f"{number}-{topic}" for topic in range(1000))), assignment({"orders": [number]}))
            )
        )
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 1_000_000
