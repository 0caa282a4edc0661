"""Pure: what was decided about each group, in the order in which a person should look; and how whole the data is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from spark import words
from spark.advice import Advice, advice_for
from spark.figures import Findings, Gap, Group, Periods, Topic
from spark.finding import Severity, severity_of
from spark.hpa_yaml import file_names, hpa_yaml
from spark.load import Load
from spark.presets import Preset, best_of, presets_for


@dataclass(frozen=True, slots=True)
class Standing:
    """One group with all that was decided about it."""

    group: Group
    called: str
    """Its name, with its cluster where there are several."""
    advice: Advice
    presets: tuple[Preset, ...]
    fitting: Preset | None
    file: str
    """The name of its HPA's file, without folder and ending."""
    yaml: str

    @property
    def severity(self) -> Severity:
        return severity_of(self.advice.findings)


@dataclass(frozen=True, slots=True)
class Coverage:
    samples: int
    expected: int
    missing_hours: int
    """Hours between the first and the last that have no row of any group."""
    gaps: tuple[Gap, ...]
    resets: int
    rewinds: int
    recreations: int

    @property
    def share(self) -> float | None:
        return self.samples / self.expected if self.expected else None


@dataclass(frozen=True, slots=True)
class Report:
    findings: Findings
    standings: tuple[Standing, ...]
    coverage: Coverage

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.findings.timezone)


def decided(findings: Findings) -> Report:
    zone = ZoneInfo(findings.timezone)
    names = file_names(findings.groups)
    clusters = {group.cluster for group in findings.groups}
    standings = [
        _standing(group, called(group, len(clusters)), name, zone)
        for group, name in zip(findings.groups, names, strict=True)
    ]
    standings.sort(key=lambda it: (-it.severity, -_waiting(it.group), it.group.cluster, it.group.name))
    return Report(findings=findings, standings=tuple(standings), coverage=coverage_of(findings.groups))


def called(group: Group, clusters: int) -> str:
    """As a person tells it from all others of so many clusters."""
    return words.name(group.name) + (f" ({group.cluster})" if clusters > 1 else "")


def drain_seconds(topic: Topic, load: Load) -> float | None:
    """How long the largest lag takes with the most members seen, beside the usual production; inf: for ever."""
    if topic.lag is None or load.capacity is None or np.isnan(load.usual):
        return None
    members = min(load.members_max or load.partitions, max(load.partitions, 1))
    spare = members * load.capacity.p50 - load.usual
    if topic.lag.max == 0:
        return 0.0
    return topic.lag.max / spare if spare > 0 else float("inf")


def coverage_of(groups: tuple[Group, ...]) -> Coverage:
    hours = [topic.hours for group in groups for topic in group.topics if len(topic.hours)]
    starts = np.unique(np.concatenate([part.start for part in hours])) if hours else np.empty(0, "datetime64[us]")
    holes = np.flatnonzero(np.diff(starts) > np.timedelta64(1, "h"))
    gaps = [Gap(_time(starts[at]) + timedelta(hours=1), _time(starts[at + 1])) for at in holes]
    lost = round(float(sum((gap.until - gap.first).total_seconds() for gap in gaps)) / 3600)
    return Coverage(
        samples=_sum(hours, "samples"),
        expected=_sum(hours, "expected_samples"),
        missing_hours=lost,
        gaps=tuple(gaps),
        resets=_sum(hours, "resets"),
        rewinds=_sum(hours, "rewinds"),
        recreations=_sum(hours, "recreations"),
    )


def _standing(group: Group, called: str, file: str, zone: ZoneInfo) -> Standing:
    advice = advice_for(group)
    presets = presets_for(group, advice, zone)
    fitting = best_of(presets)
    return Standing(
        group=group,
        called=called,
        advice=advice,
        presets=presets,
        fitting=fitting,
        file=file,
        yaml=hpa_yaml(group, advice, fitting, file),
    )


def _waiting(group: Group) -> float:
    return sum(topic.lag.p95 for topic in group.topics if topic.lag)


def _sum(hours: list[Periods], column: str) -> int:
    return int(sum(np.nansum(getattr(part, column)) for part in hours))


def _time(value: np.datetime64) -> datetime:
    return datetime.fromtimestamp(int(value.astype("datetime64[s]").astype(np.int64)), UTC)
