"""The settings that all brokers of the local Kafka share: small, so that several fit beside everything else."""

from collections.abc import Mapping
from pathlib import Path

from local.kafka import zookeeper
from local.kafka.security import SECURE_LISTENERS

SESSION_TIMEOUT_SECONDS = 6  # Kafka's default is 9
OPEN_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
OUTSIDE_LISTENER = "OUTSIDE"
"""For clients that reach a broker through a forwarder, while brokers reach each other directly."""
FAR_CONTROLLER_LISTENER = "FAR_CONTROLLER"
"""For controllers, whose brokers reach them through a forwarder."""
CONTROLLER_LISTENERS = (CONTROLLER_LISTENER, FAR_CONTROLLER_LISTENER)
PROTOCOLS = {
    OPEN_LISTENER: "PLAINTEXT",
    CONTROLLER_LISTENER: "PLAINTEXT",
    FAR_CONTROLLER_LISTENER: "PLAINTEXT",
    OUTSIDE_LISTENER: "PLAINTEXT",
    **SECURE_LISTENERS,
}
LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
logger.settings.name = org.apache.kafka.common.config.AbstractConfig
logger.settings.level = WARN
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1} - %m%n
"""
LOGGING_BEFORE_4 = """\
log4j.rootLogger=INFO, console
log4j.logger.org.apache.kafka.common.config.AbstractConfig=WARN
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss.SSS} %-5p %c{1} - %m%n
"""


def settings_file(home: Path, node_id: int) -> Path:
    """Returns where the settings of a broker are, in the home of its cluster."""
    return home / f"broker-{node_id}.properties"


def controller_settings(ports: Mapping[int, Mapping[str, int]]) -> dict[str, str]:
    """Returns the properties of brokers that are their own controllers; `ports` by node id and listener."""
    voters = (f"{node_id}@127.0.0.1:{of_node[CONTROLLER_LISTENER]}" for node_id, of_node in ports.items())
    return {
        "process.roles": "broker,controller",
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": ",".join(own for own in next(iter(ports.values())) if own in CONTROLLER_LISTENERS),
    }


def session_settings(seconds: float) -> dict[str, str]:
    """Returns the property that says how long a broker counts as alive without a sign of life.

    A killed broker may not register again before that."""
    name = "zookeeper.session.timeout.ms" if zookeeper.IS_NEEDED else "broker.session.timeout.ms"
    return {name: f"{1000 * seconds:.0f}"}


def small_settings(brokers: int) -> dict[str, str]:
    """Returns property -> value for a cluster of that size."""
    replicas, in_sync = str(min(3, brokers)), str(min(2, brokers))
    return {
        **session_settings(SESSION_TIMEOUT_SECONDS),
        "broker.heartbeat.interval.ms": "1000",
        "inter.broker.listener.name": OPEN_LISTENER,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
        "group.streams.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": "4194304",  # 128 MB by default, taken at once
    }
