"""Folds the selected entries of a column into values with labels and the time of their oldest part.

The HPA adds all items of a reply, so values that must not be added are one item."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

from adapter.columns import Flags
from adapter.lag.ring import Ring, Track
from adapter.lag.totals import LARGEST, NO_VALUE, Totals
from adapter.lag.values import Values
from adapter.metrics.demand import BOUND, check_bound, members_of, rates_of, seconds_to_loss, wait_in
from adapter.metrics.replicas import replicas_in
from adapter.metrics.required import Demands
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import Selection
from adapter.settings.models import Replicas


class MetricValue(NamedTuple):
    """One item of a reply; a tuple, because a listing creates thousands."""

    labels: Mapping[str, str]
    milli: int
    """The value in thousandths of the metric's unit."""
    measured_at: float
    """When its oldest part was received, in seconds since the epoch."""


Column = Callable[[Totals], Sequence[int]]
"""The value of each entry in thousandths, or NO_VALUE."""


_OfEntries = Sequence[int] | Mapping[int, int]
"""Entry -> its value in thousandths."""
MemberFold = Callable[[Iterable[int]], int]
"""Makes one value of those of several partitions, or of several members; 0 of none."""


class Age(NamedTuple):
    """Which rows must be known."""

    oldest: Callable[[Totals], Sequence[float]]
    """When each entry's oldest part was received, in monotonic seconds; NEVER if a part is unknown."""
    is_known: Callable[[Values], Flags]


class Folding(NamedTuple):
    """What a fold makes values of."""

    column: Column
    age: Age
    chosen: Sequence[Selection]
    to_epoch: float
    """How far the epoch is from the monotonic clock."""
    demands: Demands
    """For what depends on earlier reads."""
    shape: Replicas | None = None
    """How the number of replicas follows; None for other metrics."""
    interval: float = 0.0
    """Between two cycles."""
    asked: Sequence[Requirement] = ()
    """The query's."""
    what: str = ""
    """The definition's `help`."""


@dataclass(frozen=True, slots=True)
class Fold:
    neutral: int
    """An entry with this value does not change the result."""
    apply: Callable[[Folding], Iterator[MetricValue]]


def _by_topic(values_in: Callable[[Folding, Selection], _OfEntries], of: Folding) -> Iterator[MetricValue]:
    age, to_epoch = of.age, of.to_epoch
    for one in of.chosen:
        cluster, layout, totals = one.view.cluster, one.view.layout, one.totals
        groups, topics, group, topic = layout.groups, layout.topics, totals.group, totals.topic
        values, oldest = values_in(of, one), age.oldest(totals)
        for entry in one.entries:
            labels = {"cluster": cluster, "group": groups[group[entry]], "topic": topics[topic[entry]]}
            yield MetricValue(labels, values[entry], oldest[entry] + to_epoch)


def _totals_in(of: Folding, chosen: Selection) -> _OfEntries:
    return of.column(chosen.totals)


def _rates_in(track_of: Callable[[Ring], Track], of: Folding, chosen: Selection) -> _OfEntries:
    return rates_of(chosen, track_of(chosen.view.ring), of.interval, of.what)


def _members(of: Folding) -> Iterator[MetricValue]:
    for one in of.chosen:
        oldest = of.age.oldest(one.totals)
        for code, entries in groupby(one.entries, key=one.totals.group.__getitem__):
            group = one.view.layout.groups[code]
            counted = members_of(one, group, of.what)
            measured_at = min(counted.at, *(oldest[entry] for entry in entries)) + of.to_epoch
            yield MetricValue({"cluster": one.view.cluster, "group": group}, 1000 * counted.members, measured_at)


def _by_group(of: Folding) -> Iterator[MetricValue]:
    for one in of.chosen:
        values, oldest = of.column(one.totals), of.age.oldest(one.totals)
        for code, run in groupby(one.entries, key=one.totals.group.__getitem__):
            entries = list(run)
            labels = {"cluster": one.view.cluster, "group": one.view.layout.groups[code]}
            measured_at = min(oldest[entry] for entry in entries) + of.to_epoch
            yield MetricValue(labels, sum(values[entry] for entry in entries), measured_at)


def _as_one(pick: Callable[[Iterable[int]], int], of: Folding) -> Iterator[MetricValue]:
    """Returns one item for the whole selection, with the labels that all entries share; none without any value."""
    every = (value for one in of.chosen for value in map(of.column(one.totals).__getitem__, one.entries))
    values = [value for value in every if value != NO_VALUE]
    if values:
        yield _one_item(of, pick(values))


