"""Pure: a group's figures -> the HPA it should have, with a reason for every number.

An HPA on lag (replicas = lag / target) is a control loop. While it scales, a message waits for about target / capacity
seconds, so the target follows from the wait that was agreed on. With less than 0.64 times the loop's delay the
replicas never settle: then, and where the data does not support a number, no target is recommended.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from adapter.verdicts.causes import REPLICAS_DO_NOT_HELP, Verdict
from adapter.verdicts.controllers import DEFAULT_FLAGS
from adapter.verdicts.plant import Consumers
from spark.advice.capacity_words import advised_in_words, scatter_in_words
from spark.advice.data_findings import DAY, findings_of
from spark.advice.demand import HEADROOM, USED_AT_MOST, Load, load_of, members_needed, production_of
from spark.advice.finding import LITTLE_DATA, Finding, Severity
from spark.advice.recommendation import Behavior, Number, Recommendation, Target
from spark.advice.replay import Expected, Trial, expected_of
from spark.figures import formatting
from spark.figures.model import Group

HPA_PERIOD_SECONDS = int(DEFAULT_FLAGS.sync_seconds)
"""How often the HPA controller looks."""
TOLERANCE = DEFAULT_FLAGS.tolerance
"""The HPA leaves replicas alone while lag / replicas is this close to its target."""
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
COMMIT_SECONDS = 5
"""Between two commits, where the samples do not show it: Kafka's default."""
CALMER_SECONDS = (900, 1800, 3600)
"""Windows for scaling down that are tried; an HPA takes no longer one."""
A_WEEK = 6.5 * DAY
NO_HPA = "No HPA is recommended for it: see why below."
TOO_LITTLE = "Less than a day was seen: the daily peak may not be in it."
UTC = ZoneInfo("UTC")


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
    return advice_for_all([group], zone)[0]


def advice_for_all(groups: Sequence[Group], zone: ZoneInfo = UTC) -> list[Advice]:
    """As `advice_for`, with the HPAs of all groups replayed beside one another."""
    drafts = [_draft(group, zone) for group in groups]
    trials = [(draft, hpa) for draft in drafts for hpa in draft.calmer]
    outcomes = iter(
        expected_of(
            [Trial(draft.load.production, _consumers(draft), hpa.spec) for draft, hpa in trials],
            [draft.promised for draft, _ in trials],
        )
    )
    return [_advice(draft, [next(outcomes) for _ in draft.calmer]) for draft in drafts]


@dataclass(frozen=True, slots=True)
class _Draft:
    """An HPA that has not been replayed."""

    group: Group
    load: Load
    findings: tuple[Finding, ...]
    hpa: Recommendation

    @property
    def promised(self) -> float:
        return _promised_seconds(self.group, self.load)

    @property
    def calmer(self) -> list[Recommendation]:
        """Itself, and with each of the longer windows for scaling down; none if it has no target."""
        if self.hpa.target.value is None:
            return []
        given = self.hpa.down.window_seconds.value
        windows = [Number(seconds, "") for seconds in CALMER_SECONDS if seconds > given]
        return [self.hpa, *(replace(self.hpa, down=replace(self.hpa.down, window_seconds=it)) for it in windows)]


def _draft(group: Group, zone: ZoneInfo) -> _Draft:
    load = load_of(group)
    findings = findings_of(group, load, zone)
    most = max_replicas(load, is_even=all(it.code != Verdict.HOT_PARTITION for it in findings))
    hpa = Recommendation(
        target=_target(group, load, findings),
        min_replicas=min_replicas(load, most.value),
        max_replicas=most,
        up=scale_up(load, most.value),
        down=scale_down(load),
    )
    return _Draft(group, load, findings, hpa)


def _advice(draft: _Draft, outcomes: Sequence[Expected]) -> Advice:
    """`outcomes`: of each of `draft.calmer`."""
    load, findings = draft.load, draft.findings
    if not outcomes:
        return Advice(load, draft.hpa, _without_hpa(findings))
    hpa, expected = _calmest(draft, outcomes)
    if expected.kept_share < KEPT_ENOUGH:
        refused = Target(
            None,
            f"No HPA on lag keeps a wait of {_wait(draft.group, draft.promised)}: replayed over the day of the busiest "
            f"hour, the best target keeps it {formatting.share(expected.kept_share)} of the time. Allow a longer wait, "
            f"or {_instead(load)}",
        )
        return Advice(load, replace(hpa, target=refused), _without_hpa(findings))
    return Advice(load, hpa, (*findings, *_many_changes(expected, load)), expected)


