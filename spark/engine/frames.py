"""Tables as DataFrames: their schema, from the contract's columns."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as T

from adapter.history_contract import Column, Type

SPARK_TYPES: dict[Type, T.DataType] = {
    Type.TIME: T.TimestampType(),
    Type.TEXT: T.StringType(),
    Type.INT32: T.IntegerType(),
    Type.INT64: T.LongType(),
    Type.FLOAT32: T.FloatType(),
    Type.FLOAT64: T.DoubleType(),
    Type.FLAG: T.BooleanType(),
}


def schema_of(columns: Iterable[Column]) -> T.StructType:
    """Every column nullable, as Spark reads Parquet."""
    return T.StructType([T.StructField(column.name, SPARK_TYPES[column.type]) for column in columns])
