"""The columns of the offset history, each described once. The schemas of the writer and of Spark are both built from
them, and the tables that are made from the history describe their columns with the same `Column` and `Type`.

Files: `<location>/samples/date=YYYY-MM-DD/hour=HH/<writer>-<first sample, UTC>.parquet`, one row per group, topic,
partition and sample. Names that begin with `.` or `_` are not part of the history."""

from dataclasses import dataclass
from enum import StrEnum

VERSION = 2
SAMPLES_FOLDER = "samples"
"""Of a location."""
VERSION_KEY = "kafka_lag_adapter.contract"
"""Key in the Parquet metadata of each file; the value is the version as text."""
CLOCK_KEY = "kafka_lag_adapter.clock"
"""Key in the same place; the value is a `ClockMark` as JSON. Files of earlier releases have none."""


class Type(StrEnum):
    """Type of a column's values. Texts are written with a dictionary, because they repeat."""

    TIME = "timestamp, microseconds, UTC"
    TEXT = "string"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLAG = "boolean"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type
    meaning: str
    is_nullable: bool = False
    is_optional: bool = False
    """Whether files of earlier releases lack the column. In their rows it is null, or false."""


SAMPLES = (
    Column("sampled_at", Type.TIME, "start of the collection cycle, the same in all its rows"),
    Column("received_at", Type.TIME, "when the end offset arrived", is_nullable=True),
    Column("interval_seconds", Type.FLOAT32, "seconds between two samples of this group while all is well"),
    Column("cluster", Type.TEXT, "the cluster's name in the settings"),
    Column("group", Type.TEXT, "the consumer group"),
    Column("topic", Type.TEXT, "the topic"),
    Column("topic_id", Type.TEXT, "the topic's id, which changes when the topic is created again", is_nullable=True),
    Column("partition", Type.INT32, "the partition's number"),
    Column("committed", Type.INT64, "next offset the group will read; null: none, or not known", is_nullable=True),
    Column("log_end", Type.INT64, "null: not known in this sample", is_nullable=True),
    Column("log_start", Type.INT64, "null: not known in this sample", is_nullable=True),
    Column("state", Type.TEXT, "ok, no_commit, truncated, ahead, stale, leaderless, error or unknown"),
    Column("members", Type.INT32, "members of the group; null: not asked", is_nullable=True),
    Column("isolation", Type.TEXT, "which end `log_end` is: read_uncommitted or read_committed"),
    Column(
        "owner",
        Type.TEXT,
        "id of the member that the partition is assigned to; null: none, several, or not known",
        is_nullable=True,
        is_optional=True,
    ),
    Column(
        "offset_reset",
        Type.TEXT,
        "how the settings count a partition that was never committed: latest (0) or earliest (log_end - log_start)",
        is_nullable=True,
        is_optional=True,
    ),
    Column(
        "last_commit",
        Type.INT64,
        "where a partition without commit counts from: the last commit seen, or 0 if added later; null otherwise",
        is_nullable=True,
        is_optional=True,
    ),
    Column(
        "has_marker",
        Type.FLAG,
        "whether only a transaction marker follows the commit, which the group never passes: nothing waits",
        is_optional=True,
    ),
)
