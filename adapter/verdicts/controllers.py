"""The arithmetic of Kubernetes' HPA controller for many HPAs at once: metrics and replicas in, desired replicas out.

Follows pkg/controller/podautoscaler (horizontal.go, replica_calculator.go) of Kubernetes 1.36, and the zero rule of its
gate HPAScaleToZero, which 1.37 turns on. Each HPA is a column ("lane") of numpy arrays, because a report replays
thousands of them over weeks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes, Seconds
from adapter.verdicts.hpa import Behavior, Hpa, ScaleDown, ScalingRules
from adapter.verdicts.recent import Changes, Counts, RecentCounts, Window

Milli = NDArray[np.float64]
"""Values of metrics in thousandths, rounded up; NaN: the metric failed."""

MOST_REPLICAS = 2**31 - 1
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


class Controllers:
    """Decides for all lanes, one sync after another."""

    def __init__(self, hpas: Sequence[Hpa], flags: ControllerFlags = DEFAULT_FLAGS) -> None:
        behaviors = [hpa.behavior or _WITHOUT_BEHAVIOR for hpa in hpas]
        ups: list[ScalingRules] = [behavior.scale_up for behavior in behaviors]
        downs: list[ScalingRules] = [behavior.scale_down for behavior in behaviors]
        down_seconds = [_window(rules, flags.downscale_stabilization_seconds) for rules in downs]
        up_seconds = [_window(rules, 0.0) for rules in ups]
        self._flags = flags
        self._least, self._most = (
            np.array([getattr(hpa, name) for hpa in hpas], np.int64) for name in ("min_replicas", "max_replicas")
        )
        self._lowest = np.maximum(self._least, 1)
        self._has_behavior = np.array([hpa.behavior is not None for hpa in hpas])
        self._all_have_behavior = bool(self._has_behavior.all())
        self._metrics = _Metrics(hpas)
        up_tolerance, down_tolerance = (
            np.array([flags.tolerance if rules.tolerance is None else rules.tolerance for rules in direction])
            for direction in (ups, downs)
        )
        self._lowest_ratio, self._highest_ratio = 1.0 - down_tolerance, 1.0 + up_tolerance
        self._up_policies, self._down_policies = _Policies(ups), _Policies(downs)
        self.recommended = RecentCounts(len(hpas), max((*up_seconds, *down_seconds), default=0.0))
        self._down_windows = [
            (lanes, Window(self.recommended, seconds, lanes, "highest")) for seconds, lanes in lanes_by(down_seconds)
        ]
        self._up_windows = [
            (lanes, Window(self.recommended, seconds, lanes, "lowest"))
            for seconds, lanes in lanes_by(up_seconds)
            if seconds > 0
        ]
        self.added, self.removed = (
            Changes(len(hpas), policies.longest) for policies in (self._up_policies, self._down_policies)
        )
        self.scaled_to_zero: Flags = np.zeros(len(hpas), np.bool_)
        """The condition ScaledToZero: whether the controller itself took the last replica away."""

    def sync(self, now: float, values: Milli, spec: Counts, status: Counts, ready: Counts) -> Counts:
        """Returns the desired replicas of each lane: `spec` where nothing changes.

        `now` is in seconds and never goes back. `values` has a row for each metric, in the order of the HPA, and as
        many rows as the HPA with most metrics; what is in a row that an HPA lacks has no effect. `spec`, `status` and
        `ready` are the replicas that the target should have, has, and has ready."""
        if self.recommended.is_empty:  # as after a restart, which loses what was remembered
            self.recommended.append(now, spec)
        with np.errstate(divide="ignore", invalid="ignore"):
            proposed = self._proposed(values, spec, status, ready)
        is_out = (spec < self._lowest) | (spec > self._most)
        is_any_out = bool(is_out.any())
        if is_any_out:
            proposed = np.where(is_out & ~((spec == 0) & self._leaves_zero), -1, proposed)
        stable = self._stabilized(now, proposed, spec)
        self.recommended.append(now, proposed)
        desired = self._limited(now, stable, spec)
        if is_any_out or (proposed < 0).any():
            within_range = np.where(spec == 0, 0, np.clip(spec, self._least, self._most))
            desired = np.where(
                proposed < 0, within_range, np.where(spec == 0, np.maximum(desired, self._least), desired)
            )
        self._remember(now, spec, desired)
        return desired

    @property
    def _leaves_zero(self) -> Flags:
        return self.scaled_to_zero & self._flags.scales_to_zero

    def _proposed(self, values: Milli, spec: Counts, status: Counts, ready: Counts) -> Counts:
        """Returns the largest proposal of any metric; negative where metrics failed and nothing may be decided."""
        proposals = self._metrics.proposals(values, spec, status, ready, self._is_within)
        if len(proposals) == 1:
            best, is_undecided = proposals[0], np.isnan(proposals[0])
        else:
            failed = np.count_nonzero(np.isnan(proposals) & self._metrics.is_used, axis=0)
            best = np.fmax.reduce(np.where(self._metrics.is_used, proposals, np.nan), axis=0)
            is_undecided = (failed == self._metrics.number) | ((failed > 0) & (best < spec))
        proposed: Counts = np.where(is_undecided, -1, np.minimum(best, MOST_REPLICAS)).astype(np.int64)
        return proposed

    def _is_within(self, ratio: Milli) -> Flags:
        """Whether a metric is so near its target that nothing changes. The ratio is infinite or NaN at 0 replicas."""
        within: Flags = (self._lowest_ratio <= ratio) & (ratio <= self._highest_ratio)
        return within

    def _stabilized(self, now: float, proposed: Counts, spec: Counts) -> Counts:
        """Without `behavior`, only scaling down waits. A record as old as the window no longer counts: the controller's
        syncs are never exactly one period apart."""
        highest, lowest = proposed.copy(), proposed.copy() if self._up_windows else proposed
        for lanes, window in self._down_windows:
            highest[lanes] = np.maximum(highest[lanes], window.at(now))
        for lanes, window in self._up_windows:
            lowest[lanes] = np.minimum(lowest[lanes], window.at(now))
        stable: Counts = np.minimum(np.maximum(spec, lowest), highest)
        return stable if self._all_have_behavior else np.where(self._has_behavior, stable, highest)

    def _limited(self, now: float, stable: Counts, spec: Counts) -> Counts:
        """Applies the policies, then the least and the most replicas."""
        limited = stable.copy()
        if not self._all_have_behavior:
            without = np.clip(stable, self._least, np.minimum(self._most, np.maximum(2 * spec, 4)))
            limited[~self._has_behavior] = without[~self._has_behavior]
        (moved,) = np.nonzero(stable != spec)
        moved = moved if self._all_have_behavior else moved[self._has_behavior[moved]]
        is_rise = stable[moved] > spec[moved]
        rises, falls = moved[is_rise], moved[~is_rise]
        if len(rises):
            limit = np.maximum(self._limit(now, self._up_policies, rises, spec[rises]), spec[rises])
            limited[rises] = np.minimum(stable[rises], np.minimum(self._most[rises], limit))
        if len(falls):
            limit = np.minimum(self._limit(now, self._down_policies, falls, spec[falls]), spec[falls])
            limited[falls] = np.maximum(stable[falls], np.maximum(self._least[falls], limit))
        return limited

    def _limit(self, now: float, policies: "_Policies", lanes: Indexes, spec: Counts) -> Counts:
        """Returns the most or the least replicas that the policies of one direction allow some lanes."""
        longest = policies.longest_of_all
        if not (self.added.has_within(now, longest) or self.removed.has_within(now, longest)):
            return policies.limit(lanes, spec[np.newaxis], spec)
        starts = [
            self._replicas_before(now, longest, seconds[lanes], lanes, spec)
            for longest, seconds in zip(policies.longest_of_row, policies.seconds, strict=True)
        ]
        return policies.limit(lanes, np.array(starts), spec)

    def _replicas_before(self, now: float, longest: float, seconds: Seconds, lanes: Indexes, spec: Counts) -> Counts:
        """Returns the replicas of some lanes so many seconds ago. `longest`: the largest of any lane's `seconds`."""
        replicas = spec
        if self.added.has_within(now, longest):
            replicas = replicas - self.added.within(now, seconds, lanes)
        if self.removed.has_within(now, longest):
            replicas = replicas + self.removed.within(now, seconds, lanes)
        return replicas

    def _remember(self, now: float, spec: Counts, desired: Counts) -> None:
        (changed,) = np.nonzero(desired != spec)
        if not len(changed):
            return
        change, has_behavior = (desired - spec)[changed], self._has_behavior[changed]
        added, removed = (changed[has_behavior & is_so] for is_so in (change > 0, change < 0))
        self.added.append(now, added, change[has_behavior & (change > 0)])
        self.removed.append(now, removed, -change[has_behavior & (change < 0)])
        self.scaled_to_zero[changed] = (spec > 0)[changed] & (desired == 0)[changed] & (self._least == 0)[changed]


