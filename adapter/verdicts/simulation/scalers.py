"""Who decides how many members a group has in a replay: HPAs, or what really happened."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adapter.columns import Flags, Indexes
from adapter.records import Records
from adapter.verdicts import controllers, recent
from adapter.verdicts.controllers import ControllerFlags, Controllers, Milli, sync_all
from adapter.verdicts.hpa import Hpa
from adapter.verdicts.recent import (
    LOWEST,
    NONE,
    CountRecord,
    Counts,
    WindowRecord,
    extreme,
    make_room_for_counts,
    remember,
    windows_of,
)
from adapter.verdicts.simulation import compiled
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.load import MINUTE, NO_EVENTS, Events, Load
from adapter.verdicts.simulation.sights import Sight


@dataclass(frozen=True, slots=True)
class Served:
    """How the metric that an HPA reads follows from the group's lag."""

    most: float = np.inf
    """Messages, above which more lag is not served."""
    replica: float | None = None
    """Messages for which one replica is asked; the metric is then a number of replicas. None: it is messages."""


LAG = Served()


class Rule(Protocol):
    """A metric that does not follow from the lag alone. It may remember what it needs."""

    def values(self, sight: Sight) -> Messages:
        """Returns what the HPA of each lane reads; NaN: nothing."""


class RuleOf(Protocol):
    """What a lane's rule is like."""

    def together(self, lanes: Sequence["Lane"]) -> Rule:
        """Returns the rule of several lanes whose `rule` is of this type."""


SightOf = Callable[[float], Sight]
"""That of all lanes with rules, in order, at a time."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One replay. Without an HPA, there are the members of `members`, minute by minute."""

    load: Load
    consumers: Consumers
    hpa: Hpa | None = None
    replicas: int = 1
    """At the start."""
    members: Counts | None = None
    lag_is_known: Flags | None = None
    """In which minutes an HPA gets a value; None: in all."""
    served: Served = LAG
    rule: RuleOf | None = None
    """What is served instead of `served`."""
    events: Events = NO_EVENTS


class Scaler(Protocol):
    """Who decides how many members there are."""

    @property
    def replicas(self) -> Counts: ...

    @property
    def changes(self) -> Counts: ...

    def members(self, now: float) -> Counts:
        """Returns those that read from now on."""

    def sync(self, now: float, lag: Messages, sight_of: SightOf) -> None:
        """Receives the lag that is served, and what else there is to know."""


