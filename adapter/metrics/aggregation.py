"""Aggregates the selected entries into values with labels and the time of their oldest part."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from adapter.lag.totals import NO_LEAD, Totals
from adapter.metrics.selection import Selection
from adapter.settings.models import MetricKind


class MetricValue(NamedTuple):
    """One item of a reply; a tuple, because a listing creates thousands."""

    labels: Mapping[str, str]
    value: int
    measured_at: float
    """When its oldest part was received, in seconds since the epoch."""


def oldest_of(kind: MetricKind, totals: Totals) -> list[float]:
    return totals.oldest_commit if kind is MetricKind.UNCOMMITTED_PARTITIONS else totals.oldest


def worst_of(kind: MetricKind, totals: Totals) -> list[int]:
    return totals.worst_commit if kind is MetricKind.UNCOMMITTED_PARTITIONS else totals.worst


def is_changed_by(kind: MetricKind, totals: Totals, entry: int) -> bool:
    match kind:
        case MetricKind.LAG | MetricKind.RECORDS_LAG_MAX:
            return totals.lag[entry] > 0
        case MetricKind.LEAD_MIN:
            return totals.lead_min[entry] != NO_LEAD
        case MetricKind.UNCOMMITTED_PARTITIONS:
            return totals.uncommitted[entry] > 0


def folded(kind: MetricKind, chosen: Sequence[Selection], to_epoch: float) -> Iterator[MetricValue]:
    filled = [one for one in chosen if one.entries]
    match kind:
        case MetricKind.LAG:
            yield from (item for one in filled for item in _lags(one, to_epoch))
        case MetricKind.UNCOMMITTED_PARTITIONS:
            yield from (item for one in filled for item in _uncommitted(one, to_epoch))
        case MetricKind.RECORDS_LAG_MAX:
            yield _one_item(filled, max(one.totals.lag_max[entry] for one in filled for entry in one.entries), to_epoch)
        case MetricKind.LEAD_MIN:
            leads = [one.totals.lead_min[entry] for one in filled for entry in one.entries]
            if any(lead != NO_LEAD for lead in leads):
                yield _one_item(filled, min(lead for lead in leads if lead != NO_LEAD), to_epoch)


def _lags(chosen: Selection, to_epoch: float) -> Iterator[MetricValue]:
    cluster, layout, totals = chosen.view.cluster, chosen.view.layout, chosen.totals
    groups, topics, group, topic = layout.groups, layout.topics, totals.group, totals.topic
    for entry in chosen.entries:
        labels = {"cluster": cluster, "group": groups[group[entry]], "topic": topics[topic[entry]]}
        yield MetricValue(labels, totals.lag[entry], totals.oldest[entry] + to_epoch)


def _uncommitted(chosen: Selection, to_epoch: float) -> Iterator[MetricValue]:
    view, totals = chosen.view, chosen.totals
    for code, run in groupby(chosen.entries, key=totals.group.__getitem__):
        entries = list(run)
        labels = {"cluster": view.cluster, "group": view.layout.groups[code]}
        oldest = min(totals.oldest_commit[entry] for entry in entries)
        yield MetricValue(labels, sum(totals.uncommitted[entry] for entry in entries), oldest + to_epoch)


def _one_item(filled: Sequence[Selection], value: int, to_epoch: float) -> MetricValue:
    """Returns one item for the whole selection, with the labels that all entries share."""
    oldest = min(one.totals.oldest[entry] for one in filled for entry in one.entries)
    return MetricValue(_shared_labels(filled), value, oldest + to_epoch)


def _shared_labels(filled: Sequence[Selection]) -> dict[str, str]:
    if len(filled) > 1:
        return {}
    view, totals = filled[0].view, filled[0].totals
    groups = {totals.group[entry] for entry in filled[0].entries}
    topics = {totals.topic[entry] for entry in filled[0].entries}
    labels = {"cluster": view.cluster}
    if len(groups) == 1:
        labels["group"] = view.layout.groups[groups.pop()]
    if len(topics) == 1:
        labels["topic"] = view.layout.topics[topics.pop()]
    return labels
