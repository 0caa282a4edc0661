"""Decides which groups and topics count only because a query names both, so that it can wake a group up from zero.

The group must be one that Kafka knows or once knew, and no selected cluster may have commits of it for the topic. Then
the topic is read for the group from the next cycle on."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from adapter.errors import ValueUnavailable
from adapter.metrics.requirement import Requirement
from adapter.metrics.selection import fits, named
from adapter.metrics.selector_topics import SelectorTopics
from adapter.metrics.store import ClusterView
from adapter.settings.models import Settings

MOST_PAIRS = 100
"""A query that names more groups and topics wakes none of them."""

Pair = tuple[str, str]
"""Group and topic."""


class Waking:
    def __init__(self, settings: Settings, topics: SelectorTopics | None) -> None:
        self._settings = settings
        self._topics = topics

    def woken(
        self,
        views: Sequence[ClusterView],
        asked: Sequence[Requirement],
        may_name: Callable[[str], bool],
        namespace: str | None,
    ) -> Mapping[str, set[Pair]]:
        """Returns cluster -> groups and topics that count for this query; raises ValueUnavailable until all are read.

        `may_name` says which groups the reader may read."""
        groups, topics = named(asked, "group"), named(asked, "topic")
        if self._topics is None or not groups or not topics or len(groups) * len(topics) > MOST_PAIRS:
            return {}
        woken: dict[str, set[Pair]] = {}
        problems: list[str] = []
        for pair in product(sorted(groups), sorted(topics)):
            group, topic = pair
            for view in self._where_it_counts(views, pair, asked, may_name):
                if not self._topics.ask((view.cluster, *pair), view.partitions[topic], namespace):
                    problems.append(f"selectors already name too many topics that no commit is known for: {topic}")
                elif pair in view.only_selected:
                    woken.setdefault(view.cluster, set()).add(pair)
                else:
                    problems.append(f"topic {topic} has no commit of group {group}; it is read from the next cycle on")
        if problems:
            raise ValueUnavailable(problems[0])
        return woken

    def _where_it_counts(
        self, views: Sequence[ClusterView], pair: Pair, asked: Sequence[Requirement], may_name: Callable[[str], bool]
    ) -> Sequence[ClusterView]:
        group, topic = pair
        if any(pair in view.layout.pairs and pair not in view.only_selected for view in views):
            return ()
        there = [view for view in views if topic in view.partitions]
        if not there or not fits("group", group, asked) or not fits("topic", topic, asked):
            return ()
        committed = [view for view in there if (view.cluster, group, topic) in view.remembered]
        # A topic that the reader may not see is not shown by its size either.
        known = committed or [view for view in there if topic in view.topics and view.knows(group)]
        is_undecided = not known and any(view.once_known is None and topic in view.topics for view in there)
        # Last, because the settings may have thousands of rules.
        if not (known or is_undecided) or not may_name(group) or not self._is_left_to_selectors(group):
            return ()
        if is_undecided:
            raise ValueUnavailable(f"whether Kafka once knew group {group} has not been read yet")
        return known

    def _is_left_to_selectors(self, group: str) -> bool:
        rule = self._settings.rule_for(group)
        return (rule is None or rule.topics is None) and self._settings.collection.groups.watches(group)
