"""What doctor finds of a real broker that offers too little.

The oldest Kafka that can be run here, 2.4, offers all that is needed, so a door in front of a current broker takes
versions away from its own answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.kafka.passport import meet
from adapter.settings.models import Cluster
from apiservice.doctor.check import Check, Outcome
from apiservice.doctor.kafka import checks_of
from local.kafka.broker import Kafka, kafka
from local.kafka.settings import OUTSIDE_LISTENER
from tests.support.checks import CALL_SECONDS, broken, of, outcomes
from tests.support.kafka.wire_fake import METADATA, OFFSET_FETCH
from tests.support.real.older_door import older_door


@pytest.fixture(scope="module")
def broker(rig_home: Path) -> Iterator[Kafka]:
    """Its outside listener advertises another port than its own."""
    with kafka(rig_home / "behind-a-door", has_outside=True) as cluster:
        yield cluster


def outside(broker: Kafka) -> tuple[int, int]:
    """Returns the port of the outside listener, and the one that it advertises."""
    (only,) = broker.brokers
    assert broker.outside_port is not None
    return only.ports[OUTSIDE_LISTENER], broker.outside_port


def met(port: int) -> list[Check]:
    cluster = Cluster.model_validate({"name": "main", "bootstrapServers": [f"127.0.0.1:{port}"]})
    return [*checks_of(meet(cluster, CALL_SECONDS))]


def test_a_broker_that_lacks_a_request_is_found(broker: Kafka) -> None:
    own, advertised = outside(broker)
    with older_door(own, {OFFSET_FETCH: 4}, advertised):
        found = met(advertised)

    assert broken(found) == {"KLA206": "offers OffsetFetch up to 4; 5 or newer is needed"}
    assert [check.outcome for check in of(found, "KLA207")] == [Outcome.OK]


def test_a_bootstrap_server_that_cannot_name_the_brokers_is_found(broker: Kafka) -> None:
    own, advertised = outside(broker)
    with older_door(own, {METADATA: 4}, advertised):
        found = met(advertised)

    assert list(broken(found)) == ["KLA206"]
    assert "offers Metadata up to 4; 5 or newer is needed" in broken(found)["KLA206"]


def test_the_limits_of_an_older_broker_are_a_warning(broker: Kafka) -> None:
    own, advertised = outside(broker)
    with older_door(own, {METADATA: 8, OFFSET_FETCH: 6}, advertised):
        found = met(advertised)

    assert broken(found) == {}
    limits = outcomes(found, Outcome.WARNING)
    assert list(limits) == ["KLA208"]
    assert "topic ids" in limits["KLA208"]
    assert "one group per OffsetFetch" in limits["KLA208"]
