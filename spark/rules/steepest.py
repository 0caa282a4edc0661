"""Pure: an hour's totals -> how much was produced in its steepest minutes, which a mean of the hour hides."""

import numpy as np

from spark.rules.totals import seconds_of, sums
from spark.tables.columns import Ints, Rows, Values, begins_of
from spark.tables.contract import HOUR_MICROS

STEEPEST_SECONDS = 300
COVERED = 0.5
"""Of them, at least this share."""


def steepest_of(totals: Rows, begins: Ints) -> Values:
    """Messages per second in the steepest five minutes of each topic, NaN where none are covered. `totals`: one hour,
    sorted by topic and time; `begins`: where each topic does."""
    topic = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(totals)))
    part = totals["sampled_at"] % HOUR_MICROS // (STEEPEST_SECONDS * 1_000_000)
    of_part = begins_of(topic, part)
    produced, _ = sums(totals["produced"], of_part)
    seconds = seconds_of(totals["seconds"], of_part)
    is_covered = (produced >= 0) & (seconds >= COVERED * STEEPEST_SECONDS)
    rate = np.divide(produced, seconds, out=np.full(len(of_part), np.nan), where=is_covered)
    found: Values = np.fmax.reduceat(rate, np.searchsorted(of_part, begins))
    return found
