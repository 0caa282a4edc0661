"""A real Kafka on 127.0.0.1: one or more processes, each broker and controller at once; before 3.3 with a ZooKeeper.

In: an empty folder for settings, data and logs. Out: a `Kafka` whose brokers can be frozen, killed and started again.
"""

import contextlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka.errors import KafkaError

from local.kafka.admin import admin, living_brokers
from local.kafka.java import java
from local.kafka.metadata import (
    NO_CONTROLLER,
    OWN_LISTENERS,
    STAYS_REGISTERED,
    format_joining,
    format_new,
    identity,
    metadata_store,
)
from local.kafka.security import (
    SECURE_LISTENERS,
    Login,
    Security,
    jwks_url,
    listener_properties,
    make_security,
)
from local.kafka.settings import (
    CONTROLLER_LISTENER,
    FAR_CONTROLLER_LISTENER,
    LOGGING,
    LOGGING_BEFORE_4,
    OPEN_LISTENER,
    OUTSIDE_LISTENER,
    settings_file,
    small_settings,
)
from local.processes import Process, RigError, free_port, is_listening, start, wait_until

START_TIMEOUT_SECONDS = 180.0  # a quiet machine needs 3 to 5 s; another one may be compiling meanwhile
STOP_SECONDS = 60.0  # a quiet machine needs 1 to 3 s


CERTIFICATES = "certificates"
"""The folder in a cluster's home."""


class Broker:
    """One broker; it keeps its ports and its data from one start to the next."""

    def __init__(self, node_id: int, ports: Mapping[str, int], log: Path, command: Sequence[str]) -> None:
        self.node_id = node_id
        self.ports = ports
        """The port of each listener by its name."""
        self._log = log
        self._command = command
        self._process: Process | None = None
        self._is_wanted = False

    @property
    def port(self) -> int:
        """Returns the port of the listener without TLS and login."""
        return self.ports[OPEN_LISTENER]

    @property
    def process(self) -> Process:
        assert self._process is not None, f"broker {self.node_id} was never launched"
        return self._process

    def launch(self) -> None:
        """Starts the process and returns at once."""
        self._process = start(f"broker {self.node_id}", self._command, log=self._log)
        self._is_wanted = True

    def start(self) -> None:
        """Starts the process and waits until the controller counts this broker as alive."""
        self.launch()
        self.wait_until_ready({self.node_id})

    def wait_until_ready(self, node_ids: set[int]) -> None:
        """Waits until this broker answers and knows all of `node_ids` as alive; raises RigError after a timeout."""
        wait_until(
            lambda: is_listening(self.port) and node_ids <= self._living(),
            f"broker {self.node_id} to know brokers {sorted(node_ids)} as alive",
            START_TIMEOUT_SECONDS,
            alive=[self.process],
        )

    def freeze(self) -> None:
        """Stops the process with SIGSTOP: connections stay open and new ones are accepted, but nothing is answered."""
        self.process.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send(signal.SIGCONT)

    def kill(self) -> None:
        """Kills it: the others notice after SESSION_TIMEOUT_SECONDS."""
        self._is_wanted = False
        self.process.stop(grace_seconds=0)

    def stop(self) -> None:
        """Stops it as an operator would: it first hands over its leaderships."""
        self._is_wanted = False
        self.process.stop(grace_seconds=STOP_SECONDS)

    def confirm(self) -> None:
        """Raises RigError if it ended although nothing here stopped it."""
        if self._is_wanted and not self.process.is_running():
            status, tail = self.process.status, self.process.log_tail()
            raise RigError(f"{self.process.name} ended by itself with status {status}; the end of its log:\n{tail}")

    def _living(self) -> set[int]:
        """Returns the node ids that this broker knows as alive; none while it does not answer."""
        try:
            with admin(f"127.0.0.1:{self.port}", bootstrap_timeout_ms=5_000) as client:
                return set(living_brokers(client))
        except KafkaError:
            return set()


@dataclass(frozen=True, slots=True)
class Kafka:
    """A running cluster."""

    bootstrap_servers: str
    """The listeners without TLS and login, comma-separated."""
    brokers: tuple[Broker, ...]
    security: Security | None
    """Set if `kafka` was given a login."""
    outside_port: int | None = None
    """The advertised port of the last broker's outside listener; a forwarder has to listen there."""

    @property
    def outside_servers(self) -> str:
        """Returns the outside listeners of all brokers but the last."""
        return ",".join(f"127.0.0.1:{broker.ports[OUTSIDE_LISTENER]}" for broker in self.brokers[:-1])


