"""The stand-ins offer and answer what docs/versions.md says of them, to kafka-python and to franz-go's client."""

import re
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import NotCoordinatorError
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest

from local.kafka.admin import admin
from local.kafka.tools import Described, commit, create_topic, produce
from local.makers.brokers import MakerBrokers, maker_brokers
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_as_member, member, state_of

PAGE = Path(__file__).parents[3] / "docs" / "versions.md"
REQUESTS = {"ListOffsets": 2, "Metadata": 3, "OffsetFetch": 9, "FindCoordinator": 10, "ListGroups": 16}
"""The columns of the page's table, and the key of each request."""
METADATA, NO_CLIENT_ID = 3, -1


def ask(client: KafkaAdminClient, request: Any, node: int | None = None) -> Any:  # noqa: ANN401 - the library has no types
    return client._manager.run(client._manager.send, request, node)


def test_the_page_says_which_versions_each_offers(brokers: MakerBrokers) -> None:
    (row,) = re.findall(rf"^\| `{re.escape(brokers.preset)}` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    with admin(brokers.kafka.bootstrap_servers) as client:
        offered = client._manager.broker_version_data.api_versions

    ranges = [f"{oldest} to {newest}" for oldest, newest in (offered[key] for key in REQUESTS.values())]
    assert row.split(" | ")[: len(ranges)] == ranges


def test_franz_gos_client_tells_the_lag(brokers: MakerBrokers) -> None:
    topic = group = "lag-of-the-other-client"
    create_topic(brokers.kafka, topic, partitions=2)
    produce(brokers.kafka, topic, 10, partition=0)
    commit(brokers.kafka, group, {(topic, 0): 4, (topic, 1): 0})

    assert brokers.lags(group) == {group: {(topic, 0): Described(4, 10, 6), (topic, 1): Described(0, 0, 0)}}


def test_a_group_that_does_not_exist_has_no_commits_and_no_error(brokers: MakerBrokers) -> None:
    """As on every Kafka; kfake by itself refuses to answer for it."""
    request = OffsetFetchRequest(group_id="never-seen", topics=None, min_version=5, max_version=7)
    with admin(brokers.kafka.bootstrap_servers) as client:
        answers = [ask(client, request, node) for node in range(len(brokers.ports))]

    errors = sorted(answer.error_code for answer in answers)
    assert errors == [0] + [NotCoordinatorError.errno] * (len(brokers.ports) - 1)
    assert not any(answer.topics for answer in answers)


def test_a_broker_is_away_until_it_is_started(brokers: MakerBrokers) -> None:
    last = len(brokers.ports) - 1
    address = ("127.0.0.1", brokers.ports[last])
    with socket.create_connection(address) as connection:
        brokers.stop(last)
        assert is_ended(connection)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
    brokers.start(last)
    socket.create_connection(address).close()


def is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:  # it had not been accepted yet
        return True


def test_a_throttled_client_is_told_and_its_connection_muted(brokers: MakerBrokers) -> None:
    """At the level of the socket, as client libraries wait by themselves."""
    with socket.create_connection(("127.0.0.1", brokers.ports[0])) as connection, connection.makefile("rwb") as stream:
        brokers.throttle(300)
        try:
            begun = time.monotonic()
            for correlation in (1, 2):
                body = struct.pack(">hhihi?", METADATA, 5, correlation, NO_CLIENT_ID, 0, False)
                stream.write(struct.pack(">i", len(body)) + body)
            stream.flush()
            answers = []
            for _ in range(2):
                (size,) = struct.unpack(">i", stream.read(4))
                answers.append(struct.unpack(">ii", stream.read(size)[:8]))
            waited = time.monotonic() - begun
        finally:
            brokers.throttle(0)

    assert answers == [(1, 300), (2, 300)]
    assert waited >= 0.3


def test_only_event_hubs_lists_no_group_that_has_stopped(brokers: MakerBrokers) -> None:
    topic = group = "stopped"
    create_topic(brokers.kafka, topic)

    def is_listed() -> bool:
        with admin(brokers.kafka.bootstrap_servers) as client:
            return any(each["group_id"] == group for each in client.list_groups())

    with member(brokers.kafka, group, topic) as consumer:
        assert is_listed()
        commit_as_member(consumer, topic, 0)
    wait_until(lambda: state_of(brokers.kafka, group) == "Empty", "the group to be Empty", WAIT_SECONDS)

    assert is_listed() == (brokers.preset != "event-hubs")
    assert brokers.lags(group)[group][topic, 0].committed == 0


@pytest.mark.parametrize("preset", ["agents", "one-address"])
def test_agents_name_other_leaders_each_time_and_all_of_them_answer(preset: str, rig_home: Path) -> None:
    with maker_brokers(rig_home, preset) as agents:
        create_topic(agents.kafka, "led-by-all", partitions=20)
        produce(agents.kafka, "led-by-all", 20)
        with admin(agents.kafka.bootstrap_servers) as client:
            request = MetadataRequest(topics=None, min_version=9, max_version=11)
            first, second = ask(client, request), ask(client, request)

        leaders = [[p.leader_id for p in answer.topics[0].partitions] for answer in (first, second)]
        assert leaders[0] != leaders[1]
        addresses = {(broker.host, broker.port) for broker in first.brokers}
        assert len(first.brokers) == 3
        assert len(addresses) == (3 if preset == "agents" else 1)
