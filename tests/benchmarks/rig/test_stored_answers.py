"""The benchmarks' fake brokers answer what they are really asked, read here by the adapter's own decoders."""

import json
import struct
from dataclasses import replace

import pytest
from kafka.protocol.metadata import MetadataResponse

from adapter.protocol import offset_requests
from adapter.protocol.codes import NOT_COORDINATOR
from adapter.protocol.metadata_response import topology_in
from adapter.protocol.offset_requests import RawRequest
from benchmarks.rig.stored_answers import NOT_LEADER, StoredAnswers, stored
from benchmarks.rig.stored_cluster import (
    FIRST_OFFSET,
    REFUSED_AFTER,
    Refusal,
    StoredCluster,
    StoredGroup,
    cluster_of,
    groups_of,
    lag_of,
)
from benchmarks.rig.stored_metadata import metadata_frame
from tests.support.kafka.decoded import GroupCommits, commits_in_bytes, offsets_in_bytes

CLUSTER = StoredCluster((StoredGroup("billing", 2, 3), StoredGroup("shop", 1, 4)), ports=(9001, 9002), began=0.0)
HEAD = 4 + 4 + 1
"""Bytes of a flexible response before its body: size, correlation id, no tags."""


def answers(node: int) -> StoredAnswers:
    return StoredAnswers(CLUSTER, node, metadata_frame(CLUSTER))


def sent(request: RawRequest, correlation_id: int = 1) -> bytes:
    request.with_header(correlation_id, "test")
    return request.encode(framed=True, header=True)


def commits(node: int, groups: list[str]) -> dict[str, GroupCommits]:
    return commits_in_bytes(answers(node).answer(sent(offset_requests.offset_fetch(groups)))[HEAD:])


def test_a_node_returns_the_commits_of_the_groups_it_coordinates_and_refuses_the_others() -> None:
    found = commits(1, ["billing", "shop"])

    assert {group: each.error for group, each in found.items()} == {"billing": 0, "shop": NOT_COORDINATOR}
    assert {topic: each.partition.tolist() for topic, each in found["billing"].topics.items()} == {
        "billing-topic-000": [0, 1, 2],
        "billing-topic-001": [0, 1, 2],
    }


def test_a_node_returns_the_ends_of_the_partitions_it_leads_and_refuses_the_others() -> None:
    asked = offset_requests.list_offsets({"shop-topic-000": [0, 1, 2, 3]}, -1, committed_only=False)
    (offsets,) = offsets_in_bytes(answers(1).answer(sent(asked))[HEAD:]).values()

    leads = [CLUSTER.leader("shop-topic-000", index) == 1 for index in range(4)]
    assert sorted(leads) == [False, False, True, True]
    assert offsets.error.tolist() == [0 if leads_it else NOT_LEADER for leads_it in leads]
    assert [offset >= FIRST_OFFSET for offset in offsets.offset.tolist()] == leads


@pytest.mark.parametrize(
    ("refusal", "commit_error", "end_error"), [(Refusal.GROUPS, 30, 0), (Refusal.TOPICS, 0, 29), (None, 0, 0)]
)
def test_a_node_refuses_groups_or_topics_after_a_few_answers_to_the_same_request(
    refusal: Refusal | None, commit_error: int, end_error: int
) -> None:
    node = StoredAnswers(replace(CLUSTER, refusal=refusal), 1, metadata_frame(CLUSTER))
    index = next(index for index in range(3) if CLUSTER.leader("billing-topic-000", index) == 1)

    def errors() -> tuple[int, int]:
        commits = node.answer(sent(offset_requests.offset_fetch(["billing"])))
        asked = offset_requests.list_offsets({"billing-topic-000": [index]}, -1, committed_only=False)
        (ends,) = offsets_in_bytes(node.answer(sent(asked))[HEAD:]).values()
        return commits_in_bytes(commits[HEAD:])["billing"].error, int(ends.error[0])

    assert [errors() for _ in range(REFUSED_AFTER)] == [(0, 0)] * REFUSED_AFTER
    assert [errors() for _ in range(3)] == [(commit_error, end_error)] * 3


def test_a_group_lags_by_what_its_partitions_say_at_any_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 7.0)
    (topic,) = commits(2, ["shop"])["shop"].topics.values()

    assert topic.offset.tolist() == [FIRST_OFFSET + 7000 - lag_of(index) for index in range(4)]


def test_the_same_question_is_answered_with_newer_numbers_and_its_own_correlation_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, now = answers(2), 1.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    asked = offset_requests.offset_fetch(["shop"])
    first = node.answer(sent(asked, correlation_id=5))
    now = 3.0
    second = node.answer(sent(asked, correlation_id=6))

    assert [struct.unpack_from(">i", answer, 4)[0] for answer in (first, second)] == [5, 6]
    before, after = (commits_in_bytes(answer[HEAD:])["shop"].topics for answer in (first, second))
    assert (after["shop-topic-000"].offset - before["shop-topic-000"].offset).tolist() == [2000] * 4


def test_log_starts_do_not_move() -> None:
    asked = offset_requests.list_offsets({"shop-topic-000": [1, 3]}, -2, committed_only=False)
    found = [offsets_in_bytes(answers(n).answer(sent(asked))[HEAD:])["shop-topic-000"] for n in (1, 2)]

    assert sorted(each.offset.tolist() for each in found) == [[-1, -1], [0, 0]]


def test_metadata_names_every_leader() -> None:
    topology = topology_in(answers(1).answer(sent(offset_requests.metadata(None)))[HEAD:])

    assert topology.brokers == {1: "127.0.0.1:9001", 2: "127.0.0.1:9002"}
    assert {name: len(topic.leaders) for name, topic in topology.topics.items()} == {
        "billing-topic-000": 3,
        "billing-topic-001": 3,
        "shop-topic-000": 4,
    }
    assert topology.topics["shop-topic-000"].leaders.tolist() == [
        CLUSTER.leader("shop-topic-000", index) for index in range(4)
    ]


def test_a_kind_that_no_fake_broker_knows_is_refused() -> None:
    with pytest.raises(KeyError):
        answers(1).answer(sent(RawRequest(0, 9, b"")))


def test_a_response_without_a_place_for_each_offset_is_refused() -> None:
    nothing_asked = MetadataResponse(throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=1, topics=[])

    with pytest.raises(ValueError, match="0 places for 1 offsets"):
        stored(nothing_asked, 12, [5])


def test_a_stored_cluster_survives_its_file() -> None:
    assert cluster_of(json.loads(CLUSTER.to_json())) == CLUSTER
    assert replace(CLUSTER, groups=groups_of(1000)).partitions == 1000
