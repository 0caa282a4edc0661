"""Pure: hours of partitions -> of each topic: which partition holds its lag, whether a member reads it at all, and
which partition gets most. One hour after the other is folded in."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from spark.folds.topic_samples import Topics
from spark.tables.columns import UNKNOWN, Ints, TableRows, Values, begins_of
from spark.tables.contract import HOUR_MICROS

MOST_OF_THE_LAG = 0.8
"""Of a topic's lag: a partition that has as much is the cause."""
FAIR = 2.0
"""Times the equal share of what is produced. A partition that gets more is hot, and its lag no wonder."""
FEW_MESSAGES = 100
"""Below this, shares of partitions are chance."""
ONE_INCIDENT_HOURS = 3
"""Between two hours of one incident."""
_TIME = pa.timestamp("us", tz="UTC")
SLOW = {
    "partition": pa.int32(),
    "since": _TIME,
    "until": _TIME,
    "hours": pa.int64(),
    "lag": pa.int64(),
    "lag_share": pa.float64(),
    "produced_share": pa.float64(),
    "owner": pa.string(),
}
"""The last stretch of hours in which one partition had most of the lag, above the threshold, and no more than its fair
share of the messages. `lag` and the shares: of the hour with the most lag."""
UNREAD = {"since": _TIME, "produced": pa.int64(), "was_read": pa.bool_()}
"""Since when no partition has an owner, and nothing is consumed, while other topics of the group have owners: until the
end."""
HOT = {"hours": pa.int64(), "partition": pa.int32(), "most_hours": pa.int64(), "partitions": pa.int64(), "since": _TIME}
"""Hours in which one partition got more than its fair share; the partition that was it most often, and in how many
hours; how many partitions were it; the first of these hours."""


class PartitionIncidents:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._slow: dict[int, dict[str, Any]] = {}
        self._unread: dict[int, dict[str, Any]] = {}
        self._read: set[int] = set()
        self._hot: dict[int, Counter[int]] = {}
        self._hot_since: dict[int, int] = {}

    def add(self, rows: TableRows, topic: Ints) -> None:
        """Partitions of the next hour. `topic`: the place of each row's topic."""
        if not len(rows):
            return
        order = np.argsort(topic, kind="stable")
        rows, topic = rows.taken(order), topic[order]
        begins = begins_of(topic)
        of_topics = _per_topic(rows, topic, begins)
        hour = int(rows["starts_at"][0])
        owners = rows.texts["owner"].to_pylist()
        for at in np.flatnonzero(self._has_slow(of_topics)).tolist():
            self._add_slow(int(of_topics["topic"][at]), hour, {name: it[at] for name, it in of_topics.items()}, owners)
        self._add_hot(of_topics, hour)
        self._add_unread(of_topics, hour)

    def of(self, place: int) -> dict[str, dict[str, Any] | None]:
        """SLOW, UNREAD and HOT of a topic."""
        hot = self._hot.get(place)
        often = hot.most_common(1)[0] if hot else (0, 0)
        return {
            "slow": self._slow.get(place),
            "unread": self._unread.get(place) and self._unread[place] | {"was_read": place in self._read},
            "hot": None
            if hot is None
            else {
                "hours": hot.total(),
                "partition": often[0],
                "most_hours": often[1],
                "partitions": len(hot),
                "since": self._hot_since[place],
            },
        }

    def _has_slow(self, of: dict[str, Values]) -> Values:
        is_most = of["lag"] >= MOST_OF_THE_LAG * of["lag_sum"]
        is_fair = of["slow_produced"] * of["partitions"] <= FAIR * np.maximum(of["produced_sum"], 1)
        has_slow: Values = (
            is_most & is_fair & (of["partitions"] > 1) & (of["lag"] > self._topics.thresholds[of["topic"]])
        )
        return has_slow

    def _add_slow(self, place: int, hour: int, of: dict[str, Any], owners: list[str | None]) -> None:
        before = self._slow.get(place)
        goes_on = (
            before is not None
            and before["partition"] == of["slow"]
            and hour - before["until"] < ONE_INCIDENT_HOURS * HOUR_MICROS
        )
        if before is None or not goes_on:
            before = {"partition": int(of["slow"]), "since": hour, "hours": 0, "lag": UNKNOWN}
        largest = {
            "lag": int(of["lag"]),
            "lag_share": float(of["lag"] / of["lag_sum"]),
            "produced_share": float(of["slow_produced"] / max(of["produced_sum"], 1)),
        }
        owner = owners[of["owner"]] if of["owner"] >= 0 else None
        self._slow[place] = {
            **before,
            **(largest if of["lag"] > before["lag"] else {}),
            "until": hour + HOUR_MICROS,
            "hours": before["hours"] + 1,
            "owner": owner,
        }

    def _add_hot(self, of: dict[str, Values], hour: int) -> None:
        is_told = (of["produced_sum"] >= FEW_MESSAGES) & (of["partitions"] > 1)
        is_hot = is_told & (of["hot_produced"] * of["partitions"] > FAIR * of["produced_sum"])
        for at in np.flatnonzero(is_hot).tolist():
            place = int(of["topic"][at])
            self._hot.setdefault(place, Counter())[int(of["hot"][at])] += 1
            self._hot_since.setdefault(place, hour)

    def _add_unread(self, of: dict[str, Values], hour: int) -> None:
        group = self._topics.group[of["topic"]]
        has_readers = np.bincount(group, of["owners"], minlength=len(self._topics.groups))[group] > 0
        for at in np.flatnonzero(has_readers).tolist():
            place = int(of["topic"][at])
            if of["owners"][at] or of["consumed_sum"][at]:
                self._read.add(place)
                self._unread.pop(place, None)
            else:
                unread = self._unread.setdefault(place, {"since": hour, "produced": 0})
                unread["produced"] += int(max(of["produced_sum"][at], 0))


def _per_topic(rows: TableRows, topic: Ints, begins: Ints) -> dict[str, Values]:
    """One row for each topic: `slow` has the most lag, `hot` got most."""
    lag, produced = np.maximum(rows["lag_max"], 0), np.maximum(rows["produced"], 0)
    ends = np.append(begins[1:], len(topic)) - 1
    slow, hot = (np.lexsort((-rows["partition"], column, topic))[ends] for column in (lag, produced))
    return {
        "topic": topic[begins],
        "partitions": np.diff(begins, append=len(topic)),
        "lag_sum": np.add.reduceat(lag, begins),
        "produced_sum": np.add.reduceat(produced, begins),
        "consumed_sum": np.add.reduceat(np.maximum(rows["consumed"], 0), begins),
        "slow": rows["partition"][slow],
        "lag": lag[slow],
        "slow_produced": produced[slow],
        "owner": rows["owner"][slow],
        "hot": rows["partition"][hot],
        "hot_produced": produced[hot],
        "owners": np.add.reduceat((rows["owner"] >= 0).astype(np.int64), begins),
    }
