"""What the members of a group of consumers are like, and who owns which partition."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes
from adapter.verdicts.owners import NOBODY, Assignor, Owners, owners_table

Messages = NDArray[np.float64]

ROW_OF_NOBODY = 0
"""The row of the partitions that no member has. The rows of members follow it."""
_OF_ALL = owners_table((1,), Assignor.RANGE)
"""Members that read all partitions together are as one that reads more."""


@dataclass(frozen=True, slots=True)
class Consumers:
    """What the members of one group are like."""

    capacity: float
    """Messages per second of one member."""
    partitions: tuple[int, ...]
    """Of each topic."""
    assignor: Assignor | None = Assignor.UNIFORM
    """None: any number of members reads all partitions together, as in a share group."""
    start_seconds: float = 30.0
    """From a replica that is wanted to a pod that is ready."""
    join_seconds: float = 10.0
    """From a pod that is ready to a member with partitions."""
    pause_seconds: float = 3.0
    """For which a rebalance stops all members, or those that lose or get partitions."""
    commit_seconds: float = 5.0
    """Between two commits."""
    interval_seconds: float = 10.0
    """Between two samples of the adapter."""
    table: Owners | None = field(default=None, compare=False)
    """The owner of each partition (columns) by the number of members (rows), of an assignor that is not Kafka's; None:
    that of `assignor`."""

    @property
    def width(self) -> int:
        """All partitions."""
        return sum(self.partitions)


def owner_rows(groups: Sequence[Consumers], width: int) -> tuple[Indexes, Owners]:
    """Returns the first row of each group in one table of the rows of owners."""
    kinds = {(group.partitions, group.assignor, id(group.table)): group for group in groups}
    tables, firsts, first = [], {}, 0
    for kind, group in kinds.items():
        table = _table(group)
        padded = np.full((len(table), width), ROW_OF_NOBODY, np.int32)
        padded[:, : group.width] = np.where(table == NOBODY, ROW_OF_NOBODY, table + 1)
        tables.append(padded)
        firsts[kind], first = first, first + len(table)
    rows = np.array([firsts[group.partitions, group.assignor, id(group.table)] for group in groups], np.intp)
    return rows, np.concatenate(tables)


def _table(group: Consumers) -> Owners:
    if group.table is not None:
        return group.table
    return _OF_ALL if group.assignor is None else owners_table(group.partitions, group.assignor)