class _Metrics:
    """The metrics of all lanes as rows of equal length."""

    def __init__(self, hpas: Sequence[Hpa]) -> None:
        shape = max((len(hpa.metrics) for hpa in hpas), default=0), len(hpas)
        self.is_used: Flags = np.zeros(shape, np.bool_)
        self._is_average, self._target = np.zeros(shape, np.bool_), np.ones(shape)
        for lane, hpa in enumerate(hpas):
            for row, metric in enumerate(hpa.metrics):
                target = metric.source.target
                self.is_used[row, lane] = True
                self._is_average[row, lane] = target.average_value is not None
                self._target[row, lane] = target.average_value or target.value or 1
        self._are_averages = bool(self._is_average[self.is_used].all())
        self.number: Counts = np.count_nonzero(self.is_used, axis=0).astype(np.int64)

    def proposals(
        self, values: Milli, spec: Counts, status: Counts, ready: Counts, is_within: Callable[[Milli], Flags]
    ) -> Milli:
        """Returns the replicas that each metric asks for; NaN: it failed. A `Value` fails, too, if no pod exists."""
        if self._are_averages:
            asked = np.ceil(values / self._target)
            return np.where(is_within(values / (self._target * status)), status, asked)
        ratio = values / np.where(self._is_average, self._target * status, self._target)
        whole = np.where(self._is_average, values / self._target, ratio * np.where(spec == 0, 1, ready))
        asked = np.where(np.isnan(values), np.nan, np.ceil(whole))
        asked = np.where(~self._is_average & (spec > 0) & (status == 0), np.nan, asked)
        is_kept = is_within(ratio) & (self._is_average | (spec > 0))
        return np.where(is_kept, np.where(self._is_average, status, spec), asked)