class Given:
    """The members that really were there."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        given = [lane.members for lane in lanes if lane.members is not None]
        self._members: Counts = np.stack(given, axis=1)
        self.replicas: Counts = self._members[0]
        self.changes: Counts = np.count_nonzero(np.diff(self._members, axis=0), axis=0).astype(np.int64)

    def members(self, now: float) -> Counts:
        self.replicas = self._members[int(now // MINUTE)]
        return self.replicas

    def sync(self, now: float, lag: Messages, sight_of: SightOf) -> None:
        """Nothing follows from it."""


class Autoscaled:
    """The replicas of HPAs: each becomes a member some time after it is wanted, and leaves at once."""

    def __init__(self, lanes: Sequence[Lane], flags: ControllerFlags) -> None:
        groups = [lane.consumers for lane in lanes]
        self._step = flags.sync_seconds
        self._interval, starts = (
            np.array([getattr(group, name) for group in groups]) for name in ("interval_seconds", "start_seconds")
        )
        joins = [group.start_seconds + group.join_seconds for group in groups]
        self._starts, self._joins = (_Delays(seconds, self._step) for seconds in (starts.tolist(), joins))
        self.replicas: Counts = np.array([lane.replicas for lane in lanes], np.int64)
        self.changes: Counts = np.zeros(len(lanes), np.int64)
        self._seen: Messages = np.array([lane.load.lag for lane in lanes])
        self._before = self._seen
        self._intervals: list[float] = np.unique(self._interval).tolist()
        always = np.ones(len(lanes[0].load.produced), np.bool_)
        is_known = {id(known): known for known in (_known(lane, always) for lane in lanes)}
        places = {key: place for place, key in enumerate(is_known)}
        self._known_of: Indexes = np.array([places[id(_known(lane, always))] for lane in lanes], np.intp)
        self._is_known: Flags = np.stack(list(is_known.values()), axis=1)
        """In each minute (rows); lanes have one of the columns."""
        self._is_unknown_to_any: list[bool] = (~self._is_known.all(axis=1)).tolist()
        hpas = [lane.hpa for lane in lanes if lane.hpa is not None]
        self._controllers = Controllers(hpas, flags, sync_compiled)
        self._rows = max(len(hpa.metrics) for hpa in hpas)
        self._reads_ready = any(metric.source.target.type == "Value" for hpa in hpas for metric in hpa.metrics)
        self._want(0.0, self.replicas)
        self._limited = np.array([at for at, lane in enumerate(lanes) if lane.served != LAG], np.intp)
        limits = [lanes[at].served for at in self._limited.tolist()]
        self._most: Messages = np.array([served.most for served in limits])
        self._replica: Messages = np.array([served.replica or 0.0 for served in limits])
        self._ruled = np.array([at for at, lane in enumerate(lanes) if lane.rule is not None], np.intp)
        self._rules = tuple(_rules_of([lanes[at] for at in self._ruled.tolist()]))

    def members(self, now: float) -> Counts:
        return self._joins.counts(now)

    def sync(self, now: float, lag: Messages, sight_of: SightOf) -> None:
        """The controller reads the adapter's latest sample."""
        self._sample(now, lag)
        values: Milli = self._metric(now, sight_of)
        values *= 1000
        np.ceil(values, out=values)
        minute = int((now - self._step) // MINUTE)
        if self._is_unknown_to_any[minute]:
            values = np.where(self._is_known[minute].take(self._known_of), values, np.nan)
        ready = self._ready(now) if self._reads_ready else self.replicas
        rows = np.repeat(values[np.newaxis], self._rows, axis=0)
        desired = self._controllers.sync(now, rows, self.replicas, self.replicas, ready)
        self.changes += desired != self.replicas
        self.replicas = desired
        self._want(now, desired)

    def _ready(self, now: float) -> Counts:
        """Without any time to start, no wanted replica is young enough for the window: all are ready."""
        started = self._starts.counts(now)
        return np.where(started == NONE, self.replicas, started)

    def _want(self, now: float, replicas: Counts) -> None:
        self._joins.want(now, replicas)
        if self._reads_ready:
            self._starts.want(now, replicas)

    def _sample(self, now: float, lag: Messages) -> None:
        if len(self._intervals) == 1:
            age = now % self._intervals[0]
            if age < self._step:
                self._seen = lag + (self._before - lag) * (age / self._step) if age else lag
        else:
            ages = np.mod(now, self._interval)
            self._seen = np.where(ages < self._step, lag + (self._before - lag) * ages / self._step, self._seen)
        self._before = lag

    def _metric(self, now: float, sight_of: SightOf) -> Messages:
        served = self._seen.copy()
        if len(self._limited):
            lag = np.minimum(served[self._limited], self._most)
            served[self._limited] = np.where(self._replica > 0, np.ceil(lag / np.maximum(self._replica, 1.0)), lag)
        if not self._rules:
            return served
        known = sight_of(now)
        for rows, rule in self._rules:
            served[self._ruled[rows]] = rule.values(known if len(self._rules) == 1 else known.among(rows))
        return served


def _known(lane: Lane, always: Flags) -> Flags:
    return always if lane.lag_is_known is None else lane.lag_is_known


def _rules_of(lanes: Sequence[Lane]) -> Iterator[tuple[Indexes, Rule]]:
    """Yields each rule with the places of its lanes."""
    for kind in dict.fromkeys(type(lane.rule) for lane in lanes):
        rows = [at for at, lane in enumerate(lanes) if type(lane.rule) is kind]
        first = lanes[rows[0]].rule
        assert first is not None
        yield np.array(rows, np.intp), first.together([lanes[at] for at in rows])


class _Delays:
    """The replicas that have been wanted without a break for so many seconds, which differ between lanes."""

    def __init__(self, seconds: Sequence[float], step: float) -> None:
        self._windows, self._counts = windows_of([each + step for each in seconds], LOWEST)

    def want(self, now: float, replicas: Counts) -> None:
        self._counts = make_room_for_counts(self._windows, self._counts)
        _remember_all(self._windows, self._counts, now, replicas)

    def counts(self, now: float) -> Counts:
        counts = np.empty(len(self._windows), np.int64)
        _find_extremes(self._windows, self._counts, now, counts)
        return counts


for function in (*recent.RULES, *controllers.RULES):
    compiled.rule(function)
sync_compiled = compiled.kernel(sync_all)


@compiled.kernel
def _remember_all(windows: Records[WindowRecord], counts: Records[CountRecord], now: float, replicas: Counts) -> None:
    for at in range(len(windows)):
        remember(windows, counts, at, now, replicas[at])


@compiled.kernel
def _find_extremes(windows: Records[WindowRecord], counts: Records[CountRecord], now: float, found: Counts) -> None:
    for at in range(len(windows)):
        found[at] = extreme(windows, counts, at, now)
