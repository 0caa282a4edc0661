"""Pure: the HPAs that are replayed on a group's own minutes before one of them is recommended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.capacity import Capacity
from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.promised import Promised
from spark.advice.demand import USED_AT_MOST, Load, members_needed
from spark.advice.hpa import JOIN_SECONDS, SETTLES, START_SECONDS, Draft, loop_delay, rounded
from spark.advice.presets import Preset
from spark.advice.recommendation import LagPerReplica, Number, Promise, Recommendation, Target
from spark.advice.replica_metrics import by_lag, by_promise
from spark.advice.weekly_pattern import local_times
from spark.figures import formatting
from spark.figures.model import Floats, Group, Times, TopicFigures
from spark.trials.hpa_file import GivenHpa, candidate_of
from spark.trials.minutes import Shape
from spark.trials.references import Candidate, served_by_lag
from spark.trials.trial import Question

CHANGES_A_DAY = 48
"""One in half an hour. Each is a rebalance, in which members stop for ten seconds or so: half a per cent of the day."""
COMMIT_SECONDS = 5
"""Between two commits, where the samples do not show it: Kafka's default."""
CALMER_SECONDS = 3600
"""The longest window for scaling down that an HPA takes. Those between it and the usual one cost hardly less."""
LOWER = (0.75, 0.5)
"""Of the target that the promised wait allows: those that are tried, too."""
BUSIER = {50: "the median hour", 75: "an hour that is busier than three of four"}
"""Percentiles of the hours' production, for which minima are tried."""
CHANGE_THE_HPA = ("low inertia", "high inertia", "constantly high")
"""Presets that say how an HPA scales; the others say what people change in it, and when."""
LONGER = (
    "Every candidate with a shorter window fails to keep the wait in the replay, changes the replicas more than "
    f"{CHANGES_A_DAY} times a day, or needs no fewer replica-hours."
)
"""True of all of them, also where the target or the minimum was tried with this window alone."""
MOST_PARTITIONS = 1000
"""Of a group that is replayed: every one of them moves through every step of every candidate, and each number of
members has an assignment of its own."""
TOO_LARGE = f"groups with more than {formatting.count(MOST_PARTITIONS)} partitions are not replayed"


@dataclass(frozen=True, slots=True)
class Tried:
    """One of the HPAs, and what it is called."""

    name: str
    candidate: Candidate
    hpa: Recommendation | None = None
    """None: it is there to be compared with, and is never recommended."""
    is_todays: bool = False


def tried_of(draft: Draft, given: Sequence[GivenHpa] = ()) -> tuple[Tried, ...]:
    """None where no HPA is possible. The first is the draft's own, if it has a target. `given`: those of the group."""
    promised = by_promise(draft)
    hpas = [*_on_lag(draft), *([] if promised is None else [(named(promised), promised)])]
    if not hpas:
        return ()
    return (
        *(Tried(name, _candidate(hpa, draft.group.partitions), hpa) for name, hpa in hpas),
        *_scheduled(draft),
        _fixed(draft),
        *(_todays(draft, it) for it in given),
    )


def question_of(draft: Draft, tried: Sequence[Tried]) -> Question | None:
    """None: there is nothing to replay."""
    if not tried or is_too_large(draft.group):
        return None
    return asked_of(draft.group, draft.load, [it.candidate for it in tried], draft.promised, draft.zone)


def is_too_large(group: Group) -> bool:
    return group.partitions > MOST_PARTITIONS


def asked_of(
    group: Group, load: Load, candidates: Sequence[Candidate], promised_seconds: float, zone: ZoneInfo
) -> Question | None:
    """None: what a member can do is not known, or no single number says it."""
    capacity, advised = load.capacity, load.advised
    if capacity is None or advised is None:
        return None
    topics = by_busiest_partition(group)
    return Question(
        consumers=_consumers(group, topics, advised, load.members_max),
        seen_capacity=advised if capacity.is_by_hour else capacity.p50,
        windows=capacity.windows,
        shape=shape_of(group, topics, capacity, zone),
        candidates=tuple(candidates),
        promised_seconds=promised_seconds,
    )


