"""The metrics, and how each aggregates the partitions that a label selector selects.

The HPA adds all items of a reply, so values that must not be added are one item."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from adapter.clock import Clock
from adapter.cluster.possible_groups import NO_POSSIBLE_GROUPS
from adapter.errors import AdapterError, MetricUnknown, NoMatch, ValueUnavailable, some_of
from adapter.lag.snapshot import State
from adapter.lag.totals import Totals
from adapter.metrics.access import Access, Audience
from adapter.metrics.aggregation import MetricValue, folded, is_changed_by, oldest_of, worst_of
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import (
    Selection,
    effort_of,
    fits,
    hint,
    named,
    selection_of,
    where_known,
    without_groups,
)
from adapter.metrics.store import ClusterView, Store
from adapter.settings.models import SERVED_NAMES, MetricKind, NamedMetric, Settings

CHEAP_EFFORT = 1000
"""Steps that take about 5 ms."""
LISTED = frozenset({MetricKind.LAG, MetricKind.UNCOMMITTED_PARTITIONS})
"""Without a selector these are listings: one bad group does not hide the others."""
NEEDED = " (a partition needs a commit, or a rule or an HPA that names group and topics)"
IN_WORDS = {
    MetricKind.LAG: "lag",
    MetricKind.RECORDS_LAG_MAX: "largest lag",
    MetricKind.LEAD_MIN: "lead",
    MetricKind.UNCOMMITTED_PARTITIONS: "number of uncommitted partitions",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply, which may be reused while the version is unchanged and the clock is before `valid_until`."""

    metric: str
    values: tuple[MetricValue, ...]
    warnings: tuple[str, ...]
    version: int
    valid_until: float
    """In seconds of the monotonic clock: when its oldest part becomes too old."""


@dataclass(frozen=True, slots=True)
class Served:
    name: str
    kind: MetricKind
    own: NamedMetric | None = None

    def requirements(self) -> tuple[Requirement, ...]:
        if self.own is None:
            return ()
        named = {"cluster": (self.own.cluster,), "group": (self.own.group,), "topic": self.own.topics or (None,)}
        return tuple(
            Requirement(key, Operator.IN, frozenset(value for value in values if value is not None))
            for key, values in named.items()
            if None not in values
        )

    @property
    def lists_topics(self) -> bool:
        return self.own is not None and self.own.topics is not None


