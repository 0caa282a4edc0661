"""Decides what HPAs ask for: the topics that their selectors name for a group."""

from collections.abc import Iterator

from adapter.lag.rules import NO_TOPICS, AskedTopics
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import named
from apiservice.autoscalers.autoscaler import Autoscaler

_NAMED = {"cluster", "group", "topic"}


def asked_topics(hpa: Autoscaler) -> frozenset[AskedTopics]:
    return frozenset(asked for metric in hpa.metrics for asked in _asked(hpa.namespace, metric.selector))


def _asked(namespace: str, selector: tuple[Requirement, ...]) -> Iterator[AskedTopics]:
    """Yields nothing unless the selector names exactly one group; it may also name topics, and select partitions.

    A group without topics is asked for too, so that what is known of it is remembered."""
    groups, topics, clusters = (named(selector, key) for key in ("group", "topic", "cluster"))
    is_plain = all(one.key == "partition" or (one.key in _NAMED and one.only is not None) for one in selector)
    if is_plain and groups and len(groups) == 1 and topics != NO_TOPICS:
        (group,) = groups
        for cluster in (None,) if clusters is None else clusters:
            yield AskedTopics(namespace, cluster, group, topics or NO_TOPICS)
