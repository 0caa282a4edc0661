"""The arithmetic of Kubernetes' HPA controller for many HPAs at once: metrics and replicas in, desired replicas out.

Follows pkg/controller/podautoscaler (horizontal.go, replica_calculator.go) of Kubernetes 1.36, and the zero rule of its
gate HPAScaleToZero, which 1.37 turns on. The rules are about one HPA and plain Python on numbers and records; replays,
which have thousands of HPAs over weeks, compile them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags
from adapter.records import Records, records_of
from adapter.verdicts.hpa import Behavior, Hpa, ScalingRules
from adapter.verdicts.recent import (
    HIGHEST,
    LOWEST,
    NONE,
    ChangeRecord,
    ChangesRecord,
    CountRecord,
    Counts,
    WindowRecord,
    changed_within,
    changes_of,
    extreme,
    make_room_for_changes,
    make_room_for_counts,
    note,
    remember,
    windows_of,
)

Milli = NDArray[np.float64]
"""Values of metrics in thousandths, rounded up; NaN: the metric failed."""

MOST_REPLICAS = 2**31 - 1
UNDECIDED = -1
"""Metrics failed, and nothing may be decided."""
UP, DOWN = 1, -1
_WITHOUT_BEHAVIOR = Behavior()


@dataclass(frozen=True, slots=True)
class ControllerFlags:
    """Flags and gates of kube-controller-manager."""

    sync_seconds: float = 15.0
    tolerance: float = 0.1
    downscale_stabilization_seconds: float = 300.0
    scales_to_zero: bool = True
    """The gate HPAScaleToZero."""


DEFAULT_FLAGS = ControllerFlags()


class HpaRecord:
    least: int
    most: int
    metrics: int
    """How many it has."""
    has_behavior: bool
    lowest_ratio: float
    highest_ratio: float
    """Of a metric to its target, between which nothing changes."""
    has_started: bool
    """Whether a sync has been made. A restart of the controller loses what it remembered."""
    scaled_to_zero: bool
    """The condition ScaledToZero: whether the controller itself took the last replica away."""


class MetricRecord:
    is_average: bool
    target: float
    """In thousandths."""


class RulesRecord:
    """One direction of `behavior`."""

    sign: int
    """UP or DOWN."""
    policies: int
    """How many it has."""
    is_disabled: bool
    takes_least: bool


class PolicyRecord:
    seconds: float
    factor: float
    more: float
    """What the replicas are multiplied by, and what is added."""


class Direction(NamedTuple):
    """What there is of each HPA (rows) in one direction."""

    rules: Records[RulesRecord]
    policies: Records[PolicyRecord]
    lists: Records[ChangesRecord]
    changes: Records[ChangeRecord]
    windows: Records[WindowRecord]
    recommended: Records[CountRecord]


class Hpas(NamedTuple):
    """HPAs, and what the controller remembers of each (rows)."""

    specs: Records[HpaRecord]
    metrics: Records[MetricRecord]
    up: Direction
    down: Direction
    scales_to_zero: bool
    """The gate HPAScaleToZero."""


def sync_all(
    now: float, hpas: Hpas, values: Milli, spec: Counts, status: Counts, ready: Counts, desired: Counts
) -> None:
    """Writes the desired replicas of each HPA (`Controllers.sync`), and remembers what the next syncs depend on."""
    for at in range(len(hpas.specs)):
        desired[at] = sync_one(now, hpas, at, values[:, at], spec[at], status[at], ready[at])


def sync_one(now: float, hpas: Hpas, at: int, values: Milli, spec: int, status: int, ready: int) -> int:
    """Returns the desired replicas of one HPA. `values`: of its metrics."""
    it, up, down = hpas.specs[at], hpas.up, hpas.down
    if not it.has_started:
        it.has_started = True
        remember(up.windows, up.recommended, at, now, spec)
        remember(down.windows, down.recommended, at, now, spec)
    proposed = proposal(it, hpas.metrics, at, values, spec, status, ready)
    if is_out_of_range(it, spec, hpas.scales_to_zero):
        proposed = UNDECIDED
    highest = extreme(down.windows, down.recommended, at, now)
    lowest = extreme(up.windows, up.recommended, at, now)
    remember(up.windows, up.recommended, at, now, proposed)
    remember(down.windows, down.recommended, at, now, proposed)
    stable = stabilized(it, proposed, spec, highest, lowest)
    allowed = stable
    if it.has_behavior and proposed != UNDECIDED and stable != spec:
        added, removed = (up.lists, up.changes), (down.lists, down.changes)
        direction = up if stable > spec else down
        allowed = limit(now, direction.rules, direction.policies, added, removed, at, spec)
    desired = bounded(it, proposed, stable, allowed, spec)
    if desired != spec:
        it.scaled_to_zero = spec > 0 and desired == 0 and it.least == 0
        if it.has_behavior:
            direction = up if desired > spec else down
            note(direction.lists, direction.changes, at, now, abs(desired - spec))
    return desired


def proposal(
    it: HpaRecord, metrics: Records[MetricRecord], at: int, values: Milli, spec: int, status: int, ready: int
) -> int:
    """Returns the largest number that any metric of one HPA asks for, or UNDECIDED."""
    largest, failed = -1.0, 0
    for row in range(it.metrics):
        asked = asked_by(it, metrics[at, row], values[row], spec, status, ready)
        if np.isnan(asked):
            failed += 1
        else:
            largest = max(largest, asked)
    if failed == it.metrics or (failed > 0 and largest < spec):
        return UNDECIDED
    return int(min(largest, MOST_REPLICAS))


def asked_by(it: HpaRecord, metric: MetricRecord, value: float, spec: int, status: int, ready: int) -> float:
    """Returns the replicas that a metric asks for; NaN: it failed. A `Value` fails, too, if no pod exists."""
    ratio = value / metric.target
    if metric.is_average:
        is_kept = status > 0 and is_within(it, value / (metric.target * status))
        return float(status) if is_kept else float(np.ceil(ratio))
    if spec == 0:
        return float(np.ceil(ratio))
    if status == 0:
        return np.nan
    return float(spec) if is_within(it, ratio) else float(np.ceil(ratio * ready))


def is_within(it: HpaRecord, ratio: float) -> bool:
    """Whether a metric is so near its target that nothing changes."""
    return it.lowest_ratio <= ratio <= it.highest_ratio


def is_out_of_range(it: HpaRecord, spec: int, may_leave_zero: bool) -> bool:  # noqa: FBT001 - as compiled code calls it
    """Whether the replicas are such that metrics do not matter."""
    leaves_zero = spec == 0 and it.scaled_to_zero and may_leave_zero
    return (spec < max(it.least, 1) or spec > it.most) and not leaves_zero


def stabilized(it: HpaRecord, proposed: int, spec: int, highest: int, lowest: int) -> int:
    """`highest` and `lowest`: of the recommendations within the windows, or NONE. A record as old as the window no
    longer counts: the controller's syncs are never exactly one period apart. Without `behavior`, only scaling down
    waits."""
    high = max(proposed, highest)
    if not it.has_behavior:
        return high
    low = min(proposed, lowest) if lowest != NONE else proposed
    return min(max(spec, low), high)


def bounded(it: HpaRecord, proposed: int, stable: int, allowed: int, spec: int) -> int:
    """Applies what the policies allow, then the least and the most replicas."""
    if proposed == UNDECIDED:
        return 0 if spec == 0 else min(max(spec, it.least), it.most)
    if not it.has_behavior:
        desired = min(max(stable, it.least), it.most, max(2 * spec, 4))
    elif stable > spec:
        desired = min(stable, it.most, max(allowed, spec))
    elif stable < spec:
        desired = max(stable, it.least, min(allowed, spec))
    else:
        desired = stable
    return max(desired, it.least) if spec == 0 else desired


def limit(
    now: float,
    rules: Records[RulesRecord],
    policies: Records[PolicyRecord],
    added: tuple[Records[ChangesRecord], Records[ChangeRecord]],
    removed: tuple[Records[ChangesRecord], Records[ChangeRecord]],
    at: int,
    spec: int,
) -> int:
    """Returns the most or the least replicas that the policies of one direction allow one HPA. Up is rounded up, so
    that a small percentage of few replicas still adds one; down is cut off."""
    it, chosen = rules[at], 0.0
    if it.is_disabled:
        return spec
    for row in range(it.policies):
        policy = policies[at, row]
        before = spec - changed_within(*added, at, now, policy.seconds)
        before += changed_within(*removed, at, now, policy.seconds)
        reach = before * policy.factor + policy.more
        reach = np.ceil(reach) if it.sign == UP else -np.trunc(reach)
        is_better = reach < chosen if it.takes_least else reach > chosen
        if row == 0 or is_better:
            chosen = reach
    return int(it.sign * chosen)


RULES: tuple[Callable[..., object], ...] = (
    sync_one,
    proposal,
    asked_by,
    is_within,
    is_out_of_range,
    stabilized,
    bounded,
    limit,
)
"""What decides for one HPA, of this module."""


class Controllers:
    """Decides for all HPAs, one sync after another."""

    def __init__(self, hpas: Sequence[Hpa], flags: ControllerFlags = DEFAULT_FLAGS) -> None:
        self.hpas = hpas_of(hpas, flags)

    @property
    def scaled_to_zero(self) -> Flags:
        """The condition ScaledToZero of each HPA, which can be written."""
        scaled: Flags = self.hpas.specs["scaled_to_zero"]
        return scaled

    def sync(self, now: float, values: Milli, spec: Counts, status: Counts, ready: Counts) -> Counts:
        """Returns the desired replicas of each HPA: `spec` where nothing changes.

        `now` is in seconds and never goes back. `values` has a row for each metric, in the order of the HPA, and as
        many rows as the HPA with most metrics; what is in a row that an HPA lacks has no effect. `spec`, `status` and
        `ready` are the replicas that the target should have, has, and has ready."""
        self.hpas = with_room(self.hpas, 1)
        desired = np.empty(len(spec), np.int64)
        sync_all(now, self.hpas, values, spec, status, ready, desired)
        return desired


def hpas_of(hpas: Sequence[Hpa], flags: ControllerFlags) -> Hpas:
    """Returns the HPAs as a controller that has just started knows them."""
    behaviors = [hpa.behavior or _WITHOUT_BEHAVIOR for hpa in hpas]
    ups: list[ScalingRules] = [behavior.scale_up for behavior in behaviors]
    downs: list[ScalingRules] = [behavior.scale_down for behavior in behaviors]
    specs = records_of(HpaRecord, len(hpas))
    specs["least"], specs["most"] = [hpa.min_replicas for hpa in hpas], [hpa.max_replicas for hpa in hpas]
    specs["metrics"] = [len(hpa.metrics) for hpa in hpas]
    specs["has_behavior"] = [hpa.behavior is not None for hpa in hpas]
    specs["lowest_ratio"] = [1.0 - _or(rules.tolerance, flags.tolerance) for rules in downs]
    specs["highest_ratio"] = [1.0 + _or(rules.tolerance, flags.tolerance) for rules in ups]
    up, down = (
        _direction(rules, sign, side, usual)
        for rules, sign, side, usual in (
            (ups, UP, LOWEST, 0.0),
            (downs, DOWN, HIGHEST, flags.downscale_stabilization_seconds),
        )
    )
    return Hpas(specs, _metrics(hpas), up, down, flags.scales_to_zero)


def with_room(hpas: Hpas, syncs: int) -> Hpas:
    """Returns the same, with room for what so many more syncs have to remember."""
    return hpas._replace(up=_with_room(hpas.up, syncs), down=_with_room(hpas.down, syncs))


def _with_room(direction: Direction, syncs: int) -> Direction:
    """The first sync remembers the replicas before it, too."""
    return direction._replace(
        changes=make_room_for_changes(direction.lists, direction.changes, syncs),
        recommended=make_room_for_counts(direction.windows, direction.recommended, syncs + 1),
    )


def _metrics(hpas: Sequence[Hpa]) -> Records[MetricRecord]:
    metrics = records_of(MetricRecord, len(hpas), max((len(hpa.metrics) for hpa in hpas), default=0))
    for at, hpa in enumerate(hpas):
        for row, metric in enumerate(hpa.metrics):
            target, it = metric.source.target, metrics[at, row]
            it.is_average = target.average_value is not None
            it.target = target.average_value or target.value or 1
    return metrics


def _direction(each: Sequence[ScalingRules], sign: int, side: int, usual: float) -> Direction:
    """`usual`: the seconds of the window where rules name none."""
    rules = records_of(RulesRecord, len(each))
    rules["sign"], rules["policies"] = sign, [len(of.policies) for of in each]
    rules["is_disabled"], rules["takes_least"] = (
        [of.select_policy == policy for of in each] for policy in ("Disabled", "Min")
    )
    longest = [float(max(policy.period_seconds for policy in of.policies)) for of in each]
    windows = windows_of([float(_or(of.stabilization_window_seconds, usual)) for of in each], side)
    return Direction(rules, _policies(each, sign), *changes_of(longest), *windows)


def _policies(each: Sequence[ScalingRules], sign: int) -> Records[PolicyRecord]:
    policies = records_of(PolicyRecord, len(each), max((len(of.policies) for of in each), default=0))
    for at, of in enumerate(each):
        for row, policy in enumerate(of.policies):
            it, is_percent = policies[at, row], policy.type == "Percent"
            it.seconds = policy.period_seconds
            it.factor = 1 + sign * policy.value / 100 if is_percent else 1
            it.more = 0 if is_percent else sign * policy.value
    return policies


def _or(number: float | None, usual: float) -> float:
    return usual if number is None else number
