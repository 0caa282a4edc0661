"""The Kafka error codes that the adapter distinguishes, and its error for malformed responses."""

NO_ERROR = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER = 6
COORDINATOR_LOADING = 14
COORDINATOR_ABSENT = 15
NOT_COORDINATOR = 16
TOPIC_NOT_AUTHORIZED = 29
GROUP_NOT_AUTHORIZED = 30
GROUP_NOT_FOUND = 69
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
NOT_CAUGHT_UP = 78
"""A new leader does not know its followers' progress yet; this can last seconds while leadership moves."""
UNKNOWN_TOPIC_ID = 100

NOT_LEADING = (LEADER_NOT_AVAILABLE, NOT_LEADER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)
"""Another broker leads the partition, or none does."""
MOVED = (*NOT_LEADING, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)
"""Metadata has changed."""


class MalformedResponse(ValueError):
    """The response does not conform to its version."""
