"""Groups and their autoscalers replayed minute by minute: what arrived in a group, who would have read it, and how long
messages would have waited."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes, Seconds
from adapter.verdicts.controllers import DEFAULT_FLAGS, ControllerFlags, Controllers, Milli, lanes_by
from adapter.verdicts.hpa import Hpa
from adapter.verdicts.plant import Consumers, Messages, Plant
from adapter.verdicts.recent import Counts, RecentCounts

MINUTE = 60.0
MOST_CELLS = 100_000
"""Partitions of all lanes in a batch, so that they fit into a processor's cache."""
WAITS_FROM = 0.5
"""Messages: fewer are a remainder of the arithmetic."""


@dataclass(frozen=True, slots=True)
class Load:
    """What arrived in a group in each minute."""

    produced: Messages
    """In all partitions."""
    largest_share: NDArray[np.float64] | None = None
    """Of `produced`, what the busiest partition got; None: all got the same."""
    lag: float = 0.0
    """Messages that waited at the start."""
    wait_seconds: float = 0.0
    """How long the oldest of these had waited."""


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
    most_served: float = np.inf
    """Messages: a larger lag is served to the HPA as this."""


@dataclass(frozen=True, slots=True)
class Replay:
    """At the end of each minute."""

    lag: Messages
    """As the adapter serves it: with what was read and not committed."""
    wait_seconds: Seconds
    """Of the oldest message that waits in any partition."""
    replicas: Counts
    """Wanted by the HPA, or given."""
    changes: int
    """Of the replicas, in all."""


def replayed(lanes: Sequence[Lane], flags: ControllerFlags = DEFAULT_FLAGS) -> tuple[Replay, ...]:
    """Replays all lanes, which have the same number of minutes, beside one another: many cost hardly more than one.

    Every metric of an HPA has the group's lag as its value, up to what the lane serves at most. A sync of the
    controller is a step, so there is a whole number of them in a minute. Unknown minutes are taken to be as
    busy as those around them."""
    results: dict[int, Replay] = {}
    for places in _batches(lanes):
        chosen = [lanes[place] for place in places]
        scaler = _Given(chosen) if chosen[0].hpa is None else _Autoscaled(chosen, flags)
        results |= zip(places, _Replays(chosen, scaler, flags.sync_seconds).run(), strict=True)
    return tuple(results[place] for place in range(len(lanes)))


def _batches(lanes: Sequence[Lane]) -> Iterator[Sequence[int]]:
    """Yields lanes that are replayed together: with or without an HPA, and with about as many partitions, because a
    batch has room in each of its lanes for as many as the widest one has."""
    places = sorted(range(len(lanes)), key=lambda place: (lanes[place].hpa is None, lanes[place].consumers.width))
    batch: list[int] = []
    for place in places:
        is_alike = not batch or (lanes[place].hpa is None) == (lanes[batch[0]].hpa is None)
        if not is_alike or (len(batch) + 1) * lanes[place].consumers.width > MOST_CELLS:
            if batch:
                yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


class _Scaler(Protocol):
    """Who decides how many members there are."""

    @property
    def replicas(self) -> Counts: ...

    @property
    def changes(self) -> Counts: ...

    def members(self, now: float) -> Counts:
        """Returns those that read from now on."""

    def sync(self, now: float, lag: Messages) -> None:
        """Receives the lag that is served."""