def _without_hpa(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(
        replace(it, asks=NO_HPA) if it.code == Verdict.ABOVE_THRESHOLD and not it.asks else it for it in findings
    )


def _calmest(draft: _Draft, outcomes: Sequence[Expected]) -> tuple[Recommendation, Expected]:
    """With the shortest window for scaling down that changes the replicas seldom enough; if none does, the longest."""
    is_calm = [it.changes_a_day <= CHANGES_A_DAY for it in outcomes]
    chosen = is_calm.index(True) if True in is_calm else len(outcomes) - 1
    if chosen == 0:
        return draft.hpa, outcomes[0]
    window = draft.calmer[chosen].down.window_seconds.value
    reason = (
        f"With {draft.hpa.down.window_seconds.value} s, the replicas change {round(outcomes[0].changes_a_day)} times a "
        f"day in the replay. Each change is a rebalance, and {CHANGES_A_DAY} a day are acceptable."
    )
    return replace(draft.hpa, down=replace(draft.hpa.down, window_seconds=Number(window, reason))), outcomes[chosen]


def _many_changes(expected: Expected, load: Load) -> tuple[Finding, ...]:
    """A finding, or none."""
    if expected.changes_a_day <= CHANGES_A_DAY:
        return ()
    words = (
        f"The recommended HPA would change the replicas {round(expected.changes_a_day)} times a day, although it waits "
        f"{formatting.duration(CALMER_SECONDS[-1])} before it scales down, and each change is a rebalance."
    )
    asks = f"Allow a longer wait, or {_instead(load)}"
    return (Finding("many_changes", Severity.NOTE, "The recommended HPA changes the replicas often", words, asks),)


def loop_delay(interval_seconds: float) -> float:
    """Seconds from a message's arrival until a replica that it caused does work."""
    return interval_seconds + HPA_PERIOD_SECONDS + START_SECONDS + JOIN_SECONDS


def _target(group: Group, load: Load, findings: tuple[Finding, ...]) -> Target:
    """The target that keeps the agreed wait and the thresholds."""
    refusal = _refusal(load, findings)
    if load.capacity is None or load.advised is None or refusal:
        return Target(None, refusal)
    promised = _promised_seconds(group, load)
    seconds, delay, wait = promised / MARGIN, loop_delay(group.interval_seconds), _wait(group, promised)
    instead = _instead(load)
    if load.peak > load.most_members * load.advised:
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
        rounded(load.advised * seconds),
        f"Messages: what a saturated member consumes ({advised_in_words(load.capacity)}) in "
        f"{formatting.duration(seconds)}: the wait of {wait}, less a sixth for the HPA's tolerance of "
        f"{formatting.share(TOLERANCE)}. The replicas settle with {formatting.duration(SETTLES * delay)} or more "
        f"({_delay_in_words(group)}).",
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
    if load.advised is None:
        return scatter_in_words(load.capacity)
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


def _instead(load: Load) -> str:
    needed = members_needed(load.peak / USED_AT_MOST, load.per_member, load.most_members)
    return f"keep {formatting.plural(needed, 'replica')}, enough for the busiest hour."


def _delay_in_words(group: Group) -> str:
    return (
        f"{formatting.decimal(group.interval_seconds)} s between samples + {HPA_PERIOD_SECONDS} s until the HPA looks "
        f"+ about {START_SECONDS} s until a pod runs + {JOIN_SECONDS} s until it has joined"
    )


def _consumers(draft: _Draft) -> Consumers:
    """The members that an HPA would have, as if production could be divided evenly among any number of them."""
    group = draft.group
    return Consumers(
        capacity=draft.load.per_member,
        partitions=(1,),
        assignor=None,
        start_seconds=START_SECONDS,
        join_seconds=JOIN_SECONDS,
        commit_seconds=group.commit_seconds or COMMIT_SECONDS,
        interval_seconds=group.interval_seconds,
    )


def min_replicas(load: Load, most: int) -> Number:
    if load.idle_share >= 0.1:
        return Number(
            0,
            f"In {formatting.share(load.idle_share)} of the hours nothing was produced. 0 needs the feature gate "
            "HPAScaleToZero (on by default from Kubernetes 1.37) and a rule that names the topics; otherwise use 1.",
        )
    if load.advised is None:
        return Number(1, "What a member can do is not known, so one replica is the safe minimum.")
    if math.isnan(load.off_peak):
        return Number(1, "Off-peak production is not known, so one replica is the safe minimum.")
    needed = members_needed(load.off_peak / USED_AT_MOST, load.advised, load.partitions)
    return Number(
        max(1, min(needed, most)),
        f"Off-peak production is {formatting.rate(load.off_peak)} (a tenth of the hours have less). It keeps this many "
        f"members busy to {formatting.share(USED_AT_MOST)} of {formatting.rate(load.advised)} each.",
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
    if load.capacity is None or load.advised is None or not load.capacity.is_firm:
        return Number(partitions, f"{every} While a member's capacity is not known, fewer may not be enough.")
    if not is_even:
        return Number(partitions, f"{every} With fewer, the member that reads the hot partition would read others too.")
    if load.covered_seconds < A_WEEK or math.isnan(load.peak):
        return Number(partitions, f"{every} Less than a week of data may not include the weekly peak.")
    needed = members_needed(HEADROOM * load.peak, load.advised, load.partitions)
    if needed >= partitions:
        return Number(partitions, every)
    return Number(
        max(needed, 2),
        f"The busiest hour brought {formatting.rate(load.peak)}; {HEADROOM} times that, for peaks within the hour and "
        f"to work off what waited, in whole partitions per member, needs {needed} of the {partitions} that could read"
        + ("; the second takes over if the first fails." if needed < 2 else "."),
    )


def scale_up(load: Load, most: int) -> Behavior:
    needed = math.ceil(load.rise / load.advised) if load.advised is not None else 0
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
