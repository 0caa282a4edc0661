"""Keeps `maxReplicas` of HPAs at the number of replicas that can have a partition: gather, decide (`cap`), apply.

Server-side apply, by a field manager of its own: where somebody else sets the field as well, the value stays. Whoever
creates an HPA sets it, because it is required. So this manager first applies the value that is there, which makes it a
second owner, and the field is its own once the others leave it out of what they apply."""

from collections.abc import Callable, Sequence
from functools import partial

from adapter.errors import AdapterError
from adapter.metrics.partitions import Readable
from adapter.metrics.query import Metrics
from apiservice.autoscalers.annotations import (
    COUNT,
    MAX_REPLICAS,
    MAX_REPLICAS_BEFORE,
    MAX_REPLICAS_BY,
    CapWish,
    cap_wish_of,
    is_of_others,
)
from apiservice.autoscalers.autoscaler import NAMES_NO_GROUP, Autoscaler
from apiservice.autoscalers.cap import UNKNOWN, Limit, Smaller, limit_of, maximum_of, smaller_of
from apiservice.autoscalers.followed import Place
from apiservice.autoscalers.hpa_writes import MAX_REPLICAS_MANAGER, HpaWrites

ACTION = "LimitReplicas"


class Capper:
    """One thread calls it. Only a leader writes; the others follow, so that they can take over at once."""

    def __init__(self, writes: HpaWrites, monotonic: Callable[[], float]) -> None:
        self._writes = writes
        self._monotonic = monotonic
        self._smaller: dict[Place, Smaller | None] = {}
        """By HPA."""

    def look(self, hpas: Sequence[Autoscaler], metrics: Metrics, *, is_allowed: bool, is_leader: bool) -> None:
        """Looks at every HPA once and does what is due."""
        marked = [hpa for hpa in hpas if MAX_REPLICAS in hpa.annotations or MAX_REPLICAS_BEFORE in hpa.annotations]
        former, self._smaller = self._smaller, {}
        for hpa in marked:
            wish, refusal = _wished(hpa) if is_allowed else (None, "")
            limit = UNKNOWN if wish is None else limit_by(metrics, hpa, wish, hpa.minimum)
            now = self._monotonic()
            smaller = self._smaller[hpa.place] = smaller_of(former.get(hpa.place), hpa, limit, now)
            if not is_leader:
                continue
            refusal = refusal or limit.refusal or (_shared(hpa) if wish is not None else "")
            self._writes.report(hpa, ACTION, "MaxReplicasRefused", refusal)
            # What is written by an HPA as it was is refused, so a watch that is late does no harm.
            if wish is not None:
                self._writes.tried(hpa, partial(self._keep, hpa, maximum_of(hpa, limit, smaller, now)))
            elif not refusal and MAX_REPLICAS_BEFORE in hpa.annotations and not self._is_of_others(hpa):
                self._writes.tried(hpa, partial(self._restore, hpa))

    # -- apply -----------------------------------------------------------------------------------

    def _keep(self, hpa: Autoscaler, maximum: int) -> None:
        is_owner, others = _owners(hpa)
        if not is_owner:
            # The same value conflicts with nobody's.
            self._writes.apply_maximum(hpa, hpa.maximum, hpa.annotations.get(MAX_REPLICAS_BEFORE))
        elif not others and maximum != hpa.maximum:
            before = hpa.annotations.get(MAX_REPLICAS_BEFORE, str(hpa.maximum))
            if self._writes.apply_maximum(hpa, maximum, before):
                text = f"maxReplicas was {hpa.maximum} and is {maximum}, because so many replicas can have a partition"
                self._writes.tell(hpa, ACTION, "MaxReplicasChanged", text)

    def _restore(self, hpa: Autoscaler) -> None:
        """Nothing asks for it any more, or nothing may be changed any more."""
        is_owner, others = _owners(hpa)
        before = hpa.annotations[MAX_REPLICAS_BEFORE]
        if is_owner and not others and COUNT.fullmatch(before):  # an HPA's owner can write anything there
            former = max(int(before), hpa.minimum, 1)
            if self._writes.apply_maximum(hpa, former, None):
                text = f"maxReplicas was {hpa.maximum} and is {former} again: it no longer follows the partitions"
                self._writes.tell(hpa, ACTION, "MaxReplicasRestored", text)
        else:
            self._writes.annotate(hpa, {MAX_REPLICAS_BEFORE: None, MAX_REPLICAS_BY: None}, is_current=True)

    def _is_of_others(self, hpa: Autoscaler) -> bool:
        return is_of_others(hpa.annotations, MAX_REPLICAS_BY, self._writes.owner)


def _wished(hpa: Autoscaler) -> tuple[CapWish | None, str]:
    try:
        return cap_wish_of(hpa.annotations), ""
    except ValueError as error:
        return None, str(error)


def limit_by(metrics: Metrics, hpa: Autoscaler, wish: CapWish, least: int) -> Limit:
    """Returns how many replicas can have a partition of what the HPA's metrics read, but never less than `least`.

    The limit is unknown if any of these reads is refused, for example because a topic is hidden or too old."""
    if not hpa.metrics:
        return Limit(None, "the HPA has no metric that is served by this adapter")
    if not all(metric.names_group for metric in hpa.metrics):
        return Limit(None, NAMES_NO_GROUP)
    read: list[Readable] = []
    known_until = float("inf")
    for metric in hpa.metrics:
        try:
            covered, until = metrics.partitions(metric.name, metric.selector, hpa.namespace)
        except AdapterError:
            return UNKNOWN
        read += covered
        known_until = min(known_until, until)
    return limit_of(read, wish, least, known_until)


def _owners(hpa: Autoscaler) -> tuple[bool, Sequence[str]]:
    """Returns whether we have applied `maxReplicas`, and who else sets it."""
    others = [owner for owner in hpa.maximum_owners if owner != MAX_REPLICAS_MANAGER]
    return len(others) < len(hpa.maximum_owners), others


def _shared(hpa: Autoscaler) -> str:
    _, others = _owners(hpa)
    if not others:
        return ""
    names = " and ".join(sorted(set(others))[:3])
    return f"maxReplicas is also set by {names}; it follows the partitions once they leave it out of what they apply"
