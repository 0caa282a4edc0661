"""Events of Kubernetes about HPAs: what was changed, and what is wrong with what they ask for.

A queue of its own, so that nothing waits for an Event, and no more of them than the API server can take."""

import hashlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from cachetools import LRUCache

from adapter import clock
from adapter.conditions import AUTOSCALER_EVENTS, Conditions
from adapter.errors import AdapterError, one_line
from adapter.repeating import Repeating
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Json

logger = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Then the oldest are dropped."""
MOST_REMEMBERED = 10_000
BURST = 25
SECONDS_EACH = 0.5
"""Between two, after a burst."""
IDLE_SECONDS = 3600.0
END_SECONDS = 0.5
"""For what still waits when the process ends; no Event is begun later."""
LONGEST_NOTE = 1000
"""Characters; the API server refuses more than 1024 bytes, and a character may take four."""
LONGEST_OF_NAME = 200
"""Characters of the object's name in that of its Event, which may have 253."""
REPORTER = "kafka-lag-adapter"
_FORBIDDEN = 403
_ENDING = "being terminated"
"""In what the API server says of a namespace that is being deleted, also with 403."""
MISSING_RIGHT = (
    "Events about HPAs are lost, because the right to create them is missing: the component `events` contains it"
)
NOT_POSTED = "Events about HPAs are lost, because kube-apiserver does not take them"


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


@dataclass(frozen=True, slots=True)
class _Waiting:
    regarded: Regarded
    text: EventText
    name: str
    at: datetime
    """When it was noticed."""
    since: datetime | None = None
    """An Event of this name that exists already, and last occurred before this time, gets another occurrence."""


class Events(Repeating):
    """Any thread may call `post`, `post_state` and `post_change`. `create` posts a document to a path and returns
    whether there was none of its name; `merged` changes the object at a path and returns it, or None if it has another
    resource version than the change; both raise AdapterError. `count` receives the reason of each Event that was
    posted or could not be; not of those that existed already."""

    def __init__(
        self,
        create: Callable[[str, Json], bool],
        instance: str,
        monotonic: Callable[[], float] = clock.monotonic,
        count: Callable[[str], None] = lambda _: None,
        merged: Callable[[str, Json], Json | None] = lambda _, __: None,
        conditions: Conditions | None = None,
        wall: Callable[[], float] = clock.time,
    ) -> None:
        super().__init__("events", is_nice=True)
        self._count = count
        self._create, self._merged, self._instance = create, merged, instance
        self._monotonic, self._wall = monotonic, wall
        self._conditions = conditions or Conditions()
        self._waiting: deque[_Waiting] = deque(maxlen=MOST_WAITING)
        self._latest: LRUCache[tuple[Regarded, str], EventText] = LRUCache(MOST_REMEMBERED)
        self._allowance, self._counted_at = float(BURST), monotonic()

    def post(self, regarded: Regarded, text: EventText) -> None:
        self._add(regarded, text, uuid4().hex)

    def post_state(
        self, regarded: Regarded, subject: str, text: EventText, *, since: float | None, at: float | None = None
    ) -> None:
        """Posts that a subject of the object is in a state, once for each time that it came about.

        The Event of the same state that exists already, from this process or another one, occurs again if it last
        occurred before `since`, when the subject was in another state (seconds of the monotonic clock). None: no other
        state is known, so the Event that exists is about this one. `at`: when the state was noticed, in the same
        seconds; None: now."""
        key = hashlib.sha256("\n".join((regarded.uid, subject, text.reason)).encode()).hexdigest()
        self._add(regarded, text, key, since, at)

    def _add(
        self, regarded: Regarded, text: EventText, key: str, since: float | None = None, at: float | None = None
    ) -> None:
        started = datetime.fromtimestamp(self._wall(), UTC) - timedelta(seconds=self._monotonic())
        noticed = started + timedelta(seconds=self._monotonic() if at is None else at)
        changed = None if since is None else started + timedelta(seconds=since)
        self._waiting.append(_Waiting(regarded, text, _name_for(regarded, key), noticed, changed))
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

    def stop(self, timeout_seconds: float) -> None:
        super().stop(timeout_seconds)
        lost = len(self._waiting) + self.is_hanging
        if lost:
            logger.warning("Events about HPAs that are not posted because the process ends: %d", lost)

    def end(self) -> None:
        """Posts what still waits, as far as a burst and the time allow."""
        until = self._monotonic() + END_SECONDS
        while self._waiting and self._monotonic() < until and not self.turn():
            pass

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
        event = self._waiting.popleft()
        try:
            is_news = self._send(event)
        except AdapterError as error:
            is_news = True
            # An Event is news, so it is not repeated.
            regarded = event.regarded
            logger.debug("Event %s of %s/%s is lost: %s", event.text.reason, regarded.namespace, regarded.name, error)
            self._note(error)
        else:
            self._conditions.holds(AUTOSCALER_EVENTS)
        if is_news:
            self._count(event.text.reason)
        return 0.0

    def _send(self, event: _Waiting) -> bool:
        """Returns whether it was written: it may be known already, from here or from another replica."""
        path = f"/apis/events.k8s.io/v1/namespaces/{event.regarded.namespace}/events"
        if self._create(path, self._document(event)):
            return True
        return event.since is not None and self._repeat(f"{path}/{event.name}", event.since, event.at)

    def _repeat(self, path: str, since: datetime, at: datetime) -> bool:
        # A change of nothing: unlike a read, it needs no further right.
        known = self._merged(path, {})
        if known is None or _latest_of(known) >= since:
            return False
        # Kubernetes counts the first one as well.
        count = (known.get("series") or {}).get("count", 1) + 1
        version = {"resourceVersion": known["metadata"]["resourceVersion"]}
        change = {"metadata": version, "series": {"count": count, "lastObservedTime": _text_of(at)}}
        return self._merged(path, change) is not None

    def _note(self, error: AdapterError) -> None:
        """A 404 or 403 of a namespace that is gone, or goes, is about nothing else."""
        status = error.status if isinstance(error, ClusterUnreachable) else None
        if status == _FORBIDDEN and _ENDING not in str(error):
            self._conditions.fails(AUTOSCALER_EVENTS, "Forbidden", MISSING_RIGHT, details=str(error))
        elif status is None or status >= 500:
            self._conditions.fails(AUTOSCALER_EVENTS, "NotPosted", NOT_POSTED, details=str(error))

    def _document(self, event: _Waiting) -> Json:
        regarded, text = event.regarded, event.text
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event.name, "namespace": regarded.namespace},
            "eventTime": _text_of(event.at),
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


def _name_for(regarded: Regarded, key: str) -> str:
    """A part of a name between dots must end with a letter or digit."""
    return f"{regarded.name[:LONGEST_OF_NAME].rstrip('.-')}.{key[:16]}"


def _latest_of(event: Json) -> datetime:
    """Returns when it last occurred. One that others have written by the older API may not say so."""
    noticed = (event.get("series") or {}).get("lastObservedTime") or event.get("eventTime")
    return datetime.fromisoformat(noticed or event["metadata"]["creationTimestamp"])


def _text_of(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
