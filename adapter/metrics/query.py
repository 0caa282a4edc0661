"""Queries: the values of a metric that a label selector selects, or why there are none."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from adapter.clock import Clock, utc_text
from adapter.errors import MetricUnknown, some_of
from adapter.metrics.access import Access, Audience
from adapter.metrics.aggregation import Folding, MetricValue, oldest_of
from adapter.metrics.capacities import Capacities
from adapter.metrics.definitions import DEFINITIONS, MetricDefinition, by_served_name
from adapter.metrics.demand import window_of
from adapter.metrics.fallbacks import LOOK_SECONDS, Asked, Fallbacks
from adapter.metrics.members import MemberReading, groups_in, problems_of_members, values_of_members
from adapter.metrics.partitions import Readable, readable_in
from adapter.metrics.problems import NoMatch, Problem, Reason, Refused, ValueUnavailable, refused
from adapter.metrics.refusals import Query, nothing_selected, problems_of
from adapter.metrics.replicas import not_servable, of_group, partitions_of, shape_for, values_with_fallback
from adapter.metrics.required import Demands
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import Selection, effort_of, fits, hint, named, selection_of, where_known, without_groups
from adapter.metrics.store import ClusterView, Store
from adapter.settings.models import Fallback, NamedMetric, Replicas, Settings

CHEAP_EFFORT = 1000
"""Steps that take about 5 ms."""
STEPS_OF_MEMBER = 2
LAG = "kafka_consumergroup_lag"
OF_MEMBERS = " and ".join(each.served_name for each in DEFINITIONS if each.of_members)


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply, which may be reused while the version is unchanged and the clock is before `valid_until`."""

    metric: str
    values: tuple[MetricValue, ...]
    warnings: tuple[str, ...]
    version: int
    valid_until: float
    """In seconds of the monotonic clock: when its oldest part becomes too old."""
    is_fallback: bool = False
    """Whether the value is not known, and this is what its owner wants instead."""


@dataclass(frozen=True, slots=True)
class Served:
    name: str
    definition: MetricDefinition
    own: NamedMetric | None = None

    def requirements(self) -> tuple[Requirement, ...]:
        if self.own is None:
            return ()
        cluster = () if self.own.cluster is None else (self.own.cluster,)
        named = {"cluster": cluster, "group": (self.own.group,), "topic": self.own.topics or ()}
        return tuple(Requirement(key, Operator.IN, frozenset(values)) for key, values in named.items() if values)


@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """What a query selects of the views of one version, and what prevents an answer."""

    query: Query
    views: Sequence[ClusterView]
    version: int
    chosen: Sequence[Selection]
    problems: Sequence[Problem]

    def listed(self) -> tuple[list[Selection], dict[tuple[str, str], Problem]]:
        """Returns the groups without a problem, and cluster and group of the others with their first one."""
        left_out: dict[tuple[str, str], Problem] = {}
        for problem in self.problems:
            left_out.setdefault((problem.cluster, problem.group), problem)
        known = [without_groups(one, {g for c, g in left_out if c == one.view.cluster}) for one in self.chosen]
        return known, left_out


class Known(NamedTuple):
    """What a listing of lags covers."""

    chosen: Sequence[Selection]
    """Of the groups whose lag is known."""
    left_out: Mapping[tuple[str, str], Problem]
    """Cluster and group of those whose lag is not known, and why; the group is empty if it may have any name."""
    window: float
    """The seconds that a rate covers at least."""


