"""Decides what HPAs ask for: the topics that their selectors name for a group."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from adapter.lag.rules import AskedTopics
from adapter.metrics.demand import BOUND
from adapter.metrics.selection import named
from apiservice.autoscalers.annotations import MAX_REPLICAS, SHADOW_GROUP
from apiservice.autoscalers.autoscaler import Autoscaler, Source, UsedMetric

_NAMED = {"cluster", "group", "topic"}
_OF_VALUES = {"partition", BOUND}
"""What chooses among the values of what is named."""

NamedGroups = Mapping[str, tuple[str | None, str]]
"""Name of a named metric in lower case -> its cluster, which may be None, and its group."""


class GroupRead(NamedTuple):
    cluster: str | None
    group: str
    metric: str | None = None
    """The named metric that it is read by; None: its name."""


def asked_topics(hpa: Autoscaler, named_groups: NamedGroups = MappingProxyType({})) -> tuple[AskedTopics, ...]:
    selected = (asked for metric in hpa.metrics for asked in _asked(hpa.namespace, metric))
    found = (*selected, *_of_named(hpa, named_groups))
    return tuple(replace(asked, of_partitions=True) for asked in found) if MAX_REPLICAS in hpa.annotations else found


def groups_read(hpa: Autoscaler, named_groups: NamedGroups) -> frozenset[GroupRead]:
    """Returns the groups of the metrics that the HPA reads, or that it scales by other ones."""
    given = (GroupRead(None, hpa.annotations[SHADOW_GROUP]),) if SHADOW_GROUP in hpa.annotations else ()
    names = {metric.name.lower() for metric in hpa.metrics} & named_groups.keys()
    own = (GroupRead(*named_groups[name], name) for name in names)
    selected = (
        GroupRead(cluster, group)
        for metric in hpa.metrics
        for cluster, group in product(
            named(metric.selector, "cluster") or (None,), named(metric.selector, "group") or ()
        )
    )
    return frozenset((*given, *own, *selected))


def _of_named(hpa: Autoscaler, named_groups: NamedGroups) -> Iterator[AskedTopics]:
    """A named metric needs no selector, and its topics need no HPA; but pods have its values only by its members, and
    `maxReplicas` follows its partitions."""
    for metric in hpa.metrics:
        of_members = metric.source is Source.PODS
        if (of_members or MAX_REPLICAS in hpa.annotations) and metric.name.lower() in named_groups:
            cluster, group = named_groups[metric.name.lower()]
            yield AskedTopics(hpa.namespace, cluster, group, (), of_members)


def _asked(namespace: str, metric: UsedMetric) -> Iterator[AskedTopics]:
    """Yields topics if the selector names them and exactly one group; it may also select partitions.

    The groups that any other selector names are asked for too, so that what is known of them is remembered."""
    selector = metric.selector
    groups, topics, clusters = (named(selector, key) for key in ("group", "topic", "cluster"))
    is_plain = all(one.key in _OF_VALUES or (one.key in _NAMED and one.only is not None) for one in selector)
    counted = tuple(sorted(topics or ())) if is_plain and groups and len(groups) == 1 else ()
    for group, cluster in product(groups or (), (None,) if clusters is None else clusters):
        yield AskedTopics(namespace, cluster, group, counted, metric.source is Source.PODS)
