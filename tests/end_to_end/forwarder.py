"""A door to a server of this machine that tests open late, and hold shut while somebody stands in it."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Forwarder:
    """Passes bytes both ways between whoever connects to `port` and the target; made by `forwarder`."""

    def __init__(self, listener: socket.socket, target: int) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._target = target
        self._is_flowing = threading.Event()
        self._is_closing = False
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._held = threading.Event()
        self._spawn(self._accept)

    @property
    def is_holding_something(self) -> bool:
        """Whether somebody has sent something since the last `hold` and waits for it to arrive."""
        return self._held.is_set()

    def hold(self) -> None:
        """Take connections and bytes, and pass nothing on."""
        self._held.clear()
        self._is_flowing.clear()

    def release(self) -> None:
        self._is_flowing.set()

    def close(self) -> None:
        self._is_closing = True
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):  # the peer went first
                each.shutdown(socket.SHUT_RDWR)
        self.release()
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._open):
            each.close()

    def _spawn(self, work: "object", *arguments: socket.socket) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, name="forwarder")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, server]
            self._spawn(self._pass, client, server)
            self._spawn(self._pass, server, client)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # either end is gone, and so is the connection
            while content := source.recv(65536):
                if not self._is_flowing.is_set():
                    self._held.set()
                    self._is_flowing.wait()
                sink.sendall(content)
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def forwarder(target: int, *, port: int = 0) -> Iterator[Forwarder]:
    """Forward from that port of 127.0.0.1 (0: any); it begins shut, until `release`."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        door = Forwarder(listener, target)
        try:
            yield door
        finally:
            door.close()
