"""Who decides how many members a group has in a replay: HPAs, or what really happened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adapter.columns import Flags, Indexes
from adapter.records import records_of
from adapter.verdicts.controllers import ControllerFlags, Milli, hpas_of, sync_all, with_room
from adapter.verdicts.hpa import Hpa
from adapter.verdicts.recent import LOWEST, Counts, make_room_for_counts, windows_of
from adapter.verdicts.simulation.by_minute import ByMinute
from adapter.verdicts.simulation.compiled import kernel
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.following import (
    Delays,
    FollowerRecord,
    Followers,
    ReaderRecord,
    Times,
    find_all,
    follow_lags,
    want_all,
)
from adapter.verdicts.simulation.groups import Arrivals, Ends
from adapter.verdicts.simulation.load import MINUTE, NO_EVENTS, Events, Load
from adapter.verdicts.simulation.plant import Plant
from adapter.verdicts.simulation.sights import Inflows, Sight


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

    def scaler(self, lanes: Sequence["Lane"], flags: ControllerFlags) -> "Scaler":
        """Returns who decides for several lanes, whose `rule` is of this type."""


SightOf = Callable[[float, Messages], Sight]
"""That of all lanes at a time; what each lane read in the step before it is given."""


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
    least: Counts | None = None
    """The HPA's least replicas in each minute, where a schedule changes them; None: the HPA's own at all times."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Minutes that lanes are taken through without a break."""

    minutes: range
    arriving: Arrivals
    """In these minutes."""
    step: float
    """Seconds from one sync to the next."""
    ends: Ends
    first: int
    """The column of `ends` for the first minute."""
    inflows: Inflows
    """Of all minutes."""
    inflow_of: Indexes
    """The row of `inflows` for each lane."""

    def begins(self, place: int) -> list[float]:
        """Returns the seconds at which the steps of a minute begin."""
        begin = self.minutes[place] * MINUTE
        return [begin + step * self.step for step in range(round(MINUTE / self.step))]


class Scaler(Protocol):
    """Who decides how many members there are."""

    @property
    def replicas(self) -> Counts: ...

    @property
    def changes(self) -> Counts: ...

    def run(self, stretch: Stretch, plant: Plant, sight_of: SightOf) -> None:
        """Takes all lanes through a stretch."""


