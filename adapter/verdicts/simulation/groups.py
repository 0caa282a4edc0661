"""What is kept of many groups while they are replayed, what arrives in them, and what there is at the end of a minute:
the records and arrays that compiled code gets."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Seconds
from adapter.records import Records
from adapter.verdicts.owners import Owners
from adapter.verdicts.simulation.consumers import Messages


class LaneRecord:
    """One group."""

    capacity: float
    """Messages per second of one member."""
    pause_seconds: float
    commit_seconds: float
    stops_all: bool
    """Whether a rebalance stops all members."""
    is_shared: bool
    """Whether the members read all partitions together, as if they were one."""
    most: int
    """Members that can have a partition."""
    width: int
    """Partitions."""
    first_row: int
    """Of its table of owners among those of all lanes: the row for 0 members."""
    first_member: int
    """Where its members begin: with nobody."""
    given: int
    """Members that are there."""
    members: int
    """Those of them that have partitions."""
    moves: int
    """How often its partitions were divided anew."""
    busiest: float
    """Messages per second that arrive in the first partition."""
    others: float
    """In each other partition of weight 1."""
    weights: float
    """Of all other partitions together."""
    working: float
    """Messages per second that one member reads now."""
    stopped_seconds: float
    """For which no member will read."""
    seconds: float
    """Since the shares of its members were computed last."""
    busiest_gathered: float
    """As a member's `gathered`, in the first partition."""
    lag: float
    """Messages that nobody has read."""
    uncommitted: float
    """Messages that were read after the latest commit."""


class MemberRecord:
    """A member, or the first one of each lane: nobody."""

    load: float
    """What waits for it."""
    growth: float
    """Messages per second by which the load grows if nobody stops."""
    before: float
    """What waited when its shares were computed last."""
    left: float
    """Of each message that waited when partitions moved last, the share that it has not read."""
    gathered: float
    """Messages that have arrived since and wait in a partition of weight 1."""
    weight: float
    """Of all its partitions but the lane's first."""
    longest: float
    """The most that waited in one of these when partitions moved last, divided by its weight."""


class PartitionRecord:
    """A partition; a lane's first one gets what is said of it alone, and has no weight."""

    waiting: float
    """What waited when this was computed last."""
    weight: float
    """How much it gets, compared with others of the group."""
    owner: int
    """Its member, from 1; ROW_OF_NOBODY: nobody."""


Lanes = Records[LaneRecord]
Members = Records[MemberRecord]
Partitions = Records[PartitionRecord]


class Groups(NamedTuple):
    """What there is of all lanes."""

    lanes: Lanes
    members: Members
    partitions: Partitions
    """Of lanes (rows)."""
    table: Owners
    """The owners of partitions (columns) for each number of members; a lane's rows begin at its `first_row`."""


class Arrivals(NamedTuple):
    """What arrives in lanes (columns) and happens to them, minute by minute (rows)."""

    busiest: Messages
    """Messages per second in the first partition."""
    others: Messages
    """In each other partition of weight 1."""
    capacity: Messages
    """Of a member, as a share of its usual one."""
    stopped_seconds: Seconds
    """For which no member reads, from the beginning of the minute on."""
    replaced: Messages
    """Members that leave, and that new ones take the places of, one after another."""


class Ends(NamedTuple):
    """What there is of lanes (rows) at the end of each minute (columns)."""

    lag: NDArray[np.float32]
    """As the adapter serves it: with what was read and not committed."""
    replicas: NDArray[np.int32]
    busiest: Messages
    """What waits in the first partition."""
    others: Messages
    """What waits in the other one in which most waits for its weight, divided by the weight."""
