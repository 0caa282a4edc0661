"""Pure: the five situations that people tune Kafka autoscalers for, each as concrete values for one group.

A preset is an HPA with the numbers that its situation asks for. It fits where the data looks like this situation, and
where it keeps the wait when it is replayed.
"""

import math
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.demand import USED_AT_MOST, Load, members_needed
from spark.advice.recommendation import Number, Recommendation
from spark.advice.weekly_pattern import hours_in_words, local_times, week_of
from spark.figures import formatting
from spark.figures.model import Group
from spark.figures.periods import NUMPY_HOUR
from spark.trials.calibration import Figures

OFTEN = 0.6
"""The minimum explained variance of a pattern."""


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    looks_like_it: bool
    """Whether the data does."""
    why: str
    """What the data says for or against it."""
    hpa: Recommendation
    extra: str = ""
    """What an HPA alone cannot say."""
    least_by_hour: tuple[int, ...] | None = None
    """minReplicas in each hour of the group, where `extra` has it changed; None: that of the HPA."""
    replayed: Figures | None = None
    """None: it was not replayed."""
    fits: bool = False


def presets_for(group: Group, load: Load, hpa: Recommendation, zone: ZoneInfo) -> tuple[Preset, ...]:
    """All five, none of them replayed, in the order of the names that operators know them by. `hpa`: what they
    change."""
    return (
        low_inertia(group, hpa),
        high_inertia(load, hpa),
        known_peaks(group, load, hpa, zone),
        initial_load(group, load, hpa),
        constantly_high(load, hpa),
    )


def replay_in_words(preset: Preset) -> str:
    """Empty where the data does not look like it."""
    of = preset.replayed
    if not preset.looks_like_it:
        return ""
    if of is None:
        return "It was not replayed."
    kept = f"{formatting.share(of.kept_share)} of the minutes"
    if not preset.fits:
        return f"Replayed, it keeps the wait in {kept} only."
    return (
        f"Replayed, it keeps the wait in {kept}, with {formatting.plural(round(of.replica_hours), 'replica-hour')} and "
        f"{formatting.plural(round(of.changes_a_day), 'change')} a day."
    )


def low_inertia(group: Group, hpa: Recommendation) -> Preset:
    """Short spikes that must be followed at once; replicas may come and go."""
    above = max((topic.above for topic in group.topics), key=lambda it: np.nan_to_num(it.longest_seconds))
    short = above.episodes is not None and above.episodes >= 3 and above.longest_seconds <= 1800
    most = hpa.max_replicas.value
    return Preset(
        "low inertia",
        short,
        f"{formatting.known_plural(above.episodes, 'episode')} above the threshold, the longest "
        f"{formatting.duration(above.longest_seconds)}: "
        + ("spikes come and go within half an hour." if short else "that is not a series of short spikes."),
        replace(
            hpa,
            up=replace(hpa.up, pods=Number(most, "All at once: a spike may be over before a second step.")),
            down=replace(
                hpa.down,
                window_seconds=Number(60, "One minute of lower need is enough, since scaling up again costs little."),
                percent=Number(100, "Down in one step: one rebalance instead of several."),
            ),
        ),
    )


def high_inertia(load: Load, hpa: Recommendation) -> Preset:
    """Load that comes and goes while a rebalance is dear: hold what is there."""
    dips = load.dips
    return Preset(
        "high inertia",
        dips >= 2,
        f"Production fell by half and recovered within two hours {formatting.plural(dips, 'time')}"
        + (": scaling down for that would be undone." if dips >= 2 else "; there is nothing to wait out."),
        replace(
            hpa,
            up=replace(hpa.up, window_seconds=Number(60, "A need that lasts less than a minute is ignored.")),
            down=replace(
                hpa.down,
                window_seconds=_at_least(hpa, 900, "Fewer replicas must have been enough for a quarter of an hour."),
                pods=Number(1, "One at a time."),
                percent=Number(0, ""),
                period_seconds=120,
            ),
        ),
    )


def known_peaks(group: Group, load: Load, hpa: Recommendation, zone: ZoneInfo) -> Preset:
    """Peaks that come by the clock: be there before them."""
    week = week_of(group.by_local_hour, zone)
    regular = week.explained >= OFTEN and week.days_seen >= 3
    peaks = week.peak_hours() if regular else ()
    peak_rate = week.rate_of(peaks)
    knows_capacity = load.capacity is not None
    needed = (
        members_needed(peak_rate / USED_AT_MOST, load.per_member, load.partitions)
        if knows_capacity
        else hpa.min_replicas.value
    )
    floor = max(hpa.min_replicas.value, min(needed, hpa.max_replicas.value))
    return Preset(
        "known peaks",
        regular and bool(peaks),
        f"The hour of the day explains {formatting.share(max(0.0, week.explained))} of how hourly production differs"
        + (f", over {formatting.plural(week.days_seen, 'day')}." if week.days_seen else "."),
        hpa,
        extra=_schedule(peaks, floor if knows_capacity else None, hpa, zone),
        least_by_hour=_in_hours(group, peaks, floor, hpa, zone) if floor > hpa.min_replicas.value else None,
    )


