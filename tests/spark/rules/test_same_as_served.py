"""The tables of the history count what the metrics API serves: `adapter.verdicts.waits` is the rule of both."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapter.columns import NO_COMMIT
from adapter.lag.rules import treatment_of
from adapter.lag.values import values_of
from tests.support import samples
from tests.support.history.compacting import compacted
from tests.support.history.written_history import read, sample, write
from tests.support.samples import row

COMMITTED: tuple[tuple[int | None, int, int], ...] = ((7, 10, 2), (10, 10, 2), (0, 10, 4))
"""Committed, log end and log start of each partition."""
WITHOUT: tuple[tuple[int | None, int, int], ...] = ((None, 10, 4), (None, 10, 10))
LAST_COMMITS = (NO_COMMIT, 3, 8, 10)
"""The last commit seen of partitions without a commit."""
MARKERS: tuple[tuple[tuple[int | None, int, int], int], ...] = (((9, 10, 2), 9), ((None, 10, 2), 9))
"""A transaction marker follows the commit, or the last one seen."""
CASES = [
    *((of, NO_COMMIT, False) for of in COMMITTED),
    *((of, last, False) for of in WITHOUT for last in LAST_COMMITS),
    *((of, last, True) for of, last in MARKERS),
]


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_what_is_served_and_what_is_kept_are_the_same_number(tmp_path: Path, reset: str) -> None:
    rule = {"group": "billing", "topics": ["orders"], "offsetReset": reset}
    rows = {("billing", "orders", at): row(*of) for at, (of, *_) in enumerate(CASES)}
    lasts, markers = (np.array(column) for column in zip(*(rest for _, *rest in CASES), strict=True))
    snapshot = replace(samples.snapshot(rows), last_commit=lasts, has_marker=markers)
    treatment = treatment_of(snapshot.layout, samples.watching(samples.settings(rules=[rule])), {})
    served = values_of(snapshot, treatment).lag.tolist()
    write(
        tmp_path,
        [
            sample(
                0,
                committed,
                end,
                partition=at,
                log_start=start,
                offset_reset=reset,
                last_commit=last if last >= 0 and committed is None else None,
                has_marker=has_marker,
                state="no_commit" if committed is None else "truncated" if committed < start else "ok",
            )
            for at, ((committed, end, start), last, has_marker) in enumerate(CASES)
        ],
    )
    compacted(tmp_path)
    deltas = {delta["partition"]: delta["lag"] for delta in read(tmp_path, "deltas")}
    without = {part["partition"]: part["uncommitted_lag"] for part in read(tmp_path, "partitions")}

    assert [without[at] if deltas[at] is None else deltas[at] for at in range(len(CASES))] == served
