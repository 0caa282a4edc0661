"""Groups and their autoscalers replayed minute by minute: what arrived in a group, who would have read it, and how long
messages would have waited."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.controllers import DEFAULT_FLAGS, ControllerFlags
from adapter.verdicts.simulation.by_minute import ByMinute
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.groups import Arrivals, Ends
from adapter.verdicts.simulation.load import MINUTE, Curves, arrived_in
from adapter.verdicts.simulation.plant import Plant
from adapter.verdicts.simulation.scalers import Following, Given, Lane, Scaler, Stretch
from adapter.verdicts.simulation.sights import Inflows, Sight, find_read_all, nothing_read

MOST_LANES = 1000
"""In a batch: more beside one another cost no less each, and take memory."""
MOST_PARTITIONS = 200_000
"""Of all lanes in a batch, for the same reason."""
MOST_CELLS = 1_000_000
"""Partitions of the lanes in a batch if all had as many as the widest one, to bound the memory."""
CHUNK_MINUTES = 360
"""After which waits are computed, so that no more has to be remembered for them."""
STRETCH_MINUTES = 30
"""That a lane is taken through before the next one, at most: room is made for all that it could have to remember."""


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


Receiver = Callable[[int, Replay], None]
"""Takes the first minute of a part of a lane's replay, and the part, whose changes are all until its end."""


def replayed(lanes: Sequence[Lane], flags: ControllerFlags = DEFAULT_FLAGS) -> tuple[Replay, ...]:
    """Returns the whole replay of each lane (`replay`)."""
    wholes = [_Whole(len(lane.load.produced)) for lane in lanes]
    replay(lanes, [whole.take for whole in wholes], flags)
    return tuple(whole.replay() for whole in wholes)


def replay(lanes: Sequence[Lane], receivers: Sequence[Receiver], flags: ControllerFlags = DEFAULT_FLAGS) -> None:
    """Replays lanes in batches, because a call of a kernel costs the same for any number of them. The receiver of each
    lane gets what happened part after part, so that nobody has to keep more of it than is needed.

    Every metric of an HPA has the group's lag as its value, up to what the lane serves at most. A sync of the
    controller is a step, so there is a whole number of them in a minute. Unknown minutes are taken to be as
    busy as those around them."""
    for places in _batches(lanes):
        chosen = [lanes[place] for place in places]
        _Replays(chosen, _scaler_of(chosen, flags), flags.sync_seconds).run([receivers[place] for place in places])


def _scaler_of(lanes: Sequence[Lane], flags: ControllerFlags) -> Scaler:
    """Returns who decides for lanes of one kind."""
    if lanes[0].hpa is None:
        return Given(lanes)
    return Following(lanes, flags) if lanes[0].rule is None else lanes[0].rule.scaler(lanes, flags)


class _Whole:
    """Keeps all parts."""

    def __init__(self, minutes: int) -> None:
        self._lag, self._wait = np.empty(minutes, np.float32), np.empty(minutes, np.float32)
        self._replicas = np.empty(minutes, np.int32)
        self._changes = 0

    def take(self, first: int, part: Replay) -> None:
        minutes = slice(first, first + len(part.lag))
        self._lag[minutes], self._wait[minutes], self._replicas[minutes] = part.lag, part.wait_seconds, part.replicas
        self._changes = part.changes

    def replay(self) -> Replay:
        return Replay(self._lag, self._wait, self._replicas, self._changes)


def _batches(lanes: Sequence[Lane]) -> Iterator[Sequence[int]]:
    """Yields lanes that are replayed together: with or without an HPA, with rules of one type or none, with as many
    minutes, and with about as many partitions."""
    types = list(dict.fromkeys(type(lane.rule) for lane in lanes))

    def kind(place: int) -> tuple[bool, int, int]:
        lane = lanes[place]
        return lane.hpa is None, types.index(type(lane.rule)), len(lane.load.produced)

    def width(place: int) -> int:
        return lanes[place].consumers.width

    for _, alike in groupby(sorted(range(len(lanes)), key=kind), key=kind):
        batch: list[int] = []
        partitions = 0
        for place in sorted(alike, key=width):
            lanes_then, partitions_then = len(batch) + 1, partitions + width(place)
            if batch and (
                lanes_then > MOST_LANES or partitions_then > MOST_PARTITIONS or lanes_then * width(place) > MOST_CELLS
            ):
                yield batch
                batch, partitions = [], 0
            batch.append(place)
            partitions += width(place)
        yield batch


