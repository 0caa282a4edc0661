"""Pure: hours of totals and partitions -> the rows of the hourly and of the daily table.

Of a day nothing is kept of an hour's samples but their lags, for the day's percentiles: all else is a sum, a least or a
greatest of the hours'.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.history.contract import Column
from spark.rules.steepest import steepest_of
from spark.rules.totals import counts, greatest, least, seconds_of, sums
from spark.tables.columns import UNKNOWN, Ints, Rows, Values, aligned_texts, begins_of, joined, none_of, numbered
from spark.tables.contract import DAILY, HOUR_MICROS, HOURLY, NAMES

DAY = 24 * HOUR_MICROS
HOUR_SECONDS = 3600
SHARES = (0.5, 0.95, 0.99)
SUMMED = (
    "samples",
    "cycles",
    "known_members",
    "expected_samples",
    "gaps",
    "resets",
    "rewinds",
    "skips",
    "recreations",
    "stale_samples",
)
SUMMED_IF_KNOWN = ("lag_sum", "lagging_consumed", "members_sum")
SUMMED_SECONDS = ("seconds_lagging", "lagging_covered_seconds")
GREATEST = ("lag_max", "lag_partition_max", "partitions", "uncommitted_max", "members_max")


@dataclass(frozen=True, slots=True, eq=False)
class _Hour:
    """Of one hour, by topic: what can be added up, and what cannot."""

    sums: Rows
    """`hour`, `SUMMED` and the like, one row per topic."""
    lags: Rows
    """`lag`, one row per known sample."""
    parts: Rows
    """`seconds`, `produced` and `consumed`, one row per topic and partition."""


def summaries_of(hours: Iterable[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """Hourly and daily rows of the totals and partitions of the hours of one day, each hour by itself."""
    made = [_hour_of(totals, parts) for totals, parts in hours if len(totals)]
    if not made:
        return none_of(HOURLY), none_of(DAILY)
    hourly = joined([_summary(each, HOURLY) for each in made])
    return _sorted(hourly, (*NAMES, "hour")), _summary(_day_of(made), DAILY)


def _sorted(rows: Rows, keys: Sequence[str]) -> Rows:
    return rows.taken(np.lexsort([rows[name] for name in reversed(keys)]))


def _hour_of(totals: Rows, parts: Rows) -> _Hour:
    totals = totals.taken(np.argsort(numbered(*(totals[name] for name in NAMES)), kind="stable"))
    begins = begins_of(*(totals[name] for name in NAMES))
    lag, interval = totals["lag"], totals["interval_seconds"].astype(np.float64)
    is_lagging = lag > 0
    lagging_consumed = np.where(is_lagging, totals["consumed"], UNKNOWN)
    cycles = np.diff(begins, append=len(totals))
    lag_sum, samples = sums(lag.astype(np.float64), begins)
    members_sum, known_members = sums(totals["members"], begins)
    members = np.where(totals["members"] >= 0, totals["members"], np.nan)
    rows = {
        **{name: totals[name][begins] for name in NAMES},
        "hour": totals["sampled_at"][begins] // HOUR_MICROS * HOUR_MICROS,
        "samples": samples,
        "cycles": cycles,
        "lag_sum": lag_sum,
        "lag_max": greatest(lag, begins),
        "lag_partition_max": greatest(totals["lag_max"], begins),
        "seconds_lagging": np.add.reduceat(np.where(is_lagging, interval, 0.0), begins),
        "lagging_consumed": sums(lagging_consumed, begins)[0],
        "lagging_covered_seconds": np.add.reduceat(
            np.nan_to_num(np.where(lagging_consumed >= 0, totals["seconds"], 0.0)), begins
        ),
        "expected_samples": np.floor(HOUR_SECONDS / (np.add.reduceat(interval, begins) / cycles) + 0.5).astype(
            np.int64
        ),
        "production_rate_max": steepest_of(totals, begins),
        "gaps": counts(totals["is_after_gap"], begins),
        **{name: sums(totals[name], begins)[0] for name in ("resets", "rewinds", "skips", "recreations")},
        "partitions": greatest(totals["partitions"], begins),
        "uncommitted_max": greatest(totals["uncommitted"], begins),
        "stale_samples": counts(totals["stale"] == totals["partitions"], begins),
        "members_sum": members_sum,
        "known_members": known_members,
        "members_min": least(members, begins),
        "members_max": greatest(totals["members"], begins),
    }
    return _Hour(
        Rows(rows, totals.texts),
        totals.only((*NAMES, "lag")).taken(lag >= 0),
        parts.only((*NAMES, "partition", "seconds", "produced", "consumed")),
    )


def _day_of(hours: Sequence[_Hour]) -> _Hour:
    rows = _sorted(joined([hour.sums for hour in hours]), NAMES)
    begins = begins_of(*(rows[name] for name in NAMES))
    added = {
        **{name: rows[name][begins] for name in NAMES},
        "day": rows["hour"][begins] // DAY * DAY,
        "hours": np.diff(begins, append=len(rows)),
        **{name: np.add.reduceat(rows[name], begins) for name in (*SUMMED, *SUMMED_SECONDS)},
        **{name: sums(rows[name], begins)[0] for name in SUMMED_IF_KNOWN},
        **{name: greatest(rows[name], begins) for name in GREATEST},
        "members_min": least(rows["members_min"], begins),
        "production_rate_max": np.fmax.reduceat(rows["production_rate_max"], begins),
    }
    parts = _sorted(joined([hour.parts for hour in hours]), (*NAMES, "partition"))
    of_part = begins_of(*(parts[name] for name in (*NAMES, "partition")))
    whole = {
        **{name: parts[name][of_part] for name in (*NAMES, "partition")},
        "seconds": seconds_of(parts["seconds"], of_part),
        **{name: sums(parts[name], of_part)[0] for name in ("produced", "consumed")},
    }
    return _Hour(Rows(added, rows.texts), joined([hour.lags for hour in hours]), Rows(whole, parts.texts))


def _summary(of: _Hour, contract: Sequence[Column]) -> Rows:
    """The contract's columns, sorted by topic."""
    added, lags, parts = aligned_texts((of.sums, of.lags, of.parts))
    topic = numbered(*(np.concatenate([each[name] for each in (added, lags, parts)]) for name in NAMES))
    of_lag, of_part = topic[len(added) : len(added) + len(lags)], topic[len(added) + len(lags) :]
    samples, known_members = added["samples"], added["known_members"]
    changes = _changes(parts, of_part)
    columns = {
        **added.columns,
        **_percentiles(lags["lag"], of_lag, samples),
        "lag_mean": _ratio(added["lag_sum"], samples),
        **changes,
        "members_mean": _ratio(added["members_sum"], known_members),
        "members_min": np.where(known_members > 0, added["members_min"], UNKNOWN),
        "production_rate": _ratio(changes["produced"], changes["covered_seconds"]),
        "consumption_rate": _ratio(changes["consumed"], changes["covered_seconds"]),
        "skew": _ratio(changes["largest"], changes["produced"]),
    }
    return Rows(columns, added.texts).only(column.name for column in contract)