class _Given:
    """The members that really were there."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        given = [lane.members for lane in lanes if lane.members is not None]
        self._members: Counts = np.stack(given, axis=1)
        self.replicas: Counts = self._members[0]
        self.changes: Counts = np.count_nonzero(np.diff(self._members, axis=0), axis=0).astype(np.int64)

    def members(self, now: float) -> Counts:
        self.replicas = self._members[int(now // MINUTE)]
        return self.replicas

    def sync(self, now: float, lag: Messages) -> None:
        """Nothing follows from it."""


class _Autoscaled:
    """The replicas of HPAs: each becomes a member some time after it is wanted, and leaves at once."""

    def __init__(self, lanes: Sequence[Lane], flags: ControllerFlags) -> None:
        groups = [lane.consumers for lane in lanes]
        self._controllers = Controllers([lane.hpa for lane in lanes if lane.hpa is not None], flags)
        self._step = flags.sync_seconds
        self._interval, starts = (
            np.array([getattr(group, name) for group in groups]) for name in ("interval_seconds", "start_seconds")
        )
        self._starts = list(lanes_by(starts.tolist()))
        self._joins = list(lanes_by([group.start_seconds + group.join_seconds for group in groups]))
        longest = max(seconds for seconds, _ in self._joins) + self._step
        self._wanted = RecentCounts(len(lanes), longest)
        self.replicas: Counts = np.array([lane.replicas for lane in lanes], np.int64)
        self.changes: Counts = np.zeros(len(lanes), np.int64)
        self._wanted.append(0.0, self.replicas)
        self._changed_at = 0.0
        self._seen: Messages = np.array([lane.load.lag for lane in lanes])
        self._before = self._seen
        always = np.ones(len(lanes[0].load.produced), np.bool_)
        is_known = [always if lane.lag_is_known is None else lane.lag_is_known for lane in lanes]
        self._is_known: Flags = np.stack(is_known, axis=1)
        self._rows = max(len(lane.hpa.metrics) for lane in lanes if lane.hpa is not None)
        self._most: Messages = np.array([lane.most_served for lane in lanes])

    def members(self, now: float) -> Counts:
        return self._for(now, self._joins)

    def sync(self, now: float, lag: Messages) -> None:
        """The controller reads the adapter's latest sample."""
        age = np.mod(now, self._interval)
        sampled = lag + (self._before - lag) * age / self._step
        self._seen = np.where(age < self._step, sampled, self._seen)
        self._before = lag
        is_known = self._is_known[int((now - self._step) // MINUTE)]
        values: Milli = np.where(is_known, np.ceil(np.minimum(self._seen, self._most) * 1000), np.nan)
        ready = self._for(now, self._starts)
        desired = self._controllers.sync(
            now, np.broadcast_to(values, (self._rows, len(values))), self.replicas, self.replicas, ready
        )
        if (has_changed := desired != self.replicas).any():
            self.changes += has_changed
            self._changed_at = now
            self.replicas = desired
        self._wanted.append(now, desired)

    def _for(self, now: float, delays: Sequence[tuple[float, Indexes | slice]]) -> Counts:
        """Returns the replicas that have been wanted without a break for so many seconds."""
        if now >= self._changed_at + delays[-1][0]:
            return self.replicas
        counts = self.replicas.copy()
        for seconds, lanes in delays:
            counts[lanes] = self._wanted.lowest(now, seconds + self._step, lanes)
        return counts


class _Replays:
    """All lanes with one way to decide on members."""

    def __init__(self, lanes: Sequence[Lane], scaler: _Scaler, step_seconds: float) -> None:
        self._lanes, self._scaler, self._step = lanes, scaler, step_seconds
        loads = {(id(lane.load), lane.consumers.width): lane for lane in lanes}
        places = {key: place for place, key in enumerate(loads)}
        self._load_of = np.array([places[id(lane.load), lane.consumers.width] for lane in lanes])
        self._curves = [_Curves.of(lane.load, lane.consumers.width) for lane in loads.values()]
        self._busiest, self._others = (
            np.stack([np.diff(getattr(curves, name)[1:]) for curves in self._curves], axis=1)
            for name in ("busiest", "others")
        )
        partitions = np.array([lane.consumers.width for lane in lanes])
        self._exists = (np.arange(partitions.max()) < partitions[:, np.newaxis]).astype(float)
        waiting = self._spread(
            *(np.array([-getattr(curves, name)[0] for curves in self._curves]) for name in ("busiest", "others"))
        )
        self._plant = Plant([lane.consumers for lane in lanes], waiting, scaler.members(0.0))

    def run(self) -> tuple[Replay, ...]:
        shape = len(self._busiest), len(self._lanes)
        lags, busiest, others = (np.empty(shape, np.float32) for _ in range(3))
        replicas = np.empty(shape, np.int32)
        for minute in range(len(lags)):
            self._run_minute(minute)
            waiting = self._plant.waiting
            lags[minute] = self._lag()
            busiest[minute], others[minute] = waiting[:, 0], waiting[:, 1:].max(axis=1, initial=0.0)
            replicas[minute] = self._scaler.replicas
        return tuple(
            Replay(
                lags[:, lane].astype(float),
                self._curves[self._load_of[lane]].wait(busiest[:, lane], others[:, lane]),
                replicas[:, lane].astype(np.int64),
                int(self._scaler.changes[lane]),
            )
            for lane in range(len(self._lanes))
        )

    def _run_minute(self, minute: int) -> None:
        steps = round(MINUTE / self._step)
        arriving = self._spread(self._busiest[minute] / steps, self._others[minute] / steps)
        for step in range(steps):
            begin = minute * MINUTE + step * self._step
            self._plant.step(begin + self._step, self._step, arriving, self._scaler.members(begin))
            self._scaler.sync(begin + self._step, self._lag())

    def _lag(self) -> Messages:
        lag: Messages = self._plant.waiting.sum(axis=1) + self._plant.uncommitted
        return lag

    def _spread(self, busiest: Messages, others: Messages) -> Messages:
        """Returns the messages of each lane's partitions: the busiest one comes first, and all others are equal."""
        spread: Messages = others[self._load_of][:, np.newaxis] * self._exists
        spread[:, 0] = busiest[self._load_of]
        return spread


@dataclass(frozen=True, slots=True)
class _Curves:
    """How many messages have arrived in a partition, by time; negative before the replay's start."""

    times: Seconds
    busiest: Messages
    others: Messages
    """In each of the other partitions."""

    @classmethod
    def of(cls, load: Load, partitions: int) -> Self:
        produced = _filled(load.produced)
        share = np.full(len(produced), 1 / partitions)
        if load.largest_share is not None and partitions > 1:
            share = np.clip(np.nan_to_num(load.largest_share, nan=1 / partitions), 1 / partitions, 1.0)
        of_others = (1 - share) / max(1, partitions - 1)
        usual = float((produced * share).sum() / produced.sum()) if produced.any() else 1 / partitions
        started = load.wait_seconds or (load.lag * MINUTE / max(float(produced.mean()), 1.0)) or 1.0
        times = np.concatenate([[-started], np.arange(len(produced) + 1) * MINUTE])
        first = (load.lag * usual, load.lag * (1 - usual) / max(1, partitions - 1))
        return cls(
            times,
            *(
                np.concatenate([[-waiting], np.zeros(1), np.cumsum(produced * of_one)])
                for waiting, of_one in zip(first, (share, of_others), strict=True)
            ),
        )

    def wait(self, busiest: NDArray[np.float32], others: NDArray[np.float32]) -> Seconds:
        """Returns the age of the oldest message at the end of each minute, from what waits in the partitions with most:
        the messages of a partition are read in their order."""
        ends = self.times[2:]
        ages = [
            np.where(waiting > WAITS_FROM, ends - np.interp(curve[2:] - waiting, curve, self.times), 0.0)
            for curve, waiting in ((self.busiest, busiest), (self.others, others))
        ]
        return np.maximum(*ages)


def _filled(produced: Messages) -> Messages:
    """Replaces unknown minutes (NaN) by what lies between those around them; by 0 where nothing is known."""
    known = ~np.isnan(produced)
    if known.all() or not known.any():
        return np.nan_to_num(produced)
    minutes = np.arange(len(produced))
    return np.interp(minutes, minutes[known], produced[known])
