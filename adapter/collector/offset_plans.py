"""Decides which leader is asked for which partitions; kept while layout, leaders and needs do not change."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from adapter.cluster.groups import NOBODY
from adapter.cluster.topics import Topology
from adapter.collector.row_mapping import RowMapping, mapped_offsets
from adapter.columns import Codes, Flags, Indexes
from adapter.lag.layout import Layout
from adapter.latest import Latest
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
    """By node, like `places` and `row_mappings`."""
    places: Mapping[int, Indexes]
    """The table indexes of each request, ascending."""
    row_mappings: Mapping[int, Latest[RowMapping]]
    """Of the shape of a response and the layout."""


class Plans:
    def __init__(self) -> None:
        self._plans: dict[Purpose, OffsetPlan] = {}

    def plan(self, purpose: Purpose, layout: Layout, topology: Topology, wanted: Flags) -> OffsetPlan:
        leaders = np.concatenate([np.empty(0, dtype=np.int32), *(topology.topics[t].leaders for t in layout.bases)])
        former = self._plans.get(purpose)
        if (
            former is not None
            and former.layout is layout
            and np.array_equal(former.leaders, leaders)
            and np.array_equal(former.wanted, wanted)
        ):
            return former
        # Plans of another layout are hardly ever used again.
        self._plans = {key: plan for key, plan in self._plans.items() if plan.layout is layout}
        self._plans[purpose] = _planned(purpose, layout, leaders, wanted)
        return self._plans[purpose]


def _planned(purpose: Purpose, layout: Layout, leaders: Codes, wanted: Flags) -> OffsetPlan:
    timestamp, level, _ = purpose
    nodes = np.unique(leaders[wanted & (leaders != NOBODY)]).tolist()
    places = {node: np.flatnonzero(wanted & (leaders == node)) for node in nodes}
    questions = {
        node: OffsetQuestion(node, partial(_by_topic, layout, own), timestamp, level) for node, own in places.items()
    }
    return OffsetPlan(layout, leaders, wanted, questions, places, {node: Latest(mapped_offsets) for node in nodes})


def _by_topic(layout: Layout, places: Indexes) -> dict[str, Codes]:
    """Groups ascending table indexes by topic; returns topic -> partitions."""
    topics = list(layout.bases)
    begins = np.array([base.start for base in layout.bases.values()], dtype=np.intp)
    of_place = np.searchsorted(begins, places, side="right") - 1
    partition = (places - begins[of_place]).astype(np.int32)
    cuts = np.flatnonzero(np.diff(of_place, prepend=-1))
    ends = np.append(cuts[1:], len(places))
    return {topics[of_place[cut]]: partition[cut:end] for cut, end in zip(cuts.tolist(), ends.tolist(), strict=True)}
