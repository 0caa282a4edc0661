"""Groups and their autoscalers replayed minute by minute: what arrived in a group, who would have read it, and how long
messages would have waited."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.controllers import DEFAULT_FLAGS, ControllerFlags
from adapter.verdicts.load import MINUTE, Curves, arrived_between
from adapter.verdicts.plant import Arrivals, Consumers, Messages, Plant
from adapter.verdicts.required import quick_window_of
from adapter.verdicts.scalers import Autoscaled, Given, Lane, Scaler, Views

MOST_CELLS = 100_000
"""Partitions of all lanes in a batch, so that they fit into a processor's cache."""
CHUNK_MINUTES = 720
"""After which waits are computed, so that no more has to be remembered for them."""
RATE_SECONDS = 75.0
"""Over which the adapter computes rates: between 60 and 95."""


Single = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Replay:
    """At the end of each minute."""

    lag: Single
    """As the adapter serves it: with what was read and not committed."""
    wait_seconds: Single
    """Of the oldest message that waits in any partition."""
    replicas: NDArray[np.int32]
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
        scaler = Given(chosen) if chosen[0].hpa is None else Autoscaled(chosen, flags)
        results |= zip(places, _Replays(chosen, scaler, flags.sync_seconds).run(), strict=True)
    return tuple(results[place] for place in range(len(lanes)))


def _batches(lanes: Sequence[Lane]) -> Iterator[Sequence[int]]:
    """Yields lanes that are replayed together: with or without an HPA, with as many minutes, and with about as many
    partitions, because a batch has room in each of its lanes for as many as the widest one has."""

    def kind(place: int) -> tuple[bool, int]:
        lane = lanes[place]
        return lane.hpa is None, len(lane.load.produced)

    def width(place: int) -> int:
        return lanes[place].consumers.width

    def window(place: int) -> float:
        """Lanes of the same window are neighbours."""
        hpa = lanes[place].hpa
        return (hpa and hpa.behavior and hpa.behavior.scale_down.stabilization_window_seconds) or 0

    for _, alike in groupby(sorted(range(len(lanes)), key=kind), key=kind):
        batch: list[int] = []
        for place in sorted(alike, key=width):
            if batch and (len(batch) + 1) * width(place) > MOST_CELLS:
                yield sorted(batch, key=window)
                batch = []
            batch.append(place)
        yield sorted(batch, key=window)