class _Policies:
    """The policies of all lanes in one direction, as rows of equal length."""

    def __init__(self, rules: Sequence[ScalingRules]) -> None:
        """`rules`: of each lane."""
        shape = max((len(each.policies) for each in rules), default=0), len(rules)
        self.seconds: Seconds = np.zeros(shape)
        sign = self._sign = -1 if rules and isinstance(rules[0], ScaleDown) else 1
        self._factor, self._more = np.ones(shape), np.full(shape, -sign * np.inf)
        """What the replicas are multiplied by, and what is added; a lane that lacks a policy changes by none."""
        self._is_used = np.zeros(shape, np.bool_)
        for lane, each in enumerate(rules):
            for row, policy in enumerate(each.policies):
                is_percent = policy.type == "Percent"
                self.seconds[row, lane], self._is_used[row, lane] = policy.period_seconds, True
                self._factor[row, lane] = 1 + sign * policy.value / 100 if is_percent else 1
                self._more[row, lane] = 0 if is_percent else sign * policy.value
        self.longest: Seconds = self.seconds.max(axis=0, initial=0.0)
        self.longest_of_row: list[float] = self.seconds.max(axis=1, initial=0.0).tolist()
        self.longest_of_all = max(self.longest_of_row, default=0.0)
        self._is_disabled, self._takes_least = (
            np.array([each.select_policy == policy for each in rules], np.bool_) for policy in ("Disabled", "Min")
        )
        self._are_usual = not (self._is_disabled.any() or self._takes_least.any())

    def limit(self, lanes: Indexes, starts: Counts, spec: Counts) -> Counts:
        """Returns how far the policies let these lanes go. `starts`: the replicas at each policy's period's start."""
        reach = starts * self._factor[:, lanes] + self._more[:, lanes]
        # Up is rounded up, so that a small percentage of few replicas still adds one; down is cut off.
        reach = np.ceil(reach) if self._sign > 0 else -np.trunc(reach)
        most = np.maximum.reduce(reach, axis=0)
        if self._are_usual:
            usual: Counts = self._sign * most.astype(np.int64)
            return usual
        is_used, takes_least = self._is_used[:, lanes], self._takes_least[lanes]
        least = np.where(is_used, reach, np.inf).min(axis=0)
        chosen = self._sign * np.where(takes_least, least, most)
        limit: Counts = np.where(self._is_disabled[lanes], spec, chosen).astype(np.int64)
        return limit


def _window(rules: ScalingRules, of_flag: float) -> float:
    return of_flag if rules.stabilization_window_seconds is None else float(rules.stabilization_window_seconds)


def lanes_by(seconds: Sequence[float]) -> Iterator[tuple[float, Indexes | slice]]:
    """Yields each window with its lanes: a slice, which costs less, where they are neighbours."""
    for window in sorted(set(seconds)):
        lanes = np.flatnonzero(np.array(seconds) == window)
        first, last = int(lanes[0]), int(lanes[-1])
        yield window, slice(first, last + 1) if last - first + 1 == len(lanes) else lanes
