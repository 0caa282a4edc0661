"""What the table of minutes must hold, in plain Python: deltas and totals as dicts in, its rows as dicts out. Of
all that is rounded, only the lag is rounded here."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

Row = dict[str, Any]
GROUP = ("cluster", "group")


def minutes_of(deltas: Iterable[Row], totals: Iterable[Row]) -> list[Row]:
    partitions: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    topics: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in deltas:
        partitions[(*key_of(row), row["topic"], row["partition"], row["topic_id"])].append(row)
    for row in totals:
        topics[key_of(row)][row["topic"]].append(row)
    largest: dict[tuple[Any, ...], int] = defaultdict(int)
    for key, rows in partitions.items():
        largest[key[:3]] = max(largest[key[:3]], total(rows, "produced") or 0)
    return [minute_of(key, list(of_topics.values()), largest[key]) for key, of_topics in topics.items()]


def key_of(row: Row) -> tuple[str, str, datetime]:
    return row["cluster"], row["group"], row["sampled_at"].replace(second=0, microsecond=0)


def minute_of(key: tuple[Any, ...], topics: Sequence[Sequence[Row]], largest: int) -> Row:
    rows = [row for of_topic in topics for row in of_topic]
    last = [newest(of_topic) for of_topic in topics]
    is_known = not any(
        it is None and any(row["unknown"] for row in rows) for it, rows in zip(last, topics, strict=True)
    )
    of_lag = [row for row in last if row is not None] if is_known else []
    members, produced = known(rows, "members"), total(rows, "produced")
    return {
        **dict(zip((*GROUP, "minute"), key, strict=True)),
        "produced": produced,
        "consumed": total(rows, "consumed"),
        "lag": rounded(total(of_lag, "lag")),
        "wait_seconds": max(known(rows, "wait_seconds"), default=None) if of_lag else None,
        "wait_is_bound": bool(of_lag) and any(row["wait_is_bound"] for row in rows),
        "members_min": min(members, default=None),
        "members_max": max(members, default=None),
        "partitions_with_lag": total(of_lag, "partitions_with_lag"),
        "skew": largest / produced if produced else None,
    }


def newest(rows: Iterable[Row]) -> Row | None:
    with_lag = [row for row in rows if row["lag"] is not None]
    return max(with_lag, key=lambda row: row["sampled_at"], default=None)


def rounded(lag: int | None) -> int | None:
    """To six bits."""
    if lag is None:
        return None
    shift = max(lag.bit_length() - 6, 0)
    return round(lag / (1 << shift)) << shift


def known(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def total(rows: Iterable[Row], name: str) -> Any:  # noqa: ANN401 -- int or float, as the column is
    values = known(rows, name)
    return sum(values) if values else None
