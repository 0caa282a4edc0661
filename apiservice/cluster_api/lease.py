"""The Lease for whatever only one replica may do: the leader election of client-go, in a thread.

Another's Lease has expired if it did not change for its duration by our own monotonic clock, so the times in it are for
people only. A holder stops counting as one before that, whether or not it can reach the API server.

The client library has an election as well, but by wall clocks, without an end, and with models that take 80 MB."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from adapter import clock
from adapter.conditions import LEADER, Conditions
from adapter.history.writer_election import Marks
from adapter.repeating import Repeating
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Json
from apiservice.cluster_api.objects import ClusterObjects

# As in kube-controller-manager and kube-scheduler.
DURATION_SECONDS = 15.0
DEADLINE_SECONDS = 10.0
RETRY_SECONDS = 2.0
WRITTEN = "kafka-lag-adapter/written"
"""The annotation with how far the history is written."""

_MARKS = TypeAdapter(dict[str, float])


class Lease(Repeating):
    """As `WriterElection`, it says whether the history is ours to write, and how far it is written.

    Nothing is asked of the API server while `is_needed` is false."""

    def __init__(
        self,
        objects: ClusterObjects,
        namespace: str,
        name: str,
        identity: str,
        conditions: Conditions,
        monotonic: Callable[[], float] = clock.monotonic,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__("lease")
        self._objects = objects
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        self.identity = identity
        self._conditions = conditions
        self._monotonic = monotonic
        self._is_needed = is_needed
        self._held_until = float("-inf")
        self._seen: Json = {}
        self._seen_at = monotonic()
        self._is_unusable = False
        self.written: Marks = {}

    def is_held(self) -> bool:
        return self._monotonic() < self._held_until

    def is_ours(self) -> bool:
        """Without a Lease, or the right to it, every replica writes, and readers of the history choose one."""
        return self._is_unusable or self.is_held()

    def is_vacant(self) -> bool:
        """Returns whether another's Lease has expired, or there is none; also while the API server is unavailable."""
        holder = self._seen.get("holderIdentity") or ""
        duration = float(self._seen.get("leaseDurationSeconds") or DURATION_SECONDS)
        return holder in {"", self.identity} or self._monotonic() >= self._seen_at + duration

    def note_written(self, until: Marks) -> None:
        """Publishes it in the Lease at once."""
        self.written = {**self.written, **until}
        self.wake()

    def turn(self) -> float:
        if not self._is_needed():
            self._conditions.forget(name=LEADER.name)
            return RETRY_SECONDS
        trouble = None
        try:
            self.renew()
        except ClusterUnreachable as error:
            trouble = error
        self._is_unusable = trouble is not None and trouble.is_lasting
        self._report(trouble)
        return RETRY_SECONDS * random.uniform(1.0, 1.2)  # noqa: S311 - jitter, no secret

    def end(self) -> None:
        """Lets another replica take the Lease without waiting for its end."""
        if self.is_held():
            self._held_until = float("-inf")
            with suppress(ClusterUnreachable):
                lease = self._read()
                if (lease.get("spec") or {}).get("holderIdentity") == self.identity:
                    self._replace(lease, {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1})

    def _report(self, trouble: ClusterUnreachable | None) -> None:
        holder = str(self._seen.get("holderIdentity") or "")
        other = holder if holder not in {"", self.identity} else "no replica"
        message = f"held by {'this replica' if self.is_held() else other}"
        if trouble is None:
            self._conditions.holds(LEADER, message)
        elif self._is_unusable:
            message = "there is no Lease that may be used: every replica writes the history, and none changes HPAs"
            self._conditions.fails(LEADER, "LeaseUnusable", message, details=str(trouble))
        else:
            message = f"{message}, because the Lease cannot be read"
            self._conditions.fails(LEADER, "LeaseUnusable", message, details=str(trouble))

    def renew(self) -> None:
        """One round: takes the Lease, renews it, or sees who has it. Raises ClusterUnreachable."""
        now = self._monotonic()
        lease = self._read()
        spec = lease.get("spec") or {}
        if spec != self._seen:
            self._seen, self._seen_at = spec, now
        if spec.get("holderIdentity") != self.identity:
            self._held_until = float("-inf")
            self.written = _marks_in(lease)
            if not self.is_vacant():
                return
        if self._replace(lease, _held_by(self.identity, spec)):
            self._held_until = now + DEADLINE_SECONDS

    def _read(self) -> Json:
        lease = self._objects.read(self._path)
        if lease is None:
            raise ClusterUnreachable(f"{self._path} does not exist; the shipped manifests contain it", 404)
        return lease

    def _replace(self, lease: Json, spec: Json) -> bool:
        annotations = {**(lease["metadata"].get("annotations") or {}), WRITTEN: json.dumps(dict(self.written))}
        metadata = {**lease["metadata"], "annotations": annotations}
        is_replaced = self._objects.replace(self._path, {**lease, "metadata": metadata, "spec": spec})
        if is_replaced:
            self._seen, self._seen_at = spec, self._monotonic()
        return is_replaced


def _held_by(identity: str, before: Json) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {**before, "holderIdentity": identity, "renewTime": now, "leaseDurationSeconds": int(DURATION_SECONDS)}
    if before.get("holderIdentity") == identity:
        return spec
    return {**spec, "acquireTime": now, "leaseTransitions": int(before.get("leaseTransitions") or 0) + 1}


def _marks_in(found: Json) -> Marks:
    try:
        return _MARKS.validate_json((found["metadata"].get("annotations") or {}).get(WRITTEN, "{}"))
    except ValidationError:
        return {}  # then everything that is still in memory is written
