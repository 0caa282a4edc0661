"""Decides which broker is asked for which commits, and caches what the shape of a response implies."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from adapter.cluster.groups import NOBODY, asked_at
from adapter.collector.row_mapping import RowMapping, mapped_commits
from adapter.columns import Codes
from adapter.lag.rules import Watching
from adapter.latest import Latest
from adapter.protocol.offset_responses import Shape
from adapter.protocol.prepared_requests import CommitQuestion

NOWHERE = -1


@dataclass(slots=True)
class ResponseMapping:
    """What follows from the shape of a request's responses; valid while the shape is the same."""

    shape: Shape
    code: Codes
    """Group of the response -> index into the round's groups, or NOWHERE."""
    topics: Sequence[Sequence[str]]
    """Group of the response -> its watched topics with commits."""
    largest: Mapping[str, int]
    """Watched topic -> the largest partition with a commit."""
    remembered_at: int | None = None
    """The version of `Commits` whose `topics` include all of it."""
    row_mapping: Latest[RowMapping] = field(default_factory=lambda: Latest(mapped_commits))
    """Of the shape and a layout."""


@dataclass(slots=True)
class CommitPlan:
    """Which broker is asked for which groups; kept until groups, coordinators, brokers or their versions change."""

    groups: tuple[str, ...]
    questions: Sequence[CommitQuestion]
    asked: Sequence[Codes]
    """The groups of each question, as indexes into `groups`."""
    codes: Mapping[str, int]
    coordinator: Codes
    """The known coordinator of each group; NOBODY otherwise."""
    mappings: dict[int, ResponseMapping] = field(default_factory=dict)
    """By the number of the question."""


def planned(
    groups: tuple[str, ...],
    coordinators: Mapping[str, int],
    brokers: Collection[int],
    asked_singly: frozenset[int],
    not_searched: frozenset[int],
) -> CommitPlan:
    """`groups` has all watched groups; brokers that are `asked_singly` take one group per request. Those `not_searched`
    are asked only for what they coordinate, because FindCoordinator is sent for the other groups."""
    codes = {group: code for code, group in enumerate(groups)}
    plan = asked_at(coordinators, groups, sorted(brokers), not_searched)
    parts = [
        (node, part)
        for node, own in plan.items()
        for part in ([[group] for group in own] if node in asked_singly else [own])
    ]
    return CommitPlan(
        groups,
        questions=[CommitQuestion(node, part) for node, part in parts],
        asked=[np.array([codes[group] for group in part], dtype=np.int32) for _, part in parts],
        codes=codes,
        coordinator=np.array([coordinators.get(g, NOBODY) for g in groups], dtype=np.int32),
    )


def response_mapping(shape: Shape, plan: CommitPlan, number: int, watching: Watching) -> ResponseMapping:
    code = np.array([plan.codes.get(group, NOWHERE) for group in shape.groups], dtype=np.int32)
    code[~np.isin(code, plan.asked[number])] = NOWHERE
    topics: list[list[str]] = [[] for _ in shape.groups]
    largest: dict[str, int] = {}
    begins = np.cumsum(shape.sizes) - shape.sizes
    is_watched = cache(watching.watches_topic)
    for block, (group, topic) in enumerate(zip(shape.group.tolist(), shape.topics, strict=True)):
        if is_watched(topic) or topic in watching.given(shape.groups[group]).topics:
            topics[group].append(topic)
        if is_watched(topic) and shape.sizes[block]:
            rows = shape.partition[begins[block] : begins[block] + shape.sizes[block]]
            largest[topic] = max(largest.get(topic, 0), int(rows.max()))
    return ResponseMapping(shape, code, topics, largest)