def named(hpa: Recommendation) -> str:
    least = f"{hpa.min_replicas.value} or more"
    match hpa.rule:
        case Promise(max_wait_seconds=wait):
            return f"metric {hpa.reads.short}, for a wait of {formatting.duration(wait.value)}, {least}"
        case LagPerReplica(messages=messages):
            return f"metric {hpa.reads.short}, one for {formatting.count(messages.value)} messages, {least}"
    window = f"{hpa.down.window_seconds.value}\u202fs"
    return f"averageValue {formatting.count(hpa.target.value)}, {least}, down after {window}"


def _candidate(hpa: Recommendation, partitions: int) -> Candidate:
    """With what the adapter serves for it."""
    match hpa.rule:
        case Promise(max_wait_seconds=wait):
            return Candidate(hpa.spec, rule=Promised(float(wait.value)))
        case LagPerReplica(messages=messages):
            return Candidate(hpa.spec, served_by_lag(messages.value, partitions))
    return Candidate(hpa.spec)


def _on_lag(draft: Draft) -> Iterator[tuple[str, Recommendation]]:
    """Yields HPAs that go by the lag, and what each is called."""
    if draft.hpa.target.value is None:
        return
    yield from ((named(hpa), hpa) for hpa in _variants(draft))
    yield from ((_as_preset(it), it.hpa) for it in draft.presets if it.name in CHANGE_THE_HPA)
    divided = by_lag(draft.hpa)
    yield named(divided), divided


def _variants(draft: Draft) -> Iterator[Recommendation]:
    hpa = draft.hpa
    yield hpa
    yield _calmer(hpa)
    lower = [_calmer(replace(hpa, target=target)) for target in _lower_targets(draft)]
    larger = [_calmer(replace(hpa, min_replicas=least)) for least in _larger_minima(draft)]
    yield from lower
    yield from larger
    for quick, wide in zip(lower[:1], larger[:1], strict=False):
        yield replace(quick, min_replicas=wide.min_replicas)


def _calmer(hpa: Recommendation) -> Recommendation:
    return replace(hpa, down=replace(hpa.down, window_seconds=Number(CALMER_SECONDS, LONGER)))


def _lower_targets(draft: Draft) -> Iterator[Target]:
    """Those with which the replicas settle."""
    value, advised = draft.hpa.target.value, draft.load.advised
    assert value is not None
    assert advised is not None
    for share in LOWER:
        lower = rounded(share * value)
        if lower >= advised * SETTLES * loop_delay(draft.group.interval_seconds):
            seconds = formatting.duration(lower / advised)
            yield Target(
                lower,
                f"Messages: what a saturated member consumes in {seconds} ({formatting.rate(advised)}). "
                f"{formatting.count(value)} would do for the wait of {draft.wait}, but not in the replay, or not as "
                "cheaply.",
            )


def _larger_minima(draft: Draft) -> Iterator[Number]:
    load, least = draft.load, draft.hpa.min_replicas.value
    for share, said in BUSIER.items():
        rate = float(np.percentile(load.production, share))
        needed = members_needed(rate / USED_AT_MOST, load.per_member, load.partitions)
        if least < needed < draft.hpa.max_replicas.value:
            least = needed
            yield Number(
                needed,
                f"What {said} needs: {formatting.rate(rate)} at {formatting.share(USED_AT_MOST)} of "
                f"{formatting.rate(load.per_member)} each. With fewer, the wait is not kept in the replay, or not as "
                "cheaply.",
            )


def _scheduled(draft: Draft) -> Iterator[Tried]:
    """Yields presets in which people change the minimum, where the data looks like their situation. Such a schedule is
    theirs to set, so it is never recommended as an HPA."""
    if draft.hpa.target.value is None:
        return
    for preset in draft.presets:
        candidate = candidate_of_preset(preset)
        if preset.name not in CHANGE_THE_HPA and preset.looks_like_it and candidate != Candidate(draft.hpa.spec):
            yield Tried(_as_preset(preset), candidate)


