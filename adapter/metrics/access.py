"""Which groups a namespace may read, by the `namespaces` of rules and named metrics.

A group that may not be read is absent from the view that answers, so nothing of a reply can show it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from adapter.lag.layout import NO_LAYOUT, Layout
from adapter.metrics.store import ClusterView
from adapter.settings.models import NamedMetric, Settings

Audience = frozenset[str]
"""The patterns of the settings that match a namespace. Namespaces with the same patterns may read the same."""
Patterns = Sequence[str] | None
"""The namespaces that may read a group; None: as `tenancy` says."""
_MOST_NAMESPACES = 1000


class Access:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._is_open = settings.tenancy == "open"
        lists = [rule.namespaces or () for rule in settings.rules] + [own.namespaces or () for own in settings.metrics]
        self._patterns = {pattern: re.compile(pattern) for patterns in lists for pattern in patterns}
        self.audience_of: Callable[[str | None], Audience | None] = lru_cache(_MOST_NAMESPACES)(self._audience_of)
        """Returns the audience that a namespace belongs to; None if everybody may read everything."""
        self._views: dict[str, tuple[ClusterView, dict[Audience, ClusterView]]] = {}
        self._groups: dict[str, tuple[Layout, dict[str, Patterns]]] = {}

    def _audience_of(self, namespace: str | None) -> Audience | None:
        if namespace is None or (self._is_open and not self._patterns):
            return None
        return frozenset(text for text, pattern in self._patterns.items() if pattern.fullmatch(namespace))

    def may_read(self, metric: NamedMetric, audience: Audience | None) -> bool:
        own = metric.namespaces
        return audience is None or self._admits(self._of_group(metric.group) if own is None else own, audience)

    def views_for(
        self, views: Sequence[ClusterView], audience: Audience | None, metric: NamedMetric | None
    ) -> Sequence[ClusterView]:
        """Returns the views with only the groups that may be read: of a named metric that may be read, its group."""
        if audience is None:
            return views
        if metric is not None:
            return [_with_only(view, {metric.group} & view.codes.keys(), {metric.group}) for view in views]
        return [self._view_for(view, audience) for view in views]

    def may_name(self, group: str, audience: Audience | None, metric: NamedMetric | None) -> bool:
        """Returns whether a query, of this named metric if there is one, may name the group."""
        if audience is None:
            return True
        return self._admits(self._of_group(group), audience) if metric is None else group == metric.group

    def _view_for(self, view: ClusterView, audience: Audience) -> ClusterView:
        """Cached while the view is the newest."""
        known, by_audience = self._views.get(view.cluster, (None, {}))
        if known is not view:
            by_audience = {}
            self._views[view.cluster] = (view, by_audience)
        found = by_audience.get(audience)
        if found is None:
            patterns = self._patterns_of(view)
            visible = [group for group in view.groups if self._admits(patterns[group], audience)]
            others = {*view.unread, *view.missing, *view.unseen, *view.assumed} - patterns.keys()
            readable = {group for group in others if self._admits(self._of_group(group), audience)}
            found = by_audience[audience] = _with_only(view, visible, readable.union(visible))
        return found

    def _patterns_of(self, view: ClusterView) -> Mapping[str, Patterns]:
        """Cached while the layout is the same, because the settings may have thousands of rules."""
        layout, patterns = self._groups.get(view.cluster, (NO_LAYOUT, {}))
        if layout is not view.layout:
            patterns = {group: self._of_group(group) for group in view.layout.groups}
            self._groups[view.cluster] = (view.layout, patterns)
        return patterns

    def _of_group(self, group: str) -> Patterns:
        rule = self._settings.rule_for(group)
        return None if rule is None else rule.namespaces

    def _admits(self, patterns: Patterns, audience: Audience) -> bool:
        return self._is_open if patterns is None else not audience.isdisjoint(patterns)


def _with_only(view: ClusterView, visible: Sequence[str] | set[str], readable: set[str]) -> ClusterView:
    codes, totals = {group: view.layout.codes[group] for group in visible}, view.totals
    topics = {totals.topic[entry] for code in codes.values() for entry in totals.spans.get(code, ())}
    return replace(
        view,
        visible=codes,
        unread={group: why for group, why in view.unread.items() if group in readable},
        missing={group: names for group, names in view.missing.items() if group in readable},
        unseen={group: why for group, why in view.unseen.items() if group in readable},
        assumed=view.assumed & readable,
        topics=frozenset(view.layout.topics[code] for code in topics),
    )
