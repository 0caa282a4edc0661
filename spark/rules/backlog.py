"""Pure: samples of partitions -> which of them had a backlog throughout, so that their member was busy all the time."""

import numpy as np

from spark.tables.columns import Flags, Ints, Rows, Values, begins_of, numbered
from spark.tables.contract import NAMES

IN_FLIGHT_SECONDS = 30
"""A lag of less than what is produced in this time may be messages on their way, not a backlog."""


def has_backlog(deltas: Rows, moment: Ints) -> Flags:
    """Whether a lag outlasted each sample. `deltas`: one hour, sorted by series; `moment`: 0, 1, … for each topic and
    sample. Where the owner of a partition is known, it counts only if all partitions of that owner have a backlog: a
    member with little to do shows what it did, not what it can do."""
    lag, produced, consumed = deltas["lag"], deltas["produced"], deltas["consumed"]
    is_known = (lag >= 0) & (produced >= 0) & (consumed >= 0)
    least = np.minimum(lag, lag - produced + consumed)
    found: Flags = is_known & (least > IN_FLIGHT_SECONDS * _production_rate(deltas))
    is_owned = deltas["owner"] >= 0
    if found.any() and is_owned.any():
        owner = numbered(moment, _owner_in_topic(deltas))
        is_idle = np.bincount(owner[is_owned & ~found], minlength=int(owner.max()) + 1) > 0
        found &= ~(is_owned & is_idle[owner])
    return found


def _owner_in_topic(deltas: Rows) -> Ints:
    """Of each row its owner as a small number, so that those of a moment can be counted without sorting them."""
    topic = numbered(*(deltas[name] for name in NAMES))
    owner, begins = numbered(topic, deltas["owner"]), begins_of(topic)
    first: Ints = np.repeat(np.minimum.reduceat(owner, begins), np.diff(begins, append=len(topic)))
    return owner - first


def _production_rate(deltas: Rows) -> Values:
    """Of each row's partition, over the hour: in a single sample it is chance."""
    begins = begins_of(*(deltas[name] for name in (*NAMES, "partition")))
    is_known = deltas["produced"] >= 0
    produced = np.add.reduceat(np.where(is_known, deltas["produced"], 0.0), begins)
    seconds = np.add.reduceat(np.where(is_known, deltas["seconds"], 0.0), begins)
    rate = np.divide(produced, seconds, out=np.zeros(len(begins)), where=seconds > 0)
    return np.repeat(rate, np.diff(begins, append=len(deltas)))
