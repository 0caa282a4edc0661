"""Lists the objects of one kind and follows their changes, as plain JSON: the client library's models take 80 MB.

The watch is our own, because the client's does not end when it is stopped."""

import contextlib
import random
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Protocol

import urllib3

from adapter.conditions import ConditionStatus, Definition
from adapter.errors import AdapterError
from adapter.repeating import Repeating
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import CALL_SECONDS, Client, Json, calling, content, json_object, send

WATCH_SECONDS = 240  # then the API server ends the watch, and the next one continues it
PAGE = 50
"""Objects. Parsing a page keeps the interpreter from every other thread, which 500 HPAs do for 20 ms."""
LONGEST = 2 * 1024 * 1024
"""Bytes of a page, which is asked for again with fewer objects, and of one object. Parsing takes ten times the memory,
and 1.5 MB of etcd, which any tenant may create, are up to 9 MB as JSON."""
READ_BYTES = 64 * 1024
_GONE, _FORBIDDEN = 410, 403


class Follower(Protocol):
    """What a watch reports to. If a method raises AdapterError, everything is listed again later."""

    def listed(self, objects: Iterator[Json]) -> None:
        """Replaces everything; the iterator reads one page after the other and raises ClusterUnreachable."""

    def changed(self, event: str, changed: Json) -> None:
        """Receives ADDED, MODIFIED or DELETED, and the object."""


class Report(Protocol):
    """Conditions, or what makes one of several watches'."""

    def holds(self, definition: Definition, /) -> None: ...
    def fails(
        self, definition: Definition, /, reason: str, message: str, *, details: str, status: ConditionStatus
    ) -> bool: ...


