"""The HPAs that use our metrics, as values that follow those in the cluster; those that are too large are left out."""

from collections.abc import Callable, Collection, Iterator

from adapter.lag.rules import AskedTopics
from apiservice.autoscalers.asked import asked_topics
from apiservice.autoscalers.autoscaler import Autoscaler, Json, autoscaler_of

PATH = "/apis/autoscaling/v2/horizontalpodautoscalers"
CONSEQUENCE = "meanwhile, a group without commits wakes up only by a rule, or by an HPA that was read before"


class Autoscalers:
    """A watch of HPAs calls `listed` and `changed`; any thread may read `current`.

    `names` returns the metrics that are ours. `ask` receives what all HPAs ask for, first after the first list and
    then whenever it changes."""

    def __init__(self, names: Callable[[], Collection[str]], ask: Callable[[frozenset[AskedTopics]], None]) -> None:
        self._names_now, self._ask = names, ask
        self._names: frozenset[str] = frozenset()
        self._by_place: dict[tuple[str, str], Autoscaler] = {}
        self._asked_at: dict[tuple[str, str], tuple[AskedTopics, ...]] = {}
        self._asked: frozenset[AskedTopics] = frozenset()

    @property
    def current(self) -> tuple[Autoscaler, ...]:
        return tuple(self._by_place.values())

    def listed(self, objects: Iterator[Json]) -> None:
        self._names = frozenset(name.lower() for name in self._names_now())
        autoscalers = (autoscaler_of(each, self._names) for each in objects)
        self._by_place = {(each.namespace, each.name): each for each in autoscalers if each is not None}
        self._asked_at = {place: asked_topics(each) for place, each in self._by_place.items()}
        self._ask_if_changed()

    def changed(self, event: str, changed: Json) -> None:
        metadata = changed["metadata"]
        place = metadata["namespace"], metadata["name"]
        before = self._asked_at.get(place, ())
        after = None if event == "DELETED" else autoscaler_of(changed, self._names)
        if after is not None:
            self._by_place[place], self._asked_at[place] = after, asked_topics(after)
        elif place in self._by_place:
            del self._by_place[place], self._asked_at[place]
        # The status of each HPA changes every few seconds, and what it asks for hardly ever.
        if self._asked_at.get(place, ()) != before:
            self._ask_if_changed()

    def _ask_if_changed(self) -> None:
        asked = frozenset[AskedTopics]().union(*self._asked_at.values())
        if asked != self._asked:
            self._ask(asked)
            self._asked = asked
