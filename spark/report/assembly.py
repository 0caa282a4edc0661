"""Pure: the rows that were computed -> the values that a report is made of."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from adapter.verdicts.capacity import Capacity
from spark.figures.agreement import Agreement
from spark.figures.incidents import Happened, HotHours, MemberHours, SlowPartitions, TopicIncidents, UnreadTopic
from spark.figures.model import (
    NUMBERS,
    Above,
    Group,
    HourShares,
    Lag,
    Pace,
    Periods,
    Share,
    Still,
    TopicFigures,
    Waits,
    as_column,
)
from spark.figures.periods import NO_TIMES, periods, silent_between
from spark.folds.wait_figures import WAITS, at_least
from spark.report.group_file import Agreements
from spark.report.samples_task import ExpectedSamples
from spark.tables.columns import begins_of
from spark.tables.contract import EVENTS, NAMES
from spark.tables.topic_parts import Names

GROUP = NAMES[:2]
group_of, topic_of = itemgetter(*GROUP), itemgetter(*NAMES)
LAG = ("samples", "p50", "p95", "p99", "max", "first", "last", "since", "until")
NO_PERIODS = periods(NO_TIMES)
DEFAULT_INTERVAL_SECONDS = 10.0
"""`collection.interval` of an adapter whose settings say nothing else."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Computed:
    """What was computed, in any order."""

    topics: pa.Table
    """Of `range_figures.topics_of`."""
    statistics: pa.Table
    """One row per group, as `lag_statistics.STATISTICS` says."""
    progress: pa.Table
    """One row per topic, as `partition_progress.PROGRESS` says."""
    groups: pa.Table
    """Of `range_figures.hours_of_groups`."""
    shares: pa.Table
    """One row per partition of a topic in its busiest hour: of topics for which anything was produced."""


def assembled_groups(
    computed: Computed, hours: Mapping[Names, Periods], days: Mapping[Names, Periods], agreements: Agreements
) -> tuple[Group, ...]:
    """`hours`, `days`: of each topic."""
    statistics = {group_of(row): row for row in computed.statistics.to_pylist()}
    samples = {(*pair, topic["topic"]): topic for pair, row in statistics.items() for topic in row["topics"]}
    progress = {topic_of(row): row for row in computed.progress.to_pylist()}
    shares, silent = _shares_by_topic(computed.shares), silent_between(list(hours.values()))
    hours_of_groups = _columns_by_key(computed.groups, GROUP, "hour")
    topics_of_groups = itertools.groupby(_in_order(computed.topics, NAMES).to_pylist(), key=group_of)
    groups = []
    for pair, of_group in topics_of_groups:
        cluster, name = pair
        rows, columns = list(of_group), hours_of_groups[pair]
        interval = _interval(rows)
        agreement = agreements.of(cluster, name, interval)
        topics = []
        local = _local_hours(statistics[pair]["local_hours"])
        for place, row in enumerate(rows):
            key = topic_of(row)
            values = row | samples[key] | progress[key] | {"local_hours": local.get(place)}
            topics.append(_topic(values, hours[key], days.get(key, NO_PERIODS), shares.get(key), agreement))
        own, seen = _periods_of(columns, "hour"), statistics[pair]["capacity"]
        groups.append(
            Group(
                cluster=cluster,
                name=name,
                interval_seconds=interval,
                topics=tuple(topics),
                hours=own,
                capacity=None if seen is None else _capacity(seen),
                pace=Pace(*(sum(samples[topic_of(row)][name] for row in rows) for name in ("lagging", "moving"))),
                jumped=columns["jumped"],
                silent=silent[(silent > own.start[0]) & (silent < own.start[-1])],
                is_spread=progress[topic_of(rows[0])]["is_spread"],
                agreement=agreement,
                local_hours=_together(list(local.values())),
                member_hours=_member_hours(statistics[pair]["members"]),
                happened=_happened(statistics[pair]["events"]),
            )
        )
    return tuple(groups)


