"""Which rows of a table a reader wants, as conditions on single columns: what they rule out is not read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark.tables.contract import NAMES

Range = tuple[Any, Any]
"""The least and the greatest value that a column may have somewhere."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A row is wanted only if the column compares so to one of the values. A null never does."""

    column: str
    comparison: str
    """`=`, `<`, `<=`, `>` or `>=`."""
    values: tuple[Any, ...]

    def may_hold(self, within: Range) -> bool:
        """Whether any value of this range satisfies it."""
        return any(self._may_be(value, *within) for value in self.values)

    def _may_be(self, value: Any, least: Any, greatest: Any) -> bool:  # noqa: ANN401 -- text, date, time or number
        match self.comparison:
            case "=":
                return bool(least <= value <= greatest)
            case "<":
                return bool(least < value)
            case "<=":
                return bool(least <= value)
            case ">":
                return bool(greatest > value)
            case _:
                return bool(greatest >= value)


def may_have_rows(conditions: Iterable[Condition], within: Mapping[str, Range]) -> bool:
    """Whether rows with values of these ranges can satisfy all conditions; a column without a range can."""
    return all(each.may_hold(within[each.column]) for each in conditions if each.column in within)


def selected(batch: pa.RecordBatch, conditions: Iterable[Condition]) -> pa.RecordBatch:
    """The rows that satisfy the equalities on names; other conditions are not looked at."""
    for each in conditions:
        if each.comparison == "=" and each.column in NAMES and each.column in batch.schema.names:
            wanted = pa.array(each.values, pa.string())
            batch = batch.filter(pc.is_in(batch.column(each.column), value_set=wanted))
    return batch
