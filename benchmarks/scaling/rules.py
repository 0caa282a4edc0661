"""Pure: what scalers count replicas by, after the rules that their authors published.

All of them know what one member can do, and none learns that it changes meanwhile."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adapter.verdicts.assignment import UNKNOWN
from adapter.verdicts.controllers import ControllerFlags
from adapter.verdicts.owners import Owners
from adapter.verdicts.recent import Counts
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.load import MINUTE
from adapter.verdicts.simulation.scalers import Lane, Ruled
from adapter.verdicts.simulation.sights import Sight, Views

SYNC_SECONDS = 15.0


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What the adapter knows of one group, as `Views` has it."""

    now: float
    lag: Messages
    arriving: Messages
    lately: Messages
    read: float
    members: int | None
    """None: the group rebalances."""
    owners: Owners
    replicas: int


class OfOne(Protocol):
    """A rule of one lane."""

    def value(self, view: View) -> float: ...


@dataclass(frozen=True, slots=True)
class Alone:
    """A rule that decides for one lane after another."""

    rule: Callable[[Consumers], OfOne]

    def scaler(self, lanes: Sequence[Lane], flags: ControllerFlags) -> Ruled:
        return Ruled(lanes, flags, _EachAlone(lanes))


class _EachAlone:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._rules = [lane.rule.rule(lane.consumers) for lane in lanes if isinstance(lane.rule, Alone)]

    def values(self, sight: Sight) -> Messages:
        views = sight.views()
        return np.array([rule.value(_view(views, at)) for at, rule in enumerate(self._rules)])


def _view(views: Views, at: int) -> View:
    columns = slice(int(views.widths[at]))
    lag, arriving, lately = (column[at, columns] for column in (views.lag, views.arriving, views.lately))
    owners = views.owners[at, columns].astype(np.int32)
    members = None if views.members[at] == UNKNOWN else int(views.members[at])
    read, replicas = float(views.read[at]), int(views.replicas[at])
    return View(views.now, lag, arriving, lately, read, members, owners, replicas)


class Keda:
    """A lag that is limited to one replica for each partition. Whether the group is active is asked every 30 s, and it
    stays active for 300 s."""

    POLLING, COOLDOWN = 30.0, 300.0

    def __init__(self, consumers: Consumers, threshold: float) -> None:
        self._most, self._active_until = threshold * consumers.width, -math.inf

    def value(self, view: View) -> float:
        lag = float(view.lag.sum())
        if view.now % self.POLLING == 0 and lag > 0.5:
            self._active_until = view.now + self.COOLDOWN
        return max(min(lag, self._most), 0.001) if view.now < self._active_until else 0.0


class Rate:
    """Messages per second, which the HPA divides by what a member is to read."""

    def __init__(self, consumers: Consumers) -> None:
        """All that it needs is in the view."""

    def value(self, view: View) -> float:
        return float(view.arriving.sum())


class Foreseen:
    """Numbers that are known for each minute in advance."""

    def __init__(self, members: Counts) -> None:
        self._members = members

    def value(self, view: View) -> float:
        return float(self._members[min(int(view.now // MINUTE), len(self._members) - 1)])


class Flink:
    """The autoscaler of Flink's Kubernetes operator with its defaults: rates of 15 minutes, a target of 70 % with a
    boundary of 30 %, 5 minutes without change after each one, time to restart and to catch up; whole shares of the
    partitions."""

    WINDOW, STABLE = 900.0, 300.0
    TARGET, BOUNDARY = 0.7, 0.3
    CATCH_UP, RESTART = 1800.0, 300.0
    LEAST_FACTOR = 0.6

    def __init__(self, consumers: Consumers) -> None:
        self._capacity, self._width = consumers.capacity, consumers.width
        self._rates: deque[float] = deque(maxlen=round(self.WINDOW / SYNC_SECONDS))
        self._changed_at = -math.inf
        self._number = 0

    def value(self, view: View) -> float:
        self._rates.append(float(view.arriving.sum()))
        self._number = self._number or max(view.replicas, 1)
        if view.now - self._changed_at >= self.STABLE:
            self._decide(view, float(np.mean(self._rates)))
        return float(self._number)

    def _decide(self, view: View, rate: float) -> None:
        lag, can = float(view.lag.sum()), self._number * self._capacity
        most, least = self.TARGET + self.BOUNDARY, self.TARGET - self.BOUNDARY
        if least * can <= rate <= most * can and lag / self.CATCH_UP + rate <= can:
            return
        to_read = rate / self.TARGET + lag / self.CATCH_UP + rate * self.RESTART / self.CATCH_UP
        wanted = math.ceil(to_read / self._capacity - 1e-9)
        wanted = max(wanted, math.ceil(self.LEAST_FACTOR * self._number), 1)
        wanted = _whole_share(min(wanted, self._width), self._width)
        if wanted != self._number:
            self._number, self._changed_at = wanted, view.now


class Packed:
    """As few bins as hold all partitions, filled in the order of their size: the rate of each partition (Landau et
    al.), and also what waits in it, to be read within the promise (Ezzeddine et al.)."""

    def __init__(self, consumers: Consumers, promised: float | None = None) -> None:
        self._capacity, self._promised = consumers.capacity, promised

    def value(self, view: View) -> float:
        backlogs = np.zeros(len(view.lag)) if self._promised is None else view.lag / self._promised
        rates, backlogs = (np.minimum(size, self._capacity) for size in (view.arriving, backlogs))
        return float(_bins(rates, backlogs, self._capacity))


def _whole_share(number: int, partitions: int) -> int:
    """Returns the next larger number that divides the partitions evenly, if there is one in the next half."""
    even = (each for each in range(number, partitions // 2 + 1) if partitions % each == 0)
    return next(even, number)


def _bins(rates: Messages, backlogs: Messages, room: float) -> int:
    """First fit, the largest first. Rates and backlogs each have as much room in a bin."""
    order = np.argsort(-np.maximum(rates, backlogs), kind="stable")
    left: list[tuple[float, float]] = []
    for rate, backlog in zip(rates[order].tolist(), backlogs[order].tolist(), strict=True):
        if rate <= 0 and backlog <= 0:
            break
        fitting = (at for at, (one, other) in enumerate(left) if one >= rate - 1e-9 and other >= backlog - 1e-9)
        place = next(fitting, len(left))
        if place == len(left):
            left.append((room, room))
        left[place] = left[place][0] - rate, left[place][1] - backlog
    return len(left)


def by_weight(weights: Messages) -> Owners:
    """The owners by number of members with an assignor that goes by how much each partition gets: the largest first,
    each to the member with least."""
    width = len(weights)
    table = np.full((width + 1, width), -1, np.int32)
    for members in range(1, width + 1):
        loads = np.zeros(members)
        for partition in np.argsort(-weights, kind="stable"):
            member = int(np.argmin(loads))
            table[members, partition] = member
            loads[member] += weights[partition]
    return table
