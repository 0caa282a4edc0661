"""Pure: a group's figures -> the HPA it should have, with a reason for every number.

An HPA on lag (replicas = lag / target) is a control loop. While it scales, a message waits for about target / capacity
seconds, so the target follows from the wait that was agreed on. With less than 0.64 times the loop's delay the
replicas never settle: then, and where the data does not support a number, no target is recommended.
"""

import math
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from adapter.verdicts.causes import REPLICAS_DO_NOT_HELP, Verdict
from adapter.verdicts.controllers import DEFAULT_FLAGS
from spark.advice.capacity_words import advised_in_words, without_capacity
from spark.advice.data_findings import DAY, findings_of
from spark.advice.demand import HEADROOM, USED_AT_MOST, Load, load_of, members_needed, production_of
from spark.advice.finding import LITTLE_DATA, Finding
from spark.advice.presets import Preset, presets_for
from spark.advice.recommendation import Behavior, Number, Recommendation, Target
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
COMMITS_OF_TARGET = 0.5
"""Of target / capacity: with a longer time between two commits, the lag's steps move the replicas by half and more."""
A_WEEK = 6.5 * DAY
TOO_LITTLE = "Less than a day was seen: the daily peak may not be in it."
LEAVING = (
    "Members come and go, and the replay counts on replicas that stay. If an HPA on this lag, or on a number of "
    "replicas that the adapter serves, adds and removes them, name its file (--hpa); no other can be replayed."
)
GROW = "Give it more partitions, make its work faster, or allow a longer wait."
PAST = "The lag was above its threshold in the past alone, and no HPA is needed for what is over."


@dataclass(frozen=True, slots=True)
class Draft:
    """An HPA that has not been replayed."""

    group: Group
    load: Load
    findings: tuple[Finding, ...]
    hpa: Recommendation
    """On the lag."""
    zone: ZoneInfo
    """The time zone of the times in sentences, and of the hours of the day."""
    presets: tuple[Preset, ...]
    """Those that change `hpa`."""
    refusal: str = ""
    """Why no HPA at all can be recommended; empty: one may be, also where `hpa` has no target."""

    @property
    def promised(self) -> float:
        return promised_seconds(self.group, self.load)

    @property
    def wait(self) -> str:
        """The promised one, in words."""
        return _wait(self.group, self.promised)

    @property
    def instead_of_it(self) -> int:
        """Replicas without an HPA."""
        return _enough(self.load)

    @property
    def instead(self) -> str:
        """What to do without an HPA."""
        return _instead(self.load)


def draft_of(group: Group, zone: ZoneInfo, *, has_hpa: bool = False) -> Draft:
    """`zone`: of the times in sentences, and of the hours of the day. `has_hpa`: whether the group has an HPA that is
    known."""
    load = load_of(group)
    findings = findings_of(group, load, zone)
    most = max_replicas(load, is_even=all(it.code != Verdict.HOT_PARTITION or it.is_over for it in findings))
    refusal = _refusal(group, load, findings, has_hpa=has_hpa)
    hpa = Recommendation(
        target=_target(group, load, refusal),
        min_replicas=min_replicas(load, most.value),
        max_replicas=most,
        up=scale_up(load, most.value),
        down=scale_down(load),
    )
    return Draft(group, load, findings, hpa, zone, presets_for(group, load, hpa, zone), refusal)


def loop_delay(interval_seconds: float) -> float:
    """Seconds from a message's arrival until a replica that it caused does work."""
    return interval_seconds + HPA_PERIOD_SECONDS + START_SECONDS + JOIN_SECONDS


def shortest_wait(interval_seconds: float) -> float:
    """The shortest that an HPA on lag can keep; a multiple of ten seconds. `interval_seconds`: between two samples."""
    return 10.0 * math.ceil(MARGIN * SETTLES * loop_delay(interval_seconds) / 10)


def _longest_interval(seconds: float) -> int:
    """Between two samples, for which a target for so many seconds of work settles; 0: none is short enough."""
    longest = math.floor(seconds / SETTLES - loop_delay(0))
    return longest // 5 * 5 if longest >= 5 else max(0, longest)


def _target(group: Group, load: Load, refusal: str) -> Target:
    """The target that keeps the agreed wait and the thresholds."""
    if load.capacity is None or load.advised is None or refusal:
        return Target(None, refusal)
    promised = promised_seconds(group, load)
    seconds, delay, wait = promised / MARGIN, loop_delay(group.interval_seconds), _wait(group, promised)
    instead = _instead(load)
    if seconds < SETTLES * delay:
        return Target(
            None,
            f"No HPA on lag keeps a wait of {wait}: a replica that the lag asks for works "
            f"{formatting.duration(delay)} later ({_delay_in_words(group)}), and with a target for less than "
            f"{formatting.duration(SETTLES * delay)} of work the replicas never settle. Allow a wait of "
            f"{formatting.duration(shortest_wait(group.interval_seconds))}, {_more_often(seconds)}or {instead}",
        )
    if group.commit_seconds is not None and group.commit_seconds > COMMITS_OF_TARGET * seconds:
        return Target(
            None,
            f"No HPA on lag keeps a wait of {wait}: commits come about every "
            f"{formatting.duration(group.commit_seconds)}. Until the next one the lag rises whatever the members do, "
            f"and the replicas would follow the commits. Commit every {_often_enough(promised)}, allow a wait of "
            f"{_long_enough(group.commit_seconds)}, or {instead}",
        )
    return Target(
        rounded(load.advised * seconds),
        f"Messages: what a saturated member consumes ({advised_in_words(load.capacity)}) in "
        f"{formatting.duration(seconds)}: the wait of {wait}, less a sixth for the HPA's tolerance of "
        f"{formatting.share(TOLERANCE)}. The replicas settle with {formatting.duration(SETTLES * delay)} or more "
        f"({_delay_in_words(group)}).",
    )


