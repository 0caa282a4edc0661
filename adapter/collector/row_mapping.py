"""Maps the rows of a response to a layout; recomputed only when either changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.columns import Codes
from adapter.lag.layout import Layout
from adapter.protocol.offset_responses import Shape

NO_ROWS = slice(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class RowMapping:
    """Two columns of equal length: a response's row, and its target; 32 bits each, as there is one per partition."""

    source: Codes
    target: Codes


def mapped_commits(shape: Shape, layout: Layout) -> RowMapping:
    """Maps response rows to layout rows; unwatched rows are dropped."""
    blocks = zip(shape.group.tolist(), shape.topics, strict=True)
    return _mapped(shape, [layout.pairs.get((shape.groups[group], topic), NO_ROWS) for group, topic in blocks])


def mapped_offsets(shape: Shape, layout: Layout) -> RowMapping:
    """Maps response rows to the layout's table."""
    return _mapped(shape, [layout.bases.get(topic, NO_ROWS) for topic in shape.topics])


def _mapped(shape: Shape, spans: Sequence[slice]) -> RowMapping:
    begins = np.array([span.start for span in spans], dtype=np.intp)
    counts = np.array([span.stop - span.start for span in spans], dtype=np.intp)
    inside = np.flatnonzero(shape.partition < np.repeat(counts, shape.sizes)).astype(np.int32)
    return RowMapping(inside, (np.repeat(begins, shape.sizes) + shape.partition)[inside].astype(np.int32))
