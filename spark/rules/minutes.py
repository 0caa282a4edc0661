"""Pure: one hour's deltas and totals -> what each group did in each minute."""

from collections.abc import Mapping

import numpy as np

from spark.rules.totals import LARGEST, counts, greatest, least, sums
from spark.tables.columns import UNKNOWN, Ints, TableRows, Values, begins_of, numbered, ratio
from spark.tables.contract import HOUR_MICROS, MINUTES, NAMES, PER_MINUTE, PLACE

MINUTE_MICROS = 60_000_000
MINUTES_OF_AN_HOUR = HOUR_MICROS // MINUTE_MICROS
GROUP = NAMES[:2]
KEPT_BITS = 5
"""Of a number's mantissa, beside the first: right by 2 %, in half as many bytes as with three digits."""


def per_minute_of(deltas: TableRows, totals: TableRows) -> TableRows:
    """PER_MINUTE's columns, sorted by group and minute; both tables are of the same hour and topics, and sorted."""
    topics = _of_topics(totals)
    moment = _moments(topics)
    order = np.argsort(moment, kind="stable")
    begins = begins_of(moment[order])
    rows = topics.taken(order)
    columns = {
        **{name: rows[name][begins] for name in (*GROUP, "minute")},
        **_together(rows, begins),
        "largest": _largest(deltas, rows.taken(begins)),
    }
    return TableRows(columns, totals.texts).only(column.name for column in PER_MINUTE)


def minutes_of(rows: TableRows) -> TableRows:
    """MINUTES' columns, sorted by group and minute; `rows`: PER_MINUTE's columns of one hour, in any order."""
    rows = rows.taken(np.lexsort([rows[name] for name in ("minute", *reversed(GROUP))]))
    begins = begins_of(*(rows[name] for name in (*GROUP, "minute")))
    columns = {**{name: rows[name][begins] for name in (*GROUP, "minute")}, **_together(rows, begins)}
    is_known = columns["unknown"] == 0
    nothing = {"lag": UNKNOWN, "partitions_with_lag": UNKNOWN, "wait_seconds": np.nan, "wait_is_bound": False}
    known = {name: np.where(is_known, columns[name], other) for name, other in nothing.items()}
    skew = ratio(greatest(rows["largest"], begins), columns["produced"])
    own = {
        **known,
        "lag": _rounded_whole(known["lag"]),
        "wait_seconds": _rounded(known["wait_seconds"]).astype(np.float32),
        "skew": _rounded(skew).astype(np.float32),
    }
    return TableRows({**columns, **own}, rows.texts).only(column.name for column in MINUTES)


def _of_topics(totals: TableRows) -> TableRows:
    """PER_MINUTE's columns of each topic, without `largest`, sorted by topic and minute."""
    minute = totals["sampled_at"] // MINUTE_MICROS
    begins = begins_of(*(totals[name] for name in NAMES), minute)
    last = greatest(np.where(totals["lag"] >= 0, np.arange(len(totals)), UNKNOWN), begins)
    is_known = last >= 0
    members = totals["members"]
    columns = {
        **{name: totals[name][begins] for name in GROUP},
        "minute": minute[begins] * MINUTE_MICROS,
        **{name: sums(totals[name], begins)[0] for name in ("produced", "consumed")},
        **{name: np.where(is_known, totals[name][last], UNKNOWN) for name in ("lag", "partitions_with_lag")},
        "wait_seconds": np.fmax.reduceat(totals["wait_seconds"], begins),
        "wait_is_bound": counts(totals["wait_is_bound"], begins) > 0,
        "members_min": _fewest(members, begins),
        "members_max": greatest(members, begins),
        "unknown": (~is_known & (greatest(totals["unknown"], begins) > 0)).astype(np.int32),
    }
    return TableRows(columns, totals.texts)


def _together(rows: TableRows, begins: Ints) -> Mapping[str, Values]:
    """Of several rows of a group and minute."""
    return {
        **{name: sums(rows[name], begins)[0] for name in ("produced", "consumed", "lag", "partitions_with_lag")},
        "wait_seconds": np.fmax.reduceat(rows["wait_seconds"], begins),
        "wait_is_bound": counts(rows["wait_is_bound"], begins) > 0,
        "members_min": _fewest(rows["members_min"], begins),
        "members_max": greatest(rows["members_max"], begins),
        "unknown": np.add.reduceat(rows["unknown"], begins),
    }


def _fewest(members: Values, begins: Ints) -> Values:
    fewest = least(np.where(members >= 0, members, np.nan), begins)
    return np.where(np.isnan(fewest), UNKNOWN, fewest)


def _largest(deltas: TableRows, groups: TableRows) -> Values:
    """The most that was produced in one partition, of each group and minute; negative where nothing is known."""
    minute = deltas["sampled_at"] // MINUTE_MICROS
    begins = begins_of(*(deltas[name] for name in (*PLACE, "topic_id")), minute)
    produced, _ = sums(deltas["produced"], begins)
    of_partitions = deltas.only(GROUP).taken(begins).extended({"minute": minute[begins] * MINUTE_MICROS})
    moment = _moments(of_partitions)
    largest: Ints = np.full(int(moment.max(initial=-1)) + 1, UNKNOWN, np.int64)
    np.maximum.at(largest, moment, produced)
    of_groups: Values = largest[_moments(groups)]
    return of_groups


def _moments(rows: TableRows) -> Ints:
    """A number for each group and minute of the hour, in order; the same in all tables with the same groups."""
    minute: Ints = rows["minute"] // MINUTE_MICROS % MINUTES_OF_AN_HOUR
    return numbered(*(rows[name] for name in GROUP)) * MINUTES_OF_AN_HOUR + minute


def _rounded(values: Values) -> Values:
    mantissa, exponent = np.frexp(values)
    kept: Values = np.ldexp(np.rint(np.ldexp(mantissa, KEPT_BITS + 1)), exponent - KEPT_BITS - 1)
    return kept


def _rounded_whole(values: Values) -> Values:
    """Numbers so large that the next larger one may have more than 64 bits stay as they are."""
    is_small = values < LARGEST // 2
    return np.where(is_small, _rounded(np.where(is_small, values, 0)).astype(np.int64), values)
