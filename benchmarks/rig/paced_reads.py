"""Reads over TLS on one kept connection at a steady pace.

A read that waits for the previous one counts from when it was due, so that a server that stops for a while is late
for every read of that time."""

import datetime
import http.client
import itertools
import json
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from local.adapter import SERVER_NAME, Adapter

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Read:
    path: str
    due: float
    """Seconds of the monotonic clock."""
    seconds: float
    status: int
    body: bytes
    answered_at: float
    """Unix time."""

    @property
    def age(self) -> float:
        """Returns the age of the oldest item on arrival, in seconds; timestamps are whole seconds, rounded down."""
        stamps = [item["timestamp"] for item in json.loads(self.body)["items"]]
        return self.answered_at - min(datetime.datetime.fromisoformat(stamp).timestamp() for stamp in stamps)


class Reader:
    """One caller with a token and a connection."""

    def __init__(self, running: Adapter, token: str) -> None:
        context = ssl.create_default_context(cafile=str(running.serving.authority))
        self._connection = _Connection(running.port, context)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _where: TracebackType | None) -> None:
        self._connection.close()

    def read(self, path: str, due: float | None = None) -> Read:
        """Sends the request and waits for the last byte of the answer."""
        begin = time.monotonic() if due is None else due
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        return Read(path, begin, time.monotonic() - begin, response.status, body, time.time())

    def paced(
        self,
        paths: Sequence[str],
        every: float,
        seconds: float,
        while_reading: Callable[[float], None] = lambda _: None,
    ) -> list[Read]:
        """Reads the paths in turn, one per `every` seconds; `while_reading` receives the time since the start before
        each."""
        began = time.monotonic()
        taken: list[Read] = []
        for number, path in enumerate(itertools.cycle(paths)):
            due = began + number * every
            if due >= began + seconds:
                return taken
            while_reading(due - began)
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
                due = time.monotonic()  # that this process woke up late is not the server's doing
            taken.append(self.read(path, due))
        raise AssertionError("no paths")


class _Connection(http.client.HTTPSConnection):
    """Connects to 127.0.0.1, whatever the name in the certificate."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        super().__init__("127.0.0.1", port, timeout=TIMEOUT_SECONDS, context=context)
        self._tls = context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=SERVER_NAME)