def periods_by_key(table: pa.Table, start: str) -> dict[Names, Periods]:
    """The hours or days of each topic."""
    return {key: _periods_of(columns, start) for key, columns in _columns_by_key(table, NAMES, start).items()}


def production_by_group(hourly: pa.Table) -> dict[tuple[str, ...], Periods]:
    """By cluster and group. `hourly`: `produced` and `covered_seconds` of topics' hours."""
    topics: dict[tuple[str, ...], list[Periods]] = {}
    for key, columns in _columns_by_key(hourly, NAMES, "hour").items():
        production = {name: columns[name] for name in ("produced", "covered_seconds")}
        topics.setdefault(key[:2], []).append(periods(columns["hour"], **production))
    return {key: hours for key, of_group in topics.items() if (hours := _together(of_group)) is not None}


def expected_of(topics: pa.Table, agreements: Agreements) -> list[ExpectedSamples]:
    """`topics`: as `range_figures.topics_of` has them."""
    expected = []
    for (cluster, group), of_group in itertools.groupby(_in_order(topics, NAMES).to_pylist(), key=group_of):
        rows = list(of_group)
        agreement = agreements.of(cluster, group, _interval(rows))
        expected += [
            ExpectedSamples(topic_of(row), threshold_of(row, agreement), row["expected_samples"]) for row in rows
        ]
    return expected


def _interval(topics: Sequence[Row]) -> float:
    """Of a group, in seconds. Where no hour promises a sample, nothing but the adapter's default is known."""
    known = [row["interval_seconds"] for row in topics if not math.isnan(row["interval_seconds"])]
    return min(known, default=DEFAULT_INTERVAL_SECONDS)


def threshold_of(row: Row, agreement: Agreement) -> int:
    """What was agreed on, or what the busiest hour produces in the longest wait. At least one message: a topic for
    which nothing is produced should have none waiting."""
    given = agreement.threshold_of(row["topic"])
    if given is not None:
        return given
    return max(1, round(agreement.max_wait_seconds * (row["busiest_rate"] or 0.0)))


def jumps_of(statistics: pa.Table) -> pa.Table:
    """One row per group and hour that has a jump."""
    jumps = statistics["jumps"].combine_chunks()
    groups = statistics.select(list(GROUP)).take(jumps.value_parent_indices())
    columns = dict(zip(jumps.type.value_type.names, jumps.flatten().flatten(), strict=True))
    return pa.table({**{name: groups[name] for name in GROUP}, **columns})


def _topic(row: Row, hours: Periods, days: Periods, shares: HourShares | None, agreement: Agreement) -> TopicFigures:
    is_known = bool(row["samples"])
    above = Above(
        threshold=threshold_of(row, agreement),
        is_given=agreement.threshold_of(row["topic"]) is not None,
        seconds=row["seconds_above"] if is_known else math.nan,
        known_seconds=row["known_seconds"],
        episodes=row["episodes"] if is_known else None,
        longest_seconds=row["longest_seconds"] if is_known else math.nan,
        longest_from=row["longest_from"],
        first_from=row["first_from"],
        last_until=row["last_until"],
        longest_quiet_seconds=row["longest_quiet"] or 0.0,
    )
    return TopicFigures(
        name=row["topic"],
        hours=hours,
        days=days,
        lag=Lag(*(row[name] for name in LAG)) if is_known else None,
        above=above,
        shares=shares,
        still=_still(row["still"]),
        uncommitted=row["uncommitted"],
        uncommitted_lag=row["uncommitted_lag"],
        incidents=_incidents(row),
        local_hours=row["local_hours"],
        waits=_waits(row),
    )


def _waits(row: Row) -> Waits | None:
    if row["wait_max"] is None:
        return None
    figures = {name: row[f"wait_{name}"] for name in (*WAITS, "bounds")}
    return Waits(**figures, at_least=at_least(row["wait_at_least"]))


