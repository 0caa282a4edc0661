"""The member that owns the partition of each row, in the form in which the history keeps it."""

from collections.abc import Mapping

import numpy as np

from adapter.cluster.groups import Owned
from adapter.history.sample import NO_OWNERS, NOT_ASKED, Owners
from adapter.lag.layout import NO_LAYOUT, Layout


class OwnerColumn:
    """Made again only when the layout or an assignment changes."""

    def __init__(self) -> None:
        self._made_for: tuple[Layout, Mapping[str, tuple[Owned, ...]]] = (NO_LAYOUT, {})
        self._owners = NO_OWNERS

    def of(self, layout: Layout, owned: Mapping[str, tuple[Owned, ...]]) -> Owners:
        before, owned_before = self._made_for
        if before is not layout or owned_before is not owned:
            self._made_for, self._owners = (layout, owned), _owners_of(layout, owned)
        return self._owners


def _owners_of(layout: Layout, owned: Mapping[str, tuple[Owned, ...]]) -> Owners:
    members = sorted({one.member for each in owned.values() for one in each})
    code = {member: place for place, member in enumerate(members)}
    column = np.full(len(layout), NOT_ASKED, dtype=np.int32)
    for group, each in owned.items():
        for one in each:
            rows = layout.pairs.get((group, one.topic))
            if rows is not None:
                partitions = np.array(one.partitions, dtype=np.int64)
                inside = (partitions >= 0) & (partitions < rows.stop - rows.start)
                column[rows.start + partitions[inside]] = code[one.member]
    return Owners(tuple(members), column)