def _replicas(of: Folding) -> Iterator[MetricValue]:
    """Returns the number of replicas that one group should have."""
    if of.shape is not None and of.shape.max_wait is not None:
        yield from _required(of)
    elif of.shape is not None:
        (one,) = of.chosen
        yield _one_item(of, 1000 * replicas_in(one, of.shape, of.interval))


def _required(of: Folding) -> Iterator[MetricValue]:
    """Returns the number of replicas that keeps the promise, and what it follows from."""
    (one,) = of.chosen
    if of.shape is not None:
        answer = of.demands.read(one, of.shape, of.interval, of.what, of.to_epoch)
        yield _labelled(_one_item(of, 1000 * answer.replicas), answer.labels)


def _required_forecast(of: Folding) -> Iterator[MetricValue]:
    """Returns the same by the weekly pattern."""
    (one,) = of.chosen
    if of.shape is not None:
        answer = of.demands.forecast(one, of.shape, of.interval, of.what, of.to_epoch)
        yield _labelled(_one_item(of, 1000 * answer.replicas), answer.labels)


def _capacity(of: Folding) -> Iterator[MetricValue]:
    """Returns what one member can read, and where that comes from."""
    (one,) = of.chosen
    if of.shape is not None:
        capacity = of.demands.capacity(one, of.shape, of.what)
        yield _labelled(_one_item(of, round(1000 * capacity.per_second)), capacity.labels)


def _wait(of: Folding) -> Iterator[MetricValue]:
    """Returns one item that says whether it is a lower bound."""
    wait = wait_in(of.chosen)
    check_bound(wait, of.asked, of.what)
    yield _labelled(_one_item(of, wait.milli), {BOUND: wait.bound})


def _data_loss(of: Folding) -> Iterator[MetricValue]:
    """Returns one item; none without any commit."""
    seconds = seconds_to_loss(of.chosen, of.what)
    if seconds is not None:
        yield _one_item(of, 1000 * LARGEST if seconds >= LARGEST else round(1000 * seconds))


def _one_item(of: Folding, milli: int) -> MetricValue:
    return MetricValue(_shared_labels(of.chosen), milli, oldest_of(of.age, of.chosen) + of.to_epoch)


def _labelled(item: MetricValue, labels: Mapping[str, str]) -> MetricValue:
    return item._replace(labels={**item.labels, **labels})


def oldest_of(age: Age, chosen: Sequence[Selection]) -> float:
    return min(oldest for one in chosen for oldest in map(age.oldest(one.totals).__getitem__, one.entries))


def total_of(values: Sequence[MetricValue]) -> MetricValue:
    """Returns what the HPA makes of the items of a reply: their sum, with the time of the oldest."""
    return MetricValue({}, sum(each.milli for each in values), min(each.measured_at for each in values))


def _shared_labels(chosen: Sequence[Selection]) -> dict[str, str]:
    if len(chosen) > 1:
        return {}
    view, totals = chosen[0].view, chosen[0].totals
    groups = {totals.group[entry] for entry in chosen[0].entries}
    topics = {totals.topic[entry] for entry in chosen[0].entries}
    labels = {"cluster": view.cluster}
    if len(groups) == 1:
        labels["group"] = view.layout.groups[groups.pop()]
    if len(topics) == 1:
        labels["topic"] = view.layout.topics[topics.pop()]
    return labels


SUM_BY_TOPIC = Fold(0, partial(_by_topic, _totals_in))
SUM_BY_GROUP = Fold(0, _by_group)
MAXIMUM = Fold(0, partial(_as_one, max))
MINIMUM = Fold(NO_VALUE, partial(_as_one, min))
REPLICAS = Fold(0, _replicas)
REQUIRED = Fold(0, _required)
REQUIRED_FORECAST = Fold(0, _required_forecast)
CAPACITY = Fold(NO_VALUE, _capacity)
WAIT = Fold(0, _wait)
PRODUCTION = Fold(NO_VALUE, partial(_by_topic, partial(_rates_in, lambda ring: ring.ends)))
CONSUMPTION = Fold(NO_VALUE, partial(_by_topic, partial(_rates_in, lambda ring: ring.commits)))
MEMBERS = Fold(NO_VALUE, _members)
DATA_LOSS = Fold(0, _data_loss)
