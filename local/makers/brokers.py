"""A cluster of kfake brokers on 127.0.0.1 in one process, limited to what a maker's brokers offer.

Its brokers can be stopped and started again, its leaders and coordinators moved, and its clients throttled."""

import contextlib
import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local.downloads import makers_binary
from local.kafka.broker import Kafka
from local.kafka.tools import Described
from local.processes import RigError, free_port, is_listening, scratch, start, wait_until

START_TIMEOUT_SECONDS = 180.0
ANSWER_SECONDS = 30.0
NODES = 3
ONE_NODE = {"event-hubs"}
"""Presets that show a single broker, however many work behind its address."""


@dataclass(frozen=True, slots=True)
class MakerBrokers:
    """A running cluster; node ids count from 0."""

    preset: str
    kafka: Kafka
    """For the tools and tests of Kafka, which need no more than the addresses."""
    ports: tuple[int, ...]
    control_port: int

    def stop(self, node: int) -> None:
        """Closes a broker's port and its connections; its data stay."""
        self._command("stop", node=node)

    def start(self, node: int) -> None:
        self._command("start", node=node)

    def offer(self, node: int, preset: str) -> None:
        """Limits what one broker offers to those who connect from now on; everybody reconnects."""
        self.stop(node)
        self._command("offer", node=node, preset=preset)
        self.start(node)

    def move(self) -> None:
        """Gives every partition a leader and every group a coordinator that are chosen anew."""
        self._command("move")

    def throttle(self, milliseconds: int) -> None:
        """Lets every response ask for that wait, and mutes its connection meanwhile; 0 ends it."""
        self._command("throttle", milliseconds=milliseconds)

    def lags(self, *groups: str) -> dict[str, dict[tuple[str, int], Described]]:
        """Returns group -> (topic, partition) -> what franz-go's admin client says. Raises RigError."""
        command = [str(makers_binary()), "lag", "--bootstrap-servers", self.kafka.bootstrap_servers, *groups]
        with scratch("lags") as folder, start("franz-go's client", command, log=folder / "output") as process:
            status = process.wait(ANSWER_SECONDS)
            output = process.log.read_text()
        if status != 0:
            raise RigError(f"franz-go's client ended with status {status}:\n{output}")
        found: dict[str, dict[tuple[str, int], Described]] = {group: {} for group in groups}
        for row in json.loads(output):
            described = Described(row["committed"], row["logEnd"], row["lag"])
            found[row["group"]][row["topic"], row["partition"]] = described
        return found

    def _command(self, name: str, **values: int | str) -> None:
        """Raises urllib.error.HTTPError if it is refused."""
        body = urllib.parse.urlencode(values).encode()
        url = f"http://127.0.0.1:{self.control_port}/{name}"
        with urllib.request.urlopen(url, data=body, timeout=ANSWER_SECONDS):
            pass


@contextlib.contextmanager
def maker_brokers(home: Path, preset: str) -> Iterator[MakerBrokers]:
    """Runs the cluster and ends it with the block. Raises RigError if it does not start."""
    ports = tuple(free_port() for _ in range(1 if preset in ONE_NODE else NODES))
    control_port = free_port()
    arguments = ["--preset", preset, "--ports", ",".join(map(str, ports)), "--control-port", str(control_port)]
    command = [str(makers_binary()), "serve", *arguments]
    with start(preset, command, log=home / f"{preset}.log") as process:
        for port in (*ports, control_port):
            wait_until(
                lambda port=port: is_listening(port),  # type: ignore[misc]
                f"{preset} to listen",
                START_TIMEOUT_SECONDS,
                alive=[process],
            )
        servers = ",".join(f"127.0.0.1:{port}" for port in ports)
        yield MakerBrokers(preset, Kafka(servers, (), None), ports, control_port)
