"""Pure: what was decided about each group, in the order in which a person should look; and how whole the data is."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.advised import Advice, Ask, advice_for_all
from spark.advice.finding import Finding, Severity
from spark.advice.hpa_files.hpa_manifest import file_names, hpa_yaml
from spark.advice.presets import Preset, best_of
from spark.figures import formatting
from spark.figures.model import STALE_SECONDS, Group, Periods, ReportData, TopicFigures
from spark.figures.periods import NUMPY_HOUR, silent_between, time_of
from spark.tables.topic_parts import Names
from spark.trials.hpa_file import GivenHpa

NO_HPAS: Mapping[Names, Sequence[GivenHpa]] = MappingProxyType({})
STANDING_STILL = {"stuck", "lag_without_members"}
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Standing:
    """One group with all that was decided about it."""

    group: Group
    called: str
    """Its name, with its cluster where there are several."""
    advice: Advice
    fitting: Preset | None
    file: str
    """The name of its HPA's file, without folder and ending."""
    yaml: str

    @property
    def severity(self) -> Severity:
        return max((finding.severity for finding in self.advice.findings), default=Severity.FINE)

    @property
    def attention(self) -> Finding | None:
        """The worst finding, if it asks for attention, or if it says that the group has ended."""
        worst = next(iter(self.advice.findings), None)
        return worst if worst and (worst.severity > Severity.NOTE or worst.code == ENDED) else None


@dataclass(frozen=True, slots=True)
class Coverage:
    samples: int
    expected_samples: int
    """What the intervals promise, also for hours that have no row of any group."""
    missing_hours: int
    """Hours between the first and the last that have no row of any group."""
    gaps: tuple[tuple[datetime, datetime], ...]
    """From the first of these hours to the end of the last, for each stretch."""
    late_samples: int
    """Samples that came after a gap of any length."""
    resets: int
    rewinds: int
    recreations: int

    @property
    def share(self) -> float | None:
        return self.samples / self.expected_samples if self.expected_samples else None


@dataclass(frozen=True, slots=True)
class Report:
    data: ReportData
    standings: tuple[Standing, ...]
    coverage: Coverage


def decided(data: ReportData, ask: Ask, given: Mapping[Names, Sequence[GivenHpa]] = NO_HPAS) -> Report:
    """`ask` has HPAs replayed; `given`: those that groups have today."""
    zone = data.zone
    names = file_names(data.groups)
    clusters = {group.cluster for group in data.groups}
    newest = max((group.hours.start[-1] for group in data.groups), default=None)
    standings = [
        _standing(group, called(group, len(clusters)), name, advice, _ended(group, newest, zone), data)
        for group, name, advice in zip(data.groups, names, advice_for_all(data.groups, ask, zone, given), strict=True)
    ]
    standings.sort(key=lambda it: (-it.severity, -_waiting(it.group), it.group.cluster, it.group.name))
    return Report(data=data, standings=tuple(standings), coverage=coverage_of(data.groups))


def called(group: Group, clusters: int) -> str:
    """As a person tells it from all others of so many clusters."""
    return formatting.name(group.name) + (f" ({group.cluster})" if clusters > 1 else "")


def drain_seconds(topic: TopicFigures, advice: Advice) -> float | None:
    """How long the largest lag takes with the members of the newest hour that is no planned pause, beside the usual
    production; inf: it never drains."""
    load, largest = advice.load, topic.largest_lag
    if largest is None or largest == 0:
        return largest
    is_still = any(it.code in STANDING_STILL and not it.is_over for it in advice.findings)
    if is_still or load.members_now == 0:
        return float("inf")
    if load.advised is None or np.isnan(load.usual):
        return None
    members = min(load.members_now or load.most_members, max(load.most_members, 1))
    spare = members * load.advised - load.usual
    if any(
        it.code == Verdict.HOT_PARTITION and not it.is_over for it in advice.findings
    ):  # one member reads it, whatever the others do
        spare = min(spare, load.advised - float(np.nanmedian(topic.hours.skew)) * load.usual)
    return largest / spare if spare > 0 else float("inf")


def coverage_of(groups: tuple[Group, ...]) -> Coverage:
    hours = [topic.hours for group in groups for topic in group.topics if len(topic.hours)]
    silent = silent_between(hours)
    begins = np.flatnonzero(np.diff(silent, prepend=silent[:1] - 2 * NUMPY_HOUR) > NUMPY_HOUR)
    gaps = [
        (time_of(silent[begin]), time_of(silent[end - 1] + NUMPY_HOUR))
        for begin, end in itertools.pairwise([*begins, len(silent)])
    ]
    return Coverage(
        samples=_sum(hours, "samples"),
        expected_samples=round(sum(group.expected_samples for group in groups)),
        missing_hours=len(silent),
        gaps=tuple(gaps),
        late_samples=_sum(hours, "gaps"),
        resets=_sum(hours, "resets"),
        rewinds=_sum(hours, "rewinds"),
        recreations=_sum(hours, "recreations"),
    )


def _ended(group: Group, newest: np.datetime64 | None, zone: ZoneInfo) -> tuple[Finding, ...]:
    """A finding, or none. `newest`: the newest hour of any group."""
    last = group.hours.start[-1]
    if newest is None or newest - last <= np.timedelta64(int(STALE_SECONDS), "s"):
        return ()
    end = time_of(last + NUMPY_HOUR)
    lags = [topic.lag.last for topic in group.topics if topic.lag]
    lag = f"with a lag of {formatting.plural(round(sum(lags)), 'message')}" if lags else "with a lag that is not known"
    since = formatting.moment(end, zone)
    words = (
        f"Ended on {since}, {lag}: since then, the history has nothing of it. The group or its topics were deleted, or "
        "the adapter cannot read them."
    )
    severity = Severity.WATCH if sum(lags) else Severity.NOTE
    return (Finding(ENDED, severity, f"Ended on {since}", words, since=end),)


def _standing(
    group: Group, called: str, file: str, advice: Advice, ended: tuple[Finding, ...], data: ReportData
) -> Standing:
    """Of a group whose last hour is over, nothing is to be done at once."""
    if data.is_stale or ended:
        calmer = [_of_the_past(it, ended[0], data.zone) if ended else _calmer(it) for it in advice.findings]
        advice = replace(advice, findings=tuple(sorted((*ended, *calmer), key=lambda it: -it.severity)))
    fitting = best_of(advice.presets)
    return Standing(
        group=group,
        called=called,
        advice=advice,
        fitting=fitting,
        file=file,
        yaml=hpa_yaml(group, advice, fitting, file),
    )


def _calmer(finding: Finding) -> Finding:
    return replace(finding, severity=min(finding.severity, Severity.WATCH))


def _of_the_past(finding: Finding, ended: Finding, zone: ZoneInfo) -> Finding:
    """What went on until the group ended is over, and of a group that is gone nothing is to be done."""
    past = replace(finding, severity=min(finding.severity, Severity.NOTE), asks="")
    if not finding.is_incident or finding.is_over or ended.since is None:
        return past
    words = f"{finding.words} That was so until the group ended on {formatting.moment(ended.since, zone)}."
    return replace(past, words=words, until=ended.since)


def _waiting(group: Group) -> float:
    return sum(topic.lag.p95 for topic in group.topics if topic.lag)


def _sum(hours: list[Periods], column: str) -> int:
    return int(sum(np.nansum(getattr(part, column)) for part in hours))
