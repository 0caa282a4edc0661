"""Samples as cycles hand them over, locations that fail to order, and files read back: for the history's tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from adapter.columns import NO_COMMIT
from adapter.history.retention import LEDGER, Ledger
from adapter.history.sample import Sample
from adapter.lag.layout import Layout
from adapter.lag.owners import NOT_ASKED, Owners
from adapter.lag.snapshot import Cause, State, nothing_observed
from tests.support import samples

SAMPLED = 1_795_003_000.0
"""In the middle of an hour."""
TO_EPOCH = SAMPLED - 500.0
"""The cycle began at 500 s of the monotonic clock."""


def sample(layout: Layout | None = None, *, at: float = SAMPLED, cluster: str = "main", **columns: Any) -> Sample:  # noqa: ANN401 - a column's values
    """All rows of `layout` read within a second: commit 7, end 10, start 0; `columns` of the sample replace them."""
    layout = samples.layout([("billing", "orders", 1)]) if layout is None else layout
    rows = len(layout)
    observed = nothing_observed(layout)
    observed.committed[:], observed.log_end[:], observed.log_start[:] = 7, 10, 0
    observed.commit_received[:] = at - TO_EPOCH + 0.25
    observed.end_received[:] = at - TO_EPOCH + 0.5
    made = Sample(
        cluster=cluster,
        sampled_at=at,
        to_epoch=TO_EPOCH,
        layout=layout,
        observed=observed,
        state=np.full(rows, State.OK, dtype=np.int8),
        interval_seconds=10.0,
        members=np.full(rows, NOT_ASKED, dtype=np.int32),
        is_committed_only=np.zeros(rows, dtype=bool),
        owners=Owners((), np.full(rows, NOT_ASKED, dtype=np.int32)),
        counts_from_start=np.zeros(rows, dtype=bool),
        last_commit=np.full(rows, NO_COMMIT, dtype=np.int64),
        has_marker=np.zeros(rows, dtype=bool),
    )
    new: dict[str, Any] = {
        name: np.asarray(values, dtype=getattr(made, name).dtype) for name, values in columns.items()
    }
    return replace(made, **new)


def observing(made: Sample, **columns: Any) -> Sample:  # noqa: ANN401 - a column's values
    """`columns` of what was observed, in place of those that it has; a cause other than 0 stands for any trouble."""
    new = {name: np.asarray(values, dtype=getattr(made.observed, name).dtype) for name, values in columns.items()}
    causes = (*made.observed.causes, Cause(State.UNKNOWN, "broker 2 does not answer"))
    return replace(made, observed=replace(made.observed, causes=causes, **new))


def owning(made: Sample, *owners: str | None) -> Sample:
    """Each row's partition assigned to a member."""
    names = tuple(sorted({owner for owner in owners if owner is not None}))
    codes = [NOT_ASKED if owner is None else names.index(owner) for owner in owners]
    return replace(made, owners=Owners(names, np.array(codes, dtype=np.int32)))


def read_back(content: pa.Buffer) -> list[dict[str, Any]]:
    """A file's rows, column by column name."""
    rows: list[dict[str, Any]] = parquet.read_table(pa.BufferReader(content)).to_pylist()
    return rows


def ledger(days_ago: Mapping[str, float]) -> dict[str, pa.Buffer]:
    """As adapters leave it in a location: date -> for how many days they have run since it was written to."""
    written = {day: 1e7 - 86_400 * ago for day, ago in days_ago.items()}
    made = Ledger(running_seconds=1e7, last_written=written)
    return {LEDGER: pa.py_buffer(made.model_dump_json().encode())}


@dataclass
class FakeFiles:
    """A location in memory; `trouble`: the error that every use of it meets."""

    written: dict[str, pa.Buffer] = field(default_factory=dict)
    others: dict[str, pa.Buffer] = field(default_factory=dict)
    """What is beside the samples."""
    trouble: Exception | None = None
    tables: Mapping[str, list[str]] = field(default_factory=dict)
    """Table -> its days."""
    deleted: list[tuple[str, str]] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    attempts: int = 0

    def write(self, path: str, content: pa.Buffer) -> None:
        self.attempts += 1
        self._fail()
        (self.written if path.startswith("samples/") else self.others)[path] = content

    def read(self, path: str) -> bytes | None:
        self._fail()
        content = self.others.get(path, self.written.get(path))
        return content.to_pybytes() if content is not None else None

    def names(self, folder: str) -> list[str]:
        self._fail()
        return sorted(path.rpartition("/")[2] for path in self.written if path.rpartition("/")[0] == folder)

    def days(self, table: str) -> list[str]:
        self._fail()
        self.listed.append(table)
        return list(self.tables.get(table, []))

    def delete_day(self, table: str, day: str) -> None:
        self._fail()
        self.deleted.append((table, day))

    def _fail(self) -> None:
        if self.trouble:
            raise self.trouble
