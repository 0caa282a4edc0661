"""Requests about groups in the versions of a broker; those that kafka-python lacks are defined in `schemas/`.

The library finds a response class by its request's API key."""

from collections.abc import Sequence
from functools import partial
from types import new_class
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import FindCoordinatorRequest

from adapter.cluster.groups import Kind
from adapter.kafka.versions import Versions
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


def describe(kind: Kind, groups: Sequence[str], versions: Versions) -> object:
    """Raises NotOffered, like the others."""
    api, request = DESCRIBE[kind]
    version = versions.required(api)
    if kind is Kind.CLASSIC:
        return request(groups=list(groups), version=version)
    return request(group_ids=list(groups), include_authorized_operations=False, version=version)


def describe_shares(groups: Sequence[str], versions: Versions) -> object:
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    named = [asked(group_id=group, topics=None) for group in groups]
    return DescribeShareGroupOffsetsRequest(groups=named, version=versions.required(apis.DESCRIBE_SHARE_GROUP_OFFSETS))


def list_groups(versions: Versions) -> object:
    return ListGroupsRequest(version=versions.required(apis.LIST_GROUPS))


def find_coordinators(groups: Sequence[str], versions: Versions) -> object:
    """Before version 4, of one group."""
    version = versions.required(apis.FIND_COORDINATOR)
    if version >= apis.FIRST_WITH_KEYS:
        return FindCoordinatorRequest(coordinator_keys=list(groups), version=version)
    (group,) = groups
    return FindCoordinatorRequest(key=group, version=version)
