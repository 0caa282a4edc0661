"""What the members of classic groups say they read, as their clients wrote it, or anything else."""

import struct
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from adapter.wire import topics_read_in


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


def read(*groups: SimpleNamespace) -> dict[str, frozenset[str]]:
    return topics_read_in(SimpleNamespace(groups=groups))


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