def _incidents(row: Row) -> TopicIncidents:
    kinds = {"slow": SlowPartitions, "unread": UnreadTopic, "hot": HotHours}
    found: dict[str, Any] = {name: row[name] and kind(**_frozen(row[name])) for name, kind in kinds.items()}
    return TopicIncidents(
        **found, uncommitted_produced=row["uncommitted_produced"], uncommitted_since=row["uncommitted_since"]
    )


def _frozen(values: Row) -> Row:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _local_hours(rows: Sequence[Row]) -> dict[int, Periods]:
    """Of each topic of a group, by its place. `rows`: in order of the places."""
    hours = {}
    for place, of_topic in itertools.groupby(rows, key=itemgetter("place")):
        own = list(of_topic)
        columns = {name: np.array([row[name] for row in own], np.float64) for name in ("produced", "covered_seconds")}
        hours[place] = periods(np.array([as_column(row["hour"]) for row in own], "datetime64[us]"), **columns)
    return hours


def _together(topics: Sequence[Periods]) -> Periods | None:
    """As `hours_of_groups` folds them; None: there are none."""
    if not topics:
        return None
    start, place = np.unique(np.concatenate([topic.start for topic in topics]), return_inverse=True)
    covered = np.zeros(len(start))
    np.maximum.at(covered, place, np.concatenate([topic.covered_seconds for topic in topics]))
    produced = np.bincount(place, np.concatenate([topic.produced for topic in topics]), minlength=len(start))
    return periods(start, produced=produced, covered_seconds=covered)


def _happened(rows: Sequence[Row]) -> dict[str, Happened]:
    return {EVENTS[row["kind"]]: Happened(row["number"], row["first"], row["last"]) for row in rows}


def _member_hours(rows: Sequence[Row]) -> MemberHours:
    starts = np.array([as_column(row["hour"]) for row in rows], "datetime64[us]")
    names = ("changes", "without_seconds", "fewest", "most")
    return MemberHours(starts, *(np.array([row[name] for row in rows], np.float64) for name in names))


def _capacity(row: Row) -> Capacity:
    values: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in row.items()}
    return Capacity(**values)


def _still(row: Row | None) -> Still | None:
    if row is None:
        return None
    values: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in row.items()}
    return Still(**values)


def _shares_by_topic(shares: pa.Table) -> dict[Names, HourShares]:
    rows = _in_order(shares, (*NAMES, "partition")).to_pylist()
    by_topic = itertools.groupby(rows, key=lambda row: (topic_of(row), row["starts_at"]))
    return {key: HourShares(hour, tuple(map(_share, of_topic))) for (key, hour), of_topic in by_topic}


def _share(row: Row) -> Share:
    return Share(row["partition"], row["produced"] or 0, row["consumed"] or 0, row["lag_max"])


def _periods_of(columns: Mapping[str, Any], start: str) -> Periods:
    return periods(columns[start], **{name: columns[name] for name in NUMBERS})


def _columns_by_key(table: pa.Table, names: Sequence[str], start: str) -> dict[Names, dict[str, Any]]:
    """For each key the rest of its rows' columns, in order of time; NaN where a number is not known."""
    table = _in_order(table, (*names, start))
    codes = [table[name].combine_chunks().dictionary_encode() for name in names]
    begins = begins_of(*(code.indices.to_numpy() for code in codes)).tolist()
    columns = {name: table[name].to_numpy() for name in table.column_names if name not in (*names, start)}
    columns[start] = table[start].cast(pa.int64()).to_numpy().view("datetime64[us]")
    keys = [itemgetter(*names)(row) for row in table.select(list(names)).take(pa.array(begins, pa.int64())).to_pylist()]
    bounds = zip(keys, itertools.pairwise([*begins, table.num_rows]), strict=True)
    return {key: {name: column[slice(*bound)] for name, column in columns.items()} for key, bound in bounds}


def _in_order(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])
