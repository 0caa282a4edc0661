"""What the annotations of an HPA ask for, and what is wrong with them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from adapter.errors import shown
from adapter.settings.types import seconds_of

ANNOTATIONS = "kafka-lag-adapter/"
"""The prefix of those that are ours; others may be large."""
ASLEEP_SINCE = f"{ANNOTATIONS}asleep-since"
"""Ours: while the target has 0 replicas because of the adapter."""
ASLEEP_BY = f"{ANNOTATIONS}asleep-by"
"""Ours: which adapter has put it to sleep, by its Service, as `NAMESPACE/NAME`."""
SCALE_TO_ZERO = f"{ANNOTATIONS}scale-to-zero"
COOLDOWN = f"{ANNOTATIONS}cooldown"
ACTIVATION = f"{ANNOTATIONS}activation"
MAX_REPLICAS = f"{ANNOTATIONS}max-replicas"
MAX_REPLICAS_CEILING = f"{ANNOTATIONS}max-replicas-ceiling"
MAX_REPLICAS_BEFORE = f"{ANNOTATIONS}max-replicas-before"
"""Ours: `maxReplicas` as it was before it followed the partitions."""
MAX_REPLICAS_BY = f"{ANNOTATIONS}max-replicas-by"
"""Ours: which adapter has changed it, as above."""
BY_PARTITIONS = "partitions"
SHADOW = f"{ANNOTATIONS}shadow"
"""Whether the required number of replicas is followed beside the HPA."""
SHADOW_GROUP = f"{ANNOTATIONS}shadow-group"
"""The group that the target's pods are members of, where no metric of the HPA names it."""

COOLDOWN_SECONDS = 300.0
"""As KEDA's `cooldownPeriod`, and as the HPA's own stabilization window."""
LONGEST_COOLDOWN_SECONDS = 86_400.0
COUNT = re.compile(r"[1-9][0-9]{0,8}")
NUMBER = re.compile(r"(?P<whole>[0-9]{1,15})(?:\.(?P<milli>[0-9]{1,3}))?")


def is_of_others(annotations: Mapping[str, str], by: str, owner: str) -> bool:
    """Whether another adapter than this owner has left a mark. What nothing asks this one for is then not undone.

    `by`: the annotation that names the adapter; a mark without it is anybody's."""
    return annotations.get(by, owner) != owner


@dataclass(frozen=True, slots=True)
class ZeroWish:
    """The target is to have no replicas while there is no work."""

    cooldown_seconds: float = COOLDOWN_SECONDS
    activation_milli: int = 0
    """In thousandths of each metric's unit: at or below it, there is no work."""


def zero_wish_of(annotations: Mapping[str, str]) -> ZeroWish | None:
    """Returns None if the HPA does not ask for it; raises ValueError, which names the annotation."""
    value = annotations.get(SCALE_TO_ZERO, "false")
    if value not in {"true", "false"}:
        raise ValueError(f'annotation {SCALE_TO_ZERO} is {shown(value)}; must be "true" or "false"')
    if value == "false":
        return None
    return ZeroWish(_cooldown(annotations), _activation(annotations))


@dataclass(frozen=True, slots=True)
class CapWish:
    """`maxReplicas` is to follow the number of replicas that can have a partition."""

    ceiling: int | None = None
    """The most that it may become."""


def cap_wish_of(annotations: Mapping[str, str]) -> CapWish | None:
    """Returns None if the HPA does not ask for it; raises ValueError, which names the annotation."""
    value = annotations.get(MAX_REPLICAS)
    if value is None:
        return None
    if value != BY_PARTITIONS:
        raise ValueError(f'annotation {MAX_REPLICAS} is {shown(value)}; must be "{BY_PARTITIONS}"')
    ceiling = annotations.get(MAX_REPLICAS_CEILING)
    if ceiling is None:
        return CapWish()
    if not COUNT.fullmatch(ceiling):
        raise ValueError(f"annotation {MAX_REPLICAS_CEILING} is {shown(ceiling)}; must be a whole number above 0")
    return CapWish(int(ceiling))


def shadow_wish_of(annotations: Mapping[str, str], selected: Collection[str]) -> str | None:
    """Returns the group whose required number of replicas is followed beside the HPA, whose metrics name the `selected`
    ones; None: nothing is asked for. Raises ValueError, which says what is missing."""
    value = annotations.get(SHADOW, "false")
    if value not in {"true", "false"}:
        raise ValueError(f'annotation {SHADOW} is {shown(value)}; must be "true" or "false"')
    if value == "false":
        return None
    groups = (annotations[SHADOW_GROUP],) if SHADOW_GROUP in annotations else tuple(set(selected))
    if len(groups) != 1:
        raise ValueError(f"no metric of it names one group, so annotation {SHADOW_GROUP} must")
    return groups[0]


def _cooldown(annotations: Mapping[str, str]) -> float:
    value = annotations.get(COOLDOWN)
    if value is None:
        return COOLDOWN_SECONDS
    try:
        seconds = seconds_of(value)
    except ValueError as error:
        raise ValueError(f"annotation {COOLDOWN} {error}") from error
    if seconds > LONGEST_COOLDOWN_SECONDS:
        raise ValueError(f"annotation {COOLDOWN} is {shown(value)}; must be at most 24h")
    return seconds


def _activation(annotations: Mapping[str, str]) -> int:
    value = annotations.get(ACTIVATION, "0")
    number = NUMBER.fullmatch(value)
    if number is None:
        raise ValueError(f"annotation {ACTIVATION} is {shown(value)}; must be a number such as 0 or 100")
    return int(number["whole"]) * 1000 + int((number["milli"] or "0").ljust(3, "0"))
