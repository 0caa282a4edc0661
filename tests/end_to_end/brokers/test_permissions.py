"""What an adapter serves whose user may not describe everything: Kafka's own authorizer decides."""

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    UserScramCredentialUpsertion,
)

from adapter.errors import ValueUnavailable
from local.downloads import KAFKA_RELEASE
from local.kafka.admin import admin
from local.kafka.broker import Kafka, joining_broker, kafka
from local.kafka.java import java
from local.kafka.security import MECHANISM, Login
from local.kafka.tools import commit, create_topic, produce
from local.processes import free_port, start
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_scram

ALICE = Login("alice", "wonderland")
PAGE = Path(__file__).parents[3] / "docs" / "kafka-security.md"
# Kafka 3.9 still has it where 3.3 had it.
ACL_COMMAND = f"{'org.apache.kafka.tools' if KAFKA_RELEASE >= (4,) else 'kafka.admin'}.AclCommand"
RULES = [
    {"group": "secret", "topics": ["seen"]},
    {"group": "half-seen", "topics": ["seen", "unseen"]},
    {"group": "misspelt", "topics": ["sene"]},
]


@pytest.fixture(scope="module")
def guarded(rig_home: Path) -> Iterator[Kafka]:
    """A broker that lets alice describe two of three groups and one of two topics; without a login all is allowed."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with kafka(rig_home / "guarded-broker", security=ALICE, properties=properties) as cluster:
        for topic in ("seen", "unseen"):
            create_topic(cluster, topic)
            produce(cluster, topic, 10)
        for group in ("open", "half-seen", "secret"):
            commit(cluster, group, {("seen", 0): 4, ("unseen", 0): 1})
        allow(cluster, ResourceType.GROUP, "open", "half-seen", "misspelt")
        # A topic that may be described, but is not there, is distinguished from one that may not.
        allow(cluster, ResourceType.TOPIC, "seen", "sene")
        yield cluster


@pytest.fixture(scope="module")
def rig(guarded: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """After some cycles as alice, when the broker goes by all of her permissions."""
    password = tmp_path_factory.mktemp("alice") / "password"
    password.write_text(ALICE.password)
    with in_process(guarded, clusters=[as_alice(guarded, password)], rules=RULES) as running:
        running.wait_for(lambda: running.lag("open", "seen") == 6, "what alice may describe")
        running.wait_for(lambda: running.is_unknown(group="misspelt"), "the last of her permissions to count")
        for _ in range(5):
            running.run_full_cycle()
        yield running


@pytest.fixture(scope="module")
def documented(guarded: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs the commands of the page for the users lag and few; returns the file with the password of both."""
    create_topic(guarded, "orders-eu")
    produce(guarded, "orders-eu", 10)
    commit(guarded, "billing-eu", {("orders-eu", 0): 4})
    with admin(guarded.bootstrap_servers) as client:
        users = [UserScramCredentialUpsertion(user, "SCRAM-SHA-512", "rabbit") for user in ("lag", "few")]
        client.alter_user_scram_credentials(users)
    home = tmp_path_factory.mktemp("documented")
    commands = [shlex.split(line) for line in PAGE.read_text().splitlines() if line.startswith("kafka-acls.sh ")]
    with contextlib.ExitStack() as stack:
        processes = []
        for number, (_, _, _, *arguments) in enumerate(commands):
            command = java(ACL_COMMAND, "--bootstrap-server", guarded.bootstrap_servers, *arguments, heap_megabytes=64)
            processes.append(stack.enter_context(start(f"ACL {number}", command, log=home / f"acl-{number}.log")))
        assert [process.wait(120) for process in processes] == [0] * 4, processes[0].log_tail()
    (home / "password").write_text("rabbit")
    return home / "password"


def allow(cluster: Kafka, kind: ResourceType, *names: str) -> None:
    with admin(cluster.bootstrap_servers) as client:
        client.create_acls(
            [
                ACL("User:alice", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
                for name in names
            ]
        )


def as_alice(cluster: Kafka, password: Path, user: str = ALICE.username) -> dict[str, Any]:
    """A cluster of the settings file."""
    assert cluster.security is not None
    security = {
        "protocol": "SASL_SSL",
        "mechanism": MECHANISM,
        "username": user,
        "passwordFile": str(password),
        "caFile": str(cluster.security.ca_file),
    }
    return {"name": "main", "bootstrapServers": [cluster.security.bootstrap_servers], "security": security}


def refusal(rig: InProcess, group: str) -> str:
    error = rig.refusal("lag", group=group)
    assert isinstance(error, ValueUnavailable), error
    return str(error)


def test_what_may_be_described_is_served(rig: InProcess) -> None:
    assert rig.lag("open", "seen") == 6


def test_a_group_that_may_not_be_described_is_refused_with_the_missing_right(rig: InProcess) -> None:
    """It is asked for because a rule names it: no broker lists it to alice."""
    assert "the adapter may not describe group secret (ACL Describe on the group is missing)" in refusal(rig, "secret")


def test_a_group_with_a_topic_that_may_not_be_described_is_refused_with_the_missing_right(rig: InProcess) -> None:
    """Its commits for the topic are silently left out: the lag of the others alone would be too low."""
    assert "the adapter may not describe topic unseen (ACL Describe on the topic is missing)" in refusal(
        rig, "half-seen"
    )


def test_the_other_topics_of_a_group_are_served_where_one_may_not_be_described(rig: InProcess) -> None:
    assert rig.lag("half-seen", "seen") == 6


def test_a_topic_that_does_not_exist_is_still_told_as_such(rig: InProcess) -> None:
    error = rig.refusal("lag", group="misspelt")

    assert error is not None
    assert not isinstance(error, ValueUnavailable)
    assert "sene" in str(error)


@needs_scram
def test_the_least_acls_of_the_page_let_everything_be_read(guarded: Kafka, documented: Path) -> None:
    with in_process(guarded, clusters=[as_alice(guarded, documented, "lag")], rules=RULES[:2]) as running:
        assert running.run_once().word == "complete"
        assert [running.lag(group, "seen") for group in ("open", "half-seen", "secret")] == [6, 6, 6]
        assert running.lag("billing-eu", "orders-eu") == 6


@needs_scram
def test_the_acls_by_prefix_let_these_groups_be_read_and_no_other(guarded: Kafka, documented: Path) -> None:
    rules = [{"group": "secret", "topics": ["orders-eu"]}]
    with in_process(guarded, clusters=[as_alice(guarded, documented, "few")], rules=rules) as running:
        running.run_once()
        assert running.lag("billing-eu") == 6
        assert "may not describe group secret" in refusal(running, "secret")


def test_without_the_offsets_topic_in_sight_a_silent_broker_matters_to_every_unknown_group(
    guarded: Kafka, rig_home: Path, tmp_path: Path
) -> None:
    """Alice may not describe it, so nobody can say which groups the second broker may know."""
    password = tmp_path / "password"
    password.write_text(ALICE.password)
    with joining_broker(rig_home / "guarded-broker", 2, free_port()):
        guarded.brokers[0].wait_until_ready({1, 2})
        with in_process(guarded, clusters=[as_alice(guarded, password)], rules=RULES) as running:
            running.wait_for_lag(6, "open", "seen")
            for asked in ({"group": "nobody"}, {"topic": "seen"}):
                refused = running.refusal("lag", **asked)
                assert isinstance(refused, ValueUnavailable)
                assert "broker 2 at 127.0.0.1" in str(refused)
            assert running.lag("half-seen", "seen") == 6
