"""Pure: a group's figures -> the HPA it should have, with a reason for every number.

An HPA on lag (replicas = lag / target) is a control loop. While it scales, a message waits for about target / capacity
seconds, so the target follows from the wait that was agreed on. With less than 0.64 times the loop's delay the
replicas never settle: then, and where the data does not support a number, no target is recommended.
"""

import math
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from adapter.verdicts.causes import REPLICAS_DO_NOT_HELP, Verdict
from spark.advice.data_findings import DAY, findings_of
from spark.advice.demand import HEADROOM, USED_AT_MOST, Load, load_of, members_needed, production_of
from spark.advice.finding import LITTLE_DATA, Finding, Severity
from spark.advice.replay import HPA_PERIOD_SECONDS, TOLERANCE, Expected, Loop, replayed
from spark.figures import formatting
from spark.figures.model import Capacity, Group

START_SECONDS = 30
"""From a pod that is wanted to a pod that is ready, assumed."""
JOIN_SECONDS = 10
"""From a ready pod to its first message, a rebalance included, assumed."""
SETTLES = 2 / math.pi
"""Of target / capacity / delay: with less, an integrator with a delay never settles."""
MARGIN = 1.2
"""The HPA tolerates 10 % above its target, and new pods take their time."""
KEPT_ENOUGH = 0.95
"""Of the time; with less in the replay, the wait is not kept."""
COMMITS_OF_TARGET = 0.5
"""Of target / capacity: with a longer time between two commits, the lag's steps move the replicas by half and more."""
CHANGES_A_DAY = 48
"""One in half an hour. Each is a rebalance, in which members stop for ten seconds or so: half a per cent of the day."""
CALMER_SECONDS = (900, 1800, 3600)
"""Windows for scaling down that are tried; an HPA takes no longer one."""
A_WEEK = 6.5 * DAY
NO_HPA = "No HPA is recommended for it: see why below."
TOO_LITTLE = "Less than a day was seen: the daily peak may not be in it."
UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    reason: str


@dataclass(frozen=True, slots=True)
class Target:
    """None: no number can be recommended, for this reason."""

    value: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Behavior:
    """One direction of an HPA's `behavior`; a policy of 0 is left out."""

    window_seconds: Number
    pods: Number
    percent: Number
    period_seconds: int

    @property
    def policies(self) -> list[tuple[str, Number]]:
        return [(kind, number) for kind, number in (("Pods", self.pods), ("Percent", self.percent)) if number.value]


@dataclass(frozen=True, slots=True)
class Recommendation:
    target: Target
    """`averageValue` of the lag: messages that one replica may have waiting."""
    min_replicas: Number
    max_replicas: Number
    up: Behavior
    down: Behavior

    @property
    def replicas(self) -> tuple[tuple[str, Number], ...]:
        """By their names in an HPA."""
        return ("minReplicas", self.min_replicas), ("maxReplicas", self.max_replicas)

    @property
    def behaviors(self) -> tuple[tuple[str, Behavior], ...]:
        """By their names in an HPA."""
        return ("scaleUp", self.up), ("scaleDown", self.down)


@dataclass(frozen=True, slots=True)
class Advice:
    load: Load
    hpa: Recommendation
    findings: tuple[Finding, ...]
    """Worst first."""
    expected: Expected | None = None
    """Of the recommended HPA; None where it has no target."""


def advice_for(group: Group, zone: ZoneInfo = UTC) -> Advice:
    """`zone`: in which times are told."""
    load = load_of(group)
    findings = findings_of(group, load, zone)
    most = max_replicas(load, is_even=all(it.code != Verdict.HOT_PARTITION for it in findings))
    target = _target(group, load, findings)
    hpa = Recommendation(
        target=target,
        min_replicas=min_replicas(load, most.value),
        max_replicas=most,
        up=scale_up(load, most.value),
        down=scale_down(load),
    )
    if target.value is None or load.capacity is None:
        return Advice(load, hpa, _without_hpa(findings))
    promised = _promised_seconds(group, load)
    hpa, expected = _calmest(hpa, load, load.capacity, group.interval_seconds, promised)
    if expected.kept_share < KEPT_ENOUGH:
        refused = Target(
            None,
            f"No HPA on lag keeps a wait of {_wait(group, promised)}: replayed over the day of the busiest hour, the "
            f"best target keeps it {formatting.share(expected.kept_share)} of the time. Allow a longer wait, or "
            f"{_instead(load, load.capacity)}",
        )
        return Advice(load, replace(hpa, target=refused), _without_hpa(findings))
    return Advice(load, hpa, (*findings, *_many_changes(expected, load, load.capacity)), expected)