@contextlib.contextmanager
def kafka(
    home: Path,
    *,
    brokers: int = 1,
    security: Login | None = None,
    properties: Mapping[str, str] | None = None,
    heap_megabytes: int = 256,
    has_outside: bool = False,
    controller_doors: Mapping[int, int] | None = None,
    writes_archive: Path | None = None,
) -> Iterator[Kafka]:
    """Runs a cluster of this number of brokers (ids from 1) and ends it with the block.

    `security` adds listeners for that login with and without TLS, for client certificates and for tokens, all of a
    separate CA; `has_outside` adds a listener for clients that reach the last broker through a forwarder;
    `controller_doors` adds one to each controller for brokers that reach it at these ports, by node id. `properties`
    are applied last and may replace any of the small settings. `writes_archive` is that of `java`. Raises RigError if
    the cluster does not start, and at the end of the block if a broker ended unexpectedly; the brokers' logs are in
    `home`."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "log4j2.properties").write_text(LOGGING)
    (home / "log4j.properties").write_text(LOGGING_BEFORE_4)
    ports = {
        node_id: _ports(is_secure=security is not None, has_outside=has_outside) for node_id in range(1, brokers + 1)
    }
    for node_id in controller_doors or ():
        ports[node_id][FAR_CONTROLLER_LISTENER] = free_port()
    secure = None if security is None else _security(home, security, ports)
    secure_properties = {} if secure is None else listener_properties(secure)
    outside_port = free_port() if has_outside else None
    advertised = {node_id: dict(own) for node_id, own in ports.items()}
    if outside_port is not None:
        advertised[brokers][OUTSIDE_LISTENER] = outside_port
    for node_id, port in (controller_doors or {}).items():
        advertised[node_id][FAR_CONTROLLER_LISTENER] = port
    with contextlib.ExitStack() as stack:
        metadata = stack.enter_context(metadata_store(home, ports, security, home / "log4j.properties"))
        common = {**small_settings(brokers), **metadata, **secure_properties, **(properties or {})}
        members = tuple(
            _broker(home, node_id, ports[node_id], advertised[node_id], common, heap_megabytes, writes_archive)
            for node_id in ports
        )
        format_new(home, list(ports), security)
        for broker in members:
            broker.launch()
            stack.callback(broker.kill)  # the data is not needed, and a last voter cannot hand over anyway
        for broker in members:
            broker.wait_until_ready(set(ports))
        yield Kafka(_servers(ports, OPEN_LISTENER), members, secure, outside_port)
        for broker in members:
            broker.confirm()


@contextlib.contextmanager
def joining_broker(
    home: Path,
    node_id: int,
    advertised_port: int,
    *,
    controller_doors: Mapping[int, int] | None = None,
    heap_megabytes: int = 256,
) -> Iterator[Broker]:
    """Runs one more broker of the cluster in `home`, which is no controller, and ends it with the block.

    It advertises that port of 127.0.0.1 to clients and brokers. `controller_doors` are those of `kafka`."""
    settings = dict(line.split("=", 1) for line in settings_file(home, 1).read_text().splitlines())
    advertised = [address.split(":", 1)[0] for address in settings["advertised.listeners"].split(",")]
    listeners = [name for name in advertised if name != FAR_CONTROLLER_LISTENER]
    ports = {listener: free_port() for listener in listeners}
    own = {
        **identity(node_id),
        **NO_CONTROLLER,
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{advertised_port}" for name in ports),
        "log.dirs": str(home / f"data-{node_id}"),
    }
    if controller_doors is not None:
        doors = (f"{node}@127.0.0.1:{port}" for node, port in controller_doors.items())
        own["controller.quorum.voters"] = ",".join(doors)
        own["controller.listener.names"] = FAR_CONTROLLER_LISTENER
    settings_file(home, node_id).write_text("".join(f"{key}={value}\n" for key, value in {**settings, **own}.items()))
    format_joining(home, node_id)
    broker = Broker(node_id, ports, home / f"broker-{node_id}.log", _command(home, node_id, heap_megabytes))
    broker.launch()
    try:
        yield broker
    finally:
        if STAYS_REGISTERED:
            broker.stop()
        broker.kill()


def _ports(*, is_secure: bool, has_outside: bool) -> dict[str, int]:
    secure = tuple(SECURE_LISTENERS) if is_secure else ()
    outside = (OUTSIDE_LISTENER,) if has_outside else ()
    return {listener: free_port() for listener in (OPEN_LISTENER, *OWN_LISTENERS, *secure, *outside)}


def _security(home: Path, login: Login, ports: Mapping[int, Mapping[str, int]]) -> Security:
    return make_security(home / CERTIFICATES, login, {name: _servers(ports, name) for name in SECURE_LISTENERS})


def _servers(ports: Mapping[int, Mapping[str, int]], listener: str) -> str:
    return ",".join(f"127.0.0.1:{of_node[listener]}" for of_node in ports.values())


def _broker(
    home: Path,
    node_id: int,
    ports: Mapping[str, int],
    advertised: Mapping[str, int],
    common: Mapping[str, str],
    heap_megabytes: int,
    writes_archive: Path | None,
) -> Broker:
    """Writes the broker's settings file and returns the broker, which is not started yet."""
    own = {
        **identity(node_id),
        "listeners": _addresses(ports),
        "advertised.listeners": _addresses(
            {name: at for name, at in advertised.items() if name != CONTROLLER_LISTENER}
        ),
        "log.dirs": str(home / f"data-{node_id}"),
    }
    settings = settings_file(home, node_id)
    settings.write_text("".join(f"{key}={value}\n" for key, value in {**own, **common}.items()))
    command = _command(home, node_id, heap_megabytes, writes_archive)
    return Broker(node_id, ports, home / f"broker-{node_id}.log", command)


def _command(home: Path, node_id: int, heap_megabytes: int, writes_archive: Path | None = None) -> list[str]:
    properties = (
        f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{home / 'log4j.properties'}",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks_url(home / CERTIFICATES)}",
    )
    arguments = (*properties, "kafka.Kafka", str(settings_file(home, node_id)))
    return java(*arguments, heap_megabytes=heap_megabytes, writes_archive=writes_archive)


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in ports.items())
