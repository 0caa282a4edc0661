"""The local Kafka itself: what other tests build on."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from kafka.errors import KafkaTimeoutError

from local.kafka.admin import admin, living_brokers
from local.kafka.broker import Broker, Kafka
from local.kafka.consumer import BATCH_SECONDS
from local.kafka.security import MECHANISM, SCRAM_MECHANISMS, Security
from local.kafka.tools import commit, create_topic, delete_topic, described, described_groups, produce
from local.processes import RigError, start, wait_until
from tests.support.real.changes import state_of


def test_kafka_itself_sees_what_was_produced_and_committed(one_broker: Kafka) -> None:
    create_topic(one_broker, "orders", partitions=2)
    produce(one_broker, "orders", 10_000)
    produce(one_broker, "orders", 5, partition=1)
    commit(one_broker, "Billing Service/eu", {("orders", 0): 4_000, ("orders", 1): 5_005})

    assert described_groups(one_broker)["Billing Service/eu"] == {
        ("orders", 0): (4_000, 5_000, 1_000),
        ("orders", 1): (5_005, 5_005, 0),
    }


def test_a_group_that_kafka_does_not_know_is_an_error(one_broker: Kafka) -> None:
    with pytest.raises(RigError, match=r"Group nobody not found|'nobody' does not exist"):
        described(one_broker, "nobody")


def test_a_topic_can_be_deleted_and_made_again(one_broker: Kafka) -> None:
    create_topic(one_broker, "short-lived", partitions=2)
    delete_topic(one_broker, "short-lived")
    create_topic(one_broker, "short-lived", partitions=3)

    assert _partitions(one_broker, "short-lived") == {0, 1, 2}


def test_a_frozen_broker_answers_again_once_thawed(one_broker: Kafka) -> None:
    (broker,) = one_broker.brokers
    broker.freeze()
    try:
        with pytest.raises(KafkaTimeoutError), admin(one_broker.bootstrap_servers, bootstrap_timeout_ms=1_000):
            pass
    finally:
        broker.thaw()

    broker.wait_until_ready({broker.node_id})


def test_the_consumer_keeps_its_rate_commits_and_leaves_on_sigterm(one_broker: Kafka, tmp_path: Path) -> None:
    create_topic(one_broker, "paced")
    produce(one_broker, "paced", 200)
    arguments = ["--group", "paced", "--topic", "paced", "--rate", "50"]
    command = [
        sys.executable,
        "-m",
        "local.kafka.consumer",
        "--bootstrap-servers",
        one_broker.bootstrap_servers,
        *arguments,
    ]
    began = time.monotonic()
    with start("consumer", command, log=tmp_path / "consumer.log") as consumer:
        wait_until(lambda: _committed(one_broker, "paced") == 200, "the last commit", 60, alive=[consumer])
        assert time.monotonic() - began > 200 / 50 - 2 * BATCH_SECONDS
        consumer.stop(grace_seconds=60)

        assert consumer.status == 0, consumer.log_tail()
    wait_until(lambda: state_of(one_broker, "paced") == "Empty", "the member to be gone", 60)


def test_a_broker_that_ended_by_itself_is_reported(tmp_path: Path) -> None:
    """Only the bookkeeping: any program will do."""
    broker = Broker(1, {}, tmp_path / "broker.log", ["sh", "-c", "echo out of disk; exit 7"])
    broker.launch()
    broker.process.wait(30)

    with pytest.raises(RigError, match=r"(?s)broker 1 ended by itself with status 7.*out of disk"):
        broker.confirm()


@pytest.mark.parametrize("mechanism", [*SCRAM_MECHANISMS, "PLAIN"])
def test_the_right_password_logs_in(one_broker: Kafka, mechanism: str) -> None:
    security = _security(one_broker)
    with admin(security.bootstrap_servers, **_login(security, mechanism, security.login.password)) as client:
        assert living_brokers(client)


def test_a_wrong_password_does_not_log_in(one_broker: Kafka) -> None:
    """The client may see no more than a closed connection; the broker's log says why it closed it."""
    security = _security(one_broker)
    settings = _login(security, MECHANISM, "looking-glass")

    _wait_for_refusals(
        one_broker,
        lambda: admin(security.bootstrap_servers, **settings, bootstrap_timeout_ms=2_000),
        "invalid credentials" if SCRAM_MECHANISMS else "Invalid username or password",
    )


def test_the_other_secure_listener_asks_for_a_certificate(one_broker: Kafka) -> None:
    security = _security(one_broker)
    servers = security.certificate_bootstrap_servers
    nameless = {"security_protocol": "SSL", "ssl_cafile": str(security.ca_file)}
    pair = {"ssl_certfile": str(security.client.certificate), "ssl_keyfile": str(security.client.key)}
    with admin(servers, **nameless, **pair) as client:
        assert living_brokers(client)

    _wait_for_refusals(
        one_broker, lambda: admin(servers, **nameless, bootstrap_timeout_ms=2_000), "(SSL handshake failed)"
    )


def test_three_brokers_carry_on_without_one_and_take_it_back(three_brokers: Kafka) -> None:
    create_topic(three_brokers, "payments", replication=3)
    produce(three_brokers, "payments", 10)
    leader = _leader(three_brokers, "payments")
    leader.stop()
    produce(three_brokers, "payments", 10)
    commit(three_brokers, "ledger", {("payments", 0): 5})

    wait_until(lambda: _leader(three_brokers, "payments") is not leader, "another leader to be known", 60)
    assert described(three_brokers, "ledger") == {("payments", 0): (5, 20, 15)}

    leader.start()
    leader.wait_until_ready({1, 2, 3})


def _wait_for_refusals(cluster: Kafka, enter: Callable[[], AbstractContextManager[object]], logged: str) -> None:
    """Until the broker says in its log why; no attempt gets in. A slow broker may not have come to say it."""

    def is_refused() -> bool:
        with pytest.raises(KafkaTimeoutError), enter():
            pass
        return logged in cluster.brokers[0].process.log.read_text()

    wait_until(is_refused, f"the broker to log {logged!r}", 60)


def _security(cluster: Kafka) -> Security:
    assert cluster.security is not None
    return cluster.security


def _login(security: Security, mechanism: str, password: str) -> dict[str, str]:
    return {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(security.ca_file),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": security.login.username,
        "sasl_plain_password": password,
    }


def _partitions(cluster: Kafka, topic: str) -> set[int]:
    with admin(cluster.bootstrap_servers) as client:
        return {partition["partition_index"] for partition in client.describe_topics([topic])[0]["partitions"]}


def _leader(cluster: Kafka, topic: str) -> Broker:
    with admin(cluster.bootstrap_servers) as client:
        node_id = client.describe_topics([topic])[0]["partitions"][0]["leader_id"]
    return next(broker for broker in cluster.brokers if broker.node_id == node_id)


def _committed(cluster: Kafka, group: str) -> int:
    """Of all its partitions together; 0 before the first commit."""
    with admin(cluster.bootstrap_servers) as client:
        return sum(at.offset for at in client.list_group_offsets(group)[group].values())
