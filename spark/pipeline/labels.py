"""The texts of samples apart from their numbers: long, few and always the same, they would be most of what is sorted.

A label is a 64-bit hash of a row's texts. What rows carry through the window is the label; the texts come back from a
table of all labels, which is small enough to be sent to every task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from adapter.history_contract import SAMPLES, Type

LABEL = "label"
TEXTS = tuple(column.name for column in SAMPLES if column.type is Type.TEXT)
NUMBERS = tuple(column.name for column in SAMPLES if column.type is not Type.TEXT)


def labelled(rows: DataFrame) -> DataFrame:
    """With the texts' label."""
    return rows.withColumn(LABEL, F.xxhash64(*TEXTS))


def labels_of(samples: DataFrame) -> DataFrame:
    """`label` and the texts, each once: a job over all rows."""
    return labelled(samples.select(*TEXTS).distinct())


def labels_in(session: SparkSession, paths: Iterable[Path]) -> DataFrame:
    """The same from local files by their columns' dictionaries, many times quicker. Raises OSError or
    pyarrow.ArrowException where a file's pages cannot be read."""
    found = sorted({texts for path in paths for texts in _texts_in(path)}, key=repr)
    columns = zip(*found, strict=True) if found else ((),) * len(TEXTS)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in zip(TEXTS, columns, strict=True)})
    return labelled(session.createDataFrame(table))


def with_texts(rows: DataFrame, labels: DataFrame) -> DataFrame:
    """The rows with their texts in the label's place, in their order."""
    return rows.join(F.broadcast(labels), on=LABEL, how="left").drop(LABEL)


def _texts_in(path: Path) -> Iterator[tuple[str | None, ...]]:
    with pq.ParquetFile(path, read_dictionary=list(TEXTS)) as file:
        for rows in file.iter_batches(batch_size=1_000_000, columns=list(TEXTS)):
            yield from _combinations(rows)


def _combinations(rows: pa.RecordBatch) -> Iterator[tuple[str | None, ...]]:
    """The texts' numbers in their dictionaries make one number of each row: no text is compared."""
    columns = [rows.column(name) for name in TEXTS]
    values = [(*column.dictionary.to_pylist(), None) for column in columns]
    sizes = tuple(map(len, values))
    numbers = [pc.fill_null(column.indices, len(own) - 1) for column, own in zip(columns, values, strict=True)]
    combined = np.unique(np.ravel_multi_index([np.asarray(each, np.int64) for each in numbers], sizes))
    for places in zip(*np.unravel_index(combined, sizes), strict=True):
        yield tuple(own[place] for own, place in zip(values, places, strict=True))