def candidate_of_preset(preset: Preset) -> Candidate:
    """On the lag."""
    return Candidate(preset.hpa.spec, least_by_hour=preset.least_by_hour)


def _as_preset(preset: Preset) -> str:
    return f"averageValue {formatting.count(preset.hpa.target.value)}, as the preset {preset.name}"


def _todays(draft: Draft, given: GivenHpa) -> Tried:
    candidate = candidate_of(given, draft.group, draft.promised)
    its_own = for_its_own_wait(candidate, draft.promised)
    return Tried(f"your HPA ({given.file}{its_own})", candidate, is_todays=True)


def for_its_own_wait(candidate: Candidate, promised_seconds: float) -> str:
    """Empty where it is replayed for what is promised, or goes by no wait."""
    wait = candidate.max_wait
    return "" if wait in {None, promised_seconds} else f", for a wait of {formatting.duration(wait)}"


def _fixed(draft: Draft) -> Tried:
    """As many replicas as are recommended instead of an HPA."""
    number = Number(draft.instead_of_it, "")
    hpa = replace(draft.hpa, target=Target(1, ""), min_replicas=number, max_replicas=number)
    return Tried(f"{formatting.plural(number.value, 'replica')} all the time", Candidate(hpa.spec))


def by_busiest_partition(group: Group) -> tuple[TopicFigures, ...]:
    """Those that have partitions. The topic in whose busiest partition most was produced comes first."""
    topics = [topic for topic in group.topics if topic.partitions]
    return tuple(sorted(topics, key=lambda topic: -float(_in_busiest(topic).sum())))


def _in_busiest(topic: TopicFigures) -> Floats:
    """Messages of each hour."""
    return np.nan_to_num(topic.hours.produced * topic.hours.skew)


def shape_of(group: Group, topics: Sequence[TopicFigures], capacity: Capacity, zone: ZoneInfo) -> Shape:
    """`topics`: in the order of the consumers' partitions."""
    hours, first = group.hours, topics[0]
    places = np.searchsorted(hours.start, first.hours.start)
    busiest = np.zeros(len(hours))
    busiest[places] = _in_busiest(first)
    skew = np.divide(busiest, hours.produced, out=np.full(len(hours), np.nan), where=busiest > 0)
    each = [max(float(np.nansum(topic.hours.produced)), 1.0) / topic.partitions for topic in topics]
    weights = np.repeat(np.array(each) / max(each), [topic.partitions for topic in topics])
    return Shape(hours.start, skew, pace_of(capacity, hours.start, zone), weights)


def pace_of(capacity: Capacity, hours: Times, zone: ZoneInfo) -> Floats | None:
    """As minutes have it. An hour of the day without enough windows has that of the hour before it."""
    if not capacity.is_by_hour:
        return None
    of_day = np.array(capacity.p25_by_hour)
    known = np.flatnonzero(~np.isnan(of_day))
    of_day = of_day[known[np.searchsorted(known, np.arange(len(of_day)), side="right") - 1]]
    pace: Floats = of_day[[time.hour for time in local_times(hours, zone)]] / capacity.advised
    return pace


def _consumers(group: Group, topics: Sequence[TopicFigures], capacity: float, members_max: int | None) -> Consumers:
    partitions = tuple(topic.partitions for topic in topics)
    is_shared = group.is_spread is None and (members_max or 0) > max(partitions, default=0)
    return Consumers(
        capacity=capacity,
        partitions=partitions,
        assignor=None if is_shared else Assignor.UNIFORM if group.is_spread else Assignor.RANGE,
        start_seconds=START_SECONDS,
        join_seconds=JOIN_SECONDS,
        commit_seconds=group.commit_seconds or COMMIT_SECONDS,
        interval_seconds=group.interval_seconds,
    )
