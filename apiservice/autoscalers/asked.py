"""Decides what HPAs ask for: the topics that their selectors name for a group."""

from collections.abc import Iterator
from itertools import product

from adapter.lag.rules import AskedTopics
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import named
from apiservice.autoscalers.autoscaler import Autoscaler

_NAMED = {"cluster", "group", "topic"}


def asked_topics(hpa: Autoscaler) -> tuple[AskedTopics, ...]:
    return tuple(asked for metric in hpa.metrics for asked in _asked(hpa.namespace, metric.selector))


def _asked(namespace: str, selector: tuple[Requirement, ...]) -> Iterator[AskedTopics]:
    """Yields topics if the selector names them and exactly one group; it may also select partitions.

    The groups that any other selector names are asked for too, so that what is known of them is remembered."""
    groups, topics, clusters = (named(selector, key) for key in ("group", "topic", "cluster"))
    is_plain = all(one.key == "partition" or (one.key in _NAMED and one.only is not None) for one in selector)
    counted = tuple(sorted(topics or ())) if is_plain and groups and len(groups) == 1 else ()
    for group, cluster in product(groups or (), (None,) if clusters is None else clusters):
        yield AskedTopics(namespace, cluster, group, counted)
