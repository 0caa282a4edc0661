"""A cluster for each maker, for a whole file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.makers.brokers import MakerBrokers, maker_brokers

MAKERS = ("redpanda-24.3", "redpanda-25.3", "event-hubs", "msk-serverless", "kafka-2.8", "kafka-2.4")


@pytest.fixture(scope="module", params=MAKERS)
def brokers(request: pytest.FixtureRequest, rig_home: Path) -> Iterator[MakerBrokers]:
    with maker_brokers(rig_home, request.param) as running:
        yield running