def _more_often(seconds: float) -> str:
    longest = _longest_interval(seconds)
    return f"take a sample at least every {longest} s, " if longest else ""


def _wait(group: Group, promised: float) -> str:
    is_threshold = promised < 0.99 * group.agreement.max_wait_seconds
    return formatting.duration(promised) + (" (its threshold)" if is_threshold else "")


def _refusal(group: Group, load: Load, findings: tuple[Finding, ...], *, has_hpa: bool) -> str:
    """Why no HPA can be recommended, whatever it goes by; empty: one may be."""
    useless = [it.brief for it in findings if it.code in REPLICAS_DO_NOT_HELP and it.is_cause and not it.is_over]
    if useless:
        return f"{useless[0]}: more replicas do not help."
    if math.isnan(load.peak) or load.advised is None:
        return without_capacity(load)
    if any(it.code == LITTLE_DATA for it in findings):
        return TOO_LITTLE
    if not has_hpa and any(it.code == Verdict.UNSTEADY_MEMBERS and not it.is_over for it in findings):
        return LEAVING
    if any(it.code == Verdict.ABOVE_THRESHOLD and it.is_over and not it.may_return for it in findings):
        return PAST
    return _impossible(group, load)


def _impossible(group: Group, load: Load) -> str:
    """Why no number of replicas keeps the wait; empty: one may."""
    promised, commits = promised_seconds(group, load), group.commit_seconds
    wait = _wait(group, promised)
    if load.peak > load.most_members * _most_of_a_member(load):
        members = (
            f"{load.most_members} members that can have a partition do"
            if load.most_members > 1
            else "only member that can have a partition does"
        )
        busiest = formatting.rate(load.peak)
        return f"No HPA keeps a wait of {wait}: the busiest hour brought {busiest}, more than the {members}. {GROW}"
    if commits is not None and commits > promised:
        return (
            f"No HPA keeps a wait of {wait}: commits come about every {formatting.duration(commits)}, and a message "
            f"waits until its offset is committed. Commit every {_often_enough(promised)}, or allow a wait of "
            f"{_long_enough(commits)}."
        )
    return ""


def _most_of_a_member(load: Load) -> float:
    """In its fastest hour of the day, where hours differ: the replay knows which hour needs what."""
    capacity = load.capacity
    if capacity is None or not capacity.is_by_hour:
        return load.per_member
    return max(of_hour for of_hour in capacity.p25_by_hour if not math.isnan(of_hour))


def _often_enough(promised: float) -> str:
    """How often a group must commit, so that the lag follows the load."""
    return formatting.duration(COMMITS_OF_TARGET * promised / MARGIN)


def _long_enough(commits: float) -> str:
    """The wait for which a lag follows the load although commits are rare."""
    return formatting.duration(MARGIN * commits / COMMITS_OF_TARGET)


def promised_seconds(group: Group, load: Load) -> float:
    """The agreed wait, or less where a threshold is reached sooner in the busiest hour: that of all topics together, or
    one that was given for a topic."""
    given = [topic for topic in group.topics if topic.above.is_given]
    reached = [
        (sum(topic.above.threshold for topic in group.topics), load.peak),
        *((topic.above.threshold, float(production_of(topic.hours).max())) for topic in given),
    ]
    return min([group.agreement.max_wait_seconds, *(threshold / peak for threshold, peak in reached if peak > 0)])


def _enough(load: Load) -> int:
    by_hours = members_needed(load.peak / USED_AT_MOST, load.per_member, load.most_members)
    return max(by_hours, members_needed(load.steepest, load.per_member, load.most_members))


def _instead(load: Load) -> str:
    number = _enough(load)
    is_enough = number * load.per_member >= load.steepest
    return f"run {formatting.plural(number, 'replica')} all the time, " + (
        "enough for the busiest five minutes."
        if is_enough
        else "one for each partition, although the busiest five minutes bring more than they can do."
    )


def _delay_in_words(group: Group) -> str:
    return (
        f"{formatting.decimal(group.interval_seconds)} s between samples + {HPA_PERIOD_SECONDS} s until the HPA looks "
        f"+ about {START_SECONDS} s until a pod runs + {JOIN_SECONDS} s until it has joined"
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
    each = "its only partition" if partitions == 1 else f"each of {formatting.plural(partitions, 'partition')}"
    every = f"One for {each}; another member would have nothing to read."
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
