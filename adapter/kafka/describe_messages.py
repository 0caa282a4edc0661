"""Requests that kafka-python lacks, defined in `schemas/`, and the describe request of each kind of group.

The library finds a response class by its request's API key."""

from collections.abc import Sequence

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.api_message import ApiMessage

from adapter.cluster.groups import Kind


class ConsumerGroupDescribeRequest(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    """KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    pass


class ShareGroupDescribeRequest(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    """KIP-932."""


class ShareGroupDescribeResponse(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    pass


class StreamsGroupDescribeRequest(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    """KIP-1071."""


class StreamsGroupDescribeResponse(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    pass


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    """KIP-932, and KIP-1226 for the lag."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json="adapter.kafka.schemas"):  # type: ignore[call-arg, misc]
    pass


DESCRIBE = {
    Kind.CLASSIC: DescribeGroupsRequest,
    Kind.CONSUMER: ConsumerGroupDescribeRequest,
    Kind.SHARE: ShareGroupDescribeRequest,
    Kind.STREAMS: StreamsGroupDescribeRequest,
}


def describe(kind: Kind, groups: Sequence[str]) -> object:
    if kind is Kind.CLASSIC:
        return DescribeGroupsRequest(groups=list(groups), max_version=5)
    return DESCRIBE[kind](group_ids=list(groups), include_authorized_operations=False)
