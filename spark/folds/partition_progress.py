"""Pure: hours of partitions -> of each topic the partitions that stood still, those without a commit, and whether
members own partitions of all topics. One hour after the other is folded in."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from adapter.verdicts.assignment import is_spread
from adapter.verdicts.progress import has_moved, stands_still
from spark.folds.partition_incidents import HOT, SLOW, UNREAD, PartitionIncidents
from spark.folds.topic_samples import Topics, places_of
from spark.tables.columns import UNKNOWN, Flags, Ints, TableRows
from spark.tables.contract import COVERED_SECONDS, HOUR_MICROS, NAMES, PARTITIONS

MOST_NAMED = 10
_PARTITION_BITS = 31
_READ = {
    *(*NAMES, "partition", "starts_at", "seconds", "produced", "consumed", "lag_max"),
    *("moved_at", "uncommitted_lag", "owner"),
}
COLUMNS = tuple(column for column in PARTITIONS if column.name in _READ)
"""The columns of `partitions` that are read."""
_TIME = pa.timestamp("us", tz="UTC")
STILL = {
    "number": pa.int64(),
    "partitions": pa.list_(pa.int32()),
    "since": _TIME,
    "is_exact": pa.bool_(),
    "until": _TIME,
    "lag": pa.int64(),
    "owners": pa.list_(pa.string()),
}
"""Partitions that stood still until the same hour's end. `since`: not exact, if it may have been earlier."""
NOTHING = {
    **dict.fromkeys(("seen_at", "moved_at", "since", "until", "lag", "uncommitted_lag", "uncommitted_since"), UNKNOWN),
    "uncommitted_produced": 0,
    "is_open": False,
    "is_exact": False,
    "owner": None,
}
"""What is kept of a partition, before anything is known of it."""
PROGRESS = pa.schema(
    {
        **{name: pa.string() for name in NAMES},
        "still": pa.struct(STILL),
        "uncommitted": pa.int64(),
        "uncommitted_lag": pa.int64(),
        "uncommitted_produced": pa.int64(),
        "uncommitted_since": _TIME,
        "slow": pa.struct(SLOW),
        "unread": pa.struct(UNREAD),
        "hot": pa.struct(HOT),
        "is_spread": pa.bool_(),
    }
)
"""One row for each topic. `still`: null if no partition ever did; `is_spread`: null if not all owners are known."""


def progress_of(hours: Iterable[TableRows], topics: Topics) -> pa.Table:
    """PROGRESS of these topics. `hours`: partitions of each hour, in order of time; other topics are ignored."""
    fold = _Progress(topics)
    for rows in hours:
        fold.add(rows)
    return fold.table()


