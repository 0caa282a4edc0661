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
"""Of a topic's lag: a partition, or a few together, that have as much are the cause."""
MOST_SLOW = 3
"""Partitions that are slow together, and no more than half of the topic's."""
FAR_ABOVE = 4
"""Times the largest lag of the others: the least of each slow partition's, so that chance makes none slow."""
FAIR = 2.0
"""Times the equal share of what is produced. A partition that gets more is hot, and its lag no wonder."""
FEW_MESSAGES = 100
"""Below this, shares of partitions are chance."""
ONE_INCIDENT_HOURS = 3
"""Between two hours of one incident."""
_TIME = pa.timestamp("us", tz="UTC")
SLOW = {
    "partitions": pa.list_(pa.int32()),
    "since": _TIME,
    "until": _TIME,
    "hours": pa.int64(),
    "lag": pa.int64(),
    "lag_share": pa.float64(),
    "produced_share": pa.float64(),
    "owners": pa.list_(pa.string()),
}
"""The last stretch of hours in which a few partitions had most of the lag, above the threshold, and none of them more
than its fair share of the messages. `partitions`, `lag` and the shares: of the hour with the most lag; `owners`: of
these partitions in the last hour in which they alone were slow; none unless the owner of each is known."""
UNREAD = {"since": _TIME, "produced": pa.int64(), "lag": pa.int64(), "was_read": pa.bool_()}
"""Since when no partition has an owner, and nothing is consumed, while other topics of the group have owners: until the
end. Owners are known at the end of each hour; `since` is the last sample before these hours in which a commit moved, or
nothing waited, if the hour before has one. `lag`: in the last hour."""
HOT = {"hours": pa.int64(), "partition": pa.int32(), "most_hours": pa.int64(), "partitions": pa.int64(), "since": _TIME}
"""Hours in which one partition got more than its fair share; the partition that was it most often, and in how many
hours; how many partitions were it; the first of these hours."""


class PartitionIncidents:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._slow: dict[int, dict[str, Any]] = {}
        self._unread: dict[int, dict[str, Any]] = {}
        self._read: set[int] = set()
        self._moved_at: dict[int, int] = {}
        self._hot: dict[int, Counter[int]] = {}
        self._hot_since: dict[int, int] = {}

    def add(self, rows: TableRows, topic: Ints) -> None:
        """Partitions of the next hour. `topic`: the place of each row's topic."""
        if not len(rows):
            return
        order = np.argsort(topic, kind="stable")
        rows, topic = rows.taken(order), topic[order]
        begins = begins_of(topic)
        of_topics = _per_topic(rows, topic, begins, self._topics.thresholds[topic[begins]])
        hour = int(rows["starts_at"][0])
        owners = rows.texts["owner"].to_pylist()
        for at in np.flatnonzero(self._has_slow(of_topics)).tolist():
            self._add_slow(
                int(of_topics["topic"][at]), hour, {name: it[..., at] for name, it in of_topics.items()}, owners
            )
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
        has_slow: Values = (of["slow"] > 0) & (of["slow_lag"] > self._topics.thresholds[of["topic"]])
        return has_slow

    def _add_slow(self, place: int, hour: int, of: dict[str, Any], owners: list[str | None]) -> None:
        before, number = self._slow.get(place), int(of["slow"])
        partitions = {int(each) for each in of["largest"][:number]}
        goes_on = (
            before is not None
            and (partitions >= set(before["partitions"]) or partitions <= set(before["partitions"]))
            and hour - before["until"] < ONE_INCIDENT_HOURS * HOUR_MICROS
        )
        if before is None or not goes_on:
            before = {"since": hour, "hours": 0, "lag": UNKNOWN}
        largest = {
            "partitions": sorted(partitions),
            "lag": int(of["slow_lag"]),
            "lag_share": float(of["slow_lag"] / of["lag_sum"]),
            "produced_share": float(of["slow_produced"] / max(of["produced_sum"], 1)),
        }
        found = {
            **before,
            **(largest if largest["lag"] > before["lag"] else {}),
            "until": hour + HOUR_MICROS,
            "hours": before["hours"] + 1,
        }
        if found["partitions"] == largest["partitions"]:
            found["owners"] = _members(of["largest_owner"][:number].tolist(), owners)
        self._slow[place] = found

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
                self._moved_at[place] = int(of["moved_at"][at])
                self._unread.pop(place, None)
            else:
                moved_at = self._moved_at.get(place, UNKNOWN)
                since = moved_at if moved_at >= hour - HOUR_MICROS else hour
                unread = self._unread.setdefault(place, {"since": since, "produced": 0})
                unread["produced"] += int(of["produced_sum"][at])
                unread["lag"] = int(of["lag_sum"][at])


