"""A thread that posts the states of HPAs as Events when they change: gather, decide (`states`), apply.

Only one replica of the adapter posts; the others follow, so that a new leader repeats nothing. What its predecessor may
have left unposted it posts again: kube-apiserver refuses what exists."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapter import clock
from adapter.metrics.query import Metrics
from adapter.overview.lines import GroupLine, lines_of
from adapter.repeating import Repeating
from apiservice.autoscalers.annotations import CapWish
from apiservice.autoscalers.arithmetic import value_of
from apiservice.autoscalers.asked import groups_read
from apiservice.autoscalers.autoscaler import Autoscaler
from apiservice.autoscalers.capper import limit_by
from apiservice.autoscalers.hpa_writes import regarded
from apiservice.events import MOST_WAITING, Events, EventText, EventType
from apiservice.hpa_events.states import Course, State, next_of, states_of
from apiservice.pods.values import PodsOf

LOOK_SECONDS = 15.0
"""As often as an HPA reads."""
IDLE_SECONDS = 2.0
"""How often the settings are looked at while they allow no Events."""
AT_ONCE = 20
"""HPAs, after which other threads are let run for PAUSE_SECONDS."""
PAUSE_SECONDS = 0.05
ACTION = "ReadMetrics"
HANDOVER_SECONDS = 600.0
"""How long a change may be unposted by a leader that has ended: its longest queue takes 500 s, and its Lease 15 s."""

_Key = tuple[str, str, str]
"""Namespace, name and uid of an HPA. The uid tells apart an HPA and one that was created later under the same name."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A state that must be reported; times in seconds of the monotonic clock."""

    hpa: Autoscaler
    subject: str
    text: EventText
    at: float
    since: float | None
    """When the subject was in another state; None: it is not known to have been."""


class HpaEvents(Repeating):
    def __init__(
        self,
        hpas: Callable[[], Sequence[Autoscaler]],
        metrics: Callable[[], Metrics],
        pods_in: PodsOf,
        is_allowed: Callable[[], bool],
        is_leader: Callable[[], bool],
        events: Events,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        super().__init__("hpa-events", is_nice=True)
        self._hpas, self._metrics, self._pods_in = hpas, metrics, pods_in
        self._is_allowed, self._is_leader = is_allowed, is_leader
        self._events, self._monotonic = events, monotonic
        self._courses: dict[_Key, dict[str, Course]] = {}
        self._unposted: deque[_Change] = deque(maxlen=MOST_WAITING)
        """Those of the last HANDOVER_SECONDS in which this replica was no leader, in order."""
        self._waiting: list[Autoscaler] = []
        """Those of this round that were not looked at yet."""
        self._groups: Mapping[str, Sequence[GroupLine]] = {}
        """Of this round, by the group's name."""
        self._round_at = float("-inf")
        """When the next one begins."""

    @property
    def is_needed(self) -> bool:
        return self._is_allowed()

    def turn(self) -> float:
        """Looks at a few HPAs; returns the seconds until the next ones."""
        if not self._is_allowed():
            self._courses, self._waiting, self._round_at = {}, [], float("-inf")
            self._unposted.clear()
            return IDLE_SECONDS
        if not self._waiting:
            now = self._monotonic()
            if now < self._round_at:
                return self._round_at - now
            self._begin_round(now)
        for hpa in self._waiting[:AT_ONCE]:
            self._unposted.extend(self._changes_of(hpa))
        del self._waiting[:AT_ONCE]
        self._post()
        return PAUSE_SECONDS

    def _begin_round(self, now: float) -> None:
        self._round_at = now + LOOK_SECONDS
        self._waiting = list(self._hpas())
        self._courses = {key: self._courses.get(key, {}) for key in map(_key, self._waiting)}
        self._groups = _lines(self._metrics(), self._waiting)

    def _changes_of(self, hpa: Autoscaler) -> Iterator[_Change]:
        metrics, courses, now = self._metrics(), self._courses[_key(hpa)], self._monotonic()
        values = [value_of(metric, hpa.namespace, metrics, self._pods_in) for metric in hpa.metrics]
        most = limit_by(metrics, hpa, CapWish(), 1).replicas
        groups = list(self._readable_groups(hpa, metrics))
        for subject, state in states_of(hpa, values, most, groups).items():
            before = courses.get(subject)
            courses[subject], must_be_reported = next_of(before, state, now)
            if must_be_reported:
                since = None if before is None or before.is_new else before.reported_at
                yield _Change(hpa, subject, _text_of(state), now, since)

    def _post(self) -> None:
        too_old = self._monotonic() - HANDOVER_SECONDS
        while self._unposted and self._unposted[0].at < too_old:
            self._unposted.popleft()
        while self._unposted and self._is_leader():
            change = self._unposted.popleft()
            if _key(change.hpa) in self._courses:
                about = regarded(change.hpa)
                self._events.post_state(about, change.subject, change.text, since=change.since, at=change.at)

    def _readable_groups(self, hpa: Autoscaler, metrics: Metrics) -> Iterator[GroupLine]:
        for read in groups_read(hpa, metrics.named_groups):
            if metrics.may_read(read.group, hpa.namespace, read.metric):
                lines = self._groups.get(read.group, ())
                yield from (line for line in lines if read.cluster in {None, line.cluster})


def _lines(metrics: Metrics, hpas: Iterable[Autoscaler]) -> Mapping[str, Sequence[GroupLine]]:
    groups = {read.group for hpa in hpas for read in groups_read(hpa, metrics.named_groups)}
    found: defaultdict[str, list[GroupLine]] = defaultdict(list)
    for line in lines_of(metrics.known(groups=groups)):
        found[line.group].append(line)
    return found


def _text_of(state: State) -> EventText:
    kind = EventType.WARNING if state.is_wrong else EventType.NORMAL
    return EventText(kind, state.reason, ACTION, state.note)


def _key(hpa: Autoscaler) -> _Key:
    return *hpa.place, hpa.uid
