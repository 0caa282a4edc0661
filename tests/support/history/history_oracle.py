"""What the tables must hold, said in plain Python: dicts in, dicts out, nothing shared with spark/.

A sample is a dict of the contract's columns and `writer`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.support.history.minute_oracle import minutes_of
from tests.support.history.wait_oracle import add_waits

Row = dict[str, Any]

TOPIC = ("cluster", "group", "topic")
SERIES = (*TOPIC, "partition")


def tables_of(samples: Iterable[Row]) -> dict[str, list[Row]]:
    """deltas, totals, partitions, hourly, daily, minutes."""
    told = list(samples)
    deltas = deltas_of(counting(without_twins(told)))
    starts = sorted({hour_of(row["sampled_at"]) for row in told})
    for series in grouped(deltas, *SERIES, "topic_id").values():
        add_waits(series, starts)
    rates = rates_of(deltas)
    totals = [total_of(rows, rates) for rows in grouped(deltas, *TOPIC, "sampled_at").values()]
    hourly = summaries(deltas, totals, "hour", hour_of)
    for row in hourly:
        row["expected_samples"] = int(3600 / row.pop("mean_interval") + 0.5)
    daily = summaries(deltas, totals, "day", day_of)
    by_day = grouped([row | {"day": day_of(row["hour"])} for row in hourly], *TOPIC, "day")
    for row in daily:
        hours = by_day[tuple(row[name] for name in (*TOPIC, "day"))]
        row.pop("mean_interval")
        row["expected_samples"], row["hours"] = sum(hour["expected_samples"] for hour in hours), len(hours)
    return {
        "deltas": [without(row, "wait_seconds", "wait_is_bound") for row in deltas],
        "totals": totals,
        "partitions": partitions_of(deltas),
        "hourly": hourly,
        "daily": daily,
        "minutes": minutes_of(deltas, totals),
    }


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def day_of(at: datetime) -> datetime:
    return hour_of(at).replace(hour=0)


def is_known(row: Row) -> bool:
    return (row["committed"] is not None or row["state"] == "no_commit") and row["log_end"] is not None


def without_twins(samples: Iterable[Row]) -> list[Row]:
    """Of one writer's rows of one series, generation and time, the one that knows most."""
    values = ("received_at", "log_end", "committed", "log_start", "members", "state", "isolation", "interval_seconds")

    def worth(row: Row) -> tuple[Any, ...]:
        return (is_known(row), *((row[name] is not None, row[name]) for name in values))

    twins = grouped(samples, "writer", *SERIES, "topic_id", "sampled_at").values()
    return [max(rows, key=worth) for rows in twins]


def counting(samples: Iterable[Row]) -> list[Row]:
    """The rows of each cluster and minute's writer."""
    kept: list[Row] = []
    for _, rows in sorted(grouped(samples, "cluster").items()):
        minutes: dict[datetime, list[Row]] = defaultdict(list)
        for row in rows:
            minutes[row["sampled_at"].replace(second=0, microsecond=0)].append(row)
        chosen: dict[datetime, str] = {}
        for minute in sorted(minutes):
            known: dict[str, int] = defaultdict(int)
            for row in minutes[minute]:
                known[row["writer"]] += is_known(row)
            best = sorted(writer for writer, count in known.items() if count == max(known.values()))
            before = chosen.get(minute - timedelta(minutes=1))
            chosen[minute] = before if before in best else best[0]
            kept += [row for row in minutes[minute] if row["writer"] == chosen[minute]]
    return kept


def deltas_of(samples: Iterable[Row]) -> list[Row]:
    found: list[Row] = []
    for rows in grouped(samples, *SERIES, "topic_id").values():
        end = end_at = writer = commit = start_then = None
        for row in sorted(rows, key=lambda row: row["sampled_at"]):
            at, log_end, committed = row["sampled_at"], row["log_end"], row["committed"]
            new = {name: value for name, value in row.items() if name != "writer"}
            new |= {"seconds": None, "produced": None, "consumed": None, "lag": lag_of(row)}
            new |= {"is_reset": False, "is_rewind": False, "is_skip": False, "is_recreation": False}
            is_handover = end is not None and row["writer"] != writer
            is_handover = is_handover and (at - end_at).total_seconds() <= 3 * row["interval_seconds"]
            if log_end is not None:
                if end is not None:
                    new["seconds"] = (at - end_at).total_seconds()
                    new["is_reset"] = log_end < end and not is_handover
                    new["produced"] = None if log_end < end else log_end - end
                end, end_at, writer = log_end, at, row["writer"]
            if committed is not None:
                if commit is not None:
                    new["is_rewind"] = committed < commit and not is_handover
                    beyond_end = log_end is not None and committed > log_end
                    below_start = start_then is not None and commit < start_then
                    is_skip = committed > commit and (beyond_end or below_start)
                    new["is_skip"] = is_skip and not is_handover
                    if committed >= commit and not is_skip:
                        new["consumed"] = committed - commit
                commit, start_then = committed, row["log_start"]
            found.append(new)
    for rows in grouped(found, *SERIES).values():
        mark_recreations(rows)
    return found


