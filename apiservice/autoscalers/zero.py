"""Decides when the target of an HPA is scaled to zero and back. Nothing here asks or changes anything.

An HPA without the feature gate HPAScaleToZero never goes below one replica, and it leaves a target at zero alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from apiservice.autoscalers.annotations import ZeroWish
from apiservice.autoscalers.autoscaler import NAMES_NO_GROUP, Autoscaler, Source
from apiservice.cluster_api.scale import SCALED_KINDS


@dataclass(frozen=True, slots=True)
class Levels:
    """The values of an HPA's metrics, as the HPA reads them."""

    milli: tuple[int | None, ...]
    """The sum of each metric's items, in thousandths; None: unknown."""
    known_until: float
    """In seconds of the monotonic clock: when the oldest of them becomes too old."""

    def has_work(self, activation_milli: int) -> bool:
        return any(value is not None and value > activation_milli for value in self.milli)

    def is_quiet(self, activation_milli: int) -> bool:
        return all(value is not None and value <= activation_milli for value in self.milli)


@dataclass(frozen=True, slots=True)
class Quiet:
    """A time in which all metrics have been known, and at or below activation."""

    since: float
    known_until: float
    """Both in seconds of the monotonic clock."""
    last_scale_time: str
    """The HPA's, which ends it: an HPA that has just scaled has had a reason to."""


class Step(StrEnum):
    NOTHING = "nothing"
    SLEEP = "sleep"
    WAKE = "wake"
    CHECK = "check"
    """Whether the target, which is said to sleep, has replicas: others may have scaled it."""


def refusal_of(hpa: Autoscaler, rivals: Sequence[str], shows_work: Callable[[str], bool]) -> str:
    """Returns why this HPA's target cannot be scaled to zero; empty if it can. `rivals`: others that scale it."""
    target = f"{hpa.target.kind} {hpa.target.name}"
    if hpa.minimum == 0:
        return "minReplicas is 0, so the HPA itself scales to zero; use 1 where the feature gate HPAScaleToZero is off"
    if hpa.target.kind not in SCALED_KINDS or not hpa.target.api_version.startswith("apps/"):
        return f"{target} of {hpa.target.api_version} is neither a Deployment nor a StatefulSet"
    if rivals:
        return f"{target} is also scaled by {' and '.join(rivals[:3])}"
    return _refusal_of_metrics(hpa, shows_work)


def _refusal_of_metrics(hpa: Autoscaler, shows_work: Callable[[str], bool]) -> str:
    if not hpa.metrics:
        return "the HPA has no metric that is served by this adapter, so nothing could wake its target up"
    if hpa.has_other_metrics:
        return "the HPA has metrics that are not served by this adapter, which nothing could wake it up by"
    if not all(metric.names_group for metric in hpa.metrics):
        return NAMES_NO_GROUP
    if any(metric.source is Source.PODS for metric in hpa.metrics):
        return "the HPA has a Pods metric, which has no value without pods"
    for metric in hpa.metrics:
        if not shows_work(metric.name):
            return f"metric {metric.name} is not 0 while nothing waits, and above 0 otherwise"
    return ""


def quiet_of(before: Quiet | None, hpa: Autoscaler, levels: Levels, activation_milli: int, now: float) -> Quiet | None:
    """Returns the time without work up to now; None if there is work, or if a value is unknown.

    It begins again after a time in which nobody looked until the values were too old, and when the HPA has scaled."""
    if not levels.is_quiet(activation_milli):
        return None
    is_same = before is not None and now < before.known_until and before.last_scale_time == hpa.last_scale_time
    since = before.since if before is not None and is_same else now
    return Quiet(since, levels.known_until, hpa.last_scale_time)


def step_of(
    hpa: Autoscaler, wish: ZeroWish | None, levels: Levels, quiet: Quiet | None, now: float, *, is_asleep: bool
) -> Step:
    """`wish` is None if nothing is asked for that can be done, and then a target that sleeps is woken."""
    if is_asleep and (wish is None or levels.has_work(wish.activation_milli)):
        return Step.WAKE
    if is_asleep:
        return Step.CHECK if hpa.current_replicas else Step.NOTHING
    is_over = wish is not None and quiet is not None and now - quiet.since >= wish.cooldown_seconds
    # A target that somebody else has scaled to 0 is left alone, as the HPA leaves it.
    return Step.SLEEP if is_over and hpa.current_replicas else Step.NOTHING
