"""The member that owns the partition of each row, in the form in which the history keeps it."""

from collections.abc import Mapping

import numpy as np

from adapter.cluster.groups import Owned
from adapter.history.sample import NOT_ASKED, Owners
from adapter.lag.layout import Layout


def owners_of(layout: Layout, owned: Mapping[str, tuple[Owned, ...]]) -> Owners:
    members = sorted({part.member for parts in owned.values() for part in parts})
    code = {member: place for place, member in enumerate(members)}
    column = np.full(len(layout), NOT_ASKED, dtype=np.int32)
    for group, parts in owned.items():
        for part in parts:
            rows = layout.pairs.get((group, part.topic))
            if rows is not None:
                partitions = np.array(part.partitions, dtype=np.int64)
                inside = (partitions >= 0) & (partitions < rows.stop - rows.start)
                column[rows.start + partitions[inside]] = code[part.member]
    return Owners(tuple(members), column)
