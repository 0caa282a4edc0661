"""Where a cluster keeps its metadata: in its own controllers, or before 3.3 in a ZooKeeper.

Nothing else knows which. Brokers with controllers need a formatted data folder; ZooKeeper needs a process."""

import base64
import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from local.kafka.java import java
from local.kafka.security import Login, scram_arguments, scram_credentials
from local.kafka.settings import CONTROLLER_LISTENER, controller_settings, settings_file
from local.kafka.zookeeper import IS_NEEDED, add_scram_user, zookeeper
from local.processes import RigError, start

FORMAT_SECONDS = 180.0

OWN_LISTENERS = () if IS_NEEDED else (CONTROLLER_LISTENER,)
"""What every broker listens on beside the listeners for clients."""
NO_CONTROLLER: Mapping[str, str] = {} if IS_NEEDED else {"process.roles": "broker"}
"""The properties of a broker that is no controller."""

STAYS_REGISTERED = IS_NEEDED
"""A broker that was killed cannot be started again before its session in ZooKeeper has timed out."""


def identity(node_id: int) -> dict[str, str]:
    return {"broker.id" if IS_NEEDED else "node.id": str(node_id)}


@contextlib.contextmanager
def metadata_store(
    home: Path, ports: Mapping[int, Mapping[str, int]], login: Login | None, log_settings: Path
) -> Iterator[dict[str, str]]:
    """Yields the properties that lead brokers to their metadata; `ports` by node id and listener.

    A ZooKeeper runs while the block does, logs by that file of log4j 1, and knows the user of `login`."""
    if not IS_NEEDED:
        yield controller_settings(ports)
        return
    with zookeeper(home, log_settings) as address:
        if login is not None:
            add_scram_user(home, address, login.username, scram_credentials(login))
        yield {"zookeeper.connect": address}


def format_new(home: Path, node_ids: Sequence[int], login: Login | None) -> None:
    """Prepares the data folders of a new cluster that knows the user of `login`. Raises RigError."""
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    _format(home, node_ids, cluster_id, [] if login is None else scram_arguments(login))


def format_joining(home: Path, node_id: int) -> None:
    """Prepares the data folder of one more broker of the cluster in `home`, unless it has joined before."""
    if not IS_NEEDED:
        metadata = (home / "data-1" / "meta.properties").read_text().splitlines()
        (cluster_id,) = (line.removeprefix("cluster.id=") for line in metadata if line.startswith("cluster.id="))
        _format(home, [node_id], cluster_id, ["--ignore-formatted"])


def _format(home: Path, node_ids: Sequence[int], cluster_id: str, more: Sequence[str]) -> None:
    """Prepares every broker's data folder for its first start, all concurrently."""
    if IS_NEEDED:
        return
    with contextlib.ExitStack() as stack:
        processes = []
        for node_id in node_ids:
            # The id goes with =, as it may begin with a dash.
            arguments = ("format", f"--cluster-id={cluster_id}", f"--config={settings_file(home, node_id)}", *more)
            command = java("kafka.tools.StorageTool", *arguments, heap_megabytes=128)
            process = start(f"formatting for broker {node_id}", command, log=home / f"format-{node_id}.log")
            processes.append(stack.enter_context(process))
        for process in processes:
            if process.wait(FORMAT_SECONDS) != 0:
                raise RigError(f"{process.name} ended with status {process.status}:\n{process.log_tail()}")