class _Replays:
    """All lanes with one way to decide on members."""

    def __init__(self, lanes: Sequence[Lane], scaler: Scaler, step_seconds: float) -> None:
        self._lanes, self._scaler, self._step = lanes, scaler, step_seconds
        loads = {_key(lane): lane for lane in lanes}
        places = {key: place for place, key in enumerate(loads)}
        self._load_of = np.array([places[_key(lane)] for lane in lanes])
        self._curves = [Curves.of(lane.load, lane.consumers.width, lane.events) for lane in loads.values()]
        self._busiest, self._others = (
            np.stack([np.diff(getattr(curves, name)[1:]) for curves in self._curves], axis=1)
            for name in ("busiest", "others")
        )
        weights = np.zeros((len(lanes), max(lane.consumers.width for lane in lanes)))
        for at, lane in enumerate(lanes):
            weights[at, : _width_at_first(lane)] = _weights(lane)[: _width_at_first(lane)]
        busiest, others = (
            np.array([-getattr(curves, name)[0] for curves in self._curves])[self._load_of]
            for name in ("busiest", "others")
        )
        waiting = weights * others[:, np.newaxis]
        waiting[:, 0] = busiest
        groups = [_consumers_at_first(lane) for lane in lanes]
        self._plant = Plant(groups, waiting, scaler.members(0.0), weights)
        self._events = _EventsOf(lanes)
        self._ruled = np.array([at for at, lane in enumerate(lanes) if lane.rule is not None], np.intp)
        self._intervals = np.array([lanes[at].consumers.interval_seconds for at in self._ruled.tolist()])
        self._read: deque[Messages] = deque(maxlen=round(RATE_SECONDS / step_seconds))

    def run(self) -> tuple[Replay, ...]:
        shape = len(self._busiest), len(self._lanes)
        lags, waits, replicas = np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty(shape, np.int32)
        for first in range(0, len(lags), CHUNK_MINUTES):
            self._run_minutes(first, lags, waits, replicas)
        return tuple(
            Replay(lags[:, lane], waits[:, lane], replicas[:, lane], int(self._scaler.changes[lane]))
            for lane in range(len(self._lanes))
        )

    def _run_minutes(self, first: int, lags: Single, waits: Single, replicas: NDArray[np.int32]) -> None:
        """Fills the rows of some minutes."""
        minutes = range(first, min(first + CHUNK_MINUTES, len(lags)))
        busiest, others = (np.empty((len(minutes), len(self._lanes))) for _ in range(2))
        for row, minute in enumerate(minutes):
            self._run_minute(minute)
            lags[minute], replicas[minute] = self._lag(), self._scaler.replicas
            busiest[row], others[row] = self._plant.busiest, self._plant.longest
        for lane, load in enumerate(self._load_of.tolist()):
            waits[first : minutes.stop, lane] = self._curves[load].wait(first, busiest[:, lane], others[:, lane])

    def _run_minute(self, minute: int) -> None:
        steps = round(MINUTE / self._step)
        for lane in self._events.growing[minute]:
            self._plant.grow(lane, self._lanes[lane].consumers, _weights(self._lanes[lane]))
        busiest, others = (loads[minute][self._load_of] / MINUTE for loads in (self._busiest, self._others))
        self._plant.arrive(Arrivals(busiest, others), self._events.at("capacity", minute))
        if (seconds := self._events.at("stopped_seconds", minute)) is not None:
            self._plant.stop(seconds)
        if (members := self._events.at("replaced", minute)) is not None:
            self._plant.replace(members)
        for step in range(steps):
            begin = minute * MINUTE + step * self._step
            read = self._plant.step(begin + self._step, self._step, self._scaler.members(begin))
            if len(self._ruled):
                self._read.append(read[self._ruled])
            self._scaler.sync(begin + self._step, self._lag(), self._views)

    def _lag(self) -> Messages:
        lag: Messages = self._plant.lag + self._plant.uncommitted
        return lag

    def _views(self, now: float) -> Views:
        """The sample may be some seconds old, and what was read after the latest commit counts as not read."""
        lanes, sampled = self._ruled, now - now % self._intervals
        weights, widths = self._plant.weights(lanes)
        arriving, lately = (
            self._arriving(weights, sampled, seconds) for seconds in (RATE_SECONDS, quick_window_of(self._intervals))
        )
        total = arriving.sum(axis=1)
        exists = np.arange(weights.shape[1]) < widths[:, np.newaxis]
        shares = np.where(total > 0, self._plant.uncommitted[lanes] / np.where(total > 0, total, 1.0), 0.0)
        lag = arriving * shares[:, np.newaxis]
        if (idle := (total <= 0) & (self._plant.uncommitted[lanes] > 0)).any():
            lag[idle] += exists[idle] * (self._plant.uncommitted[lanes] / widths)[idle, np.newaxis]
        (waiting,) = np.nonzero(self._plant.lag[lanes])
        lag[waiting] += self._plant.waiting(lanes[waiting]) * exists[waiting]
        return Views(
            now,
            lag,
            arriving,
            lately,
            np.sum(self._read, axis=0) / (len(self._read) * self._step),
            self._plant.members(lanes),
            self._plant.owners(lanes),
            self._scaler.replicas[lanes],
            widths,
        )

    def _arriving(self, weights: Messages, now: Messages, seconds: Messages | float) -> Messages:
        first, loads = np.maximum(now - seconds, 0.0), self._load_of[self._ruled]
        over = np.maximum(now - first, 1.0)
        busiest, others = (
            arrived_between(column, loads, first, now) / over for column in (self._busiest, self._others)
        )
        arriving: Messages = weights * others[:, np.newaxis]
        arriving[:, 0] = busiest
        return arriving


class _EventsOf:
    """Of all lanes, by minute."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        minutes = len(lanes[0].load.produced)
        self.growing: list[list[int]] = [[] for _ in range(minutes)]
        for at, lane in enumerate(lanes):
            if lane.events.partitions is not None:
                self.growing[lane.events.partitions[1]].append(at)
        self._columns = {
            name: np.stack([_or(getattr(lane.events, name), usual, minutes) for lane in lanes], axis=1)
            for name, usual in (("capacity", 1.0), ("stopped_seconds", 0.0), ("replaced", 0.0))
            if any(getattr(lane.events, name) is not None for lane in lanes)
        }

    def at(self, name: str, minute: int) -> Messages | None:
        """None: nothing of this kind happens."""
        column = self._columns.get(name)
        return None if column is None else column[minute]


def _or(column: Messages | None, usual: float, minutes: int) -> Messages:
    return np.full(minutes, usual) if column is None else column


def _key(lane: Lane) -> tuple[int, int, int]:
    """Lanes with the same have the same curves."""
    return id(lane.load), lane.consumers.width, id(lane.events)


def _weights(lane: Lane) -> Messages:
    return np.ones(lane.consumers.width) if lane.load.weights is None else lane.load.weights


def _width_at_first(lane: Lane) -> int:
    return lane.consumers.width if lane.events.partitions is None else lane.events.partitions[0]


def _consumers_at_first(lane: Lane) -> Consumers:
    if lane.events.partitions is None:
        return lane.consumers
    return replace(lane.consumers, partitions=(_width_at_first(lane),))
