"""The Kafka error codes that the adapter distinguishes, and its error for malformed responses."""

NO_ERROR = 0
COORDINATOR_LOADING = 14
COORDINATOR_ABSENT = 15
NOT_COORDINATOR = 16
TOPIC_NOT_AUTHORIZED = 29
GROUP_NOT_AUTHORIZED = 30
GROUP_NOT_FOUND = 69


class MalformedResponse(ValueError):
    """The response does not conform to its version."""
