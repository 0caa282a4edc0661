"""Pure: hours of totals -> what only samples show: percentiles over a range, episodes above a threshold, capacities and
jumps of commits. One hour after the other is folded in, so that memory holds one hour and the lags of the range.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from adapter.history.arrow import array_of
from spark.rules.commit_jumps import CommitJumps
from spark.rules.episodes import Episodes
from spark.rules.lag_figures import LagFigures
from spark.rules.saturation import Saturation
from spark.rules.topic_samples import Topics, samples_of
from spark.tables.columns import Ints, Rows, Values

_TIME = pa.timestamp("us", tz="UTC")
TOPIC_STATISTICS = {
    **dict.fromkeys(("samples", "max", "first", "last", "lagging", "moving", "episodes"), pa.int64()),
    **dict.fromkeys(("p50", "p95", "p99", "seconds_above", "known_seconds", "longest_seconds"), pa.float64()),
    **dict.fromkeys(("since", "until", "longest_from"), _TIME),
}
_CAPACITY = {"windows": pa.int64(), "seconds": pa.float64(), "p50": pa.float64(), "p95": pa.float64()}
_JUMP = {"hour": _TIME, "messages": pa.float64()}
STATISTICS = pa.schema(
    {
        "cluster": pa.string(),
        "group": pa.string(),
        "capacity": pa.struct(_CAPACITY),
        "topics": pa.list_(pa.struct({"topic": pa.string(), **TOPIC_STATISTICS})),
        "jumps": pa.list_(pa.struct(_JUMP)),
    }
)
"""One row for each group. What is not known is null."""


def statistics_of(hours: Iterable[Rows], topics: Topics) -> pa.Table:
    """STATISTICS of these topics. `hours`: totals of each hour, in order of time; rows of other topics are ignored."""
    lags, episodes, saturation, jumps = (kind(topics) for kind in (LagFigures, Episodes, Saturation, CommitJumps))
    for totals in hours:
        samples = samples_of(totals, topics)
        known = samples.with_known_lag
        lags.add(known)
        episodes.add(samples)
        saturation.add(samples)
        jumps.add(samples)
    of_topic = {**lags.columns(), **episodes.columns()}
    for name in ("seconds_above", "known_seconds"):
        of_topic[name] = of_topic[name] + of_topic["bridged_seconds"]
    return _table(topics, of_topic, saturation.columns(), jumps.columns())


def _table(
    topics: Topics, of_topic: Mapping[str, Values], capacity: Mapping[str, Values], jumps: Mapping[str, Values]
) -> pa.Table:
    groups = np.arange(len(topics.groups))
    names = pa.array([topic for _, _, topic in topics.keys], pa.string())
    return pa.Table.from_arrays(
        [
            pa.array([cluster for cluster, _ in topics.groups], pa.string()),
            pa.array([group for _, group in topics.groups], pa.string()),
            _structs(capacity, _CAPACITY),
            _lists(_structs(of_topic, TOPIC_STATISTICS, topic=names), np.searchsorted(topics.group, groups)),
            _lists(_structs(jumps, _JUMP), np.searchsorted(jumps["group"], groups)),
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
