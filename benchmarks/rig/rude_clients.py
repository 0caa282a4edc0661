"""Clients without credentials that cost a server as much as they can, in a separate process.

`python -m benchmarks.rig.rude_clients PORT PLAIN READY SECONDS`: three connections send expensive requests one after
another, 20 send the head of a request byte by byte, 1,500 send nothing, and 1,000, half of them to the port PLAIN
without TLS, send what a server might keep in memory and read nothing. The file READY is created once all have
connected. The process prints the number of answers to the expensive requests."""

import asyncio
import contextlib
import itertools
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvloop

DEAR, SLOW, IDLE, GREEDY = 3, 20, 1500, 1000
SLOW_BYTE_SECONDS = 0.9
RECONNECT_SECONDS = 0.01
AT_ONCE = 20
LENGTH = 15 * 1024  # below the limit for callers without credentials
LONG = 200_000
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONTEXT.check_hostname = False
CONTEXT.verify_mode = ssl.CERT_NONE
METRIC = b"/apis/external.metrics.k8s.io/v1beta1/namespaces/a/kafka_consumergroup_lag"


def dear_requests() -> Iterator[bytes]:
    """Yields, without end, different requests of 15 KB that are expensive to parse."""
    for number in itertools.count():
        yield _request(METRIC + b"?%d" % number + b"&a" * (LENGTH // 2))
        yield _request(METRIC + b"?%d=" % number + b"%61" * (LENGTH // 3))
        yield _request(b"/livez?%d" % number + b"&a" * (LENGTH // 2))
        yield _request(METRIC, b"Accept: %d" % number + b"a;," * (LENGTH // 3) + b"\r\n")
        yield _request(METRIC, b"Authorization: Bearer made-up-%d\r\n" % number)
        yield _request(METRIC + b"/%d" % number, b"a:b\r\n" * (LENGTH // 5))
        yield _request(b"/%d" % number + b"%61" * (LENGTH // 3))


def greedy_requests() -> Iterator[bytes]:
    """Yields, without end, what makes a server keep much: heads, bodies and trailers without end, and pipelines."""
    for number in itertools.count():
        token = b"Authorization: Bearer greedy-%d\r\n" % number
        chunked = _request(METRIC, token + b"Transfer-Encoding: chunked\r\n")
        yield b"".join(_request(b"/%d" % each, token + b"a: " + b"v" * 56_000 + b"\r\n") for each in range(8))
        yield b"".join(_request(b"/%d" % each, token + b"a: " + b"v" * LENGTH + b"\r\n") for each in range(8))
        yield _request(METRIC, b"a: " + b"v" * 64_000).removesuffix(b"\r\n")
        yield _request(METRIC, b"a: " + b"v" * LENGTH).removesuffix(b"\r\n")
        yield _request(METRIC, b"a:b\r\n" * 190).removesuffix(b"\r\n")
        yield _request(METRIC, token + b"Content-Length: 1000000\r\n") + b"v" * LONG
        yield chunked + b"0\r\n" + b"a: b\r\n" * (LONG // 6)
        yield chunked + b"10;" + b"v" * LONG
        yield _request(METRIC, token + b"Connection: close\r\n") + b"v" * LONG
        yield _request(METRIC, token + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n") + b"v" * LONG
        yield _request(b"/metrics") * 50


def _request(target: bytes, headers: bytes = b"") -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n"


@contextlib.asynccontextmanager
async def _connection(
    port: int, context: ssl.SSLContext | None = CONTEXT
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _ask_dearly(port: int, answers: list[bytes]) -> None:
    requests = dear_requests()
    while True:
        with contextlib.suppress(OSError, EOFError):
            async with _connection(port) as (reader, writer):
                for request in requests:
                    writer.write(request)
                    answers.append(await _answer(reader))
        await asyncio.sleep(RECONNECT_SECONDS)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(int(lengths[0].partition(b":")[2]))
    return head[9:12]


async def _send_slowly(port: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            async with _connection(port) as (_, writer):
                writer.write(b"GET / HTTP/1.1\r\nX: ")
                while not writer.transport.is_closing():
                    writer.write(b"a")
                    await asyncio.sleep(SLOW_BYTE_SECONDS)
        await asyncio.sleep(RECONNECT_SECONDS)


async def _stay_idle(port: int, gate: asyncio.Semaphore, connected: asyncio.Semaphore) -> None:
    with contextlib.suppress(OSError, EOFError):
        async with gate:
            opened = contextlib.AsyncExitStack()
            reader, _ = await opened.enter_async_context(_connection(port))
            connected.release()
        async with opened:
            await reader.read()


async def _be_greedy(
    port: int, context: ssl.SSLContext | None, request: bytes, gate: asyncio.Semaphore, connected: asyncio.Semaphore
) -> None:
    opened = contextlib.AsyncExitStack()
    with contextlib.suppress(OSError):
        async with gate:
            _, writer = await opened.enter_async_context(_connection(port, context))
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # it reads, too
            writer.write(request)
            await asyncio.sleep(RECONNECT_SECONDS)
    connected.release()
    async with opened:
        await asyncio.Event().wait()


async def _run(port: int, plain: int, ready: Path, seconds: float) -> None:
    answers: list[bytes] = []
    gate, connected = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(0)
    tasks = [asyncio.create_task(_stay_idle(port, gate, connected)) for _ in range(IDLE)]
    ways = itertools.cycle(((port, CONTEXT), (plain, None)))
    kinds = itertools.islice(zip(greedy_requests(), ways, strict=False), GREEDY)
    tasks += [asyncio.create_task(_be_greedy(*way, request, gate, connected)) for request, way in kinds]
    for _ in range(IDLE + GREEDY):
        await connected.acquire()
    tasks += [asyncio.create_task(_send_slowly(port)) for _ in range(SLOW)]
    tasks += [asyncio.create_task(_ask_dearly(port, answers)) for _ in range(DEAR)]
    ready.touch()
    await asyncio.sleep(seconds)
    print(len(answers), {code.decode(): answers.count(code) for code in sorted(set(answers))}, flush=True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    uvloop.run(_run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])))
