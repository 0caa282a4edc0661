"""Pure: hours of totals -> what only samples show: percentiles over a range, episodes above a threshold, capacities and
jumps of commits. One hour after the other is folded in, so that memory holds one hour and the lags of the range.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa

from adapter.history.arrow import array_of
from adapter.verdicts.capacity import Capacity
from spark.folds.commit_jumps import CommitJumps
from spark.folds.episodes import Episodes
from spark.folds.group_events import GroupEvents, Membership
from spark.folds.local_hours import LocalHours
from spark.folds.saturation import Saturation
from spark.folds.topic_samples import Topics, TopicSamples, samples_of
from spark.folds.wait_figures import WaitFigures
from spark.rules.percentiles import percentiles_of
from spark.tables.columns import UNKNOWN, Ints, TableRows, Values, begins_of

_TIME = pa.timestamp("us", tz="UTC")
TOPIC_STATISTICS = {
    **dict.fromkeys(("samples", "max", "first", "last", "lagging", "moving", "episodes"), pa.int64()),
    **dict.fromkeys(
        ("p50", "p95", "p99", "seconds_above", "known_seconds", "longest_seconds", "longest_quiet"), pa.float64()
    ),
    **dict.fromkeys(("wait_p50", "wait_p95", "wait_p99", "wait_max", "wait_first", "wait_last"), pa.float64()),
    **dict.fromkeys(("wait_bounds", "wait_at_least"), pa.int64()),
    **dict.fromkeys(("since", "until", "longest_from", "first_from", "last_until"), _TIME),
}
_CAPACITY = {
    "windows": pa.int64(),
    **dict.fromkeys(("seconds", "p25", "p50", "p95"), pa.float64()),
    "windows_by_hour": pa.list_(pa.int64()),
    **dict.fromkeys(("p25_by_hour", "p95_by_hour"), pa.list_(pa.float64())),
}
_JUMP = {"hour": _TIME, "messages": pa.float64()}
_MEMBERS = {
    "hour": _TIME,
    "changes": pa.int64(),
    "without_seconds": pa.float64(),
    "fewest": pa.int64(),
    "most": pa.int64(),
}
_LOCAL_HOURS = {
    "place": pa.int64(),
    "hour": _TIME,
    "produced": pa.float64(),
    "covered_seconds": pa.float64(),
}
_EVENTS = {"kind": pa.int64(), "number": pa.int64(), "first": _TIME, "last": _TIME}
STATISTICS = pa.schema(
    {
        "cluster": pa.string(),
        "group": pa.string(),
        "capacity": pa.struct(_CAPACITY),
        "topics": pa.list_(pa.struct({"topic": pa.string(), **TOPIC_STATISTICS})),
        "jumps": pa.list_(pa.struct(_JUMP)),
        "members": pa.list_(pa.struct(_MEMBERS)),
        "events": pa.list_(pa.struct(_EVENTS)),
        "local_hours": pa.list_(pa.struct(_LOCAL_HOURS)),
    }
)
"""One row for each group. What is not known is null, and so is the capacity of a group that was never saturated."""


def statistics_of(hours: Iterable[TableRows], topics: Topics) -> pa.Table:
    """STATISTICS of these topics. `hours`: totals of each hour, in order of time; rows of other topics are ignored."""
    lags, waits, episodes = LagFigures(topics), WaitFigures(topics), Episodes(topics)
    saturation, jumps = Saturation(topics), CommitJumps(topics)
    members, events, local_hours = Membership(topics), GroupEvents(topics), LocalHours(topics)
    for totals in hours:
        samples = samples_of(totals, topics)
        with_lag = samples.with_known_lag
        lags.add(with_lag)
        waits.add(with_lag.taken(with_lag["wait_seconds"] >= 0))
        episodes.add(samples)
        saturation.add(samples)
        jumps.add(samples)
        members.add(samples)
        events.add(samples)
        local_hours.add(samples)
    of_topic = {**lags.columns(), **waits.columns(), **episodes.columns()}
    for name in ("seconds_above", "known_seconds"):
        of_topic[name] = of_topic[name] + of_topic["bridged_seconds"]
    lists = [(jumps.columns(), _JUMP), (members.columns(), _MEMBERS), (events.columns(), _EVENTS)]
    lists.append((local_hours.columns(), _LOCAL_HOURS))
    return _table(topics, of_topic, saturation.capacities(), lists)


def _table(
    topics: Topics,
    of_topic: Mapping[str, Values],
    capacities: Sequence[Capacity | None],
    lists: Iterable[tuple[Mapping[str, Values], Mapping[str, pa.DataType]]],
) -> pa.Table:
    groups = np.arange(len(topics.groups))
    names = pa.array([topic for _, _, topic in topics.keys], pa.string())
    return pa.Table.from_arrays(
        [
            pa.array([cluster for cluster, _ in topics.groups], pa.string()),
            pa.array([group for _, group in topics.groups], pa.string()),
            pa.array([it and asdict(it) for it in capacities], pa.struct(_CAPACITY)),
            _lists(_structs(of_topic, TOPIC_STATISTICS, topic=names), np.searchsorted(topics.group, groups)),
            *(_lists(_structs(rows, types), np.searchsorted(rows["group"], groups)) for rows, types in lists),
        ],
        schema=STATISTICS,
    )


def _structs(columns: Mapping[str, Values], types: Mapping[str, pa.DataType], **texts: pa.Array) -> pa.Array:
    arrays = {name: array_of(type_, columns[name], is_nullable=True) for name, type_ in types.items()}
    return pa.StructArray.from_arrays([*texts.values(), *arrays.values()], [*texts, *arrays])


def _lists(values: pa.Array, begins: Ints) -> pa.Array:
    """A list for each beginning, up to the next one."""
    offsets = np.append(begins, len(values)).astype(np.int32)
    return pa.ListArray.from_arrays(array_of(pa.int32(), offsets, is_nullable=False), values)


class LagFigures:
    """One value for each topic in every column; UNKNOWN or NaN for a topic without a known lag."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._lags: list[tuple[Values, Ints]] = []
        """Of each hour: the lags, sorted by topic, and where each topic ends."""
        self._samples, self._lagging, self._moving = (self._counts() for _ in range(3))
        self._seconds_above, self._known_seconds = (np.zeros(len(topics)) for _ in range(2))
        self._first, self._last, self._since, self._until = (self._counts() + UNKNOWN for _ in range(4))

    def add(self, samples: TopicSamples) -> None:
        """The samples of the next hour that have a known lag."""
        topic, lag, interval = samples.topic, samples["lag"], samples.interval
        self._add_ends(samples)
        self._samples += self._counts(topic)
        is_moving = samples["consumed"] > 0
        has_work = ((lag > 0) | is_moving) & (samples["members"] != 0)
        self._lagging += self._counts(topic[has_work])
        self._moving += self._counts(topic[has_work & is_moving])
        self._known_seconds += self._sums(topic, interval)
        self._seconds_above += self._sums(topic, np.where(lag > self._topics.thresholds[topic], interval, 0.0))
        self._lags.append((lag, np.cumsum(self._counts(topic))))

    def columns(self) -> dict[str, Values]:
        lags = [self._lags_of(place) for place in range(len(self._topics))]
        return {
            "samples": self._samples,
            **percentiles_of(np.concatenate([*lags, np.empty(0, np.int64)]), self._samples, 50, 95, 99),
            "max": np.array([values.max(initial=UNKNOWN) for values in lags], np.int64),
            "first": self._first,
            "last": self._last,
            "since": self._since,
            "until": self._until,
            "seconds_above": self._seconds_above,
            "known_seconds": self._known_seconds,
            "lagging": self._lagging,
            "moving": self._moving,
        }

    def _add_ends(self, samples: TopicSamples) -> None:
        """What the first and the last sample of each topic say."""
        topic, lag, at = samples.topic, samples["lag"], samples["sampled_at"]
        begins = begins_of(topic)
        new = begins[self._samples[topic[begins]] == 0]
        self._first[topic[new]], self._since[topic[new]] = lag[new], at[new]
        ends = np.append(begins[1:], len(topic)) - 1 if len(topic) else begins
        until = at[ends] + (samples.interval[ends] * 1e6).astype(np.int64)
        self._last[topic[ends]], self._until[topic[ends]] = lag[ends], until

    def _lags_of(self, place: int) -> Values:
        parts = [lags[(ends[place - 1] if place else 0) : ends[place]] for lags, ends in self._lags]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _counts(self, topic: Ints | None = None) -> Ints:
        return np.bincount(np.empty(0, np.int64) if topic is None else topic, minlength=len(self._topics))

    def _sums(self, topic: Ints, values: Values) -> Values:
        return np.bincount(topic, values, minlength=len(self._topics))
