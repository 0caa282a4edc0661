"""A ZooKeeper, in which brokers before 3.3 keep their metadata: one process on 127.0.0.1, from the jars of Kafka."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from local.downloads import KAFKA_RELEASE
from local.kafka.java import java
from local.processes import RigError, free_port, is_listening, start, wait_until

IS_NEEDED = KAFKA_RELEASE < (3, 3)
"""2.8 to 3.2 could do without, but not in production."""
START_TIMEOUT_SECONDS = 120.0
COMMAND_SECONDS = 120.0


@contextlib.contextmanager
def zookeeper(home: Path, log_settings: Path) -> Iterator[str]:
    """Yields the address of a running one and ends it with the block. `log_settings` is a file of log4j 1.

    Raises RigError if it does not start."""
    port = free_port()
    settings = home / "zookeeper.properties"
    properties = {
        "dataDir": str(home / "zookeeper"),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "tickTime": "500",  # a session takes 2 to 20 of them
        "maxSessionTimeout": "30000",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }
    settings.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    arguments = (f"-Dlog4j.configuration=file:{log_settings}", "org.apache.zookeeper.server.ZooKeeperServerMain")
    command = java(*arguments, str(settings), heap_megabytes=64)
    with start("ZooKeeper", command, log=home / "zookeeper.log") as process:
        wait_until(lambda: is_listening(port), "ZooKeeper to listen", START_TIMEOUT_SECONDS, alive=[process])
        yield f"127.0.0.1:{port}"


def add_scram_user(home: Path, zookeeper: str, username: str, credentials: str) -> None:
    """Creates a user before the first broker runs, as Kafka's own command does. Raises RigError."""
    entity = ("--entity-type", "users", "--entity-name", username)
    change = ("--zookeeper", zookeeper, "--alter", "--add-config", credentials, *entity)
    command = java("kafka.admin.ConfigCommand", *change, heap_megabytes=64)
    with start(f"adding the user {username}", command, log=home / "users.log") as process:
        if process.wait(COMMAND_SECONDS) != 0:
            raise RigError(f"{process.name} ended with status {process.status}:\n{process.log_tail()}")
