"""A real broker with Kafka's own authorizer, and users with the rights that docs/kafka-security.md gives them."""

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialUpsertion,
)

from local.downloads import KAFKA_RELEASE
from local.kafka import zookeeper
from local.kafka.admin import admin
from local.kafka.broker import Kafka, kafka
from local.kafka.java import java
from local.kafka.security import MECHANISM, Login
from local.kafka.tools import commit, create_topic, produce
from local.processes import start, wait_until

ALICE = Login("alice", "wonderland")
DOCUMENTED_PASSWORD = "rabbit"
WAIT_SECONDS = 120.0
ALL_ACLS = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)
PAGE = Path(__file__).parents[3] / "docs" / "kafka-security.md"
# Kafka 3.9 still has it where 3.3 had it.
ACL_COMMAND = f"{'org.apache.kafka.tools' if KAFKA_RELEASE >= (4,) else 'kafka.admin'}.AclCommand"

AUTHORIZER = (
    "kafka.security.authorizer.AclAuthorizer"
    if zookeeper.IS_NEEDED
    else "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
)


@contextlib.contextmanager
def guarded_kafka(home: Path) -> Iterator[Kafka]:
    """A broker that lets alice describe two of three groups and one of two topics; without a login all is allowed."""
    properties = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    with kafka(home, security=ALICE, properties=properties) as cluster:
        for topic in ("seen", "unseen"):
            create_topic(cluster, topic)
            produce(cluster, topic, 10)
        for group in ("open", "half-seen", "secret"):
            commit(cluster, group, {("seen", 0): 4, ("unseen", 0): 1})
        _allow(cluster, ResourceType.GROUP, "open", "half-seen", "misspelt")
        # A topic that may be described, but is not there, is distinguished from one that may not.
        _allow(cluster, ResourceType.TOPIC, "seen", "sene")
        yield cluster


def run_commands_of_the_page(cluster: Kafka, logs: Path) -> None:
    """Creates the users lag and few, and gives them the rights of the page by its own commands."""
    with admin(cluster.bootstrap_servers) as client:
        users = [UserScramCredentialUpsertion(user, "SCRAM-SHA-512", DOCUMENTED_PASSWORD) for user in ("lag", "few")]
        client.alter_user_scram_credentials(users)
    commands = [shlex.split(line) for line in PAGE.read_text().splitlines() if line.startswith("kafka-acls.sh ")]
    with contextlib.ExitStack() as stack:
        processes = []
        for number, (_, _, _, *arguments) in enumerate(commands):
            command = java(ACL_COMMAND, "--bootstrap-server", cluster.bootstrap_servers, *arguments, heap_megabytes=64)
            processes.append(stack.enter_context(start(f"ACL {number}", command, log=logs / f"acl-{number}.log")))
        assert [process.wait(120) for process in processes] == [0] * 4, processes[0].log_tail()
    wanted = {(f"User:{user}", kind) for user in ("lag", "few") for kind in (ResourceType.GROUP, ResourceType.TOPIC)}
    wait_until(lambda: wanted <= _in_force(cluster), "the ACLs of the page to be in force", WAIT_SECONDS)


def secured(cluster: Kafka, user: str, password: Path) -> dict[str, Any]:
    """Returns a cluster of the settings file, for the listener with TLS and passwords."""
    assert cluster.security is not None
    security = {
        "protocol": "SASL_SSL",
        "mechanism": MECHANISM,
        "username": user,
        "passwordFile": str(password),
        "caFile": str(cluster.security.ca_file),
    }
    return {"name": "main", "bootstrapServers": [cluster.security.bootstrap_servers], "security": security}


def _in_force(cluster: Kafka) -> set[tuple[str, ResourceType]]:
    """Returns who has rights on what by the broker's authorizer, which learns of an ACL after it was written."""
    with admin(cluster.bootstrap_servers) as client:
        acls, _ = client.describe_acls(ALL_ACLS)
    return {(acl.principal, acl.resource_pattern.resource_type) for acl in acls}


def _allow(cluster: Kafka, kind: ResourceType, *names: str) -> None:
    with admin(cluster.bootstrap_servers) as client:
        client.create_acls(
            [
                ACL("User:alice", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
                for name in names
            ]
        )
