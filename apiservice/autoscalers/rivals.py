"""Which HPAs have the same target: only one may scale it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from sys import intern
from typing import NamedTuple

from apiservice.autoscalers.autoscaler import Autoscaler, Json

Target = tuple[str, str, str]
"""Namespace, kind and name."""


class Scaler(NamedTuple):
    """Any HPA of the cluster, ours or not; a tuple, because there may be thousands."""

    target: Target
    name: str
    """The HPA's own."""
    scaled_object: str
    """The ScaledObject that KEDA made the HPA for; empty for other HPAs."""

    @property
    def text(self) -> str:
        return f"KEDA's ScaledObject {self.scaled_object}" if self.scaled_object else f"HPA {self.name}"


def scaler_of(hpa: Json) -> Scaler:
    metadata, target = hpa["metadata"], hpa["spec"]["scaleTargetRef"]
    owners = metadata.get("ownerReferences") or ()
    scaled_objects = [owner["name"] for owner in owners if owner.get("kind") == "ScaledObject"]
    place = intern(metadata["namespace"]), intern(target["kind"]), intern(target["name"])
    return Scaler(place, intern(metadata["name"]), next(iter(scaled_objects), ""))


class Rivals:
    """`scalers` is called only if an HPA is asked about."""

    def __init__(self, scalers: Callable[[], Iterable[Scaler]]) -> None:
        self._scalers = scalers

    def of(self, hpa: Autoscaler) -> Sequence[str]:
        """Returns what else scales the HPA's target, in words."""
        same = self._by_target[hpa.namespace, hpa.target.kind, hpa.target.name]
        return sorted(each.text for each in same if each.name != hpa.name)

    @cached_property
    def _by_target(self) -> defaultdict[Target, list[Scaler]]:
        by_target: defaultdict[Target, list[Scaler]] = defaultdict(list)
        for scaler in self._scalers():
            by_target[scaler.target].append(scaler)
        return by_target
