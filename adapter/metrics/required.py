"""Reads of the number of replicas that keeps a promise about waiting, and of the capacity that it is computed with."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

import numpy as np
from cachetools import TTLCache

from adapter.clock import utc_text
from adapter.columns import Flags, Indexes, Offsets, Seconds
from adapter.conditions import DEMAND, Conditions
from adapter.errors import some_of
from adapter.lag.demand import rates_by
from adapter.lag.forecast import Load, Pattern
from adapter.lag.owners import NOT_ASKED
from adapter.lag.replicas import LONGEST_COMMIT_INTERVAL, movement_of, replicas_for, still_after, sum_of
from adapter.lag.ring import past_of
from adapter.metrics.capacities import Capacities, Wants
from adapter.metrics.demand import known_rates, recent_rates, window_of
from adapter.metrics.problems import Problem, Reason, refused
from adapter.metrics.selection import Selection
from adapter.metrics.store import ClusterView
from adapter.settings.models import Replicas
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Demand, Promise
from adapter.verdicts.required import Basis, Required, following_a_rise, quick_window_of, required
from adapter.verdicts.waits import beyond_flight

MOST_COURSES = 10_000
"""Because readers may use any selector."""
MOST_NAMED = 20
"""Partitions of one read that are named in the log."""
FORGOTTEN_SECONDS = 600.0
"""After the last read."""
LONGEST_WINDOW = 1.6
"""A rate covers at most so many times its window. A lag that is larger was there before."""
LEARNED, HINT = "learned", "hint"
"""The label `source` of a capacity."""

Patterns = Callable[[Load], Pattern | str]
"""Returns the weekly pattern of a load, or why it is not known."""
Expected = Callable[[str, str], int | None]
"""Cluster and group -> the replicas that HPAs have for the group now; None: not known."""


class UsedCapacity(NamedTuple):
    per_second: float
    """Messages of one member."""
    labels: dict[str, str]
    """Where it comes from."""


@dataclass(frozen=True, slots=True)
class Answer:
    replicas: int
    labels: dict[str, str]
    """What the number follows from, and partitions that it leaves out."""


class _Kept(NamedTuple):
    """Of earlier reads."""

    course: Course | None
    said: Mapping[str, float]
    """What no number of replicas helps, and when that was last so."""


_NOTHING = _Kept(None, {})


class Demands:
    """The required replicas of all groups. Each number depends on earlier ones. Any thread may read."""

    def __init__(
        self,
        capacities: Capacities,
        monotonic: Callable[[], float],
        conditions: Conditions | None = None,
        expected: Expected = lambda _cluster, _group: None,
    ) -> None:
        self._capacities = capacities
        self._monotonic = monotonic
        self.expected = expected
        self.patterns: Patterns = lambda _: "no history is kept"
        self._conditions = conditions
        self._lock = Lock()
        self._courses: TTLCache[object, _Kept] = TTLCache(MOST_COURSES, FORGOTTEN_SECONDS, timer=monotonic)
        """By what is read."""

    def read(self, chosen: Selection, shape: Replicas, interval: float, what: str, to_epoch: float) -> Answer:
        """Returns the number of replicas for the selected partitions of one group; raises ValueUnavailable.

        `to_epoch` is how far the epoch is from the monotonic clock."""
        group, rows, demand, promise = self._asked(chosen, shape, interval, what)
        pattern = self._pattern(chosen, shape)
        labels = {}
        if isinstance(pattern, Pattern) and pattern.forecast.is_better:
            now = self._monotonic() + to_epoch
            arriving = np.maximum(demand.arriving, _forecast(pattern, demand.arriving, now, promise.delay_seconds))
            demand, labels = replace(demand, arriving=arriving, measured=demand.arriving), _labels_of(pattern)
        lag = chosen.view.values.lag[rows]
        key = _key(chosen, group, shape)
        with self._lock:
            now, before = self._monotonic(), self._courses.get(key, _NOTHING)
            found, course = required(now, demand, promise, before.course)
            # A partition that gets about as much as one member can read is hot every now and then.
            recent = {said: at for said, at in before.said.items() if now - at < FORGOTTEN_SECONDS}
            said = (f"group {group}: {each}" for each in _said(chosen, rows, found, demand, course))
            self._courses[key] = _Kept(course, recent | dict.fromkeys(said, now))
        return Answer(_number(demand, found, lag, shape), _labels(chosen, rows, found) | labels)

    def forecast(self, chosen: Selection, shape: Replicas, interval: float, what: str, to_epoch: float) -> Answer:
        """Returns the same by what the weekly pattern says will arrive when a replica that is asked for now reads."""
        group, rows, demand, promise = self._asked(chosen, shape, interval, what)
        pattern = self._pattern(chosen, shape)
        if not isinstance(pattern, Pattern):
            reason = Reason.NOT_CONFIGURED if shape.forecast_time_zone is None else Reason.FORECAST_UNKNOWN
            problem = Problem(reason, pattern, chosen.view.cluster, group)
            raise refused(f"{what} of group {group} is not known: {pattern}", [problem])
        now = self._monotonic() + to_epoch
        arriving = _forecast(pattern, demand.arriving, now, promise.delay_seconds)
        demand = replace(demand, arriving=arriving, expected_members=None)
        found, _ = required(now, demand, promise)
        number = _number(demand, found, chosen.view.values.lag[rows], shape)
        return Answer(number, {"basis": found.basis.value, **_labels_of(pattern)})

    def _pattern(self, chosen: Selection, shape: Replicas) -> Pattern | str:
        """Returns the weekly pattern of what is selected, or why it is not known."""
        if shape.forecast_time_zone is None:
            return "its objective has no `forecastTimeZone`"
        if chosen.rows is not None:
            return "the history has the hours of whole topics, and only some partitions are selected"
        topics = frozenset(chosen.view.layout.topics[chosen.totals.topic[entry]] for entry in chosen.entries)
        return self.patterns(Load(chosen.view.cluster, group_of(chosen), topics, shape.forecast_time_zone))

    def _asked(
        self, chosen: Selection, shape: Replicas, interval: float, what: str
    ) -> tuple[str, Indexes, Demand, Promise]:
        """Returns the group, the rows that count, what they need and what was promised."""
        group = group_of(chosen)
        capacity = self.capacity(chosen, shape, what)
        topics = [chosen.rows_of(entry) for entry in chosen.entries]
        # A topic that no member read when the group was last described takes no member.
        topics = [
            rows for rows, entry in zip(topics, chosen.entries, strict=True) if not chosen.totals.is_in_doubt[entry]
        ]
        rows = np.concatenate([np.empty(0, np.intp), *topics])
        expected_replicas = self.expected(chosen.view.cluster, group)
        expected = None if expected_replicas is None else expected_replicas * shape.consumers_per_replica
        demand = _demand(chosen, group, topics, capacity.per_second, expected, interval, what)
        promise = Promise.of(shape.max_wait or 0.0, demand.sharing, interval)
        return group, rows, demand, promise

    def capacity(self, chosen: Selection, shape: Replicas, what: str) -> UsedCapacity:
        """Returns what one member can read; raises ValueUnavailable if nothing shows it and there is no hint."""
        group = group_of(chosen)
        learned = self._capacities.of(chosen.view.cluster, group)
        if learned is not None:
            found = learned.capacity
            advised = found.p25 if np.isnan(found.advised) else found.advised
            if advised > 0:
                labels = {"source": LEARNED, "windows": str(found.windows), "newest": utc_text(learned.newest)}
                return UsedCapacity(advised, labels)
        if shape.capacity_hint is not None:
            return UsedCapacity(shape.capacity_hint, {"source": HINT})
        text = (
            "what one member can read is not known yet: its members must have a backlog for ten minutes, or"
            " `capacityHint` must say it"
        )
        problem = Problem(Reason.CAPACITY_UNKNOWN, text, chosen.view.cluster, group)
        raise refused(f"{what} of group {group} is not known: {text}", [problem])

    def look(self, views: Iterable[ClusterView], wants: Wants, interval: float) -> None:
        """Learns from the latest views (as `Capacities.look`), and reports what was read in the last minutes."""
        self._capacities.look(views, wants, interval)
        self._report()

    def _report(self) -> None:
        if self._conditions is None:
            return
        with self._lock:
            self._courses.expire()
            said = sorted({said for kept in self._courses.values() for said in kept.said})
            is_used = bool(self._courses)
        if said:
            message = "for some partitions or groups, replicas alone are not enough; the log has them"
            self._conditions.fails(DEMAND, "NotByReplicas", message, details=some_of(said, most=10, separator="; "))
        elif is_used:
            self._conditions.holds(DEMAND)
        else:
            self._conditions.forget(name=DEMAND.name)


def _number(demand: Demand, found: Required, lag: Offsets, shape: Replicas) -> int:
    is_idle = sum_of(lag) <= shape.activation and not demand.arriving.any()
    return 0 if is_idle else replicas_for(found.members, lag, demand.partitions, demand.sharing, shape)


def _forecast(pattern: Pattern, arriving: Seconds, now: float, ahead: float) -> Seconds:
    """Returns the rates of partitions that the pattern says for so many seconds later, divided as now."""
    rate = float(arriving.sum())
    later = pattern.rate_at(now + ahead, now, rate)
    return arriving * (later / rate) if rate > 0 else np.full(len(arriving), later / max(len(arriving), 1))


def _labels_of(pattern: Pattern) -> dict[str, str]:
    """Returns the model of a forecast, and the share of the last hour's error that it avoids."""
    forecast = pattern.forecast
    return {"forecast": "weekly" if forecast.by_weekday else "daily", "skill": f"{forecast.skill:.2f}"}


