"""Decides which leader is asked for which partitions; kept while layout, leaders and needs do not change."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from adapter.cluster.topics import NO_LEADER, Topology
from adapter.collector.row_mapping import RowMapping, mapped_offsets
from adapter.columns import Codes, Flags, Indexes
from adapter.lag.layout import Layout
from adapter.protocol.offset_responses import Shape
from adapter.protocol.prepared_requests import OffsetQuestion
from adapter.settings.models import Isolation

Purpose = tuple[int, Isolation, int]
"""Which offset, at which isolation level, in which round of a cycle."""


@dataclass(slots=True, eq=False)
class OffsetPlan:
    layout: Layout
    leaders: Codes
    wanted: Flags
    questions: Mapping[int, OffsetQuestion]
    """By node, like `places`."""
    places: Mapping[int, Indexes]
    """The table indexes of each request, ascending."""
    _mapped: dict[int, tuple[Shape, RowMapping]] = field(default_factory=dict)

    def is_for(self, layout: Layout, leaders: Codes, wanted: Flags) -> bool:
        return self.layout is layout and self.leaders is leaders and np.array_equal(self.wanted, wanted)

    def row_mapping(self, node: int, shape: Shape) -> RowMapping:
        """Returns the row mapping; the same object while the shape is the same."""
        known = self._mapped.get(node)
        if known is None or known[0] is not shape:
            is_asked = np.zeros(len(self.leaders), dtype=bool)
            is_asked[self.places[node]] = True
            known = self._mapped[node] = (shape, mapped_offsets(shape, self.layout, is_asked))
        return known[1]


class Plans:
    def __init__(self) -> None:
        self._leaders: tuple[Layout, Topology, Codes] | None = None
        self._plans: dict[Purpose, OffsetPlan] = {}

    def leaders(self, layout: Layout, topology: Topology) -> Codes:
        """Returns the leader of every partition; the same object while layout and leaders do not change."""
        known = self._leaders
        if known is not None and known[0] is layout and known[1] is topology:
            return known[2]
        leaders = np.concatenate([np.empty(0, dtype=np.int32), *(topology.topics[t].leaders for t in layout.bases)])
        if known is not None and known[0] is layout and np.array_equal(leaders, known[2]):
            leaders = known[2]
        self._leaders = (layout, topology, leaders)
        return leaders

    def forget_rounds(self, first: int) -> None:
        """Drops the plans of this and later rounds, because the latest cycle needed fewer."""
        self._plans = {purpose: plan for purpose, plan in self._plans.items() if purpose[2] < first}

    def plan(self, purpose: Purpose, layout: Layout, leaders: Codes, wanted: Flags) -> OffsetPlan:
        known = self._plans.get(purpose)
        if known is not None and known.is_for(layout, leaders, wanted):
            return known
        # Plans of an old layout are never used again.
        self._plans = {k: plan for k, plan in self._plans.items() if plan.layout is layout and plan.leaders is leaders}
        timestamp, level, _ = purpose
        nodes = np.unique(leaders[wanted & (leaders != NO_LEADER)]).tolist()
        places = {node: np.flatnonzero(wanted & (leaders == node)) for node in nodes}
        questions = {
            node: OffsetQuestion(node, _by_topic(layout, own), timestamp, level) for node, own in places.items()
        }
        self._plans[purpose] = OffsetPlan(layout, leaders, wanted, questions, places)
        return self._plans[purpose]


def _by_topic(layout: Layout, places: Indexes) -> dict[str, Codes]:
    """Groups ascending table indexes by topic; returns topic -> partitions."""
    topics = list(layout.bases)
    begins = np.array([base.start for base in layout.bases.values()], dtype=np.intp)
    of_place = np.searchsorted(begins, places, side="right") - 1
    partition = (places - begins[of_place]).astype(np.int32)
    cuts = np.flatnonzero(np.diff(of_place, prepend=-1))
    ends = np.append(cuts[1:], len(places))
    return {topics[of_place[cut]]: partition[cut:end] for cut, end in zip(cuts.tolist(), ends.tolist(), strict=True)}
