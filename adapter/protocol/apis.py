"""Kafka's requests that the adapter sends: their keys, and the versions of each that it can send and read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Api:
    key: int
    name: str
    """Kafka's name of the request."""
    oldest: int
    newest: int
    flexible_from: int = 0
    """From this version on, lengths are compact and structures end with tagged fields (KIP-482). Matters only where the
    bytes are encoded here."""

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from


LIST_OFFSETS = Api(2, "ListOffsets", oldest=2, newest=7, flexible_from=6)
METADATA = Api(3, "Metadata", oldest=5, newest=11, flexible_from=9)
"""Kafka 3.0 has no later version. Leader epochs come with version 7, topic ids with version 10."""
OFFSET_FETCH = Api(9, "OffsetFetch", oldest=5, newest=8, flexible_from=6)
"""Deliberately up to version 8: from 10 on, topics are identified by id, and a request for all topics returns only ids.
Before version 8, a request is about one group."""
FIND_COORDINATOR = Api(10, "FindCoordinator", oldest=2, newest=4)
"""Before version 4, a request is about one group."""
DESCRIBE_GROUPS = Api(15, "DescribeGroups", oldest=0, newest=5)
LIST_GROUPS = Api(16, "ListGroups", oldest=0, newest=5)
"""The state of a group comes with version 4, its type with version 5."""
CONSUMER_GROUP_DESCRIBE = Api(69, "ConsumerGroupDescribe", oldest=0, newest=1)
SHARE_GROUP_DESCRIBE = Api(77, "ShareGroupDescribe", oldest=1, newest=1)
STREAMS_GROUP_DESCRIBE = Api(89, "StreamsGroupDescribe", oldest=0, newest=0)
DESCRIBE_SHARE_GROUP_OFFSETS = Api(90, "DescribeShareGroupOffsets", oldest=0, newest=1)

FIRST_WITH_GROUPS = 8
"""The version of OffsetFetch that asks for any number of groups at once (KIP-709)."""
FIRST_WITH_KEYS = 4
"""The version of FindCoordinator that does (KIP-699)."""
FIRST_WITH_TOPIC_IDS = 10
"""The version of Metadata."""
