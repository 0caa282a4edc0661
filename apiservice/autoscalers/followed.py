"""The HPAs that use our metrics, as values that follow those in the cluster; those that are too large are left out.

Of the others, only what they scale is kept."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from adapter.lag.rules import AskedTopics
from apiservice.autoscalers.asked import GroupRead, NamedGroups, asked_topics, groups_read
from apiservice.autoscalers.autoscaler import ALL_SOURCES, Autoscaler, Json, Source, autoscaler_of
from apiservice.autoscalers.rivals import Rivals, Scaler, scaler_of

Place = tuple[str, str]
"""Namespace and name of an HPA."""
MayRead = Callable[[str, str, str | None], bool]
"""Group, namespace, and the named metric by which it is read, if there is one."""
PATH = "/apis/autoscaling/v2/horizontalpodautoscalers"
CONSEQUENCE = "meanwhile, a group without commits wakes up only by a rule, or by an HPA that was read before"


class Autoscalers:
    """A watch of HPAs calls `listed` and `changed`; any thread may read `current`.

    `names` returns the metrics that are ours, `named_groups` the groups of the named ones, `serves_custom` whether they
    are also ours as Object and Pods metrics. `ask` receives what all HPAs ask for, first after the first list and then
    whenever it changes. `may_read` says whether a namespace may read a group, by a named metric if that is given."""

    def __init__(
        self,
        names: Callable[[], Collection[str]],
        ask: Callable[[frozenset[AskedTopics]], None],
        named_groups: Callable[[], NamedGroups] = dict,
        serves_custom: Callable[[], bool] = lambda: True,
        may_read: MayRead = lambda _group, _namespace, _metric: True,
    ) -> None:
        self._names_now, self._named_groups_now, self._ask = names, named_groups, ask
        self._serves_custom_now, self._may_read = serves_custom, may_read
        self._sources = ALL_SOURCES
        self._named_groups: NamedGroups = {}
        self._names: frozenset[str] = frozenset()
        self._by_place: dict[Place, Autoscaler] = {}
        self._scalers: dict[Place, Scaler] = {}
        """All HPAs."""
        self._asked_at: dict[Place, tuple[AskedTopics, ...]] = {}
        self._asked: frozenset[AskedTopics] = frozenset()
        self._groups_at: dict[Place, frozenset[GroupRead]] = {}
        self._places: Mapping[tuple[str | None, str], Sequence[tuple[Place, str | None]]] = {}
        """Cluster and group -> the HPAs that read its metrics, and by which named one. Replaced as a whole."""
        self.is_listed = False
        """Whether `current` is all of them; before the first list, none is known."""

    @property
    def current(self) -> tuple[Autoscaler, ...]:
        return tuple(self._by_place.values())

    def rivals(self) -> Rivals:
        """Returns what scales each target now."""
        return Rivals(lambda: tuple(self._scalers.values()))

    def replicas_of(self, cluster: str, group: str) -> int | None:
        """Returns the replicas that all targets have together whose HPAs read metrics of the group, as far as their
        namespaces may; None: there is no such HPA."""
        replicas = {
            (hpa.namespace, hpa.target): hpa.current_replicas
            for key in ((cluster, group), (None, group))
            for place, metric in self._places.get(key, ())
            if (hpa := self._by_place.get(place)) is not None and self._may_read(group, hpa.namespace, metric)
        }
        return sum(replicas.values()) if replicas else None

    @property
    def namespaces_of_pods(self) -> frozenset[str]:
        """Returns those in which an HPA has a Pods metric."""
        return frozenset(each.namespace for each in self._asked if each.of_members)

    def listed(self, objects: Iterator[Json]) -> None:
        self._names = frozenset(name.lower() for name in self._names_now())
        self._named_groups = self._named_groups_now()
        self._sources = ALL_SOURCES if self._serves_custom_now() else frozenset({Source.EXTERNAL})
        pairs = [(scaler_of(each), autoscaler_of(each, self._names, self._sources)) for each in objects]
        self._scalers = {(scaler.target[0], scaler.name): scaler for scaler, _ in pairs}
        self._by_place = {each.place: each for _, each in pairs if each is not None}
        self._asked_at = {place: asked_topics(each, self._named_groups) for place, each in self._by_place.items()}
        self._groups_at = {place: groups_read(each, self._named_groups) for place, each in self._by_place.items()}
        self.is_listed = True
        self._place_groups()
        self._ask_if_changed()

    def changed(self, event: str, changed: Json) -> None:
        metadata = changed["metadata"]
        place = metadata["namespace"], metadata["name"]
        before = self._asked_at.get(place, ())
        after = None if event == "DELETED" else autoscaler_of(changed, self._names, self._sources)
        if event == "DELETED":
            self._scalers.pop(place, None)
        else:
            self._scalers[place] = scaler_of(changed)
        if after is not None:
            self._by_place[place], self._asked_at[place] = after, asked_topics(after, self._named_groups)
        elif place in self._by_place:
            del self._by_place[place], self._asked_at[place]
        groups = frozenset[GroupRead]() if after is None else groups_read(after, self._named_groups)
        if groups != self._groups_at.get(place, frozenset()):
            self._groups_at[place] = groups
            self._place_groups()
        # The status of each HPA changes every few seconds, and what it asks for hardly ever.
        if self._asked_at.get(place, ()) != before:
            self._ask_if_changed()

    def _place_groups(self) -> None:
        places: dict[tuple[str | None, str], list[tuple[Place, str | None]]] = {}
        for place, groups in self._groups_at.items():
            for read in groups:
                places.setdefault((read.cluster, read.group), []).append((place, read.metric))
        self._places = places

    def _ask_if_changed(self) -> None:
        asked = frozenset[AskedTopics]().union(*self._asked_at.values())
        if asked != self._asked:
            self._ask(asked)
            self._asked = asked
