"""Decides what `maxReplicas` of an HPA becomes: as many as can have a partition. Nothing here asks or changes anything.

With more, the HPA would add consumers that have nothing to read."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.metrics.partitions import Readable, combined
from apiservice.autoscalers.annotations import CapWish
from apiservice.autoscalers.autoscaler import Autoscaler

LOWER_SECONDS = 300.0
"""A smaller number must have been seen for so long: a topic may be deleted and created again step by step."""


@dataclass(frozen=True, slots=True)
class Smaller:
    """A number below `maxReplicas` that every look has seen."""

    replicas: int
    since: float
    known_until: float
    """Both in seconds of the monotonic clock."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many replicas can have a partition, by what the HPA's metrics read."""

    replicas: int | None
    """None: it is not known now, or refused."""
    refusal: str = ""
    known_until: float = float("-inf")


UNKNOWN = Limit(None)


def limit_of(read: Sequence[Readable], wish: CapWish, least: int, known_until: float) -> Limit:
    """`read`: what each of the HPA's metrics covers. The limit is never less than `least`."""
    groups = {(each.cluster, each.group) for each in read}
    if not groups:
        return UNKNOWN
    if len(groups) > 1:
        named = ", ".join(sorted(f"{group} in {cluster}" for cluster, group in groups)[:3])
        return Limit(None, f"its metrics are about several groups ({named}), and a partition belongs to one")
    limits = [limit for limit in (combined(read).most_replicas, wish.ceiling) if limit is not None]
    if not limits:
        return Limit(None, "any number of members of a share group can have a partition, and there is no ceiling")
    return Limit(max(min(limits), least, 1), "", known_until)


def smaller_of(before: Smaller | None, hpa: Autoscaler, limit: Limit, now: float) -> Smaller | None:
    """Returns the smaller number and since when it has been seen; None if it is not smaller, or not known."""
    if limit.replicas is None or limit.replicas >= hpa.maximum:
        return None
    is_same = before is not None and before.replicas == limit.replicas and now < before.known_until
    return Smaller(limit.replicas, before.since if before is not None and is_same else now, limit.known_until)


def maximum_of(hpa: Autoscaler, limit: Limit, smaller: Smaller | None, now: float) -> int:
    """Returns what `maxReplicas` is to be now: a larger number at once, a smaller one after LOWER_SECONDS."""
    if limit.replicas is not None and limit.replicas > hpa.maximum:
        return limit.replicas
    if smaller is not None and now - smaller.since >= LOWER_SECONDS:
        return smaller.replicas
    return hpa.maximum