class Given:
    """The members that really were there."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        given = [lane.members for lane in lanes if lane.members is not None]
        self._members: Counts = np.stack(given, axis=1)
        self.replicas: Counts = self._members[0]
        self.changes: Counts = np.count_nonzero(np.diff(self._members, axis=0), axis=0).astype(np.int64)

    def run(self, stretch: Stretch, plant: Plant, sight_of: SightOf) -> None:  # noqa: ARG002 - nobody asks what it sees
        for place, minute in enumerate(stretch.minutes):
            self.replicas = self._members[minute]
            plant.begin(stretch.arriving, place)
            for begin in stretch.begins(place):
                plant.step(begin + stretch.step, stretch.step, self.replicas)
            plant.end(self.replicas, stretch.ends, stretch.first + place)


class Followed:
    """HPAs whose groups are taken through a stretch one after another. A replica becomes a member some time after it is
    wanted, and leaves at once."""

    def __init__(self, lanes: Sequence[Lane], flags: ControllerFlags) -> None:
        self._known, self._least = _known(lanes), _least(lanes)
        periods = [[getattr(lane.consumers, name) for lane in lanes] for name in ("commit_seconds", "interval_seconds")]
        self._periods, places = np.unique(periods, return_inverse=True)
        it = records_of(FollowerRecord, len(lanes))
        it["commits"], it["samples"] = places.reshape(2, -1)
        it["reads_ready"] = [_reads_ready(hpa) for hpa in _hpas(lanes)]
        it["replicas"] = [lane.replicas for lane in lanes]
        hpas = hpas_of(_hpas(lanes), flags)
        self._of = Followers(it, hpas, *_delays(lanes, flags.sync_seconds), np.empty(hpas.metrics.shape[1]))

    @property
    def replicas(self) -> Counts:
        replicas: Counts = self._of.followers["replicas"]
        return replicas

    @property
    def changes(self) -> Counts:
        changes: Counts = self._of.followers["changes"]
        return changes

    def through(self, stretch: Stretch) -> tuple[Followers, Times]:
        """Returns the HPAs with room for what they have to remember in a stretch, and its syncs."""
        begins = np.array([stretch.begins(place) for place in range(len(stretch.minutes))]).ravel()
        ends = begins + stretch.step
        ages = np.mod(ends, self._periods[:, np.newaxis])
        of = self._of
        self._of = of._replace(
            hpas=with_room(of.hpas, len(ends)),
            joins=_with_room(of.joins, len(ends)),
            starts=_with_room(of.starts, len(ends)),
        )
        known, least = self._known.at(stretch.minutes), self._least.at(stretch.minutes)
        return self._of, Times(stretch.step, begins, ends, ages, known, least)


class Following(Followed):
    """HPAs on the lag."""

    def __init__(self, lanes: Sequence[Lane], flags: ControllerFlags) -> None:
        super().__init__(lanes, flags)
        self._readers = it = records_of(ReaderRecord, len(lanes))
        it["most"] = [lane.served.most for lane in lanes]
        it["messages_per_replica"] = [lane.served.replica or 0.0 for lane in lanes]
        it["seen"] = it["before"] = [lane.load.lag for lane in lanes]

    def run(self, stretch: Stretch, plant: Plant, sight_of: SightOf) -> None:  # noqa: ARG002 - the lag is all it sees
        of, times = self.through(stretch)
        follow_lags(plant.groups, of, self._readers, stretch.arriving, times, stretch.ends, stretch.first)


class Ruled:
    """HPAs that are asked from step to step, all at once. Their replicas join and leave as in `Followed`."""

    def __init__(self, lanes: Sequence[Lane], flags: ControllerFlags, rule: Rule) -> None:
        self._known, self._least = _known(lanes), _least(lanes)
        self._joins, self._starts = _delays(lanes, flags.sync_seconds)
        self.replicas: Counts = np.array([lane.replicas for lane in lanes], np.int64)
        self.changes: Counts = np.zeros(len(lanes), np.int64)
        self._hpas = hpas_of(_hpas(lanes), flags)
        self._rows = max(len(hpa.metrics) for hpa in _hpas(lanes))
        self._reads_ready = any(map(_reads_ready, _hpas(lanes)))
        self._rule = rule

    def run(self, stretch: Stretch, plant: Plant, sight_of: SightOf) -> None:
        syncs = len(stretch.minutes) * len(stretch.begins(0))
        self._hpas = with_room(self._hpas, syncs)
        self._joins, self._starts = (_with_room(delays, syncs) for delays in (self._joins, self._starts))
        for place, minute in enumerate(stretch.minutes):
            known, self._hpas.specs["least"] = (
                column.at(range(minute, minute + 1))[0] for column in (self._known, self._least)
            )
            plant.begin(stretch.arriving, place)
            for begin in stretch.begins(place):
                now = begin + stretch.step
                read = plant.step(now, stretch.step, self._wanted_long(self._joins, begin))
                self._sync(now, np.where(known, np.ceil(self._rule.values(sight_of(now, read)) * 1000), np.nan))
            plant.end(self.replicas, stretch.ends, stretch.first + place)

    def _sync(self, now: float, values: Milli) -> None:
        rows = np.repeat(values[np.newaxis], self._rows, axis=0)
        ready = self._wanted_long(self._starts, now) if self._reads_ready else self.replicas
        desired = np.empty(len(ready), np.int64)
        sync_compiled(now, self._hpas, rows, self.replicas, self.replicas, ready, desired)
        self.changes += desired != self.replicas
        self.replicas = desired
        want_all(self._joins, now, desired)
        if self._reads_ready:
            want_all(self._starts, now, desired)

    def _wanted_long(self, delays: Delays, now: float) -> Counts:
        wanted = np.empty(len(self.replicas), np.int64)
        find_all(delays, now, self.replicas, wanted)
        return wanted


def _hpas(lanes: Sequence[Lane]) -> list[Hpa]:
    return [lane.hpa for lane in lanes if lane.hpa is not None]


def _reads_ready(hpa: Hpa) -> bool:
    return any(metric.source.target.type == "Value" for metric in hpa.metrics)


def _delays(lanes: Sequence[Lane], step: float) -> tuple[Delays, Delays]:
    """Returns those until a replica is a member, and until it is ready. At first, all have been wanted for long."""
    starts = [lane.consumers.start_seconds + step for lane in lanes]
    joins = [lane.consumers.start_seconds + lane.consumers.join_seconds + step for lane in lanes]
    both = Delays(*windows_of(joins, LOWEST)), Delays(*windows_of(starts, LOWEST))
    for delays in both:
        want_all(delays, 0.0, np.array([lane.replicas for lane in lanes], np.int64))
    return both


def _with_room(delays: Delays, more: int) -> Delays:
    return delays._replace(counts=make_room_for_counts(delays.windows, delays.counts, more))


def _known(lanes: Sequence[Lane]) -> ByMinute[np.bool_]:
    """Returns in which minutes each HPA gets a value."""
    always = np.ones(len(lanes[0].load.produced), np.bool_)
    return ByMinute([always if lane.lag_is_known is None else lane.lag_is_known for lane in lanes])


def _least(lanes: Sequence[Lane]) -> ByMinute[np.int64]:
    """Returns the least replicas of each HPA in each minute."""
    own = [hpa.min_replicas for hpa in _hpas(lanes)]
    usual = {least: np.full(len(lanes[0].load.produced), least, np.int64) for least in set(own)}
    return ByMinute(
        [usual[least] if lane.least is None else lane.least for lane, least in zip(lanes, own, strict=True)]
    )


sync_compiled = kernel(sync_all)