def group_of(chosen: Selection) -> str:
    return chosen.view.layout.groups[chosen.totals.group[chosen.entries[0]]]


def _key(chosen: Selection, group: str, shape: Replicas) -> object:
    layout, totals = chosen.view.layout, chosen.totals
    topics = tuple(layout.topics[totals.topic[entry]] for entry in chosen.entries)
    partitions = None if chosen.rows is None else layout.partition[chosen.rows].tobytes()
    return chosen.view.cluster, group, topics, partitions, shape


def _demand(
    chosen: Selection,
    group: str,
    topics: Sequence[Indexes],
    capacity: float,
    expected: int | None,
    interval: float,
    what: str,
) -> Demand:
    view = chosen.view
    rows = np.concatenate([np.empty(0, np.intp), *topics])
    past, quick = past_of(view.ring.ends, rows), quick_window_of(interval)
    arriving = known_rates(chosen, rows, past, interval, what)
    lately = rates_by(past, quick - interval / 2)
    arriving = following_a_rise(arriving, lately.per_second, quick)
    lag = view.values.lag[rows].astype(np.float64)
    counted = view.members_of(group)
    members = None if counted is None else counted.members
    beyond = beyond_flight(lag, arriving, _flight_seconds(chosen, rows, members, interval))
    # It only matters whether members read more while something waits.
    read = recent_rates(past_of(view.ring.commits, rows), interval).per_second.sum() if beyond.any() else np.nan
    return Demand(
        arriving=arriving,
        lag=lag,
        beyond=beyond,
        capacity=capacity,
        partitions=tuple(map(len, topics)),
        sharing=view.sharing_of(group),
        is_still=_still(chosen, group, rows, arriving, members, interval),
        read=float(read),
        members=members,
        expected_members=expected,
        owners=_owners(chosen, rows),
    )


