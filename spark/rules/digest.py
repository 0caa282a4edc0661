"""Pure: a digest of sorted rows that is the same however they are divided into parts."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adapter.history.contract import Column
from spark.tables.columns import Rows, Values

TEXT_BYTES = 8


class Digest:
    """Column by column, so that no row has to be looked at by itself."""

    def __init__(self, contract: Sequence[Column]) -> None:
        self._columns = {column.name: hashlib.sha256() for column in contract}
        self.rows = 0

    def add(self, part: Rows) -> None:
        """The rows that come next."""
        self.rows += len(part)
        for name, column in self._columns.items():
            values = _hashes(part.texts[name])[part[name]] if name in part.texts else part[name]
            column.update(np.ascontiguousarray(values).tobytes())

    def text(self) -> str:
        whole = hashlib.sha256(b"".join(column.digest() for column in self._columns.values()))
        return f"{self.rows}-{whole.hexdigest()[:16]}"


def _hashes(texts: pa.Array) -> Values:
    """Of each text; the last one of what is none, whose place is -1."""
    found = [hashlib.sha256(text.encode()).digest()[:TEXT_BYTES] for text in texts.to_pylist()]
    return np.frombuffer(b"".join([*found, bytes(TEXT_BYTES)]), np.uint64)