def mark_recreations(rows: Iterable[Row]) -> None:
    """Of one partition: the first sample of each generation but the first in which anything is known."""
    seen: set[str] = set()
    for row in sorted(rows, key=lambda row: row["sampled_at"]):
        is_new = row["topic_id"] not in {*seen, None} and (row["log_end"] is not None or row["committed"] is not None)
        row["is_recreation"] = is_new and bool(seen)
        seen |= {row["topic_id"]} if is_new else set()


def lag_of(row: Row) -> int | None:
    end, committed, start = row["log_end"], row["committed"], row["log_start"]
    if row["state"] not in {"ok", "truncated"} or end is None or committed is None:
        return None
    if row["has_marker"]:
        return 0
    lag: int = end - (committed if start is None else max(committed, start))
    return lag if lag >= 0 else None


def rates_of(deltas: Sequence[Row]) -> dict[tuple[Any, ...], float]:
    """Partition and hour -> messages produced per second."""
    found = {}
    for key, rows in grouped([row | {"hour": hour_of(row["sampled_at"])} for row in deltas], *SERIES, "hour").items():
        counted = [row for row in rows if row["produced"] is not None]
        seconds = sum(row["seconds"] for row in counted)
        found[key] = sum(row["produced"] for row in counted) / seconds if seconds else 0.0
    return found


def waiting_in(rows: Sequence[Row], rates: Mapping[tuple[Any, ...], float]) -> list[Row]:
    """Of one topic's rows of one time, those of partitions with a backlog, and of no owner who has one without."""

    def has_backlog(row: Row) -> bool:
        if row["lag"] is None or row["produced"] is None or row["consumed"] is None:
            return False
        rate = rates[(*(row[name] for name in SERIES), hour_of(row["sampled_at"]))]
        return bool(min(row["lag"], row["lag"] - row["produced"] + row["consumed"]) > 30 * rate)

    idle = {row["owner"] for row in rows if not has_backlog(row)} - {None}
    return [row for row in rows if has_backlog(row) and row["owner"] not in idle]


def total_of(rows: Sequence[Row], rates: Mapping[tuple[Any, ...], float]) -> Row:
    """Of one topic's rows of one time."""
    waiting = waiting_in(rows, rates)
    fresh = [row for row in rows if row["state"] != "stale"]
    settled = [
        row for row in fresh if row["lag"] is not None or (row["state"] == "no_commit" and row["log_end"] is not None)
    ]
    lags = [row["lag"] for row in fresh if row["lag"] is not None]
    is_sample = len(settled) == len(fresh) and bool(lags)
    known_seconds = [row["seconds"] for row in rows if row["produced"] is not None]
    seconds = [row["seconds"] for row in rows if row["seconds"] is not None]
    interval = max(row["interval_seconds"] for row in rows)
    return {
        **{name: rows[0][name] for name in (*TOPIC, "sampled_at")},
        "interval_seconds": interval,
        "lag": sum(lags) if is_sample else None,
        "lag_max": max(lags) if is_sample else None,
        "wait_seconds": most(rows, "wait_seconds") if is_sample else None,
        "wait_is_bound": is_sample and any(row["wait_is_bound"] for row in rows),
        "partitions_with_lag": sum(lag > 0 for lag in lags) if is_sample else None,
        "partitions": len(rows),
        "uncommitted": sum(row["state"] == "no_commit" for row in rows),
        "stale": len(rows) - len(fresh),
        "unknown": len(fresh) - len(settled),
        "members": most(rows, "members"),
        "seconds": sum(known_seconds) / len(rows) if known_seconds else None,
        "produced": total(rows, "produced"),
        "consumed": total(rows, "consumed"),
        "waiting": len(waiting),
        "waiting_consumed": sum(row["consumed"] for row in waiting),
        "resets": sum(row["is_reset"] for row in rows),
        "rewinds": sum(row["is_rewind"] for row in rows),
        "skips": sum(row["is_skip"] for row in rows),
        "recreations": sum(row["is_recreation"] for row in rows),
        "is_after_gap": bool(seconds) and min(seconds) > 1.5 * interval,
    }


