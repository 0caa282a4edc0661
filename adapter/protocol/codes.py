"""Kafka's error codes that the adapter tells apart, and its own error for a response that breaks the protocol."""

NO_ERROR = 0
COORDINATOR_LOADING = 14
COORDINATOR_ABSENT = 15
NOT_COORDINATOR = 16
TOPIC_NOT_AUTHORIZED = 29
GROUP_NOT_AUTHORIZED = 30
GROUP_NOT_FOUND = 69


class MalformedResponse(ValueError):
    """A broker's answer is not what its version says it is."""
