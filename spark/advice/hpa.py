"""Pure: a group's figures -> the HPA it should have, with a reason for every number.

The arithmetic of an HPA on lag (replicas = lag / target) is a control loop: with a target of less than about 2.7 times
what a member does during the loop's delay it overshoots, and with less than 0.64 times that it never settles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from spark.advice.data_findings import DAY, findings_of
from spark.advice.demand import HEADROOM, USED_AT_MOST, Load, load_of, members_needed
from spark.advice.finding import Finding
from spark.figures import formatting
from spark.figures.model import Group

HPA_PERIOD_SECONDS = 15
"""How often the HPA controller looks."""
START_SECONDS = 30
"""A pod's way from wanted to ready, assumed."""
JOIN_SECONDS = 10
"""A member's way from ready to its first message, a rebalance included, assumed."""
NO_OVERSHOOT = math.e
"""Of target / capacity / delay: from here on an integrator with a delay settles without overshoot."""
A_WEEK = 6.5 * DAY
GUESS = 100


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    reason: str


@dataclass(frozen=True, slots=True)
class Behavior:
    """One direction of an HPA's `behavior`; a policy of 0 is left out."""

    window_seconds: Number
    pods: Number
    percent: Number
    period_seconds: int


@dataclass(frozen=True, slots=True)
class Recommendation:
    target: Number
    """`averageValue` of the lag: messages that one replica may have waiting."""
    min_replicas: Number
    max_replicas: Number
    up: Behavior
    down: Behavior


@dataclass(frozen=True, slots=True)
class Advice:
    load: Load
    hpa: Recommendation
    findings: tuple[Finding, ...]
    """Worst first."""


def advice_for(group: Group) -> Advice:
    load = load_of(group)
    return Advice(load=load, hpa=recommended(load, group.interval_seconds), findings=findings_of(group, load))


def recommended(load: Load, interval_seconds: float) -> Recommendation:
    most = max_replicas(load)
    return Recommendation(
        target=target(load, interval_seconds),
        min_replicas=min_replicas(load, most.value),
        max_replicas=most,
        up=scale_up(load, most.value),
        down=scale_down(load),
    )


def loop_delay(interval_seconds: float) -> float:
    """Seconds from a message's arrival until a replica that it caused does work."""
    return interval_seconds + HPA_PERIOD_SECONDS + START_SECONDS + JOIN_SECONDS


def target(load: Load, interval_seconds: float) -> Number:
    seconds = NO_OVERSHOOT * loop_delay(interval_seconds)
    if load.per_member <= 0:
        return Number(
            GUESS,
            "A guess: nothing was seen in this range that a member read for sure, so there is nothing to count with.",
        )
    value = rounded(load.per_member * seconds)
    source = (
        f"A member does {formatting.rate(load.per_member)} while saturated (median of {load.capacity.windows} windows)"
        if load.capacity
        else f"A member did {formatting.rate(load.per_member)} in its busiest hour; it may be able to do more"
    )
    return Number(
        value,
        f"{source}. Times {formatting.duration(seconds)}: {NO_OVERSHOOT:.1f} times the loop's delay "
        f"({formatting.decimal(interval_seconds)} s between samples + {HPA_PERIOD_SECONDS} s until the HPA looks "
        f"+ about "
        f"{START_SECONDS} s until a pod runs + {JOIN_SECONDS} s until it has joined). With less the replicas swing; "
        f"the price is a lag of about {formatting.duration(value / load.per_member)} of work while it scales.",
    )


def min_replicas(load: Load, most: int) -> Number:
    if load.idle_share >= 0.1:
        return Number(
            0,
            f"In {formatting.share(load.idle_share)} of the hours nothing was produced. 0 needs the feature gate "
            "HPAScaleToZero (on by default from Kubernetes 1.37) and a rule that names the group's topics; else 1.",
        )
    if load.capacity is None:
        return Number(1, "What a member can do is not known, so no more than one is asked for off-peak.")
    if math.isnan(load.off_peak):
        return Number(1, "What is produced off-peak is not known, so no more than one is asked for.")
    needed = members_needed(load.off_peak / USED_AT_MOST, load.capacity.p50, load.partitions)
    return Number(
        max(1, min(needed, most)),
        f"Off-peak {formatting.rate(load.off_peak)} is produced (a tenth of the hours have less); that keeps so many "
        "members "
        f"busy to {formatting.share(USED_AT_MOST)} of {formatting.rate(load.capacity.p50)} each.",
    )


def max_replicas(load: Load) -> Number:
    partitions = max(1, load.partitions)
    every = f"One for each of {formatting.plural(partitions, 'partition')}; a member more has nothing to read."
    if load.capacity is None or not load.capacity.is_firm:
        return Number(partitions, f"{every} Less cannot be justified while a member's capacity is not known.")
    if load.covered_seconds < A_WEEK or math.isnan(load.peak):
        return Number(partitions, f"{every} With less than a week of data the weekly peak may not have been seen.")
    needed = members_needed(HEADROOM * load.peak, load.capacity.p50, partitions)
    if needed >= partitions:
        return Number(partitions, every)
    return Number(
        max(needed, 2),
        f"The busiest hour brought {formatting.rate(load.peak)}; {HEADROOM} times that, for peaks within the hour and "
        "to work "
        f"off what waited, in whole partitions per member, needs {needed} of the {partitions} that could read"
        + ("; the second is for when that one fails." if needed < 2 else "."),
    )


def scale_up(load: Load, most: int) -> Behavior:
    needed = math.ceil(load.rise / load.per_member) if load.per_member > 0 else 0
    pods = min(most, max(4, needed))
    reason = (
        f"The steepest rise from one hour to the next was {formatting.rate(load.rise)}: "
        f"{formatting.plural(needed, 'member')} more, "
        "at once."
        if needed >= 4
        else "Kubernetes' own default: the steepest rise from one hour to the next needs fewer."
    )
    return Behavior(
        window_seconds=Number(0, "Waiting lets the lag grow; the target alone keeps this loop calm."),
        pods=Number(pods, reason + " Never Percent alone: a share of 0 replicas is 0."),
        percent=Number(100, "Doubling, where that is more."),
        period_seconds=HPA_PERIOD_SECONDS,
    )


def scale_down(load: Load) -> Behavior:
    window = (
        Number(
            900,
            f"Production fell by half for an hour or two and came back {formatting.plural(load.dips, 'time')}: "
            f"waiting is "
            "cheaper.",
        )
        if load.dips >= 2
        else Number(300, "Every step costs the group a rebalance; five minutes of lower need come first.")
    )
    return Behavior(
        window_seconds=window,
        pods=Number(0, ""),
        percent=Number(50, "Half at a time, so that a mistake is noticed before all members are gone."),
        period_seconds=60,
    )


def rounded(value: float) -> int:
    """To two digits, upward: more would pretend a precision that no capacity has."""
    if value <= 10:
        return max(1, math.ceil(value))
    unit = 10 ** (len(str(math.floor(value))) - 2)
    return int(math.ceil(value / unit - 1e-9) * unit)
