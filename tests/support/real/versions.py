"""What Kafka has only from some version on, for `make test-kafka KAFKA=…`."""

import pytest

from local.downloads import KAFKA, KAFKA_RELEASE


def needs_kafka(major: int, minor: int, what: str) -> pytest.MarkDecorator:
    """Skips a test on brokers that are older than the feature that it is about."""
    reason = f"{what}: Kafka {major}.{minor} or newer, this is {KAFKA}"
    return pytest.mark.skipif((major, minor) > KAFKA_RELEASE, reason=reason)


needs_scram = needs_kafka(3, 5, "SCRAM users without ZooKeeper")