class Watch(Repeating):
    """A thread that lists the objects at `path`, watches them, and continues after errors where it was.

    Sets a condition: the objects can be read. If they cannot, `consequence` follows."""

    def __init__(
        self,
        client: Client,
        path: str,
        follower: Follower,
        conditions: Report,
        condition: Definition,
        *,
        consequence: str = "",
        query: Sequence[tuple[str, str]] = (),
        pauses_seconds: tuple[float, float] = (0.5, 30.0),
    ) -> None:
        super().__init__(f"watch-{path.rpartition('/')[2]}", is_nice=True)
        self._client, self._path, self._query = client, path, tuple(query)
        self._follower = follower
        self._conditions, self._condition = conditions, condition
        self._consequence = f"; {consequence}" if consequence else ""
        self._pauses = pauses_seconds
        self._failures = 0
        self._version = ""
        self._rest = ""
        """The token for the next page of a list; empty after the last."""
        self._page_size = PAGE
        self._too_long = b""
        """The beginning of an object that is too long, if there is one."""
        self._listed, self._wanted = 0, 1
        """How many lists have been taken, and how many are due."""
        self._response: urllib3.BaseHTTPResponse | None = None
        self._is_interrupted = False
        self.has_tried = Event()
        """Set after the first list, or when it has failed."""

    def list_again(self) -> None:
        """Any thread may call it."""
        self._wanted += 1
        self._interrupt()

    def stop(self, timeout_seconds: float) -> None:
        self._stopping.set()
        self._interrupt()
        super().stop(timeout_seconds)

    def turn(self) -> float:
        self._is_interrupted = False
        try:
            if self._is_list_due:
                self._list()
            self._follow()
        except ClusterUnreachable as error:
            # An answer may be about the version, such as 410 if it is too old. Without one, the watch goes on from it.
            if error.status is not None:
                self._wanted += 1
            if error.status != _GONE:
                self._note_failure(error)
        except AdapterError as error:
            self._wanted += 1
            self._note_failure(error)
        return self._pause_seconds()

    @property
    def _is_list_due(self) -> bool:
        return self._listed != self._wanted

    def _list(self) -> None:
        wanted, self._too_long = self._wanted, b""
        self._follower.listed(self._objects())
        self._listed = wanted
        self.has_tried.set()
        if not self._failures:
            self._note_success()

    def _objects(self) -> Iterator[Json]:
        """Holds one page at a time."""
        self._rest, self._page_size = "", PAGE
        yield from self._page()
        while self._rest:
            yield from self._page()

    def _page(self) -> list[Json]:
        query = [("limit", str(self._page_size)), *([("continue", self._rest)] if self._rest else [])]
        with contextlib.closing(self._get(query, CALL_SECONDS)) as response:
            text = content(response, LONGEST)
        if len(text) == LONGEST:
            if self._page_size > 1:
                self._page_size //= 2
                return self._page()
            before, _, item = text.partition(b'"items"')
            self._too_long, text = item[:200], before.rstrip(b", ") + b"}"
        reply = json_object(text)
        metadata = reply.get("metadata") or {}
        self._version, self._rest = str(metadata.get("resourceVersion") or ""), metadata.get("continue") or ""
        return reply.get("items") or []

    def _follow(self) -> None:
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("resourceVersion", self._version)]
        is_skipped = False
        self._response = self._get([*query, ("timeoutSeconds", str(WATCH_SECONDS))], WATCH_SECONDS + 10)
        try:
            if self._response.status != 200:
                content(self._response)
            self._note_success()
            # Checked once the response can be interrupted.
            for line in _lines(self._response) if not (self._stopping.is_set() or self._is_list_due) else ():
                if len(line) < LONGEST:
                    self._apply(json_object(line))
                else:
                    self._too_long, is_skipped = line[:200], True
                    self._note_success()
        finally:
            # Until then, what the object was before is in use. A watch lasts for minutes, so lists stay rare.
            self._wanted += is_skipped
            self._response.close()
            self._response = None

    def _apply(self, event: Json) -> None:
        kind, changed = str(event.get("type")), event.get("object") or {}
        if kind == "ERROR":
            text = f"the Kubernetes API server ended a watch: {changed.get('message')}"
            raise ClusterUnreachable(text, changed.get("code"))
        self._version = str((changed.get("metadata") or {}).get("resourceVersion") or "")
        if kind != "BOOKMARK":
            self._follower.changed(kind, changed)

    def _interrupt(self) -> None:
        self._is_interrupted, response = True, self._response
        if response is not None:
            with contextlib.suppress(ClusterUnreachable):  # it has just ended by itself
                calling(response.shutdown)

    def _get(self, query: Sequence[tuple[str, str]], timeout_seconds: float) -> urllib3.BaseHTTPResponse:
        query = [*self._query, *query]
        return send(self._client, "GET", self._path, query=query, timeout_seconds=timeout_seconds)

    def _note_success(self) -> None:
        self._failures = 0
        if self._too_long:
            message = f"an object of more than {LONGEST:,} bytes is ignored"
            details = f"it begins with {self._too_long.decode(errors='replace')}"
            status = ConditionStatus.FALSE
            self._conditions.fails(self._condition, "TooLong", message, details=details, status=status)
        else:
            self._conditions.holds(self._condition)

    def _note_failure(self, error: AdapterError) -> None:
        if self._stopping.is_set() or self._is_interrupted:
            return
        self._failures += 1
        self.has_tried.set()
        is_forbidden = isinstance(error, ClusterUnreachable) and error.status == _FORBIDDEN
        reason, why = (
            ("Forbidden", ": the right to list and watch them is missing") if is_forbidden else ("NotRead", "")
        )
        # What was read before stays in use.
        status = ConditionStatus.FALSE if self._listed else ConditionStatus.UNKNOWN
        message = f"they cannot be read{why}{self._consequence}"
        self._conditions.fails(self._condition, reason, message, details=str(error), status=status)

    def _pause_seconds(self) -> float:
        """Doubles after each failure, with jitter, so that replicas do not ask at the same time.

        The pause also follows a success, so that a watch that keeps ending at once is no busy loop."""
        first, longest = self._pauses
        pause: float = min(longest, first * 2 ** min(max(self._failures - 1, 0), 16))
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yields the events; of one that is too long, at least so much that it is seen to be."""
    rest = b""
    chunks = response.stream(amt=READ_BYTES)
    while (chunk := calling(lambda: next(chunks, None))) is not None:
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[:LONGEST]
        yield from (line for line in lines if line.strip())
