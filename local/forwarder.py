"""A TCP forwarder to a local server, which can hold traffic back or delay the answers."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue


class Forwarder:
    """Forwards bytes both ways between clients of `port` and the target; made by `forwarder`."""

    def __init__(self, listener: socket.socket, target: int) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._targets = itertools.cycle([target])
        self.delay = 0.0
        """Seconds by which answers are delayed, each by the same time."""
        self._is_flowing = threading.Event()
        self._closed = threading.Event()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._held = threading.Event()
        self._spawn(self._accept)

    @property
    def is_holding_something(self) -> bool:
        """Whether a client has sent something since the last `hold` that has not been forwarded."""
        return self._held.is_set()

    def lead_to(self, *targets: int) -> None:
        """Forwards later connections to these ports in turn, as kube-proxy does for a Service."""
        self._targets = itertools.cycle(targets)

    def hold(self) -> None:
        """Accepts connections and bytes, but forwards nothing."""
        self._held.clear()
        self._is_flowing.clear()

    def release(self) -> None:
        self._is_flowing.set()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds traffic back inside this context, and forwards it afterwards."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        self._closed.set()
        _shut([self._listener])
        self.release()
        accepting, *_ = self._threads
        accepting.join()  # a client that it has just accepted is shut as well
        _shut(self._open)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._open):
            each.close()

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="forwarder")
        self._threads.append(thread)
        thread.start()

    def _wait_for_flow(self) -> None:
        if not self._is_flowing.is_set():
            self._held.set()
            self._is_flowing.wait()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(("127.0.0.1", next(self._targets)))
            except OSError:
                client.close()  # nothing listens there yet
                continue
            self._open += [client, server]
            answers: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
            self._spawn(self._pass, client, server)
            self._spawn(self._receive, server, answers)
            self._spawn(self._deliver, answers, client)

    def _receive(self, server: socket.socket, answers: SimpleQueue[tuple[float, bytes]]) -> None:
        """Yields bytes until the end of the connection."""
        content = b"-"
        while content:
            try:
                content = server.recv(65536)
            except OSError:
                content = b""  # the connection is gone
            answers.put((time.monotonic() + self.delay, content))

    def _deliver(self, answers: SimpleQueue[tuple[float, bytes]], client: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the client went first
            while True:
                due, content = answers.get()
                self._closed.wait(due - time.monotonic())
                self._wait_for_flow()
                if not content:
                    break
                client.sendall(content)
            client.shutdown(socket.SHUT_WR)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # either end is gone, and so is the connection
            while content := source.recv(65536):
                self._wait_for_flow()
                sink.sendall(content)
            sink.shutdown(socket.SHUT_WR)


def _shut(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):  # the peer went first
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def forwarder(target: int, *, port: int = 0) -> Iterator[Forwarder]:
    """Forwards from that port of 127.0.0.1 (0: any), but holds everything back until `release`."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        door = Forwarder(listener, target)
        try:
            yield door
        finally:
            door.close()
