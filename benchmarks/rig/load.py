"""A load generator in a separate process: HTTP/1.1 over TLS on kept connections, one request at a time on each.

`python -m benchmarks.rig.load PLAN RESULT`, both JSON files. It does little per request, so that the server is what
is measured. Any status but 200 ends the run."""

import asyncio
import dataclasses
import itertools
import json
import os
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvloop

from benchmarks.measuring.samples import in_turn, percentile
from local.processes import RigError, start

OK = b"HTTP/1.1 200"
HEAD_END = b"\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
SPARE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """A local server and its paths, which are requested in turn."""

    port: int
    server_name: str
    authority: str
    """File with the CA of its certificate."""
    paths: tuple[str, ...]
    warm_up_path: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Slices of load: one per target in each round, in turn; connections stay open from the warm-up to the end."""

    targets: dict[str, Target]
    connections: int
    rounds: int
    slice_seconds: float
    warm_up_seconds: float
    slice_requests: int = 200_000
    """A slice ends at its time or at this number of requests, whichever comes first."""
    core: int | None = None
    """The core of the load generator; None for any."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The result of one target in one round; times in seconds."""

    requests: int
    seconds: float
    p50: float
    p99: float
    client_cpu_seconds: float

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds


def run(plan: Plan, folder: Path) -> dict[str, list[Slice]]:
    """Runs the plan in a separate process, with its files in `folder`; raises RigError if a request was refused."""
    plan_file, result_file, log = (folder / name for name in ("plan.json", "result.json", "load.log"))
    plan_file.write_text(json.dumps(dataclasses.asdict(plan)))
    result_file.unlink(missing_ok=True)
    slices = plan.rounds * len(plan.targets)
    allowed = slices * plan.slice_seconds + len(plan.targets) * plan.warm_up_seconds + SPARE_SECONDS
    with start(
        "load", [sys.executable, "-m", "benchmarks.rig.load", str(plan_file), str(result_file)], log=log
    ) as process:
        status = process.wait(allowed)
    if status != 0:
        raise RigError(f"the load generator ended with status {status}:\n{process.log_tail()}")
    found = json.loads(result_file.read_text())
    return {name: [Slice(**each) for each in taken] for name, taken in found.items()}


def plan_of(document: dict[str, Any]) -> Plan:
    """Returns a plan from the JSON of `dataclasses.asdict`."""
    targets = {name: Target(**{**each, "paths": tuple(each["paths"])}) for name, each in document["targets"].items()}
    return Plan(**{**document, "targets": targets})


def is_whole(answer: bytes | bytearray) -> bool:
    """Whether an HTTP/1.1 response with a length, or in chunks, has arrived completely."""
    head_end = answer.find(HEAD_END)
    if head_end < 0:
        return False
    head = answer[:head_end].lower()
    _, found, rest = head.partition(b"content-length:")
    if found:
        return len(answer) >= head_end + len(HEAD_END) + int(rest.partition(b"\r\n")[0])
    return answer.endswith(LAST_CHUNK)


def request(target: Target, path: str) -> bytes:
    """Returns a whole request with client-go's headers."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {target.server_name}:{target.port}",
        "User-Agent: benchmarks",
        "Accept: application/json, */*",
        *([f"Authorization: Bearer {target.token}"] if target.token else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


class _Connection(asyncio.Protocol):
    """Sends a request when the previous answer has arrived."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._requests: Iterator[bytes] = iter(())
        self._latencies: list[float] = []
        self._sent = 0.0
        self._end = 0.0
        self._done: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport over TLS is none by inheritance.
        self._transport = cast(asyncio.Transport, transport)

    async def ask(self, requests: Iterator[bytes], end: float, latencies: list[float]) -> None:
        """Sends requests until there are no more, or until this time (perf_counter)."""
        self._done = asyncio.get_running_loop().create_future()
        self._requests, self._end, self._latencies = requests, end, latencies
        self._send_next()
        await self._done

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if not is_whole(received):
            return
        now = time.perf_counter()
        self._latencies.append(now - self._sent)
        if not received.startswith(OK):
            self._fail(f"not 200: {bytes(received[:2000])!r}")
        received.clear()
        if now < self._end:
            self._send_next()
        else:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"the server closed the connection: {error}")

    def _send_next(self) -> None:
        content = next(self._requests, None)
        if content is None:
            self._finish()
            return
        assert self._transport is not None
        self._sent = time.perf_counter()
        self._transport.write(content)

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _fail(self, why: str) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(RigError(why))


class _Client:
    """One target's connections."""

    def __init__(self, target: Target, connections: list[_Connection]) -> None:
        self._target = target
        self._connections = connections
        self._warm_up = request(target, target.warm_up_path)
        self._requests = [request(target, path) for path in target.paths]

    async def warm_up(self, seconds: float) -> None:
        await self._ask(itertools.repeat(self._warm_up), seconds)

    async def slice(self, seconds: float, most: int) -> Slice:
        began, cpu = time.perf_counter(), time.process_time()
        latencies = await self._ask(itertools.islice(itertools.cycle(self._requests), most), seconds)
        took, used = time.perf_counter() - began, time.process_time() - cpu
        return Slice(len(latencies), took, percentile(latencies, 50), percentile(latencies, 99), used)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    async def _ask(self, requests: Iterator[bytes], seconds: float) -> list[float]:
        """All connections share one iterator, so that each request is sent once."""
        latencies: list[float] = []
        end = time.perf_counter() + seconds
        await asyncio.gather(*(connection.ask(requests, end, latencies) for connection in self._connections))
        return latencies


async def _connect(target: Target, connections: int) -> _Client:
    context = ssl.create_default_context(cafile=target.authority)
    context.set_alpn_protocols(["http/1.1"])
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            _Connection, "127.0.0.1", target.port, ssl=context, server_hostname=target.server_name
        )
        for _ in range(connections)
    ]
    return _Client(target, [protocol for _, protocol in made])


async def _run(plan: Plan) -> dict[str, list[Slice]]:
    clients = {name: await _connect(target, plan.connections) for name, target in plan.targets.items()}
    for client in clients.values():
        await client.warm_up(plan.warm_up_seconds)
    taken: dict[str, list[Slice]] = {name: [] for name in clients}
    for number in range(plan.rounds):
        for name in in_turn(clients, number):
            taken[name].append(await clients[name].slice(plan.slice_seconds, plan.slice_requests))
    for client in clients.values():
        client.close()
    return taken


def main(plan_file: str, result_file: str) -> None:
    plan = plan_of(json.loads(Path(plan_file).read_text()))
    if plan.core is not None:
        os.sched_setaffinity(0, {plan.core})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        taken = runner.run(_run(plan))
    as_json = {name: [dataclasses.asdict(each) for each in slices] for name, slices in taken.items()}
    Path(result_file).write_text(json.dumps(as_json))


if __name__ == "__main__":
    main(*sys.argv[1:])
