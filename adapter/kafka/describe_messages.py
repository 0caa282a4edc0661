"""Requests that kafka-python lacks, defined in `schemas/`, and the describe requests of each kind of group.

The library finds a response class by its request's API key."""

from collections.abc import Sequence
from functools import partial
from types import new_class
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.api_message import ApiMessage

from adapter.cluster.groups import Kind
from adapter.protocol import apis


def _messages(name: str) -> tuple[Any, Any]:
    """Returns the classes of a request and its response."""
    make = partial(new_class, bases=(ApiMessage,), kwds={"load_json": "adapter.kafka.schemas"})
    return make(f"{name}Request"), make(f"{name}Response")


ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse = _messages("ConsumerGroupDescribe")  # KIP-848
ShareGroupDescribeRequest, ShareGroupDescribeResponse = _messages("ShareGroupDescribe")  # KIP-932
StreamsGroupDescribeRequest, StreamsGroupDescribeResponse = _messages("StreamsGroupDescribe")  # KIP-1071
# KIP-932, and KIP-1226 for the lag
DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse = _messages("DescribeShareGroupOffsets")

DESCRIBE = {
    Kind.CLASSIC: (apis.DESCRIBE_GROUPS, DescribeGroupsRequest),
    Kind.CONSUMER: (apis.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest),
    Kind.SHARE: (apis.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest),
    Kind.STREAMS: (apis.STREAMS_GROUP_DESCRIBE, StreamsGroupDescribeRequest),
}


def describe(kind: Kind, groups: Sequence[str], version: int) -> object:
    _, request = DESCRIBE[kind]
    if kind is Kind.CLASSIC:
        return request(groups=list(groups), version=version)
    return request(group_ids=list(groups), include_authorized_operations=False, version=version)


def describe_shares(groups: Sequence[str], version: int) -> object:
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    named = [asked(group_id=group, topics=None) for group in groups]
    return DescribeShareGroupOffsetsRequest(groups=named, version=version)