def _in_hours(group: Group, peaks: tuple[int, ...], floor: int, hpa: Recommendation, zone: ZoneInfo) -> tuple[int, ...]:
    """In a zone of half hours, an hour of the group lies in two local ones; a peak in either of them counts."""
    otherwise, starts = hpa.min_replicas.value, group.hours.start
    firsts, lasts = (local_times(starts + minutes, zone) for minutes in np.array([0, 59], "timedelta64[m]"))
    return tuple(
        floor if first.hour in peaks or last.hour in peaks else otherwise
        for first, last in zip(firsts, lasts, strict=True)
    )


def _schedule(peaks: tuple[int, ...], floor: int | None, hpa: Recommendation, zone: ZoneInfo) -> str:
    """`floor`: the replicas that peak hours need; None: not known."""
    otherwise = hpa.min_replicas.value
    if not peaks:
        return "No hours of the day stand out, so there is no schedule to recommend."
    hours = f"Peak hours are {hours_in_words(peaks)} ({zone.key})"
    if floor is None:
        return f"{hours}; how many replicas they need is not known."
    if floor <= otherwise:
        return f"{hours}; minReplicas {otherwise} is enough for them."
    return f"{hours}. Ten minutes before, let a CronJob set minReplicas to {floor}; afterwards back to {otherwise}." + (
        " The HPA goes on scaling above that floor." if hpa.target.value is not None else ""
    )


def initial_load(group: Group, load: Load, hpa: Recommendation) -> Preset:
    """A backlog waits at the start, and is worked off once."""
    topic = max(group.topics, key=lambda it: it.lag.first if it.lag else 0.0)
    lag = topic.lag
    is_start = len(topic.hours_left) == len(topic.hours_known)
    waited = (
        lag is not None
        and is_start
        and lag.first > 10 * max(topic.above.threshold, lag.p50, 1)
        and lag.first >= 0.5 * lag.max
    )
    whole = max(1, load.most_members)
    extra, least_by_hour = "", None
    is_backlog = lag is not None and lag.first > topic.above.threshold
    if lag is not None and is_backlog and load.advised is not None and not np.isnan(load.usual):
        spare = whole * load.advised - load.usual
        if spare > 0:
            least_by_hour = _at_first(group, math.ceil(lag.first / spare / 3600), whole, hpa.min_replicas.value)
        extra = (
            f"{formatting.plural(whole, 'member')} {'works' if whole == 1 else 'work'} off "
            f"{formatting.count(lag.first)} messages in about {formatting.duration(lag.first / spare)}."
            if spare > 0
            else "Even one member for each partition does not do more than is produced: the backlog would stay."
        )
    return Preset(
        "initial load",
        waited,
        f"At the start of the range {formatting.count(lag.first) if lag else 'an unknown number of'} messages waited"
        + (", far more than later." if waited else "; that is not an initial backlog."),
        replace(
            hpa,
            max_replicas=Number(whole, "Every partition is worth a member until the backlog is gone."),
            min_replicas=Number(
                whole,
                f"Start with all; once the lag is below {formatting.count(topic.above.threshold)}, set "
                f"{hpa.min_replicas.value}.",
            ),
            down=replace(
                hpa.down,
                window_seconds=_at_least(hpa, 600, "The end of a backlog looks like the end of the load."),
                percent=Number(25, "A quarter at a time."),
            ),
        ),
        extra,
        least_by_hour,
    )


def _at_first(group: Group, hours: int, whole: int, otherwise: int) -> tuple[int, ...]:
    """All for so many hours by the clock, which is when the backlog is gone."""
    passed = (group.hours.start - group.hours.start[:1]) / NUMPY_HOUR
    return tuple(whole if each < hours else otherwise for each in passed)


def constantly_high(load: Load, hpa: Recommendation) -> Preset:
    """A load that hardly changes: keep what it needs, and let the HPA handle the rest."""
    high = float(np.percentile(load.production, 95))
    steady = len(load.production) >= 12 and high > 0 and load.off_peak >= OFTEN * high
    least = hpa.min_replicas
    if load.advised is not None:
        needed = members_needed(load.usual / USED_AT_MOST, load.advised, load.partitions)
        least = Number(
            max(1, min(needed, hpa.max_replicas.value)),
            f"What the median hour needs: {formatting.rate(load.usual)} at {formatting.share(USED_AT_MOST)} of "
            f"{formatting.rate(load.advised)} each.",
        )
    return Preset(
        "constantly high",
        steady,
        f"Off-peak {formatting.rate(load.off_peak)}, in the busier hours {formatting.rate(high)}: "
        + ("the load hardly changes." if steady else "the load changes too much to call it constant."),
        replace(
            hpa,
            min_replicas=least,
            down=replace(hpa.down, window_seconds=_at_least(hpa, 900, "Scaling down for a short while saves little.")),
        ),
    )


def _at_least(hpa: Recommendation, seconds: int, reason: str) -> Number:
    """A window for scaling down that is no shorter than the recommended one."""
    given = hpa.down.window_seconds
    return given if given.value > seconds else Number(seconds, reason)


def best_of(presets: tuple[Preset, ...]) -> Preset | None:
    """Where several fit: what happened once before what repeats, what repeats before what is quick."""
    order = ("initial load", "constantly high", "known peaks", "high inertia", "low inertia")
    fitting = {preset.name: preset for preset in presets if preset.fits}
    return next((fitting[name] for name in order if name in fitting), None)
