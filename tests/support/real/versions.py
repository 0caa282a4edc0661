"""What Kafka has only from some version on, for `make test-kafka KAFKA=…`."""

import pytest

from local.downloads import KAFKA, KAFKA_RELEASE
from local.kafka.security import SCRAM_MECHANISMS

HAS_TOPIC_IDS = KAFKA_RELEASE >= (2, 8)
LISTS_STATES = KAFKA_RELEASE >= (2, 6)


def needs_kafka(major: int, minor: int, what: str) -> pytest.MarkDecorator:
    """Skips a test on brokers that are older than the feature that it is about."""
    reason = f"{what}: Kafka {major}.{minor} or newer, this is {KAFKA}"
    return pytest.mark.skipif((major, minor) > KAFKA_RELEASE, reason=reason)


needs_scram = pytest.mark.skipif(
    not SCRAM_MECHANISMS, reason=f"SCRAM users without ZooKeeper: Kafka 3.5 or newer, this is {KAFKA}"
)
needs_scram_requests = needs_kafka(2, 7, "SCRAM users that a client creates")
needs_tokens = needs_kafka(3, 1, "brokers that verify tokens without code of their owner")
needs_listed_states = needs_kafka(2, 6, "listings that tell the state of a group")
needs_quota_requests = needs_kafka(2, 6, "quotas that a client sets")
