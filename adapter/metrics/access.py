"""Which groups a namespace may read, by the `namespaces` of rules and named metrics.

A group that may not be read is absent from the view that answers, so nothing of a reply can show it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from adapter.lag.layout import Layout
from adapter.metrics.store import ClusterView
from adapter.settings.models import NamedMetric, Settings

Audience = frozenset[str]
"""The patterns of the settings that match a namespace. Namespaces with the same patterns may read the same."""
Patterns = Sequence[str] | None
"""The namespaces that may read a group; None: as `tenancy` says."""
_MOST_NAMESPACES, _MOST_GROUPS = 1000, 100_000


class Access:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_open = settings.tenancy == "open"
        lists = [rule.namespaces or () for rule in settings.rules] + [own.namespaces or () for own in settings.metrics]
        self._patterns = {pattern: re.compile(pattern) for patterns in lists for pattern in patterns}
        self.audience_of: Callable[[str | None], Audience | None] = lru_cache(_MOST_NAMESPACES)(self._audience_of)
        """Returns the audience that a namespace belongs to; None if everybody may read everything."""
        # Cached, because the settings may have thousands of rules.
        self._of_group: Callable[[str], Patterns] = lru_cache(_MOST_GROUPS)(self._patterns_of)
        # Weak, so that what was made for a layout goes with it.
        self._seen: WeakKeyDictionary[Layout, dict[Audience, _Seen]] = WeakKeyDictionary()

    def _audience_of(self, namespace: str | None) -> Audience | None:
        if namespace is None or (self._is_open and not self._patterns):
            return None
        return frozenset(text for text, pattern in self._patterns.items() if pattern.fullmatch(namespace))

    def may_read(self, metric: NamedMetric | None, audience: Audience | None) -> bool:
        if metric is None or audience is None:
            return True
        own = metric.namespaces
        return self._admits(self._of_group(metric.group) if own is None else own, audience)

    def views_for(
        self, views: Sequence[ClusterView], audience: Audience | None, metric: NamedMetric | None
    ) -> Sequence[ClusterView]:
        """Returns the views with only the groups that may be read: of a named metric that may be read, its group."""
        if audience is None:
            return views
        if metric is not None:
            return [_for_metric(view, metric) for view in views]
        return [self._restricted(view, audience) for view in views]

    def effort(self, views: Sequence[ClusterView], audience: Audience | None, metric: NamedMetric | None) -> int:
        """Returns the steps that `views_for` takes; few for the same layout."""
        if audience is None or metric is not None:
            return 0
        return sum(self._effort_for(view, audience) for view in views)

    def _effort_for(self, view: ClusterView, audience: Audience) -> int:
        is_laid_out = audience in self._seen.get(view.layout, ())
        # Each group is matched with the rules that have a pattern, until one fits.
        rules = 1 + len(self._settings.rules) // 100
        groups = 0 if is_laid_out else (len(view.layout.groups) + len(view.totals)) * rules
        return groups + len(view.problems) + len(view.assumed)

    def may_name(self, group: str, audience: Audience | None) -> bool:
        return audience is None or self._admits(self._of_group(group), audience)

    def _restricted(self, view: ClusterView, audience: Audience) -> ClusterView:
        seen = self._seen_by(view, audience)
        return replace(
            view,
            visible=seen.groups,
            problems={group: each for group, each in view.problems.items() if self.may_name(group, audience)},
            assumed=frozenset(group for group in view.assumed if self.may_name(group, audience)),
            topics=seen.topics,
        )

    def _seen_by(self, view: ClusterView, audience: Audience) -> "_Seen":
        """Cached while the layout is the same, because there may be many groups."""
        by_audience = self._seen.setdefault(view.layout, {})
        if audience not in by_audience:
            by_audience[audience] = _seen_of(view, [group for group in view.codes if self.may_name(group, audience)])
        return by_audience[audience]

    def _patterns_of(self, group: str) -> Patterns:
        rule = self._settings.rule_for(group)
        return None if rule is None else rule.namespaces

    def _admits(self, patterns: Patterns, audience: Audience) -> bool:
        return self._is_open if patterns is None else not audience.isdisjoint(patterns)


class _Seen(NamedTuple):
    """What of a layout may be read."""

    groups: Mapping[str, int]
    """Group -> its code."""
    topics: frozenset[str]
    """Those of these groups."""


def _seen_of(view: ClusterView, groups: Sequence[str]) -> _Seen:
    codes, totals, names = {group: view.layout.codes[group] for group in groups}, view.totals, view.layout.topics
    entries = (entry for code in codes.values() for entry in totals.spans.get(code, ()))
    topics = {totals.topic[entry] for entry in entries if not totals.is_asked[entry]}

    def is_seen(group: str) -> bool:
        """Otherwise an HPA would reveal that a topic exists: by its group, which is known only because of it."""
        entries = totals.spans.get(codes[group], ())
        return not view.is_only_asked(group) or any(
            totals.was_committed[e] or totals.topic[e] in topics for e in entries
        )

    return _Seen({group: codes[group] for group in groups if is_seen(group)}, frozenset(names[code] for code in topics))


def _for_metric(view: ClusterView, metric: NamedMetric) -> ClusterView:
    group = metric.group
    seen = _seen_of(view, [group] if group in view.codes else [])
    return replace(
        view,
        visible=seen.groups,
        problems={group: view.problems[group]} if group in view.problems else {},
        assumed=view.assumed & {group},
        topics=seen.topics if metric.topics is None else seen.topics.intersection(metric.topics),
    )