class Metrics:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        definitions: Sequence[MetricDefinition] = DEFINITIONS,
        fallbacks: Fallbacks | None = None,
        demands: Demands | None = None,
    ) -> None:
        by_value = {definition.name: definition for definition in definitions}
        own = [Served(metric.name, by_value[metric.value], metric) for metric in settings.metrics]
        self._served = [*(Served(name, definition) for name, definition in by_served_name(definitions).items()), *own]
        self.names = tuple(served.name for served in self._served)
        """The names in discovery."""
        self.names_of_members = tuple(served.name for served in self._served if served.definition.of_members)
        """Those of `read_members`."""
        self.named_groups = {each.name.lower(): (each.own.cluster, each.own.group) for each in self._served if each.own}
        """Name of a named metric in lower case -> its cluster, which may be None, and its group."""
        self._by_name = {served.name.lower(): served for served in self._served}
        self._settings = settings
        self._fallbacks = fallbacks or Fallbacks(clock.monotonic)
        self._learns = settings.has_objective
        self._demands = demands or Demands(Capacities(clock), clock.monotonic)
        self._with_fallback = frozenset(values_with_fallback(settings))
        self._max_age = settings.collection.max_age
        self._several_clusters = len(settings.clusters) > 1
        self._store = store
        self._clock = clock
        self._access = Access(settings)
        self.audience_of = self._access.audience_of

    @property
    def version(self) -> int:
        return self._store.version

    def shows_work(self, metric: str) -> bool:
        """Whether it is 0 while nothing waits, and above 0 otherwise. False for an unknown metric."""
        served = self.served(metric)
        return served is not None and served.definition.shows_work

    def served(self, metric: str) -> Served | None:
        """Returns what is served by this name."""
        return self._by_name.get(metric.lower())

    def read(
        self,
        metric: str,
        requirements: Sequence[Requirement],
        namespace: str | None = None,
        *,
        may_list: bool = True,
    ) -> Reading:
        """Returns the values; raises MetricUnknown, NoMatch or ValueUnavailable.

        A listing leaves out the groups without a value and names them in a warning. `namespace` is the reader's; None
        reads everything."""
        served, audience = self._readable(metric, namespace)
        shape, asked = self._shape_and_asked(served, requirements)
        # A reader who may not see the group gets no fallback, and its refusals say nothing about the value of others.
        if shape is None or shape.fallback is None or not self._may_read_all(asked, audience, served):
            return self._known(served, audience, shape, asked, may_list=may_list)
        value = Asked(served.name, tuple(requirements))
        try:
            reading = self._known(served, audience, shape, asked)
        except NoMatch:
            self._fallbacks.known(value)
            raise
        except ValueUnavailable as refusal:
            since = self._fallbacks.refused(value, _whole_of(served, asked), shape.fallback.after)
            if since is None:
                raise
            return self._by_fallback(served, asked, shape.fallback, since, refusal)
        self._fallbacks.known(value)
        return reading

    def known(self, namespace: str | None = None, groups: Collection[str] | None = None) -> Known:
        """Returns everything that a listing of lags would cover for a reader in the namespace (None: regardless of who
        may read it), of these groups (None: of all)."""
        asked = () if groups is None else (Requirement("group", Operator.IN, frozenset(groups)),)
        # Receipt times scatter, and that must not exclude the tick that is one window old.
        window = window_of(interval := self._settings.collection.interval) - interval / 2
        return Known(*self._selected(self._by_name[LAG], self.audience_of(namespace), None, asked).listed(), window)

    def views_for(self, namespace: str | None) -> Sequence[ClusterView]:
        """Returns the views with only the groups that a reader in the namespace may read; None: all."""
        return self._access.views_for(self._store.views, self.audience_of(namespace), None)

    def is_shaped(self, group: str) -> bool:
        """Whether a rule says how many replicas the group should have, or which promise it must keep."""
        rule = self._settings.rule_for(group)
        return rule is not None and (rule.replicas is not None or rule.objective is not None)

    def look(self) -> None:
        """Notes which values with a fallback are refused, and what members of groups with an objective can read; call
        it every LOOK_SECONDS."""
        self._demands.look(self._store.views, self._learns, self._settings.collection.interval)
        self._fallbacks.look(self._with_fallback, self._try)

    def _try(self, value: Asked) -> None:
        with suppress(MetricUnknown, Refused):
            self.read(value.metric, value.requirements)

    def _may_read_all(self, asked: Sequence[Requirement], audience: Audience | None, served: Served) -> bool:
        return served.own is not None or all(
            self._access.may_name(group, audience) for group in named(asked, "group") or ()
        )

    def _by_fallback(
        self, served: Served, asked: Sequence[Requirement], fallback: Fallback, since: float, refusal: Refused
    ) -> Reading:
        version, now = self._store.version, self._clock.monotonic()
        to_epoch = self._clock.time() - now
        named_once = {key: named(asked, key) or frozenset() for key in ("cluster", "group", "topic")}
        labels = {key: next(iter(names)) for key, names in named_once.items() if len(names) == 1}
        values = (MetricValue(labels, 1000 * fallback.replicas, now + to_epoch),)
        warning = f"{fallback.replicas} replicas by the fallback, refused since {utc_text(since + to_epoch)}: {refusal}"
        return Reading(served.name, values, (warning,), version, valid_until=now + LOOK_SECONDS, is_fallback=True)

    def _known(
        self,
        served: Served,
        audience: Audience | None,
        shape: Replicas | None,
        asked: tuple[Requirement, ...],
        *,
        may_list: bool = True,
    ) -> Reading:
        selected = self._selected(served, audience, shape, asked)
        problems, views = selected.problems, selected.views
        if problems and (asked or not (may_list and served.definition.is_listed)):
            raise refused(self._worded(served, problems[0], views), problems)
        chosen, left_out = selected.listed()
        warnings = tuple(self._worded(served, problem, views) for problem in left_out.values())
        if problems and not any(one.entries for one in chosen):
            raise refused(some_of(warnings), problems)
        chosen = [one for one in chosen if one.entries]
        return self._answer(selected.query, served, chosen, views, selected.version, warnings, shape)

    def _readable(self, metric: str, namespace: str | None) -> tuple[Served, Audience | None]:
        """Returns the metric if a reader in the namespace may read it, and the reader's audience."""
        served, audience = self._by_name.get(metric.lower()), self.audience_of(namespace)
        if served is None or not self._access.may_read(served.own, audience):
            readable = [each.name for each in self._served if self._access.may_read(each.own, audience)]
            names = some_of(readable, most=10, separator=", ")
            raise MetricUnknown(f"no metric {metric[:80]!r} is served; the metrics are {names}")
        return served, audience

    def _selected(
        self, served: Served, audience: Audience | None, shape: Replicas | None, asked: tuple[Requirement, ...]
    ) -> "_Selected":
        lists_topics = served.own is not None and served.own.topics is not None
        version, views = self._store.version, self._access.views_for(self._store.views, audience, served.own)
        fitting = [view for view in views if fits("cluster", view.cluster, asked)]
        selecting = [requirement for requirement in asked if requirement.key not in served.definition.labels]
        chosen = where_known([selection_of(view, selecting, stale_too=lists_topics) for view in fitting])
        now = self._clock.monotonic()
        query = Query(served.definition, asked, self._max_age, now, self._clock.time() - now)
        if (
            served.definition.is_shaped
            and (refusal := not_servable(chosen, asked, served.definition.name, shape)) is not None
        ):
            raise refusal
        return _Selected(query, views, version, chosen, problems_of(query, chosen))

    def partitions(
        self, metric: str, requirements: Sequence[Requirement], namespace: str | None = None
    ) -> tuple[tuple[Readable, ...], float]:
        """Returns the partitions that such a read covers, and until when they are known (as `Reading.valid_until`).

        Raises what `read` raises, also where a fallback would be read."""
        served, audience = self._readable(metric, namespace)
        shape, asked = self._shape_and_asked(served, requirements)
        selected = self._selected(served, audience, shape, asked)
        if selected.problems:
            raise refused(self._worded(served, selected.problems[0], selected.views), selected.problems)
        chosen = [one for one in selected.chosen if one.entries]
        if not chosen:
            nothing = nothing_selected(served.name, served.definition, selected.views, asked)
            raise refused(nothing.text, [nothing])
        valid_until = oldest_of(served.definition.age, chosen) + self._max_age
        return readable_in(chosen, shape), valid_until

    def read_members(
        self, metric: str, requirements: Sequence[Requirement], namespace: str | None = None
    ) -> MemberReading:
        """Returns the values of the members of the groups that the requirements name; raises what `read` raises."""
        served, audience = self._readable(metric, namespace)
        fold = served.definition.of_members
        if fold is None:
            raise MetricUnknown(f"metric {served.name!r} is not served for pods: {OF_MEMBERS} are")
        asked = (*served.requirements(), *requirements)
        selected = self._selected(served, audience, None, asked)
        if named(asked, "group") is None:
            text = "the selector of a metric of pods must name their group, as in group=billing"
            raise refused(text, [Problem(Reason.NOTHING_SELECTED, text)])
        problems = [*selected.problems, *problems_of_members(selected.query, selected.chosen)]
        if problems:
            raise refused(self._worded(served, problems[0], selected.views), problems)
        chosen = [one for one in selected.chosen if one.entries]
        if not chosen:
            nothing = nothing_selected(served.name, served.definition, selected.views, asked)
            raise refused(nothing.text, [nothing])
        values = tuple(values_of_members(selected.query, chosen, fold))
        oldest = min(oldest_of(served.definition.age, chosen), *(_described_at(one) for one in chosen))
        return MemberReading(served.name, values, fold, selected.version, oldest + self._max_age)

    def effort_of_members(self, metric: str, requirements: Sequence[Requirement], namespace: str | None = None) -> int:
        """Estimates the cost of `read_members` and of matching the members to pods, in the same steps."""
        served = self._by_name.get(metric.lower())
        asked = (*(() if served is None else served.requirements()), *requirements)
        groups = named(asked, "group") or ()
        known = (view.assignments.get(group) for view in self._store.views for group in groups)
        members = sum(len(each.clients) for each in known if each is not None)
        return STEPS_OF_MEMBER * members + self.effort(metric, requirements, namespace)

    def may_name(self, group: str, namespace: str) -> bool:
        """Returns whether a reader in the namespace may read the group."""
        return self._access.may_name(group, self.audience_of(namespace))

    def promised_seconds(self, served: Served, requirements: Sequence[Requirement]) -> float | None:
        """Returns how long a message may wait by the promise that a value keeps; None: it keeps none."""
        shape, _ = self._shape_and_asked(served, requirements)
        return None if shape is None else shape.max_wait

    def may_read(self, group: str, namespace: str, metric: str | None) -> bool:
        """Returns whether a reader in the namespace may read the group, by a named metric of it if that is given."""
        served = None if metric is None else self.served(metric)
        if served is None or served.own is None:
            return self.may_name(group, namespace)
        return self._access.may_read(served.own, self.audience_of(namespace))

    def effort(self, metric: str, requirements: Sequence[Requirement], namespace: str | None = None) -> int:
        """Estimates the cost of a read in the steps of `selection.effort_of`; never fails."""
        served = self._by_name.get(metric.lower())
        if served is None:
            return 0
        views, audience = self._store.views, self.audience_of(namespace)
        making = self._access.effort(views, audience, served.own)
        if making > CHEAP_EFFORT:
            return making
        asked = self._shape_and_asked(served, requirements)[1]
        if served.definition.reads_rows:
            asked = (*asked, Requirement("partition", Operator.EXISTS))
        views = tuple(self._access.views_for(views, audience, served.own))
        return making + sum(effort_of(view, asked) for view in views if fits("cluster", view.cluster, asked))

    def _shape_and_asked(
        self, served: Served, requirements: Sequence[Requirement]
    ) -> tuple[Replicas | None, tuple[Requirement, ...]]:
        asked = (*served.requirements(), *requirements)
        if not served.definition.is_shaped:
            return None, asked
        shape = shape_for(self._settings, served.definition.name, served.own, asked)
        return shape, (*asked, *partitions_of(shape))

    def _answer(
        self,
        query: Query,
        served: Served,
        chosen: Sequence[Selection],
        views: Sequence[ClusterView],
        version: int,
        warnings: tuple[str, ...],
        shape: Replicas | None,
    ) -> Reading:
        if not chosen:
            nothing = nothing_selected(served.name, served.definition, views, query.asked)
            raise refused(nothing.text, [nothing])
        column, age, fold = query.definition.column, query.definition.age, query.definition.fold
        interval = self._settings.collection.interval
        what = query.definition.help
        folding = Folding(column, age, chosen, query.to_epoch, self._demands, shape, interval, query.asked, what)
        values = tuple(fold.apply(folding))
        if not values:
            text = f"no selected partition has a commit, so there is no {query.definition.help}"
            raise refused(text, [Problem(Reason.NO_COMMIT, text)])
        # That a partition has no commit must be known like any offset, so such rows count for the age.
        return Reading(served.name, values, warnings, version, valid_until=oldest_of(age, chosen) + self._max_age)

    def _worded(self, served: Served, problem: Problem, views: Sequence[ClusterView]) -> str:
        match problem.reason:
            case Reason.TOPIC_MISSING:
                topics = next(view.topics for view in views if view.cluster == problem.cluster)
                return f"{problem.text}{hint(problem.topic, topics, 'its topics are')}"
            case Reason.GROUP_MAY_EXIST:
                return problem.text
        where = f" in cluster {problem.cluster}" if self._several_clusters else ""
        return f"{served.definition.help} of group {problem.group}{where} is not known: {problem.text}"


def _whole_of(served: Served, asked: Sequence[Requirement]) -> Asked:
    if served.own:
        return Asked(served.name, ())
    return of_group(served.definition.name, min(named(asked, "group") or ("",)))


def _described_at(chosen: Selection) -> float:
    return min(chosen.view.assignments[group].described_at for group in groups_in(chosen))
