"""Pure: the number of replicas that a group's lag asks for, by the `replicas` of a rule or named metric.

The steps are those of KEDA's trigger `kafka`, in whole replicas instead of messages: a limit on messages that an HPA
divides afterwards can be exceeded by one replica."""

import math
from collections.abc import Sequence

import numpy as np

from adapter.columns import Flags, Indexes, Offsets
from adapter.lag.snapshot import Snapshot
from adapter.lag.totals import LARGEST
from adapter.settings.models import Replicas
from adapter.verdicts.assignment import NO_LIMIT, Sharing, most_members

NO_MEMBERS = math.inf
"""In place of a time: nobody has moved commits since before they were watched."""
LONGEST_COMMIT_INTERVAL = 60.0
"""By the defaults of Kafka's clients: Connect commits every 60 s, Streams every 30 s, and consumers every 5 s."""


def replicas_of(
    lag: Offsets, partitions: Sequence[int], sharing: Sharing, shape: Replicas, is_still: Flags | None = None
) -> int:
    """`lag` has an entry per partition that counts, and `partitions` their number in each topic; `is_still` marks those
    whose lag only activates (None: none)."""
    if sum_of(lag) <= shape.activation:
        return 0
    counted = lag if is_still is None else np.where(is_still, 0, lag)
    return shaped(max(_divided(sum_of(counted), shape.lag_per_replica), 1), counted, partitions, sharing, shape)


def replicas_for(consumers: int, lag: Offsets, partitions: Sequence[int], sharing: Sharing, shape: Replicas) -> int:
    """Returns the replicas that have so many consumers, within the same limits as those by the lag."""
    return consumers and shaped(_divided(consumers, shape.consumers_per_replica), lag, partitions, sharing, shape)


def shaped(wanted: int, counted: Offsets, partitions: Sequence[int], sharing: Sharing, shape: Replicas) -> int:
    """Limits a number of replicas to what can have a partition, and evens it out, as the settings ask for."""
    most = max(_divided(_most_consumers(counted, partitions, sharing, shape), shape.consumers_per_replica), 1)
    if shape.ensure_even_distribution_of_partitions:
        even = _even(wanted, partitions, sharing, shape.consumers_per_replica)
        wanted = wanted if even is None and sharing is Sharing.SEVERAL_READERS else even or most
    return min(wanted, most)


def still_after(interval: float) -> float:
    """Returns the seconds after which a commit that has not moved stands still: the longest that a client waits between
    two, and two cycles, because each commit is seen up to one cycle late."""
    return LONGEST_COMMIT_INTERVAL + 2 * interval


def movement_of(
    snapshot: Snapshot, rows: Indexes, judged_at: float | None, still_seconds: float
) -> tuple[Flags, Flags]:
    """Returns the rows whose commits stand still, and the rows that have not been watched for long enough to know it.

    `judged_at` is as of when; None: when each row was last read; NO_MEMBERS: likewise, and what has not moved stands
    still for certain."""
    at = snapshot.received[rows] if judged_at is None else np.minimum(snapshot.received[rows], judged_at)
    rests = snapshot.moved_at[rows] < at - still_seconds
    is_new = (snapshot.watched_since[rows] > at - still_seconds) & (judged_at != NO_MEMBERS)
    return rests & ~is_new, rests & is_new


def sum_of(lag: Offsets) -> int:
    """Saturates instead of overflowing."""
    is_too_large = float(lag.sum(dtype=np.float64)) > LARGEST
    return LARGEST if is_too_large else int(lag.sum())


def _divided(dividend: int, divisor: int) -> int:
    """Rounds up."""
    return -(-dividend // divisor)


def _most_consumers(counted: Offsets, partitions: Sequence[int], sharing: Sharing, shape: Replicas) -> int:
    most = most_members(partitions, sharing)
    if shape.limit_to_partitions_with_lag:
        return min(most, int(np.count_nonzero(counted)))
    is_limited = shape.ensure_even_distribution_of_partitions or not shape.allow_idle_consumers
    return most if is_limited else NO_LIMIT


def _even(at_least: int, partitions: Sequence[int], sharing: Sharing, consumers_per_replica: int) -> int | None:
    """Returns the least number of replicas whose consumers all have the same number of partitions; None if there is
    none."""
    shared = math.gcd(*partitions) if sharing is Sharing.BY_TOPIC else sum(partitions)
    replicas = (consumers // consumers_per_replica for consumers in _divisors(shared, consumers_per_replica))
    return min((number for number in replicas if number >= at_least), default=None)


def _divisors(number: int, multiple_of: int) -> list[int]:
    """Returns the divisors of a number that are multiples of another."""
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return [each for each in {*small, *(number // each for each in small)} if each % multiple_of == 0]