def _flight_seconds(chosen: Selection, rows: Indexes, members: int | None, interval: float) -> Seconds | float:
    """Returns for how long messages of each partition may have arrived that a member has read and not committed: since
    the commit moved, which is seen up to an interval late."""
    if members == 0:
        return 0.0
    snapshot = chosen.view.snapshot
    since = np.clip(snapshot.received[rows] - snapshot.moved_at[rows], 0.0, LONGEST_COMMIT_INTERVAL)
    return since + interval


def _still(
    chosen: Selection, group: str, rows: Indexes, arriving: Seconds, members: int | None, interval: float
) -> Flags | None:
    """Returns the partitions whose commits stand still although something has waited for them for a while.

    Nobody moves the commits of a group without members, and the first one will."""
    if members == 0:
        return None
    view = chosen.view
    is_still, _ = movement_of(view.snapshot, rows, view.judged_at.get(group), still_after(interval))
    has_waited = view.values.lag[rows] > arriving * LONGEST_WINDOW * window_of(interval)
    still: Flags = is_still & has_waited
    return still


def _owners(chosen: Selection, rows: Indexes) -> Indexes | None:
    """Returns the members as numbers from 0; None if the members of some partitions are not known."""
    codes = chosen.view.owners.codes
    if len(codes) != len(chosen.view.layout) or (codes[rows] == NOT_ASKED).any():
        return None
    return np.unique(codes[rows], return_inverse=True)[1]


def _labels(chosen: Selection, rows: Indexes, found: Required) -> dict[str, str]:
    name = chosen.view.layout.name
    named = {"hot": rows[found.hot], "still": rows[found.still]}
    shown = {key: some_of([name(row) for row in own.tolist()], separator=",") for key, own in named.items() if len(own)}
    return {"basis": found.basis.value, **shown}


def _said(chosen: Selection, rows: Indexes, found: Required, demand: Demand, course: Course) -> Iterator[str]:
    name = chosen.view.layout.name
    hot = found.hot[:MOST_NAMED]
    # What is hot only by the forecast does not arrive yet.
    is_now = demand.arriving_now[hot] > demand.capacity
    for row, arrives in zip(rows[hot].tolist(), is_now.tolist(), strict=True):
        yield f"more {'arrives' if arrives else 'is expected'} in {name(row)} than one member can read"
    for row in rows[found.still[:MOST_NAMED]].tolist():
        yield f"the commits of {name(row)} stand still"
    if found.basis is Basis.DOWNSTREAM:
        yield "more members read no more than fewer, so something else limits them"
    if course.difference:
        yield (
            f"it has {demand.members} members and not the {demand.expected_members} that its HPAs have: some pods have"
            " no consumer in it, or several (`consumersPerReplica`)"
        )
