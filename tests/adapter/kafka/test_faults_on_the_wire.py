"""Whatever a broker sends, what was asked of it has an error, everything else its number. The brokers are a fake."""

import struct

import pytest

from adapter.kafka import client
from adapter.kafka.answers import Answer, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.connections import LARGEST_FRAME_BYTES
from tests.support import samples
from tests.support.kafka.spoilt_cluster import fake, nothing_unforeseen, one_of, reading, starting
from tests.support.kafka.wire_fake import (
    API_VERSIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    VERSIONS,
    Spoilt,
    WireFake,
)
from tests.support.kubernetes.served import Watcher

__all__ = ["fake", "nothing_unforeseen"]

MANY = b"\xff\xff\xff\xff\x07"
"""As an unsigned varint: 2^31 - 1, a count of elements with one added."""


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


UNREADABLE, CLOSED, SILENT = "sent a malformed response", "closed the connection", "does not answer"
SPOILT = {
    "cut in the middle": (lambda frame: Spoilt(frame[: len(frame) // 2], then_close=True), CLOSED),
    "cut within its size": (lambda frame: Spoilt(frame[:2], then_close=True), CLOSED),
    "closed without a byte": (lambda _: Spoilt(then_close=True), CLOSED),
    "larger than the limit": (
        lambda frame: Spoilt(struct.pack(">i", LARGEST_FRAME_BYTES + 1) + frame[4:]),
        UNREADABLE,
    ),
    "of a huge size": (lambda frame: Spoilt(struct.pack(">i", 2**31 - 1) + frame[4:]), UNREADABLE),
    "of a negative size": (lambda frame: Spoilt(struct.pack(">i", -1) + frame[4:]), UNREADABLE),
    "smaller than it says": (lambda frame: Spoilt(struct.pack(">i", len(frame) + 10) + frame[4:]), SILENT),
    "shorter than its fields": (lambda frame: Spoilt(sized(frame[4:-7])), UNREADABLE),
    "without a body": (lambda frame: Spoilt(sized(frame[4:9])), UNREADABLE),
    "without fields": (lambda frame: Spoilt(sized(frame[4:13])), UNREADABLE),
    "with too many elements": (lambda frame: Spoilt(sized(frame[4:13] + MANY + frame[14:])), UNREADABLE),
    "with an endless length": (lambda frame: Spoilt(sized(frame[4:13] + b"\xff" * 50)), UNREADABLE),
    "of an unknown request": (lambda frame: Spoilt(sized(struct.pack(">i", 99_999) + frame[8:])), UNREADABLE),
    "of nothing at all": (lambda _: Spoilt(sized(b"")), UNREADABLE),
    "sent twice": (lambda frame: Spoilt(frame * 2), ""),
    "never sent": (lambda _: Spoilt(), SILENT),
}
AT_THE_START = ["cut in the middle", "of a negative size", "without fields", "with too many elements", "never sent"]


@pytest.mark.parametrize("key", [OFFSET_FETCH, LIST_OFFSETS])
@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_answer_takes_down_only_what_was_asked_of_its_broker(fake: WireFake, how: str, key: int) -> None:
    spoil, words = SPOILT[how]
    if words == SILENT and key == OFFSET_FETCH:
        words = UNREADABLE  # the answer to the next request on the connection arrives in its place
    with (
        reading(fake) as running,
        Watcher(running, ["billing", "mail"], one_of(billing=[13], mail=[19])) as watcher,
    ):
        fake.faults[2, key] = spoil
        running.wait_for_cycles(5)
        running.wait_for(lambda: is_alone(running.causes("billing"), words) and not running.causes("mail"))
        fake.faults.clear()
        running.wait_for(lambda: not running.causes("billing"))
    watcher.check()
    assert watcher.refusals == {"billing": [], "mail": []}


def is_alone(causes: set[str], words: str) -> bool:
    """Whether no other broker has trouble, and the second one has this kind of it; no words mean that it has none."""
    return all("broker 2 at" in cause for cause in causes) and words in " ".join(causes)


@pytest.mark.parametrize("key", [API_VERSIONS, METADATA, LIST_GROUPS])
@pytest.mark.parametrize("how", AT_THE_START)
def test_a_start_with_corrupt_responses_has_no_number_until_they_are_correct(
    fake: WireFake, how: str, key: int
) -> None:
    spoil, _ = SPOILT[how]
    fake.faults = {(node, key): spoil for node in fake.kafka.nodes}
    with starting(fake) as running:
        running.wait_for_refusal("not all groups of cluster main are known: b", "billing")
        running.wait_for_cycles(1)
        assert isinstance(running.answer("billing"), str)
        fake.faults.clear()
        running.wait_for_lag(13, "billing")


@pytest.mark.parametrize(
    "versions",
    [
        {**VERSIONS, 999: (0, 99), -5: (3, 1)},
        dict.fromkeys(VERSIONS, (0, 32767)),
        {key: (low, high + 1) for key, (low, high) in VERSIONS.items()},
    ],
    ids=["unknown requests", "endless versions", "newer by one"],
)
def test_brokers_that_know_more_than_we_are_read(fake: WireFake, versions: dict[int, tuple[int, int]]) -> None:
    fake.versions = versions
    with reading(fake):
        pass


@pytest.mark.parametrize("host", ["x\0y", "a" * 100 + ".invalid", ""], ids=["NUL", "long", "empty"])
def test_a_broker_at_an_impossible_address_is_unknown_alone(fake: WireFake, host: str) -> None:
    with reading(fake) as running, Watcher(running, ["billing"], one_of(billing=[13])) as watcher:
        fake.hosts[3] = host
        fake.kafka.refusing.add(3)
        fake.cut_all()
        running.wait_for(lambda: any("cannot be found" in cause for cause in running.causes("billing")))
        running.wait_for(lambda: {cause[:12] for cause in running.causes("billing")} == {"broker 3 at "})
        fake.hosts.clear()
        fake.kafka.refusing.clear()
        running.wait_for(lambda: not running.causes("billing"))
    watcher.check()


def test_all_brokers_throttling_for_days_are_read_again_once_they_do_not(fake: WireFake) -> None:
    with reading(fake) as running:
        fake.throttle_ms = 2**31 - 1
        running.wait_for_cycles(5)
        fake.throttle_ms = 0
        fake.kafka.ends["letters", 0] = 21
        running.wait_for_lag(20, "mail")


def test_a_second_broker_is_asked_for_metadata_while_the_first_is_slow(
    fake: WireFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In which the second broker answers also on a busy machine.
    monkeypatch.setattr(client, "HEDGE_SECONDS", 3.0)
    asked: list[str] = []
    (cluster,) = samples.settings(clusters=[fake.cluster()]).clusters
    brokers = Brokers(cluster, asked.append, call_seconds=4.0)
    brokers.connect()
    try:
        # They are known by their node ids from the first Metadata on.
        brokers.topology([None])
        fake.faults[1, METADATA] = SPOILT["never sent"][0]
        asked.clear()
        outcomes = brokers.topology([1, 2, 3])
        assert [node for node, answer in outcomes.items() if isinstance(answer, Answer)] == [2]
        # The first is not waited for, the third not asked.
        assert (list(outcomes), len(asked)) == ([2], 2)

        monkeypatch.setattr(client, "HEDGE_SECONDS", 0.1)
        fake.faults[2, METADATA] = fake.faults[3, METADATA] = SPOILT["never sent"][0]
        silent = brokers.topology([1, 2, 3])
        assert {node: isinstance(answer, Failure) for node, answer in silent.items()} == dict.fromkeys((1, 2, 3), True)
    finally:
        brokers.close()
