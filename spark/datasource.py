"""The tables of a history as a data source of Spark, in any session of PySpark 4.1 or newer:

    from spark.datasource import OffsetHistory

    spark.dataSource.register(OffsetHistory)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", True)
    deltas = spark.read.format("kafka_lag_history").option("table", "deltas").load("s3://bucket/history")

Spark's tasks read with pyarrow, in a bucket with the environment's own credentials, so it needs no jars. Executors need
this package with its dependencies. docs/history.md says more.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark.errors import Unusable
from spark.storage.location import files_at
from spark.storage.protocol import HistoryFiles
from spark.tables.contract import NAMES
from spark.tables.public import PUBLIC, PublicTable, batches_of, shares_of
from spark.tables.selection import Condition

COMPARISONS: Mapping[type[api.Filter], str] = {
    api.EqualTo: "=",
    api.EqualNullSafe: "=",
    api.In: "=",
    api.LessThan: "<",
    api.LessThanOrEqual: "<=",
    api.GreaterThan: ">",
    api.GreaterThanOrEqual: ">=",
}
SQL_TYPES = {
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.date32(): "date",
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
}


class OffsetHistory(api.DataSource):
    """`spark.read.format("kafka_lag_history")`. `load()` takes the history's location. Options: `table`, which is
    `samples`, `deltas`, `totals`, `partitions`, `hourly`, `daily` or `minutes`; `columns`, names with commas, where
    fewer than all are wanted. Filters on `date`, `hour`, `cluster`, `group`, `topic` and the table's own time are
    pushed down."""

    @classmethod
    def name(cls) -> str:
        return "kafka_lag_history"

    def schema(self) -> str:
        """Raises Unusable for an unknown table or column."""
        types = self._table().types
        wanted = [name.strip() for name in self.options.get("columns", ",".join(types)).split(",")]
        _refuse_unknown(wanted, types, self._table())
        return ", ".join(f"`{name}` {SQL_TYPES[types[name]]}" for name in wanted)

    def reader(self, schema: StructType) -> "OffsetHistoryReader":
        """Raises Unusable for an unknown column in the schema that the user gave, or no location."""
        _refuse_unknown(schema.names, self._table().types, self._table())
        if not self.options.get("path"):
            raise Unusable("load() needs the history's location: a path, s3://…, gs://… or abfss://…")
        return OffsetHistoryReader(
            files_at(self.options["path"]), self._table(), to_arrow_schema(schema, timezone="UTC")
        )

    def _table(self) -> PublicTable:
        name = self.options.get("table", "")
        if name not in PUBLIC:
            raise Unusable(f"option `table` is {name!r}; must be one of {', '.join(PUBLIC)}")
        return PUBLIC[name]


class OffsetHistoryReader(api.DataSourceReader):
    """Of one query."""

    def __init__(self, files: HistoryFiles, table: PublicTable, schema: pa.Schema) -> None:
        self._files, self._table, self._schema = files, table, schema
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[api.Filter]) -> Iterable[api.Filter]:  # noqa: N802 -- Spark's name
        """Notes those that can save reading, and yields what Spark has to look at nevertheless."""
        for each in filters:
            condition = condition_of(each)
            if condition is not None:
                self._conditions.append(condition)
            if condition is None or not self._is_exact(condition):
                yield each

    def partitions(self) -> Sequence[api.InputPartition]:
        wanted = self._table.files_in(self._files, self._conditions)
        return [api.InputPartition(share) for share in shares_of(wanted)] or [api.InputPartition(())]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        for piece in partition.value:
            yield from batches_of(self._files, self._table, piece, self._schema, self._conditions)

    def _is_exact(self, condition: Condition) -> bool:
        """Whether every row that is read satisfies it."""
        if condition.column in NAMES:
            return condition.comparison == "="
        return condition.column in self._table.folder_types


def condition_of(pushed: api.Filter) -> Condition | None:
    """None for a filter that no file can be left out for."""
    comparison = COMPARISONS.get(type(pushed))
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if comparison is None or len(path) != 1:
        return None
    value: Any = getattr(pushed, "value", None)
    values = tuple(value) if isinstance(pushed, api.In) else (value,)
    kinds = {type(each) for each in values}
    return Condition(path[0], comparison, values) if len(kinds) == 1 and _is_comparable(values[0]) else None


def _is_comparable(value: Any) -> bool:  # noqa: ANN401 -- whatever Spark pushes
    """A time without a zone cannot be compared with ours."""
    return value.tzinfo is not None if isinstance(value, datetime) else isinstance(value, (str, int, date))


def _refuse_unknown(names: Iterable[str], types: Mapping[str, pa.DataType], table: PublicTable) -> None:
    if unknown := sorted(set(names) - set(types)):
        raise Unusable(f"{table.name} has no column {', '.join(unknown)}; it has {', '.join(types)}")
