"""Events of Kubernetes about HPAs: what was changed, and what is wrong with what they ask for.

A queue of its own, so that nothing waits for an Event, and no more of them than the API server can take."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from cachetools import LRUCache

from adapter import clock
from adapter.errors import AdapterError, one_line
from adapter.repeating import Repeating
from apiservice.cluster_api.connection import Json

logger = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Then the oldest are dropped."""
MOST_REMEMBERED = 10_000
BURST = 25
SECONDS_EACH = 0.5
"""Between two, after a burst."""
IDLE_SECONDS = 3600.0
LONGEST_NOTE = 1000
"""Characters; the API server refuses more than 1024 bytes, and a character may take four."""
LONGEST_OF_NAME = 200
"""Characters of the object's name in that of its Event, which may have 253."""
REPORTER = "kafka-lag-adapter"


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Regarded:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    """`kubectl describe` shows only Events with the object's own."""


@dataclass(frozen=True, slots=True)
class EventText:
    type: EventType
    reason: str
    """A word in CamelCase."""
    action: str
    """What was done or tried; a word in CamelCase."""
    note: str


class Events(Repeating):
    """Any thread may call `post` and `post_change`. `create` posts a document to a path; raises AdapterError. `count`
    receives the reason of each Event, whether it can be posted or not."""

    def __init__(
        self,
        create: Callable[[str, Json], None],
        instance: str,
        monotonic: Callable[[], float] = clock.monotonic,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__("events", is_nice=True)
        self._count = count
        self._create, self._instance, self._monotonic = create, instance, monotonic
        self._waiting: deque[tuple[Regarded, EventText]] = deque(maxlen=MOST_WAITING)
        self._latest: LRUCache[tuple[Regarded, str], EventText] = LRUCache(MOST_REMEMBERED)
        self._allowance, self._counted_at = float(BURST), monotonic()

    def post(self, regarded: Regarded, text: EventText) -> None:
        self._count(text.reason)
        self._waiting.append((regarded, text))
        self.wake()

    def post_change(self, regarded: Regarded, subject: str, text: EventText | None) -> bool:
        """Posts unless it is the same as the latest of this subject; None: there is nothing to say any more.

        Returns whether it was posted. Only one thread may call it."""
        key = regarded, subject
        if text is None:
            self._latest.pop(key, None)
            return False
        if self._latest.get(key) == text:
            return False
        self._latest[key] = text
        self.post(regarded, text)
        return True

    def turn(self) -> float:
        """Posts one, if it may; returns the seconds until the next one."""
        now = self._monotonic()
        self._allowance = min(BURST, self._allowance + (now - self._counted_at) / SECONDS_EACH)
        self._counted_at = now
        if not self._waiting:
            return IDLE_SECONDS
        if self._allowance < 1:
            return (1 - self._allowance) * SECONDS_EACH
        self._allowance -= 1
        regarded, text = self._waiting.popleft()
        try:
            self._create(
                f"/apis/events.k8s.io/v1/namespaces/{regarded.namespace}/events", self._document(regarded, text)
            )
        except AdapterError as error:
            # Such as 403, or 404 in a namespace that is being deleted. An Event is news, so it is not repeated.
            logger.debug("Event %s of %s/%s is lost: %s", text.reason, regarded.namespace, regarded.name, error)
        return 0.0

    def _document(self, regarded: Regarded, text: EventText) -> Json:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": _name_for(regarded), "namespace": regarded.namespace},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": REPORTER,
            "reportingInstance": self._instance,
            "action": text.action,
            "reason": text.reason,
            "type": text.type.value,
            "note": one_line(text.note).encode()[:LONGEST_NOTE].decode(errors="ignore"),
            "regarding": {
                "apiVersion": regarded.api_version,
                "kind": regarded.kind,
                "namespace": regarded.namespace,
                "name": regarded.name,
                "uid": regarded.uid,
            },
        }


def _name_for(regarded: Regarded) -> str:
    """A part of a name between dots must end with a letter or digit."""
    return f"{regarded.name[:LONGEST_OF_NAME].rstrip('.-')}.{uuid4().hex[:16]}"