class Metrics:
    def __init__(self, settings: Settings, store: Store, clock: Clock) -> None:
        own = [Served(metric.name, metric.value, metric) for metric in settings.metrics]
        self._served = [*(Served(name, kind) for name, kind in SERVED_NAMES.items()), *own]
        self.names = tuple(served.name for served in self._served)
        """The names in discovery."""
        self._by_name = {served.name.lower(): served for served in self._served}
        self._max_age = settings.collection.max_age
        self._several_clusters = len(settings.clusters) > 1
        self._store = store
        self._clock = clock
        self._access = Access(settings)
        self.audience_of = self._access.audience_of

    @property
    def version(self) -> int:
        return self._store.version

    def read(self, metric: str, requirements: Sequence[Requirement], namespace: str | None = None) -> Reading:
        """Returns the values; raises MetricUnknown, NoMatch or ValueUnavailable.

        `namespace` is the reader's; None reads everything."""
        served, audience = self._by_name.get(metric.lower()), self.audience_of(namespace)
        if served is None or not self._may_read(served, audience):
            readable = [each.name for each in self._served if self._may_read(each, audience)]
            names = some_of(readable, most=10, separator=", ")
            raise MetricUnknown(f"no metric {metric[:80]!r} is served; the metrics are {names}")
        version, views = self._store.version, self._access.views_for(self._store.views, audience, served.own)
        asked = (*served.requirements(), *requirements)
        if not asked and served.kind in LISTED:
            return self._listing(served, views, version)
        return self._answer(served, self._selected(served, views, asked), version, warnings=())

    def may_name(self, group: str, namespace: str) -> bool:
        """Returns whether a reader in the namespace may read the group."""
        return self._access.may_name(group, self.audience_of(namespace))

    def effort(self, metric: str, requirements: Sequence[Requirement], namespace: str | None = None) -> int:
        """Estimates the cost of a read in the steps of `selection.effort_of`; never fails."""
        served = self._by_name.get(metric.lower())
        if served is None:
            return 0
        views, audience = self._store.views, self.audience_of(namespace)
        making = self._access.effort(views, audience, served.own)
        if making > CHEAP_EFFORT:
            return making
        asked = (*served.requirements(), *requirements)
        views = tuple(self._access.views_for(views, audience, served.own))
        return making + sum(effort_of(view, asked) for view in views if fits("cluster", view.cluster, asked))

    def _may_read(self, served: Served, audience: Audience | None) -> bool:
        return served.own is None or self._access.may_read(served.own, audience)

    def _selected(self, served: Served, views: Sequence[ClusterView], asked: Sequence[Requirement]) -> list[Selection]:
        """Returns what the query covers, or raises the first of its problems: partial sums are never returned."""
        fitting = [view for view in views if fits("cluster", view.cluster, asked)]
        chosen = where_known([selection_of(view, asked, stale_too=served.lists_topics) for view in fitting])
        for one in chosen:
            self._refuse_unheard_groups(one, asked)
        for _, _, error in self._problems(served, chosen, asked):
            raise error
        if not any(one.entries for one in chosen):
            raise NoMatch(self._nothing(served, views, asked))
        return chosen

    def _refuse_unheard_groups(self, chosen: Selection, asked: Sequence[Requirement]) -> None:
        """A group that only an unavailable broker can know is neither absent nor 0."""
        view, groups = chosen.view, named(asked, "group")
        if groups is None and view.possible_groups.in_sums is not None:
            raise ValueUnavailable(_not_all_groups(view, view.possible_groups.in_sums))
        if not groups or view.possible_groups == NO_POSSIBLE_GROUPS:
            return
        # The coordinator of a known group has confirmed that nothing here belongs to it.
        answered = {*chosen.groups, *(view.assumed - view.unread.keys())}
        for group in sorted(groups - answered):
            why = view.possible_groups.about(group)
            if why is not None and fits("group", group, asked):
                raise ValueUnavailable(_not_all_groups(view, why))

    def _problems(
        self, served: Served, chosen: Sequence[Selection], asked: Sequence[Requirement]
    ) -> Iterator[tuple[ClusterView, str, AdapterError]]:
        """Yields the groups without a value, and why."""
        for one in chosen:
            for group in one.groups if one.view.missing or one.view.unseen else ():
                for error in self._topic_problems(served, one.view, group, asked):
                    yield one.view, group, error
        for one in chosen:
            for group in one.groups if one.view.unread else ():
                if group in one.view.unread:
                    why = one.view.unread[group]
                    yield one.view, group, ValueUnavailable(self._not_known(served, one.view, group, why))
        for one in chosen:
            for entry, text in self._entry_problems(served, one):
                yield one.view, one.view.layout.groups[one.totals.group[entry]], ValueUnavailable(text)

    def _topic_problems(
        self, served: Served, view: ClusterView, group: str, asked: Sequence[Requirement]
    ) -> Iterator[AdapterError]:
        for topic in _asked_for(view.missing.get(group, ()), served, asked):
            place = f"in cluster {view.cluster}{hint(topic, view.topics, 'its topics are')}"
            yield NoMatch(f"topic {topic} of group {group} does not exist {place}")
        unseen = view.unseen.get(group, {})
        for topic in _asked_for(unseen, served, asked):
            yield ValueUnavailable(self._not_known(served, view, group, unseen[topic]))

    def _entry_problems(self, served: Served, chosen: Selection) -> Iterator[tuple[int, str]]:
        """Yields the entries that are in doubt, and those that are too old, the oldest first."""
        view, totals, now = chosen.view, chosen.totals, self._clock.monotonic()
        for entry in chosen.entries if view.in_doubt else ():
            # Whether the topic is still read matters only if it changes the reply.
            if totals.is_in_doubt[entry] and is_changed_by(served.kind, totals, entry):
                yield entry, self._why_in_doubt(served, view, totals, entry)
        oldest = oldest_of(served.kind, totals)
        # NEVER, and so too old, if a part is unknown or contradictory.
        too_old = [entry for entry in chosen.entries if now - oldest[entry] > self._max_age]
        for entry in sorted(too_old, key=oldest.__getitem__):
            yield entry, self._why(served, view, worst_of(served.kind, totals)[entry], now)

    def _nothing(self, served: Served, views: Sequence[ClusterView], asked: Sequence[Requirement]) -> str:
        values = {"cluster": [view.cluster for view in views]}
        values["group"] = [group for view in views for group in view.groups]
        values["topic"] = sorted({topic for view in views for topic in view.topics})
        for requirement in asked:
            known = values.get(requirement.key)
            if known is not None and requirement.only and not requirement.only & set(known):
                key, name = requirement.key, min(requirement.only)
                return f"no {key} {name[:249]!r} is known{hint(name, known, f'known {key}s are')}"
        if not values["group"]:
            return "no consumer group is known"
        groups = [r for r in asked if r.key == "group" and r.only]
        whose = f" of group {min(groups[0].only or ())!r}" if groups else ""
        why = NEEDED if served.kind in LISTED else ""
        return f"the selector matches nothing{whose} for {served.name}{why}"

    def _answer(self, served: Served, chosen: Sequence[Selection], version: int, warnings: tuple[str, ...]) -> Reading:
        values = tuple(folded(served.kind, chosen, self._clock.time() - self._clock.monotonic()))
        if not values:
            raise NoMatch(f"no selected partition has a commit, so there is no {IN_WORDS[served.kind]}")
        # That a partition has no commit must be known like any offset, so such rows count for the age.
        oldest = min(oldest_of(served.kind, one.totals)[entry] for one in chosen for entry in one.entries)
        return Reading(served.name, values, warnings, version, valid_until=oldest + self._max_age)

    def _why_in_doubt(self, served: Served, view: ClusterView, totals: Totals, entry: int) -> str:
        group, topic = view.layout.groups[totals.group[entry]], view.layout.topics[totals.topic[entry]]
        seconds = self._clock.time() - self._clock.monotonic() + view.in_doubt[group]
        since = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        reason = f"the group has not been described as Stable since {since}, and did not read topic {topic} then"
        return self._not_known(served, view, group, f"{reason}; whether it reads the topic now is not known")

    def _why(self, served: Served, view: ClusterView, row: int, now: float) -> str:
        snapshot = view.snapshot
        group, partition = view.layout.groups[view.layout.group[row]], view.layout.name(row)
        if snapshot.state[row] == State.AHEAD:
            reason = f"committed {snapshot.committed[row]} is beyond the log end {snapshot.log_end[row]}"
            return self._not_known(served, view, group, f"{partition}: {reason}")
        reason = snapshot.cause_of(row).text
        if not view.values.is_known[row]:
            reason = reason or "its log start is beyond the last known log end"
            return self._not_known(served, view, group, f"{partition}: {reason}")
        age = f"{now - float(snapshot.received[row]):.0f} s old, limit {self._max_age:g} s"
        return f"{self._whose(served, view, group)} is {age}: {partition}: {reason or 'no cycle has ended since'}"

    def _not_known(self, served: Served, view: ClusterView, group: str, reason: str) -> str:
        return f"{self._whose(served, view, group)} is not known: {reason}"

    def _whose(self, served: Served, view: ClusterView, group: str) -> str:
        where = f" in cluster {view.cluster}" if self._several_clusters else ""
        return f"{IN_WORDS[served.kind]} of group {group}{where}"

    def _listing(self, served: Served, views: Sequence[ClusterView], version: int) -> Reading:
        """Lists all groups of all clusters; groups without a value are left out and named in a warning."""
        chosen = where_known([selection_of(view, (), stale_too=False) for view in views])
        left_out: dict[str, dict[str, str]] = {view.cluster: {} for view in views}
        for view, group, error in self._problems(served, chosen, ()):
            left_out[view.cluster].setdefault(group, str(error))
        warnings = [text for problems in left_out.values() for text in problems.values()]
        silent = [view for view in views if view.possible_groups.in_sums is not None]
        warnings += [
            f"groups of cluster {view.cluster} may be missing: {view.possible_groups.in_sums}" for view in silent
        ]
        listed = [without_groups(one, left_out[one.view.cluster].keys()) for one in chosen]
        if any(one.entries for one in listed):
            return self._answer(served, listed, version, tuple(warnings))
        if warnings:
            raise ValueUnavailable(some_of(warnings))
        raise NoMatch(self._nothing(served, views, ()))


def _not_all_groups(view: ClusterView, why: str) -> str:
    return f"not all groups of cluster {view.cluster} are known: {why}"


def _asked_for(topics: Collection[str], served: Served, asked: Sequence[Requirement]) -> list[str]:
    """Returns the group's topics that a query covers; a named metric without topics covers those of the rule."""
    own = frozenset(served.own.topics or ()) if served.own else frozenset[str]()
    return [topic for topic in topics if (not own or topic in own) and fits("topic", topic, asked)]
