"""Pure: one day's rows of the hourly table and its partitions -> its rows of the daily table."""

from collections.abc import Mapping

import numpy as np

from spark.rules.hourly import changes_of
from spark.rules.totals import greatest, least, seconds_of, sums
from spark.tables.columns import UNKNOWN, Ints, TableRows, Values, begins_of, ratio
from spark.tables.contract import DAILY, EVENTS, HOUR_MICROS, NAMES, PLACE

DAY_MICROS = 24 * HOUR_MICROS
ADDED = ("samples", "cycles", "expected_samples", "gaps", *EVENTS, "stale_samples", "lagging_consumed", "wait_bounds")
SECONDS = ("seconds_lagging", "lagging_covered_seconds")
LARGEST = ("lag_max", "lag_partition_max", "partitions", "uncommitted_max", "members_max")


def daily_of(hours: TableRows, partitions: TableRows, percentiles: Mapping[str, Values]) -> TableRows:
    """DAILY's columns, sorted by topic. `hours`: SUMMARY, sorted by topic; `partitions`: of the same hours, in any
    order; `percentiles`: the day's, of each topic."""
    begins = begins_of(*(hours[name] for name in NAMES))
    members_min = least(np.where(hours["members_min"] >= 0, hours["members_min"], np.nan), begins)
    columns = {
        **{name: hours[name][begins] for name in NAMES},
        "day": hours["hour"][begins] // DAY_MICROS * DAY_MICROS,
        "hours": np.diff(begins, append=len(hours)),
        **percentiles,
        **{name: sums(hours[name], begins)[0] for name in ADDED},
        **{name: np.add.reduceat(hours[name], begins) for name in SECONDS},
        **{name: greatest(hours[name], begins) for name in LARGEST},
        **{name: np.fmax.reduceat(hours[name], begins) for name in ("production_rate_max", "wait_max")},
        "lag_mean": _mean(hours["lag_mean"], hours["samples"], begins),
        "members_min": np.where(np.isnan(members_min), UNKNOWN, members_min),
        "members_mean": _mean(hours["members_mean"], hours["known_members"], begins),
        **changes_of(_over_the_day(partitions)),
    }
    return TableRows(columns, hours.texts).only(column.name for column in DAILY)


def _over_the_day(partitions: TableRows) -> TableRows:
    """One row for each partition, sorted."""
    rows = partitions.taken(np.lexsort([partitions[name] for name in reversed(PLACE)]))
    begins = begins_of(*(rows[name] for name in PLACE))
    changes = {name: sums(rows[name], begins)[0] for name in ("produced", "consumed")}
    return rows.taken(begins).extended({**changes, "seconds": seconds_of(rows["seconds"], begins)})


def _mean(of_hours: Values, weight: Values, begins: Ints) -> Values:
    """Of the hours' means."""
    return ratio(np.add.reduceat(np.nan_to_num(of_hours * weight), begins), np.add.reduceat(weight, begins))
