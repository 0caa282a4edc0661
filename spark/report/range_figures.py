"""Pure: hours of topics, as the hourly table has them -> the figures of a range."""

import numpy as np
import pyarrow as pa

from adapter.history.arrow import ARROW_TYPES
from adapter.history.contract import Column, Type
from spark.figures.model import NUMBERS
from spark.rules.totals import least, sums
from spark.tables.columns import (
    UNKNOWN,
    Ints,
    TableRows,
    Values,
    begins_of,
    joined,
    numbered,
    ratio,
    rows_of,
    table_of,
)
from spark.tables.contract import COVERED_SECONDS, EVENTS, HOUR_MICROS, HOURLY, NAMES

GROUP = NAMES[:2]
HOUR_SECONDS = 3600.0
KNOWN_ENOUGH = 0.5
"""Of an hour's expected samples: where fewer are known, the next hour may contain what this one consumed."""
ADDED = ("produced", "consumed", *EVENTS, "gaps", "partitions", "samples", "expected_samples", "wait_bounds")
SMALLEST = ("members_min",)
LARGEST = tuple(name for name in NUMBERS if name not in {*ADDED, *SMALLEST})
OF_TOPICS = (
    *(column for column in HOURLY if column.name in NAMES),
    Column("expected_samples", Type.INT64, "what the range promises"),
    Column("interval_seconds", Type.FLOAT64, "of the newest hour that promises samples; NaN: none does"),
    Column("busiest_hour", Type.TIME, "null: nothing was produced", is_nullable=True),
    Column("busiest_rate", Type.FLOAT64, "messages per second; null: nothing was produced", is_nullable=True),
)
_HOURS_OF_GROUPS = tuple(column for column in HOURLY if column.name in {*GROUP, "hour"})
OF_GROUPS = (
    *_HOURS_OF_GROUPS,
    *(Column(name, Type.FLOAT64, "of the group's topics; NaN: not known") for name in NUMBERS),
    Column("jumped", Type.FLOAT64, "the part of `consumed` that no member need have read"),
)
JUMPS = (*_HOURS_OF_GROUPS, Column("messages", Type.FLOAT64, "that commits jumped over"))


def hours_in(hourly: pa.Table) -> TableRows:
    """By topic and time."""
    rows = rows_of(hourly, HOURLY)
    return rows.taken(np.lexsort([rows[name] for name in ("hour", *reversed(NAMES))]))


def topics_of(hours: TableRows) -> pa.Table:
    """One row per topic, with the columns OF_TOPICS. `hours`: by topic and time."""
    begins = begins_of(*(hours[name] for name in NAMES))
    promised = hours["expected_samples"]
    newest = _last_where(promised > 0, begins)
    interval = np.where(newest >= 0, ratio(np.full(len(begins), HOUR_SECONDS), promised[newest]), np.nan)
    busiest, rate = _busiest(hours, begins)
    columns = {
        **{name: hours[name][begins] for name in NAMES},
        "expected_samples": sums(promised, begins)[0],
        "interval_seconds": interval,
        "busiest_hour": np.where(busiest >= 0, hours["hour"][busiest], UNKNOWN),
        "busiest_rate": np.where(busiest >= 0, rate[busiest], np.nan),
    }
    return _table(TableRows(columns, hours.texts), OF_TOPICS)


def hours_of_groups(hours: TableRows, jumps: pa.Table) -> pa.Table:
    """One row per group and hour, all its topics together, with the columns OF_GROUPS: counts are added up, members are
    the group's, lags are the largest topic's. `hours`: by topic and time; `jumps`: with the columns JUMPS."""
    rows = hours.extended({"messages": _caught_up(hours)})
    rows = rows.taken(np.lexsort([rows[name] for name in ("hour", *reversed(GROUP))]))
    begins = begins_of(*(rows[name] for name in (*GROUP, "hour")))
    figures = {
        **{name: _known(sums(rows[name], begins)[0]) for name in ADDED},
        **{name: least(_known(rows[name]), begins) for name in SMALLEST},
        **{name: np.fmax.reduceat(_known(rows[name]), begins) for name in LARGEST},
    }
    groups = rows.taken(begins).extended(figures)
    return _table(groups.extended({"jumped": _jumped(groups, rows, rows_of(jumps, JUMPS))}), OF_GROUPS)


def _table(rows: TableRows, columns: tuple[Column, ...]) -> pa.Table:
    return table_of(rows, columns).cast(pa.schema([(column.name, ARROW_TYPES[column.type]) for column in columns]))


def _known(values: Values) -> Values:
    return np.where(values >= 0, values, np.nan)


def _last_where(is_one: Values, begins: Ints) -> Ints:
    """The place of each topic's last such row; negative where there is none."""
    places: Ints = np.maximum.reduceat(np.where(is_one, np.arange(len(is_one)), UNKNOWN), begins)
    return places


def _busiest(hours: TableRows, begins: Ints) -> tuple[Ints, Values]:
    """The place of each topic's hour with the highest production rate, and the rate of every hour. Of those that are
    covered well enough or, if nothing was produced in these, of all; of several, the one with most messages, then the
    newest. Negative where nothing was produced."""
    rate = ratio(hours["produced"].astype(np.float64), hours["covered_seconds"])
    is_covered = hours["covered_seconds"] >= COVERED_SECONDS
    topic = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(hours)))
    order = np.lexsort([hours["hour"], hours["produced"], rate, is_covered, rate > 0, topic])
    last = order[np.append(begins[1:], len(hours)) - 1]
    return np.where(rate[last] > 0, last, UNKNOWN), rate


def _caught_up(hours: TableRows) -> Values:
    """What a topic consumed in an hour after one of which less than half is known: that hour's messages may be in it,
    because commits are counted from the last known one. Otherwise 0."""
    samples = hours["samples"]
    is_known = samples >= KNOWN_ENOUGH * hours["expected_samples"]
    follows = np.zeros(len(hours), np.bool_)
    follows[1:] = np.diff(hours["hour"]) == HOUR_MICROS
    follows[begins_of(*(hours[name] for name in NAMES))] = False
    is_late = follows & ~np.roll(is_known, 1) & (samples > 0)
    return np.where(is_late, np.maximum(hours["consumed"], 0), 0).astype(np.float64)


def _jumped(groups: TableRows, *of_hours: TableRows) -> Values:
    """Of each row of `groups` the messages in that group's hour."""
    none = groups.extended({"messages": np.zeros(len(groups))})
    rows = joined([each.only((*GROUP, "hour", "messages")) for each in (none, *of_hours)])
    number = numbered(*(rows[name] for name in GROUP), rows["hour"] // HOUR_MICROS)
    messages: Values = np.bincount(number, rows["messages"])[number[: len(groups)]]
    return messages
