"""A door to a real broker that lets it offer less than it has, as an older release would: its ApiVersions responses
are changed on the way, and nothing else."""

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping

API_VERSIONS = 18
FIRST_FLEXIBLE = 3
"""Version of ApiVersions from which on arrays are compact and entries have tags."""


@contextlib.contextmanager
def older_door(broker: int, newest: Mapping[int, int], port: int = 0) -> Iterator[int]:
    """Forwards from that port (0: any), which is returned. `newest`: key of a request -> the newest version."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", broker)) as server:
                # A broker answers the requests of a connection in their order.
                while request := frame_of(self.request):
                    server.sendall(sized(request))
                    answer = frame_of(server)
                    key, version = struct.unpack_from(">hh", request)
                    limited = less(answer, version, newest) if key == API_VERSIONS else answer
                    self.request.sendall(sized(limited))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True

    with Server(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="older-door")
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def frame_of(connection: socket.socket) -> bytes:
    """Returns the next request or response without its size; empty at the connection's end."""
    size = received(connection, 4)
    return received(connection, struct.unpack(">i", size)[0]) if size else b""


def received(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count and (part := connection.recv(count - len(content))):
        content += part
    return content


def sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def less(response: bytes, version: int, newest: Mapping[int, int]) -> bytes:
    """Behind the correlation id and the error come the number of entries, and each one's key, oldest and newest."""
    is_flexible = version >= FIRST_FLEXIBLE
    count = response[6] - 1 if is_flexible else struct.unpack_from(">i", response, 6)[0]
    assert count < 127, "its number has more than one byte"
    first, size = (7, 7) if is_flexible else (10, 6)
    changed = bytearray(response)
    for at in range(first, first + count * size, size):
        (key,) = struct.unpack_from(">h", response, at)
        if key in newest:
            struct.pack_into(">h", changed, at + 4, newest[key])
    return bytes(changed)