def _changes(parts: Rows, topic: Ints) -> dict[str, Values]:
    """Per topic; every topic has a partition."""
    order = np.argsort(topic, kind="stable")
    begins = begins_of(topic[order])
    produced = parts["produced"][order]
    seconds = np.add.reduceat(np.nan_to_num(parts["seconds"][order]), begins)
    return {
        "produced": sums(produced, begins)[0],
        "consumed": sums(parts["consumed"][order], begins)[0],
        "covered_seconds": seconds / np.diff(begins, append=len(order)),
        "largest": greatest(produced, begins),
    }


def _percentiles(lags: Values, topic: Ints, samples: Ints) -> dict[str, Values]:
    """Interpolated, as SQL's percentile_cont; NaN for a topic without a sample. `samples`: of each topic."""
    ordered = lags[np.argsort(topic, kind="stable")]
    ends = np.cumsum(samples)
    for begin, end in zip((ends - samples).tolist(), ends.tolist(), strict=True):
        ordered[begin:end].sort()
    has_any = samples > 0
    found = {}
    for share in SHARES:
        place = share * (samples[has_any] - 1)
        low = np.floor(place).astype(np.int64)
        begin = (ends - samples)[has_any]
        least, more = ordered[begin + low], ordered[begin + np.minimum(low + 1, samples[has_any] - 1)]
        values = np.full(len(samples), np.nan)
        values[has_any] = least + (more - least) * (place - low)
        found[f"lag_p{share * 100:.0f}"] = values
    return found


def _ratio(number: Values, of: Values) -> Values:
    """NaN where the number is not known, or is one of nothing."""
    ratio: Values = np.divide(number, of, out=np.full(len(number), np.nan), where=(number >= 0) & (of > 0))
    return ratio