def _without_hpa(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(replace(it, asks=NO_HPA) if it.code == Verdict.ABOVE_THRESHOLD else it for it in findings)


def _calmest(
    hpa: Recommendation, load: Load, capacity: Capacity, interval_seconds: float, promised: float
) -> tuple[Recommendation, Expected]:
    """With the shortest window for scaling down that changes the replicas seldom enough; if none does, the longest."""
    expected = first = replayed(load.production, _loop(hpa, capacity, interval_seconds), promised)
    for seconds in CALMER_SECONDS:
        if expected.changes_a_day > CHANGES_A_DAY and seconds > hpa.down.window_seconds.value:
            reason = (
                f"With {hpa.down.window_seconds.value} s, the replicas change {round(first.changes_a_day)} times a day "
                f"in the replay. Each change is a rebalance, and {CHANGES_A_DAY} a day are acceptable."
            )
            calmer = replace(hpa, down=replace(hpa.down, window_seconds=Number(seconds, reason)))
            expected = replayed(load.production, _loop(calmer, capacity, interval_seconds), promised)
    return (hpa if expected is first else calmer), expected


def _many_changes(expected: Expected, load: Load, capacity: Capacity) -> tuple[Finding, ...]:
    """A finding, or none."""
    if expected.changes_a_day <= CHANGES_A_DAY:
        return ()
    words = (
        f"The recommended HPA would change the replicas {round(expected.changes_a_day)} times a day, although it waits "
        f"{formatting.duration(CALMER_SECONDS[-1])} before it scales down, and each change is a rebalance."
    )
    asks = f"Allow a longer wait, or {_instead(load, capacity)}"
    return (Finding("many_changes", Severity.NOTE, "The recommended HPA changes the replicas often", words, asks),)


def loop_delay(interval_seconds: float) -> float:
    """Seconds from a message's arrival until a replica that it caused does work."""
    return interval_seconds + HPA_PERIOD_SECONDS + START_SECONDS + JOIN_SECONDS


def _target(group: Group, load: Load, findings: tuple[Finding, ...]) -> Target:
    """The target that keeps the agreed wait and the thresholds."""
    refusal = _refusal(load, findings)
    if load.capacity is None or refusal:
        return Target(None, refusal)
    promised = _promised_seconds(group, load)
    seconds, delay, wait = promised / MARGIN, loop_delay(group.interval_seconds), _wait(group, promised)
    instead = _instead(load, load.capacity)
    if load.peak > load.most_members * load.capacity.p50:
        return Target(
            None,
            f"No HPA keeps a wait of {wait}: the busiest hour brought {formatting.rate(load.peak)}, more than the "
            f"{formatting.plural(load.most_members, 'member')} that can have a partition do.",
        )
    if seconds < SETTLES * delay:
        return Target(
            None,
            f"No HPA on lag keeps a wait of {wait}: a replica that the lag asks for works "
            f"{formatting.duration(delay)} later ({_delay_in_words(group)}), and with a target for less than "
            f"{formatting.duration(SETTLES * delay)} of work the replicas never settle. Allow a wait of "
            f"{formatting.duration(10 * math.ceil(MARGIN * SETTLES * delay / 10))}, sample more often, or {instead}",
        )
    if group.commit_seconds is not None and group.commit_seconds > COMMITS_OF_TARGET * seconds:
        return Target(
            None,
            f"No HPA on lag keeps a wait of {wait}: commits come about every "
            f"{formatting.duration(group.commit_seconds)}. Until the next one the lag rises whatever the members do, "
            f"and the replicas would follow the commits. Commit every "
            f"{formatting.duration(COMMITS_OF_TARGET * seconds)}, allow a wait of "
            f"{formatting.duration(MARGIN * group.commit_seconds / COMMITS_OF_TARGET)}, or {instead}",
        )
    return Target(
        rounded(load.capacity.p50 * seconds),
        f"Messages: what a saturated member consumes ({formatting.rate(load.capacity.p50)}, the median of "
        f"{formatting.plural(load.capacity.windows, 'window')}) in {formatting.duration(seconds)}: the wait of {wait}, "
        f"less a sixth for the HPA's tolerance of {formatting.share(TOLERANCE)}. The replicas settle with "
        f"{formatting.duration(SETTLES * delay)} or more ({_delay_in_words(group)}).",
    )


def _wait(group: Group, promised: float) -> str:
    is_threshold = promised < 0.99 * group.agreement.max_wait_seconds
    return formatting.duration(promised) + (" (its threshold)" if is_threshold else "")


def _refusal(load: Load, findings: tuple[Finding, ...]) -> str:
    """Why no number can be recommended, whatever wait was agreed on; empty: one may be."""
    useless = [it.brief for it in findings if it.code in REPLICAS_DO_NOT_HELP and not it.is_over]
    if useless:
        return f"{useless[0]}: more replicas do not help."
    if load.capacity is None or math.isnan(load.peak):
        return "What a member can do is not known: the group was never seen saturated."
    return TOO_LITTLE if any(it.code == LITTLE_DATA for it in findings) else ""


def _promised_seconds(group: Group, load: Load) -> float:
    """The agreed wait, or less where a threshold is reached sooner in the busiest hour: that of all topics together, or
    one that was given for a topic."""
    given = [topic for topic in group.topics if topic.above.is_given]
    reached = [
        (sum(topic.above.threshold for topic in group.topics), load.peak),
        *((topic.above.threshold, float(production_of(topic.hours).max())) for topic in given),
    ]
    return min([group.agreement.max_wait_seconds, *(threshold / peak for threshold, peak in reached if peak > 0)])


def _instead(load: Load, capacity: Capacity) -> str:
    needed = members_needed(load.peak / USED_AT_MOST, capacity.p50, load.most_members)
    return f"keep {formatting.plural(needed, 'replica')}, enough for the busiest hour."


def _delay_in_words(group: Group) -> str:
    return (
        f"{formatting.decimal(group.interval_seconds)} s between samples + {HPA_PERIOD_SECONDS} s until the HPA looks "
        f"+ about {START_SECONDS} s until a pod runs + {JOIN_SECONDS} s until it has joined"
    )


def _loop(hpa: Recommendation, capacity: Capacity, interval_seconds: float) -> Loop:
    return Loop(
        hpa.target.value or 1,
        hpa.min_replicas.value,
        hpa.max_replicas.value,
        hpa.up.pods.value,
        hpa.down.window_seconds.value,
        capacity.p50,
        START_SECONDS + JOIN_SECONDS,
        interval_seconds,
    )


def min_replicas(load: Load, most: int) -> Number:
    if load.idle_share >= 0.1:
        return Number(
            0,
            f"In {formatting.share(load.idle_share)} of the hours nothing was produced. 0 needs the feature gate "
            "HPAScaleToZero (on by default from Kubernetes 1.37) and a rule that names the topics; otherwise use 1.",
        )
    if load.capacity is None:
        return Number(1, "What a member can do is not known, so one replica is the safe minimum.")
    if math.isnan(load.off_peak):
        return Number(1, "Off-peak production is not known, so one replica is the safe minimum.")
    needed = members_needed(load.off_peak / USED_AT_MOST, load.capacity.p50, load.partitions)
    return Number(
        max(1, min(needed, most)),
        f"Off-peak production is {formatting.rate(load.off_peak)} (a tenth of the hours have less). It keeps this many "
        f"members busy to {formatting.share(USED_AT_MOST)} of {formatting.rate(load.capacity.p50)} each.",
    )


def max_replicas(load: Load, *, is_even: bool) -> Number:
    """`is_even`: no partition is hot."""
    partitions = max(1, load.most_members)
    every = f"One for each of {formatting.plural(partitions, 'partition')}; another member would have nothing to read."
    if load.most_members > load.partitions:
        every = (
            "As many as there were: which member reads what is not known, and those of a share group share partitions."
        )
    elif load.most_members < load.partitions:
        every += " Of several topics, the largest one counts: the RangeAssignor gives all of them to the same members."
    if load.capacity is None or not load.capacity.is_firm:
        return Number(partitions, f"{every} While a member's capacity is not known, fewer may not be enough.")
    if not is_even:
        return Number(partitions, f"{every} With fewer, the member that reads the hot partition would read others too.")
    if load.covered_seconds < A_WEEK or math.isnan(load.peak):
        return Number(partitions, f"{every} Less than a week of data may not include the weekly peak.")
    needed = members_needed(HEADROOM * load.peak, load.capacity.p50, load.partitions)
    if needed >= partitions:
        return Number(partitions, every)
    return Number(
        max(needed, 2),
        f"The busiest hour brought {formatting.rate(load.peak)}; {HEADROOM} times that, for peaks within the hour and "
        f"to work off what waited, in whole partitions per member, needs {needed} of the {partitions} that could read"
        + ("; the second takes over if the first fails." if needed < 2 else "."),
    )


def scale_up(load: Load, most: int) -> Behavior:
    needed = math.ceil(load.rise / load.capacity.p50) if load.capacity else 0
    pods = min(most, max(4, needed))
    reason = (
        f"The steepest rise from one hour to the next was {formatting.rate(load.rise)}: "
        f"{formatting.plural(needed, 'member')} more, at once."
        if needed >= 4
        else "The default of Kubernetes. The steepest rise from one hour to the next needs fewer."
    )
    return Behavior(
        window_seconds=Number(0, "The lag grows while the HPA waits."),
        pods=Number(pods, reason + " A percentage alone never leaves 0 replicas."),
        percent=Number(100, "Doubles the replicas, where that is more."),
        period_seconds=HPA_PERIOD_SECONDS,
    )


def scale_down(load: Load) -> Behavior:
    window = (
        Number(
            900,
            f"Production fell by half and recovered within two hours {formatting.plural(load.dips, 'time')}, so fewer "
            "replicas would not have been enough for long.",
        )
        if load.dips >= 2
        else Number(300, "Each step is a rebalance, so fewer replicas must have been enough for five minutes.")
    )
    return Behavior(
        window_seconds=window,
        pods=Number(0, ""),
        percent=Number(50, "Removes half at a time, so that a mistake is noticed before all members are gone."),
        period_seconds=60,
    )


def rounded(value: float) -> int:
    """To two digits, downward: more would pretend a precision that no capacity has, and a larger one waits longer."""
    unit = 10 ** max(0, len(str(math.floor(value))) - 2)
    return max(1, int(math.floor(value / unit + 1e-9) * unit))


def expected_in_words(advice: Advice) -> str:
    """What the recommended HPA would have done; empty where there is none."""
    expected = advice.expected
    if expected is None:
        return ""
    replicas = formatting.decimal(expected.replicas_mean)
    return (
        "Replayed over the day of the busiest hour, by hourly means: a message waits up to "
        f"{_waited(expected.wait_p95)} for {formatting.share(0.95)} of the time, {_waited(expected.wait_max)} at most; "
        f"{replicas} replica{'' if replicas == '1' else 's'} on average, with "
        f"{formatting.plural(round(expected.changes_a_day), 'change')} a day."
    )


def _waited(seconds: float) -> str:
    """The replay sees nothing between its steps."""
    return formatting.duration(max(seconds, HPA_PERIOD_SECONDS))
