"""Decides which broker is asked for which commits, and caches what the shape of a response implies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adapter.cluster.groups import NOBODY, Directory, asked_at
from adapter.collector.row_mapping import NOWHERE, RowMapping, codes_in, mapped_commits
from adapter.columns import Codes, Flags
from adapter.lag.rules import Watching
from adapter.latest import Latest
from adapter.protocol.offset_responses import Shape
from adapter.protocol.prepared_requests import CommitQuestion

GROUPS_PER_REQUEST = 2_000
"""Usually one request per broker, with responses of a few MB, far below the largest frame."""


@dataclass(slots=True)
class ResponseMapping:
    """What follows from the shape of a request's responses; valid while the shape is the same."""

    shape: Shape
    code: Codes
    """Group of the response -> index into the round's groups, or NOWHERE."""
    topics: Sequence[Sequence[str]]
    """Group of the response -> its watched topics with commits."""
    has_commits: Flags
    """Group of the response -> whether it has commits for any topic."""
    largest: Mapping[str, int]
    remembered_at: int | None = None
    """The version of `Commits` whose `topics` include all of it."""
    row_mapping: Latest[RowMapping] = field(default_factory=lambda: Latest(mapped_commits))
    """Of the shape and a layout."""


@dataclass(slots=True)
class CommitPlan:
    """Which broker is asked for which groups; kept until groups, coordinators or brokers change."""

    groups: tuple[str, ...]
    coordinators: Mapping[str, int]
    brokers: frozenset[int]
    questions: Sequence[CommitQuestion]
    asked: Sequence[Codes]
    """The groups of each request, as indexes into `groups`."""
    codes: Mapping[str, int]
    coordinator: Codes
    """The known coordinator of each group; NOBODY otherwise."""
    mappings: list[ResponseMapping | None]

    def is_for(self, groups: tuple[str, ...], directory: Directory, brokers: frozenset[int]) -> bool:
        return groups is self.groups and directory.coordinators is self.coordinators and brokers == self.brokers


def planned(
    former: CommitPlan | None, groups: tuple[str, ...], directory: Directory, brokers: frozenset[int]
) -> CommitPlan:
    """Returns the former plan if it still holds; `groups` has all watched groups."""
    if former is not None and former.is_for(groups, directory, brokers):
        return former
    codes = {group: code for code, group in enumerate(groups)}
    old = {(question.node, tuple(question.groups)): question for question in former.questions} if former else {}
    chunks = [
        (node, tuple(own[begin : begin + GROUPS_PER_REQUEST]))
        for node, own in asked_at(directory, groups, sorted(brokers)).items()
        for begin in range(0, len(own), GROUPS_PER_REQUEST)
    ]
    return CommitPlan(
        groups,
        directory.coordinators,
        brokers,
        questions=[old.get(chunk) or CommitQuestion(*chunk) for chunk in chunks],
        asked=[np.array([codes[group] for group in own], dtype=np.int32) for _, own in chunks],
        codes=codes,
        coordinator=np.array([directory.coordinators.get(g, NOBODY) for g in groups], dtype=np.int32),
        mappings=[None] * len(chunks),
    )


def response_mapping(shape: Shape, plan: CommitPlan, number: int, watching: Watching) -> ResponseMapping:
    code = codes_in(shape, plan.codes)
    code[~np.isin(code, plan.asked[number])] = NOWHERE
    topics: list[list[str]] = [[] for _ in shape.groups]
    largest: dict[str, int] = {}
    begins = np.cumsum(shape.sizes) - shape.sizes
    is_watched: dict[str, bool] = {}
    for block, (group, topic) in enumerate(zip(shape.group.tolist(), shape.topics, strict=True)):
        if topic not in is_watched:
            is_watched[topic] = watching.watches_topic(topic)
        if is_watched[topic] or topic in watching.given_topics(shape.groups[group]):
            topics[group].append(topic)
        if is_watched[topic] and shape.sizes[block]:
            rows = shape.partition[begins[block] : begins[block] + shape.sizes[block]]
            largest[topic] = max(largest.get(topic, 0), int(rows.max()))
    has_commits = np.isin(np.arange(len(shape.groups)), shape.group)
    return ResponseMapping(shape, code, [tuple(dict.fromkeys(names)) for names in topics], has_commits, largest)
