"""Groups and their autoscalers replayed minute by minute: what arrived in a group, who would have read it, and how long
messages would have waited."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.controllers import DEFAULT_FLAGS, ControllerFlags
from adapter.verdicts.load import MINUTE, Curves
from adapter.verdicts.plant import Arrivals, Messages, Plant
from adapter.verdicts.scalers import Autoscaled, Given, Lane, Scaler

MOST_CELLS = 100_000
"""Partitions of all lanes in a batch, so that they fit into a processor's cache."""
ENOUGH_LANES = 500
"""With as many, a batch costs little more than its arithmetic."""


@dataclass(frozen=True, slots=True)
class Replay:
    """At the end of each minute."""

    lag: NDArray[np.float32]
    """As the adapter serves it: with what was read and not committed."""
    wait_seconds: NDArray[np.float32]
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
        return lanes[place].hpa is None, len(lanes[place].load.produced)

    def width(place: int) -> int:
        return lanes[place].consumers.width

    def window(place: int) -> float:
        """Lanes of the same window are neighbours."""
        hpa = lanes[place].hpa
        return (hpa and hpa.behavior and hpa.behavior.scale_down.stabilization_window_seconds) or 0

    for _, alike in groupby(sorted(range(len(lanes)), key=kind), key=kind):
        batch: list[int] = []
        for place in sorted(alike, key=width):
            if batch and _is_full(len(batch), width(batch[0]), width(place)):
                yield sorted(batch, key=window)
                batch = []
            batch.append(place)
        yield sorted(batch, key=window)


def _is_full(lanes: int, narrowest: int, width: int) -> bool:
    """Whether a batch of so many lanes takes none with `width` partitions."""
    return (lanes + 1) * width > MOST_CELLS or (lanes >= ENOUGH_LANES and width > 1.5 * narrowest)


class _Replays:
    """All lanes with one way to decide on members."""

    def __init__(self, lanes: Sequence[Lane], scaler: Scaler, step_seconds: float) -> None:
        self._lanes, self._scaler, self._step = lanes, scaler, step_seconds
        loads = {(id(lane.load), lane.consumers.width): lane for lane in lanes}
        places = {key: place for place, key in enumerate(loads)}
        self._load_of = np.array([places[id(lane.load), lane.consumers.width] for lane in lanes])
        self._curves = [Curves.of(lane.load, lane.consumers.width) for lane in loads.values()]
        self._busiest, self._others = (
            np.stack([np.diff(getattr(curves, name)[1:]) for curves in self._curves], axis=1)
            for name in ("busiest", "others")
        )
        partitions = np.array([lane.consumers.width for lane in lanes])
        exists = np.arange(partitions.max()) < partitions[:, np.newaxis]
        busiest, others = (
            np.array([-getattr(curves, name)[0] for curves in self._curves])[self._load_of]
            for name in ("busiest", "others")
        )
        waiting = np.where(exists, others[:, np.newaxis], 0.0)
        waiting[:, 0] = busiest
        self._plant = Plant([lane.consumers for lane in lanes], waiting, scaler.members(0.0))

    def run(self) -> tuple[Replay, ...]:
        shape = len(self._busiest), len(self._lanes)
        lags, busiest, others = (np.empty(shape, np.float32) for _ in range(3))
        replicas = np.empty(shape, np.int32)
        for minute in range(len(lags)):
            self._run_minute(minute)
            lags[minute] = self._lag()
            busiest[minute], others[minute] = self._plant.busiest, self._plant.longest
            replicas[minute] = self._scaler.replicas
        return tuple(
            Replay(
                lags[:, lane],
                self._curves[self._load_of[lane]].wait(busiest[:, lane], others[:, lane]),
                replicas[:, lane],
                int(self._scaler.changes[lane]),
            )
            for lane in range(len(self._lanes))
        )

    def _run_minute(self, minute: int) -> None:
        steps = round(MINUTE / self._step)
        busiest, others = (loads[minute][self._load_of] / MINUTE for loads in (self._busiest, self._others))
        self._plant.arrive(Arrivals(busiest, others))
        for step in range(steps):
            begin = minute * MINUTE + step * self._step
            self._plant.step(begin + self._step, self._step, self._scaler.members(begin))
            self._scaler.sync(begin + self._step, self._lag())

    def _lag(self) -> Messages:
        lag: Messages = self._plant.lag + self._plant.uncommitted
        return lag