def _members(codes: list[int], owners: list[str | None]) -> list[str]:
    """None unless all are known: those that are known would seem to read all of the partitions."""
    names = {owners[code] if code >= 0 else None for code in codes}
    return [] if None in names else sorted(name for name in names if name is not None)


def _per_topic(rows: TableRows, topic: Ints, begins: Ints, thresholds: Ints) -> dict[str, Values]:
    """One row for each topic: `largest` are the partitions with the most lag, as rows, `slow` the number of those that
    are slow, and `hot` is the one that got most."""
    lag, produced = np.maximum(rows["lag_max"], 0), np.maximum(rows["produced"], 0)
    ends = np.append(begins[1:], len(topic)) - 1
    hot = np.lexsort((-rows["partition"], produced, topic))[ends]
    of = {
        "topic": topic[begins],
        "threshold": thresholds,
        "partitions": np.diff(begins, append=len(topic)),
        "lag_sum": np.add.reduceat(lag, begins),
        "produced_sum": np.add.reduceat(produced, begins),
        "consumed_sum": np.add.reduceat(np.maximum(rows["consumed"], 0), begins),
        "moved_at": np.maximum.reduceat(rows["moved_at"], begins),
        "hot": rows["partition"][hot],
        "hot_produced": produced[hot],
        "owners": np.add.reduceat((rows["owner"] >= 0).astype(np.int64), begins),
    }
    by_lag, place = np.lexsort((-rows["partition"], lag, topic)), np.arange(MOST_SLOW + 1)[:, np.newaxis]
    largest = by_lag[np.maximum(ends - place, begins)]
    is_there = place < of["partitions"]
    return (
        of
        | _slow(of, np.where(is_there, lag[largest], 0), np.where(is_there, produced[largest], 0))
        | {
            "largest": rows["partition"][largest],
            "largest_owner": rows["owner"][largest],
        }
    )


def _slow(of: dict[str, Values], lag: Values, produced: Values) -> dict[str, Values]:
    """`lag`, `produced`: of the partitions with the most lag, the largest first. `slow`: how many of these have most of
    the lag, or 0, if it is shared or theirs because they get so much. These are the fewest that have most of it, each
    far more than any other partition, and those that have more than their share of the threshold as well, such as one
    that became slow later."""
    partitions, topics = of["partitions"], np.arange(lag.shape[1])
    place = np.arange(len(lag) - 1)[:, np.newaxis]
    together, most_produced = np.cumsum(lag, axis=0)[:-1], np.maximum.accumulate(produced, axis=0)[:-1]
    has_most = together >= MOST_OF_THE_LAG * of["lag_sum"]
    is_far = lag[:-1] >= FAR_ABOVE * lag[1:]
    is_fair = most_produced * partitions <= FAIR * np.maximum(of["produced_sum"], 1)
    can_be = has_most & is_far & is_fair & (2 * (place + 1) <= partitions)
    least = np.argmax(can_be, axis=0)
    joins = (place > least) & (lag[:-1] * partitions > of["threshold"])
    at = np.where(can_be & ((place == least) | joins), place, 0).max(axis=0)
    return {
        "slow": np.where(can_be.any(axis=0), at + 1, 0),
        "slow_lag": together[at, topics],
        "slow_produced": np.cumsum(produced, axis=0)[at, topics],
    }