class _Replays:
    """All lanes with one way to decide on members."""

    def __init__(self, lanes: Sequence[Lane], scaler: Scaler, step_seconds: float) -> None:
        self._lanes, self._scaler, self._step = lanes, scaler, step_seconds
        loads = {_key(lane): lane for lane in lanes}
        places = {key: place for place, key in enumerate(loads)}
        self._load_of = np.array([places[_key(lane)] for lane in lanes])
        curves = [Curves.of(lane.load, lane.consumers.width, lane.events) for lane in loads.values()]
        self._minutes = len(lanes[0].load.produced)
        self._inflows = Inflows(*(np.stack([getattr(of, name) for of in curves]) for name in ("busiest", "others")))
        self._curves = [
            Curves(of.started, self._inflows.busiest[at], self._inflows.others[at]) for at, of in enumerate(curves)
        ]
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
        rooms = [lane.consumers.width for lane in lanes]
        self._plant = Plant(groups, waiting, scaler.replicas, weights, rooms)
        self._events = _EventsOf(lanes)
        self._intervals = np.array([lane.consumers.interval_seconds for lane in lanes])
        self._read = nothing_read(len(lanes), step_seconds)

    def run(self, receivers: Sequence[Receiver]) -> None:
        for first in range(0, self._minutes, CHUNK_MINUTES):
            for receive, part in zip(receivers, self._parts(first), strict=True):
                receive(first, part)

    def _parts(self, first: int) -> Iterator[Replay]:
        """Replays some minutes of all lanes."""
        minutes = range(first, min(first + CHUNK_MINUTES, self._minutes))
        shape = len(self._lanes), len(minutes)
        ends = Ends(np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(shape), np.empty(shape))
        for stretch in self._stretches(minutes, ends):
            self._scaler.run(stretch, self._plant, self._sight)
        waits = np.empty(shape, np.float32)
        for load, curves in enumerate(self._curves):
            lanes = np.flatnonzero(self._load_of == load)
            waits[lanes] = curves.wait(first, ends.busiest[lanes], ends.others[lanes])
        for lane, changes in enumerate(self._scaler.changes.tolist()):
            yield Replay(ends.lag[lane], waits[lane], ends.replicas[lane], changes)

    def _stretches(self, minutes: range, ends: Ends) -> Iterator[Stretch]:
        """Yields stretches one after another, once the groups have the partitions that are added before each."""
        begin = minutes.start
        while begin < minutes.stop:
            for lane in self._events.growing.get(begin, ()):
                self._plant.grow(lane, self._lanes[lane].consumers, _weights(self._lanes[lane]))
            after = range(begin + 1, min(begin + STRETCH_MINUTES, minutes.stop))
            end = next((minute for minute in after if minute in self._events.growing), after.stop)
            stretch = range(begin, end)
            yield Stretch(
                stretch,
                self._arrivals(stretch),
                self._step,
                ends,
                begin - minutes.start,
                self._inflows,
                self._load_of,
            )
            begin = end

    def _arrivals(self, minutes: range) -> Arrivals:
        inflows = self._inflows
        busiest, others = (
            arrived_in(curves, minutes, self._load_of) / MINUTE for curves in (inflows.busiest, inflows.others)
        )
        names = "capacity", "stopped_seconds", "replaced"
        return Arrivals(busiest, others, *(self._events.at(name, minutes) for name in names))

    def _sight(self, now: float, read: Messages) -> Sight:
        lately = np.empty(len(read))
        find_read_all(self._read, read, now, self._step, lately)
        lanes = np.arange(len(self._lanes))
        return Sight(
            now,
            self._plant,
            lanes,
            self._inflows,
            self._load_of,
            self._intervals,
            lately,
            self._scaler.replicas,
        )


class _EventsOf:
    """Of all lanes, by minute."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        minutes = len(lanes[0].load.produced)
        self.growing: dict[int, list[int]] = {}
        """The lanes that get more partitions, by minute."""
        for at, lane in enumerate(lanes):
            if lane.events.partitions is not None:
                self.growing.setdefault(lane.events.partitions[1], []).append(at)
        self._columns: dict[str, ByMinute[np.float64]] = {}
        for name, usual in (("capacity", 1.0), ("stopped_seconds", 0.0), ("replaced", 0.0)):
            otherwise, given = np.full(minutes, usual), [getattr(lane.events, name) for lane in lanes]
            self._columns[name] = ByMinute([otherwise if column is None else column for column in given])

    def at(self, name: str, minutes: range) -> Messages:
        """Returns what happens of this kind to all lanes (columns) in some minutes (rows)."""
        return self._columns[name].at(minutes)


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
