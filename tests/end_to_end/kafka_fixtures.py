"""Brokers that the tests of one session share, each started by the first test that asks for it.

Topics and groups carry names of their own in every test; whoever freezes or stops a broker brings it back.
"""

from collections.abc import Iterator

import pytest

from local.broker import Kafka, kafka
from local.kafka_security import Login
from local.processes import scratch


@pytest.fixture(scope="session")
def one_broker() -> Iterator[Kafka]:
    """One broker, with secure listeners beside the open one."""
    with scratch("one-broker") as home, kafka(home, security=Login("alice", "wonderland")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[Kafka]:
    with scratch("three-brokers") as home, kafka(home, brokers=3) as cluster:
        yield cluster
