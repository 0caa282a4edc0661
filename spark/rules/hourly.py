"""Pure: one hour's totals and partitions -> its rows of the hourly table."""

import numpy as np

from spark.rules.percentiles import percentiles_of
from spark.rules.totals import counts, greatest, least, seconds_of, sums
from spark.tables.columns import UNKNOWN, Ints, TableRows, Values, begins_of, ratio
from spark.tables.contract import EVENTS, HOUR_MICROS, NAMES, SUMMARY

HOUR_SECONDS = 3600
STEEPEST_SECONDS = 300
COVERED = 0.5
"""Of them, at least this share."""


def summary_of(totals: TableRows, partitions: TableRows) -> TableRows:
    """SUMMARY's columns, sorted by topic; both tables are of the same hour and topics, and sorted."""
    begins = begins_of(*(totals[name] for name in NAMES))
    columns = {
        **{name: totals[name][begins] for name in NAMES},
        "hour": totals["sampled_at"][begins] // HOUR_MICROS * HOUR_MICROS,
        **_of_lags(totals, begins),
        **_of_waits(totals, begins),
        **_of_members(totals, begins),
        **changes_of(partitions),
        **{name: sums(totals[name], begins)[0] for name in EVENTS},
        "production_rate_max": steepest_of(totals, begins),
        "gaps": counts(totals["is_after_gap"], begins),
        "partitions": greatest(totals["partitions"], begins),
        "uncommitted_max": greatest(totals["uncommitted"], begins),
        "stale_samples": counts(totals["stale"] == totals["partitions"], begins),
    }
    return TableRows(columns, totals.texts).only(column.name for column in SUMMARY)


def percentile_columns(prefix: str, values: Values, begins: Ints) -> dict[str, Values]:
    """Of each topic. `prefix`: of the columns' names; `values`: topic after topic, negative or NaN where unknown."""
    is_known = values >= 0
    percentiles = percentiles_of(values[is_known], counts(is_known, begins), 50, 95, 99)
    return {f"{prefix}_{name}": of_topics for name, of_topics in percentiles.items()}


def _of_waits(totals: TableRows, begins: Ints) -> dict[str, Values]:
    wait = totals["wait_seconds"]
    return {
        **percentile_columns("wait", wait, begins),
        "wait_max": np.fmax.reduceat(wait, begins),
        "wait_bounds": np.where(counts(wait >= 0, begins) > 0, counts(totals["wait_is_bound"], begins), UNKNOWN),
    }


def _of_lags(totals: TableRows, begins: Ints) -> dict[str, Values]:
    lag, interval = totals["lag"], totals["interval_seconds"].astype(np.float64)
    cycles = np.diff(begins, append=len(totals))
    is_lagging = lag > 0
    lagging_consumed = np.where(is_lagging, totals["consumed"], UNKNOWN)
    lagging_seconds = np.nan_to_num(np.where(lagging_consumed >= 0, totals["seconds"], 0.0))
    lag_sum, samples = sums(lag.astype(np.float64), begins)
    mean_interval = np.add.reduceat(interval, begins) / cycles
    return {
        **percentile_columns("lag", lag, begins),
        "lag_max": greatest(lag, begins),
        "lag_mean": ratio(lag_sum, samples),
        "lag_partition_max": greatest(totals["lag_max"], begins),
        "seconds_lagging": np.add.reduceat(np.where(is_lagging, interval, 0.0), begins),
        "lagging_consumed": sums(lagging_consumed, begins)[0],
        "lagging_covered_seconds": np.add.reduceat(lagging_seconds, begins),
        "samples": samples,
        "cycles": cycles,
        "expected_samples": np.floor(HOUR_SECONDS / mean_interval + 0.5).astype(np.int64),
    }


def _of_members(totals: TableRows, begins: Ints) -> dict[str, Values]:
    members = totals["members"]
    total, number = sums(members, begins)
    fewest = least(np.where(members >= 0, members, np.nan), begins)
    return {
        "members_min": np.where(number > 0, fewest, UNKNOWN),
        "members_mean": ratio(total, number),
        "members_max": greatest(members, begins),
        "known_members": number,
    }


def changes_of(partitions: TableRows) -> dict[str, Values]:
    """Of each topic. `partitions`: a row for each partition, sorted; every topic has one."""
    begins = begins_of(*(partitions[name] for name in NAMES))
    produced, consumed = (sums(partitions[name], begins)[0] for name in ("produced", "consumed"))
    seconds = np.add.reduceat(np.nan_to_num(partitions["seconds"]), begins)
    covered_seconds = seconds / np.diff(begins, append=len(partitions))
    return {
        "produced": produced,
        "consumed": consumed,
        "covered_seconds": covered_seconds,
        "production_rate": ratio(produced, covered_seconds),
        "consumption_rate": ratio(consumed, covered_seconds),
        "skew": ratio(greatest(partitions["produced"], begins), produced),
    }


def steepest_of(totals: TableRows, begins: Ints) -> Values:
    """Messages per second in the steepest five minutes of each topic, NaN where none are covered. `totals`: one hour,
    sorted by topic and time; `begins`: where each topic does."""
    topic = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(totals)))
    part = totals["sampled_at"] % HOUR_MICROS // (STEEPEST_SECONDS * 1_000_000)
    of_part = begins_of(topic, part)
    produced, _ = sums(totals["produced"], of_part)
    seconds = seconds_of(totals["seconds"], of_part)
    is_covered = seconds >= COVERED * STEEPEST_SECONDS
    rate = np.where(is_covered, ratio(produced, seconds), np.nan)
    steepest: Values = np.fmax.reduceat(rate, np.searchsorted(of_part, begins))
    return steepest