class _Progress:
    """One entry for each partition, in the order of `_keys`."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._keys = np.empty(0, np.int64)
        self._incidents = PartitionIncidents(topics)
        self._of = {name: np.full(0, nothing) for name, nothing in NOTHING.items()}

    def add(self, rows: TableRows) -> None:
        topic = places_of(rows, self._topics)
        rows, topic = rows.taken(topic >= 0), topic[topic >= 0]
        self._incidents.add(rows, topic)
        at = self._places((topic << _PARTITION_BITS) + rows["partition"])
        numbers = (rows["consumed"], rows["produced"], rows["lag_max"])
        is_covered = (rows["seconds"] >= COVERED_SECONDS) & (rows["moved_at"] < 0)
        self._follow(at, rows, stands_still(*numbers) & is_covered, has_moved(*numbers) | (rows["moved_at"] >= 0))
        has_moved_at = rows["moved_at"] >= 0
        self._of["moved_at"][at[has_moved_at]] = rows["moved_at"][has_moved_at]
        self._of["seen_at"][at], self._of["uncommitted_lag"][at] = rows["starts_at"], rows["uncommitted_lag"]
        self._follow_uncommitted(at, rows)
        self._of["owner"][at] = np.array([*rows.texts["owner"].to_pylist(), None], np.object_)[rows["owner"]]

    def _follow(self, at: Ints, rows: TableRows, is_still: Flags, has_moved: Flags) -> None:
        begins, goes_on = is_still & ~self._of["is_open"][at], at[is_still]
        new, moved_at = at[begins], self._of["moved_at"][at[begins]]
        self._of["since"][new] = np.where(moved_at >= 0, moved_at, rows["starts_at"][begins])
        self._of["is_exact"][new] = moved_at >= 0
        self._of["until"][goes_on] = rows["starts_at"][is_still] + HOUR_MICROS
        self._of["lag"][goes_on] = rows["lag_max"][is_still]
        self._of["is_open"][goes_on] = True
        self._of["is_open"][at[has_moved]] = False

    def _follow_uncommitted(self, at: Ints, rows: TableRows) -> None:
        """What was produced in a partition since the first hour at whose end it had no commit."""
        is_uncommitted = rows["uncommitted_lag"] >= 0
        since, produced = self._of["uncommitted_since"], self._of["uncommitted_produced"]
        is_new = is_uncommitted & (since[at] < 0)
        since[at[is_new]] = rows["starts_at"][is_new]
        produced[at[is_uncommitted]] += np.maximum(rows["produced"][is_uncommitted], 0)
        since[at[~is_uncommitted]], produced[at[~is_uncommitted]] = UNKNOWN, 0

    def _places(self, keys: Ints) -> Ints:
        whole = np.union1d(self._keys, keys)
        if len(whole) > len(self._keys):
            old = np.searchsorted(whole, self._keys)
            for name, nothing in NOTHING.items():
                grown = np.full(len(whole), nothing)
                grown[old] = self._of[name]
                self._of[name] = grown
            self._keys = whole
        return np.searchsorted(whole, keys)

    def table(self) -> pa.Table:
        bounds = np.searchsorted(self._keys, np.arange(len(self._topics) + 1) << _PARTITION_BITS).tolist()
        spread: dict[int, bool | None] = {}
        rows = []
        for place, key in enumerate(self._topics.keys):
            partitions = np.arange(bounds[place], bounds[place + 1])
            group = int(self._topics.group[place])
            if group not in spread:
                spread[group] = self._is_spread(group, bounds)
            newest = self._newest(partitions)
            waiting = self._of["uncommitted_lag"][newest]
            without = newest[waiting >= 0]
            rows.append(
                {
                    **dict(zip(NAMES, key, strict=True)),
                    "still": self._still(partitions),
                    "uncommitted": len(without),
                    "uncommitted_lag": int(waiting[waiting >= 0].sum()),
                    "uncommitted_produced": int(self._of["uncommitted_produced"][without].sum()),
                    "uncommitted_since": int(self._of["uncommitted_since"][without].min()) if len(without) else None,
                    **self._incidents.of(place),
                    "is_spread": spread[group],
                }
            )
        return pa.Table.from_pylist(rows, PROGRESS)

    def _newest(self, partitions: Ints) -> Ints:
        """Those that the topic's last hour has."""
        seen_at = self._of["seen_at"][partitions]
        newest: Ints = partitions[seen_at == seen_at.max(initial=UNKNOWN)]
        return newest

    def _still(self, partitions: Ints) -> dict[str, object] | None:
        until = self._of["until"][partitions]
        if not (until >= 0).any():
            return None
        open_ = partitions[self._of["is_open"][partitions]]
        still = open_ if len(open_) else partitions[until == until.max()]
        first = still[np.argmin(self._of["since"][still])]
        named = (self._keys[still[:MOST_NAMED]] & ((1 << _PARTITION_BITS) - 1)).tolist()
        return {
            "number": len(still),
            "partitions": named,
            "since": int(self._of["since"][first]),
            "is_exact": bool(self._of["is_exact"][first]),
            "until": int(self._of["until"][still].max()),
            "lag": int(self._of["lag"][still].sum()),
            "owners": sorted({owner for owner in self._of["owner"][still] if owner is not None})[:MOST_NAMED],
        }

    def _is_spread(self, group: int, bounds: Sequence[int]) -> bool | None:
        """Topics without any owner are read by nobody."""
        owners = []
        for place in np.flatnonzero(self._topics.group == group).tolist():
            of_topic = self._of["owner"][self._newest(np.arange(bounds[place], bounds[place + 1]))].tolist()
            if any(owner is not None for owner in of_topic):
                owners.append(of_topic)
        if not owners or any(owner is None for of_topic in owners for owner in of_topic):
            return None
        return is_spread(owners)