def known(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def total(rows: Iterable[Row], name: str) -> Any:  # noqa: ANN401 -- int or float, as the column is
    values = known(rows, name)
    return sum(values) if values else None


def most(rows: Iterable[Row], name: str) -> Any:  # noqa: ANN401 -- int or float, as the column is
    return max(known(rows, name), default=None)


def partitions_of(deltas: Iterable[Row]) -> list[Row]:
    hours = grouped([row | {"starts_at": hour_of(row["sampled_at"])} for row in deltas], *SERIES, "starts_at")
    return [
        {
            **dict(zip((*SERIES, "starts_at"), key, strict=True)),
            "samples": len(rows),
            "seconds": total([row for row in rows if row["produced"] is not None], "seconds"),
            "produced": total(rows, "produced"),
            "consumed": total(rows, "consumed"),
            "lag_max": most(rows, "lag"),
            "moved_at": max((row["sampled_at"] for row in rows if has_moved(row)), default=None),
            "uncommitted_lag": uncommitted_lag(newest(rows)),
            "owner": newest(rows)["owner"],
        }
        for key, rows in hours.items()
    ]


def has_moved(row: Row) -> bool:
    return bool(row["consumed"]) or row["is_rewind"] or row["is_skip"] or row["lag"] == 0


def newest(rows: Sequence[Row]) -> Row:
    """Of two generations at the same time, the one with the larger id; null is the smallest."""
    return max(rows, key=lambda row: (row["sampled_at"], row["topic_id"] or ""))


def uncommitted_lag(row: Row) -> int | None:
    last, reset = row["last_commit"], row["offset_reset"]
    if row["state"] != "no_commit" or (last is None and reset is None):
        return None
    if last is None and reset == "latest":
        return 0
    end, start = row["log_end"], row["log_start"]
    if end is None or start is None:
        return None
    is_marker = row["has_marker"] and last is not None
    return 0 if is_marker else max(end - max(start, last or 0), 0)


def summaries(
    deltas: Iterable[Row], totals: Iterable[Row], column: str, start: Callable[[datetime], datetime]
) -> list[Row]:
    """One row per topic and span; `mean_interval` is left for whoever knows what was expected."""
    of_topic = grouped([row | {column: start(row["sampled_at"])} for row in totals], *TOPIC, column)
    of_parts = grouped([row | {column: start(row["sampled_at"])} for row in deltas], *TOPIC, column)
    return [
        dict(zip((*TOPIC, column), key, strict=True)) | of_samples(rows) | of_changes(of_parts[key])
        for key, rows in of_topic.items()
    ]


def of_samples(totals: Sequence[Row]) -> Row:
    lags = sorted(known(totals, "lag"))
    lagging = [row for row in totals if row["lag"] is not None and row["lag"] > 0]
    members = known(totals, "members")
    waits = sorted(known(totals, "wait_seconds"))
    return {
        "wait_p50": percentile(waits, 0.5),
        "wait_p95": percentile(waits, 0.95),
        "wait_p99": percentile(waits, 0.99),
        "wait_max": waits[-1] if waits else None,
        "wait_bounds": sum(row["wait_is_bound"] for row in totals) if waits else None,
        "lag_p50": percentile(lags, 0.5),
        "lag_p95": percentile(lags, 0.95),
        "lag_p99": percentile(lags, 0.99),
        "lag_max": lags[-1] if lags else None,
        "lag_mean": sum(lags) / len(lags) if lags else None,
        "lag_partition_max": most(totals, "lag_max"),
        "production_rate_max": steepest(totals),
        "seconds_lagging": sum(row["interval_seconds"] for row in lagging),
        "lagging_consumed": total(lagging, "consumed"),
        "lagging_covered_seconds": sum(row["seconds"] or 0.0 for row in lagging if row["consumed"] is not None),
        "samples": len(lags),
        "cycles": len(totals),
        "mean_interval": sum(row["interval_seconds"] for row in totals) / len(totals),
        "gaps": sum(row["is_after_gap"] for row in totals),
        "resets": sum(row["resets"] for row in totals),
        "rewinds": sum(row["rewinds"] for row in totals),
        "skips": sum(row["skips"] for row in totals),
        "recreations": sum(row["recreations"] for row in totals),
        "partitions": max(row["partitions"] for row in totals),
        "uncommitted_max": max(row["uncommitted"] for row in totals),
        "stale_samples": sum(row["stale"] == row["partitions"] for row in totals),
        "members_min": min(members, default=None),
        "members_mean": sum(members) / len(members) if members else None,
        "members_max": max(members, default=None),
    }


def steepest(totals: Sequence[Row]) -> float | None:
    """Messages per second of the best five minutes by the clock that are half covered."""
    rates = []
    for rows in grouped([row | {"part": row["sampled_at"].timestamp() // 300} for row in totals], "part").values():
        produced, seconds = total(rows, "produced"), total(rows, "seconds")
        if produced is not None and seconds is not None and seconds >= 150:
            rates.append(produced / seconds)
    return max(rates, default=None)


def of_changes(deltas: Sequence[Row]) -> Row:
    parts = grouped(deltas, "partition").values()
    covered = sum(row["seconds"] for row in deltas if row["produced"] is not None) / len(parts)
    produced, consumed = total(deltas, "produced"), total(deltas, "consumed")
    largest = max((total(rows, "produced") or 0 for rows in parts), default=0)
    return {
        "produced": produced,
        "consumed": consumed,
        "covered_seconds": covered,
        "production_rate": produced / covered if covered and produced is not None else None,
        "consumption_rate": consumed / covered if covered and consumed is not None else None,
        "skew": largest / produced if produced else None,
    }


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """As SQL's percentile_cont."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
