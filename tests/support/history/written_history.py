"""Samples by hand, written to files as the adapter writes them, and tables read back as plain rows."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history.contract import SAMPLES, VERSION, VERSION_KEY, Type

START = datetime(2026, 11, 20, 6, tzinfo=UTC)

ROW_GROUP = 40
"""Rows of a group, so that a file of some more has several."""

Row = dict[str, object]

ARROW = {
    Type.TIME: pa.timestamp("us", tz="UTC"),
    Type.TEXT: pa.dictionary(pa.int32(), pa.string()),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLAG: pa.bool_(),
}
SCHEMA = pa.schema([pa.field(c.name, ARROW[c.type], nullable=c.is_nullable) for c in SAMPLES])


def sample(seconds: float, committed: int | None, log_end: int | None, **other: object) -> Row:
    """A row of billing's orders/0, so many seconds after START."""
    row: Row = {
        "sampled_at": START + timedelta(seconds=seconds),
        "received_at": None,
        "interval_seconds": 10.0,
        "cluster": "main",
        "group": "billing",
        "topic": "orders",
        "topic_id": "first",
        "partition": 0,
        "committed": committed,
        "log_end": log_end,
        "log_start": 0,
        "state": "ok" if committed is not None else "no_commit",
        "members": 2,
        "isolation": "read_uncommitted",
        "owner": None,
        "offset_reset": None,
        "last_commit": None,
        "has_marker": False,
    }
    return row | other


def write(root: Path, rows: Sequence[Row], writer: str = "adapter-0", version: object = VERSION) -> list[Path]:
    """A file for each hour that the rows have; gives their paths."""
    hours: dict[str, list[Row]] = {}
    for row in rows:
        at = row["sampled_at"]
        assert isinstance(at, datetime)
        hours.setdefault(f"{at:date=%Y-%m-%d/hour=%H}", []).append(row)
    return [write_file(root / "samples" / folder, each, writer, version) for folder, each in hours.items()]


def write_file(folder: Path, rows: Sequence[Row], writer: str = "adapter-0", version: object = VERSION) -> Path:
    first = min(row["sampled_at"] for row in rows if isinstance(row["sampled_at"], datetime))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{writer}-{first:%Y%m%dT%H%M%S.%fZ}.parquet"
    table = pa.Table.from_pylist(list(rows), SCHEMA).replace_schema_metadata({VERSION_KEY: str(version)})
    pq.write_table(table, path, row_group_size=ROW_GROUP)
    return path


def paths_of(root: Path, table: str) -> list[Path]:
    """As a plain glob finds them."""
    folder = table if table in {"samples", "hourly", "daily", "minutes"} else "hours"
    found = root.glob(f"{folder}/**/{table if folder == 'hours' else ''}*.parquet")
    return sorted(path for path in found if not path.name.startswith((".", "_")))


def read(root: Path, table: str) -> list[Row]:
    """Every row of a table, in no order; folders' names are no columns."""
    return [row for path in paths_of(root, table) for row in pq.ParquetFile(path).read().to_pylist()]


def keyed(rows: Iterable[Row], *columns: str) -> Mapping[tuple[object, ...], Row]:
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = tuple(row[column] for column in columns)
        assert key not in found, f"{key} is there twice"
        found[key] = row
    return found
