"""Maps the rows of a response to a layout; recomputed only when either changes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adapter.columns import Codes, Flags, Indexes
from adapter.lag.layout import Layout
from adapter.protocol.offset_responses import Shape

NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class RowMapping:
    """Two columns of equal length: a response's row, and its target."""

    source: Indexes
    target: Indexes

    def only(self, is_kept: Flags) -> "RowMapping":
        return RowMapping(self.source[is_kept], self.target[is_kept])


def mapped_commits(shape: Shape, layout: Layout) -> RowMapping:
    """Maps response rows to layout rows; unwatched rows are dropped, and the last of duplicates counts."""
    names = [(shape.groups[group], topic) for group, topic in zip(shape.group.tolist(), shape.topics, strict=True)]
    last_group = {group: number for number, group in enumerate(shape.groups)}
    last = {name: block for block, name in enumerate(names)}
    spans = [
        layout.pairs.get(name) if last[name] == block and last_group[name[0]] == shape.group[block] else None
        for block, name in enumerate(names)
    ]
    return _mapped(shape, spans)


def mapped_offsets(shape: Shape, layout: Layout, is_asked: Flags) -> RowMapping:
    """Maps response rows to the layout's table; `is_asked` marks the requested partitions."""
    last = {topic: block for block, topic in enumerate(shape.topics)}
    spans = [layout.bases.get(topic) if last[topic] == block else None for block, topic in enumerate(shape.topics)]
    mapping = _mapped(shape, spans)
    return mapping.only(is_asked[mapping.target])


def _mapped(shape: Shape, spans: list[slice | None]) -> RowMapping:
    begins = np.array([span.start if span is not None else 0 for span in spans], dtype=np.intp)
    counts = np.array([span.stop - span.start if span is not None else 0 for span in spans], dtype=np.intp)
    inside = np.flatnonzero(shape.partition < np.repeat(counts, shape.sizes))
    return RowMapping(inside, (np.repeat(begins, shape.sizes) + shape.partition)[inside].astype(np.intp))


def codes_in(shape: Shape, codes: Mapping[str, int]) -> Codes:
    """Maps the response's groups to codes; NOWHERE for unknown groups and all but the last of duplicates."""
    last = {group: number for number, group in enumerate(shape.groups)}
    mapped = [codes[group] if group in codes and last[group] == n else NOWHERE for n, group in enumerate(shape.groups)]
    return np.array(mapped, dtype=np.int32)
