"""Files of the history, and tables made from it, as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from adapter.history_contract import SAMPLES, Column, Type
from spark.storage.protocol import Files
from spark.tables.sample_files import HOUR, Sound, hour_of

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


SCHEMA = schema_of(SAMPLES)


def samples_of(session: SparkSession, files: Files, sound: Sequence[Sound]) -> DataFrame:
    """The rows of these files, without those that belong to another hour than their folder's; `writer` beside them."""
    reader = session.read.schema(SCHEMA)
    parts = [empty(session, SCHEMA).withColumn("writer", F.lit(""))] if not sound else []
    for writer in sorted({each.writer for each in sound}):
        own = [each for each in sound if each.writer == writer]
        whole = [files.uri(each.file.path) for each in own if each.is_of_its_hour]
        found = [reader.parquet(*whole)] if whole else []
        found += [_within(reader.parquet(files.uri(each.file.path)), each) for each in own if not each.is_of_its_hour]
        parts += [part.withColumn("writer", F.lit(writer)) for part in found]
    return reduce(DataFrame.unionByName, parts)


def empty(session: SparkSession, schema: T.StructType) -> DataFrame:
    """No rows, and no job to find that out."""
    return session.range(0).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema))


def _within(rows: DataFrame, sound: Sound) -> DataFrame:
    hour = hour_of(sound.file.folder)
    assert hour is not None, "only files of an hour's folder are examined"
    return rows.where((F.col("sampled_at") >= F.lit(hour)) & (F.col("sampled_at") < F.lit(hour + HOUR)))
