"""Gathers what the page shows, as frozen values: nothing is judged here, and nothing is read from a broker."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from adapter.clock import Clock
from adapter.conditions import Condition, Conditions, ConditionStatus
from adapter.metrics.query import LAG, Known, Metrics
from adapter.overview.cells import HEADINGS, cells_of
from adapter.overview.lines import OTHERS, Attention, GroupLine, lines_of
from adapter.overview.trends import LagTrends
from adapter.settings.models import Settings
from apiservice.autoscalers.arithmetic import HpaLine, line_of
from apiservice.autoscalers.asked import GroupRead, groups_read
from apiservice.autoscalers.autoscaler import Autoscaler, AutoscalerCondition
from apiservice.pods.values import PodsOf
from apiservice.status_page.drawing import Drawing, drawn, span_of

MOST_GROUPS = 300
MOST_HPAS = 200
MOST_HPAS_OF_GROUP = 5
DOT_SEGMENTS = {".", ".."}
"""Names that no browser leaves in a path."""
AS_EXPECTED = {
    ("AbleToScale", "True"),
    ("ScaledToZero", "False"),
    ("ScalingActive", "True"),
    ("ScalingLimited", "False"),
}
"""Types of an HPA's conditions with the status that asks for nobody's attention."""

_Read = Mapping[tuple[str, str], frozenset[GroupRead]]
"""Of HPAs by namespace and name: the groups that they read."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    line: GroupLine
    cells: Mapping[str, str]
    """By heading of `top`."""
    trend: Drawing
    link: str
    """Where the group is explained; empty if it has no address."""
    hpas: tuple[HpaLine, ...]
    """The first MOST_HPAS_OF_GROUP that read its metrics, of those that the page shows."""
    more_hpas: int
    """How many others read them."""


@dataclass(frozen=True, slots=True)
class ClusterFreshness:
    cluster: str
    groups: int
    """Whose lag is known."""
    age: float | None
    """Of the oldest part of any of these lags, in seconds; None if there is none."""


@dataclass(frozen=True, slots=True)
class Page:
    at: float
    """In seconds since the epoch."""
    replica: str
    version: str
    namespace: str | None
    """Of the reader; None: a reader of everything."""
    max_age: float
    clusters: tuple[ClusterFreshness, ...]
    urgent: Mapping[Attention, int]
    """How many groups need attention for which reason, the most urgent first."""
    groups: int
    span: float
    """Seconds that the small lines cover."""
    rows: tuple[GroupRow, ...]
    """The first MOST_GROUPS of them."""
    conditions: tuple[Condition, ...]
    """Those that are not true, first."""
    hpas: int
    hpa_lines: tuple[HpaLine, ...]
    """The first MOST_HPAS of them: those whose groups are unknown, then in the order of their groups."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is looked at."""

    metrics: Metrics
    settings: Settings
    conditions: Conditions
    autoscalers: Sequence[Autoscaler]
    trends: LagTrends
    clock: Clock
    replica: str
    version: str
    pods_in: PodsOf = lambda _: None


def page_of(sources: Sources, namespace: str | None = None) -> Page:
    """Returns what a reader in the namespace may see; None: a reader of everything."""
    metrics, now = sources.metrics, sources.clock.monotonic()
    known = metrics.known(namespace)
    lines = lines_of(known)
    own = [each for each in sources.autoscalers if namespace in {None, each.namespace}]
    read = {each.place: groups_read(each, metrics.named_groups) for each in own}
    asking = _in_order(own, lines, read)
    shown = {each.place: line_of(each, metrics, sources.pods_in) for each in asking[:MOST_HPAS]}
    of_groups = _by_group(asking, read)
    counted = Counter(line.attention for line in lines)
    span = span_of(sources.trends.at, now)
    several = len(sources.settings.clusters) > 1

    def row_of(line: GroupLine) -> GroupRow:
        hpas = [*of_groups[line.cluster, line.group], *of_groups[None, line.group]]
        places = list(dict.fromkeys(each.place for each in hpas))
        first = [shown[place] for place in places if place in shown][:MOST_HPAS_OF_GROUP]
        return GroupRow(
            line=line,
            cells=dict(zip(HEADINGS, cells_of(line, names_cluster=several), strict=True)),
            trend=_trend(sources.trends, line, now, span),
            link=_link(line, namespace),
            hpas=tuple(first),
            more_hpas=len(places) - len(first),
        )

    return Page(
        at=sources.clock.time(),
        replica=sources.replica,
        version=sources.version,
        namespace=namespace,
        max_age=sources.settings.collection.max_age,
        clusters=tuple(_freshness(known, now)),
        urgent={each: counted[each] for each in Attention if each is not Attention.NONE and counted[each]},
        groups=len(lines),
        span=span,
        rows=tuple(map(row_of, lines[:MOST_GROUPS])),
        conditions=tuple(sorted(sources.conditions.current, key=_by_status)),
        hpas=len(asking),
        hpa_lines=tuple(shown.values()),
    )


def unexpected(conditions: Iterable[AutoscalerCondition]) -> Iterator[AutoscalerCondition]:
    """Yields the conditions of an HPA that say more than that it works."""
    return (each for each in conditions if (each.type, each.status) not in AS_EXPECTED)


def _freshness(known: Known, now: float) -> Iterator[ClusterFreshness]:
    for one in known.chosen:
        entries, totals = one.entries, one.totals
        age = max(now - min(map(totals.oldest.__getitem__, entries)), 0.0) if entries else None
        yield ClusterFreshness(one.view.cluster, len({totals.group[entry] for entry in entries}), age)


def _in_order(asking: Sequence[Autoscaler], lines: Sequence[GroupLine], read: _Read) -> list[Autoscaler]:
    place_of: dict[str, int] = {}
    for place, line in enumerate(lines):
        place_of.setdefault(line.group, place)

    def urgency(autoscaler: Autoscaler) -> tuple[int, str, str]:
        places = [place_of.get(one.group, -1) for one in read[autoscaler.place]]
        return min(places, default=len(lines)), *autoscaler.place

    return sorted(asking, key=urgency)


def _by_group(asking: Sequence[Autoscaler], read: _Read) -> Mapping[tuple[str | None, str], list[Autoscaler]]:
    """Returns those that read a group; the cluster may be None."""
    of_groups: defaultdict[tuple[str | None, str], list[Autoscaler]] = defaultdict(list)
    for each in asking:
        for group in {(one.cluster, one.group) for one in read[each.place]}:
            of_groups[group].append(each)
    return of_groups


def _trend(trends: LagTrends, line: GroupLine, now: float, span: float) -> Drawing:
    lag = np.nan if line.lag is None else float(line.lag)
    return drawn(np.append(trends.at, now), np.append(trends.of((line.cluster, line.group)), lag), now, span)


def _link(line: GroupLine, namespace: str | None) -> str:
    """Relative to the page's own address, which is longer behind kube-apiserver."""
    if line.group in {OTHERS, *DOT_SEGMENTS}:
        return ""
    return f"{'explain' if namespace is None else LAG}/{quote(line.group.encode('utf-8', 'surrogateescape'), safe='')}"


def _by_status(condition: Condition) -> tuple[bool, str, str]:
    return condition.status is ConditionStatus.TRUE, condition.name, condition.cluster
