"""Fake brokers on loopback, one process per node, that send stored responses.

`python -m benchmarks.rig.stored_brokers --cluster FILE --node N --all-topics FILE`. They use little CPU, so that a
client of 100,000 partitions can be measured on the same machine."""

import argparse
import asyncio
import contextlib
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import cast

import uvloop

from benchmarks.rig.stored_answers import StoredAnswers, metadata_frame
from benchmarks.rig.stored_cluster import Refusal, StoredCluster, StoredGroup, cluster_in
from local.processes import Process, free_port, start, wait_until

START_TIMEOUT_SECONDS = 120.0
_INT32 = Struct(">i")


@dataclass(frozen=True, slots=True)
class StoredBrokers:
    """The running nodes, with node ids from 1."""

    cluster: StoredCluster
    processes: tuple[Process, ...]

    def freeze(self, node: int) -> None:
        """Connections stay open and new ones are accepted, but nothing is answered."""
        self.processes[node - 1].send(signal.SIGSTOP)

    def thaw(self, node: int) -> None:
        self.processes[node - 1].send(signal.SIGCONT)


@contextlib.contextmanager
def stored_brokers(
    home: Path, groups: tuple[StoredGroup, ...], nodes: int, refusal: Refusal | None = None
) -> Iterator[StoredBrokers]:
    """Runs this number of nodes, which share these groups and topics; ends them with the block."""
    home.mkdir(parents=True, exist_ok=True)
    cluster = StoredCluster(groups, tuple(free_port() for _ in range(nodes)), time.monotonic(), refusal)
    cluster_file, all_topics = home / "cluster.json", home / "all-topics"
    cluster_file.write_text(cluster.to_json())
    all_topics.write_bytes(metadata_frame(cluster))
    with contextlib.ExitStack() as stack:
        processes = []
        for node in range(1, nodes + 1):
            flags = {"cluster": cluster_file, "all-topics": all_topics, "node": node}
            command = [sys.executable, "-m", "benchmarks.rig.stored_brokers", *(f"--{k}={v}" for k, v in flags.items())]
            node_started = start(f"stored broker {node}", command, log=home / f"broker-{node}.log")
            processes.append(stack.enter_context(node_started))
        wait_until(
            lambda: all(map(_is_listening, cluster.ports)), "stored brokers", START_TIMEOUT_SECONDS, alive=processes
        )
        yield StoredBrokers(cluster, tuple(processes))


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Connection(asyncio.Protocol):
    """Receives frames and sends frames, in order."""

    def __init__(self, answers: StoredAnswers) -> None:
        self._answers = answers
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is none by inheritance.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        while len(received) >= 4 and len(received) >= (end := 4 + _INT32.unpack_from(received)[0]):
            request = bytes(received[:end])
            del received[:end]
            assert self._transport is not None
            self._transport.write(self._answers.answer(request))


async def _serve(answers: StoredAnswers, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(answers), "127.0.0.1", port)
    await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", type=Path, required=True)
    parser.add_argument("--all-topics", type=Path, required=True)
    parser.add_argument("--node", type=int, required=True)
    flags = parser.parse_args(arguments)
    cluster = cluster_in(flags.cluster)
    answers = StoredAnswers(cluster, flags.node, flags.all_topics.read_bytes())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(answers, cluster.ports[flags.node - 1]))


if __name__ == "__main__":
    main()
