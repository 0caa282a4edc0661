"""The columns of the tables that `compact` makes from the history's samples, each described once; docs/history.md says
how they are computed, and `spark.tables.layout` where they lie."""

from __future__ import annotations

from datetime import timedelta

from adapter.history.contract import SAMPLES, Column, Type

DELTAS = (
    *SAMPLES,
    Column(
        "seconds",
        Type.FLOAT64,
        "since the last sample whose log end was known; null: none, or not known now",
        is_nullable=True,
    ),
    Column("produced", Type.INT64, "messages since then; null: also at a reset", is_nullable=True),
    Column(
        "consumed",
        Type.INT64,
        "messages since the last sample whose commit was known; null: none, not known now, a rewind or a skip",
        is_nullable=True,
    ),
    Column(
        "lag",
        Type.INT64,
        "log_end - max(committed, log_start) where the state is ok or truncated, else null",
        is_nullable=True,
    ),
    Column("is_reset", Type.FLAG, "the log end went down: not the same log any more"),
    Column("is_rewind", Type.FLAG, "the commit went down: the group reads again"),
    Column(
        "is_skip",
        Type.FLAG,
        "the commit went up without all of it being read: beyond the end, or from below the log start",
    ),
    Column(
        "is_recreation", Type.FLAG, "first known sample of a generation after another one's: the topic was made again"
    ),
)
"""Of one series (cluster, group, topic, partition) and generation (`topic_id`)."""

TOTALS = (
    Column("sampled_at", Type.TIME, "start of the collection cycle"),
    Column("interval_seconds", Type.FLOAT32, "seconds between two samples of this group while all is well"),
    Column("cluster", Type.TEXT, "the cluster's name in the settings"),
    Column("group", Type.TEXT, "the consumer group"),
    Column("topic", Type.TEXT, "the topic"),
    Column(
        "lag",
        Type.INT64,
        "sum over the partitions with a commit; null: not a sample of the topic's lag",
        is_nullable=True,
    ),
    Column("lag_max", Type.INT64, "of the partition that lags most; null as `lag`", is_nullable=True),
    Column("partitions", Type.INT32, "partitions in this sample"),
    Column("uncommitted", Type.INT32, "of them without a commit"),
    Column("stale", Type.INT32, "of them read by no member"),
    Column(
        "unknown",
        Type.INT32,
        "of them, stale ones aside, with a commit or an end that is not known or not to be believed",
    ),
    Column("members", Type.INT32, "members of the group; null: not asked", is_nullable=True),
    Column(
        "seconds",
        Type.FLOAT64,
        "sum of the partitions' seconds with a known `produced`, divided by `partitions`; null: none",
        is_nullable=True,
    ),
    Column("produced", Type.INT64, "messages; sum of what is known; null: nothing is", is_nullable=True),
    Column("consumed", Type.INT64, "messages; sum of what is known; null: nothing is", is_nullable=True),
    Column(
        "waiting",
        Type.INT32,
        "partitions with a backlog throughout: more than 30 s of their production at both ends; of a member whose "
        "partitions are known, all of them or none; null: written before there was this column",
        is_nullable=True,
    ),
    Column("waiting_consumed", Type.INT64, "messages consumed from these; null: as `waiting`", is_nullable=True),
    Column("resets", Type.INT32, "partitions whose log end went down"),
    Column("rewinds", Type.INT32, "partitions whose commit went down"),
    Column("skips", Type.INT32, "partitions whose commit went up without all of it being read"),
    Column(
        "recreations", Type.INT32, "partitions of which this is the first known sample since the topic was made again"
    ),
    Column("is_after_gap", Type.FLAG, "the least of the partitions' seconds is more than 1.5 intervals"),
)
"""A threshold, an episode or a rate of any kind is found here, without a look at the deltas."""

NAMES = ("cluster", "group", "topic")
PLACE = (*NAMES, "partition")
SERIES = (*NAMES, "topic_id", "partition")

HOUR_MICROS = 3_600_000_000
"""Microseconds of an hour."""

GAP = 1.5
"""Intervals without a sample that make a gap."""

REMEMBERED = timedelta(days=31)
"""A series of which nothing was known for longer starts anew."""

CARRIED = (
    Column("cluster", Type.TEXT, "the cluster's name in the settings"),
    Column("group", Type.TEXT, "the consumer group"),
    Column("topic", Type.TEXT, "the topic"),
    Column("topic_id", Type.TEXT, "the topic's generation", is_nullable=True),
    Column("partition", Type.INT32, "the partition's number"),
    Column("seen_at", Type.TIME, "last sample in which anything was known", is_nullable=True),
    Column("end_at", Type.TIME, "last sample in which the end was known", is_nullable=True),
    Column("log_end", Type.INT64, "then", is_nullable=True),
    Column("committed", Type.INT64, "in the last sample in which it was known", is_nullable=True),
    Column("log_start", Type.INT64, "then", is_nullable=True),
)
"""What an hour hands to the next: the last known values of every series' generation."""

PARTITIONS = (
    Column("cluster", Type.TEXT, "the cluster's name in the settings"),
    Column("group", Type.TEXT, "the consumer group"),
    Column("topic", Type.TEXT, "the topic"),
    Column("partition", Type.INT32, "the partition's number"),
    Column("starts_at", Type.TIME, "start of the hour"),
    Column("samples", Type.INT64, "rows in this hour"),
    Column("seconds", Type.FLOAT64, "sum where `produced` is known; null: nowhere", is_nullable=True),
    Column("produced", Type.INT64, "messages; null: not known", is_nullable=True),
    Column("consumed", Type.INT64, "messages; null: not known", is_nullable=True),
    Column("lag_max", Type.INT64, "messages; null: not known", is_nullable=True),
    Column(
        "moved_at",
        Type.TIME,
        "last sample in which the commit moved, or in which the lag was 0; null: none",
        is_nullable=True,
        is_optional=True,
    ),
    Column(
        "uncommitted_lag",
        Type.INT64,
        "if the last sample has no commit, what `offset_reset` counts: 0, or log_end - log_start; null: else",
        is_nullable=True,
        is_optional=True,
    ),
    Column("owner", Type.TEXT, "of the last sample; null: none, or not known", is_nullable=True, is_optional=True),
)

_SUMMARY = (
    Column(
        "lag_p50",
        Type.FLOAT64,
        "median of the topic's lag over its samples, interpolated; null: no sample",
        is_nullable=True,
    ),
    Column("lag_p95", Type.FLOAT64, "95th percentile", is_nullable=True),
    Column("lag_p99", Type.FLOAT64, "99th percentile", is_nullable=True),
    Column("lag_max", Type.INT64, "largest topic lag", is_nullable=True),
    Column("lag_mean", Type.FLOAT64, "mean topic lag", is_nullable=True),
    Column(
        "lag_partition_max", Type.INT64, "largest lag of one partition in a sample of the topic's lag", is_nullable=True
    ),
    Column("produced", Type.INT64, "messages; null: no difference is known", is_nullable=True),
    Column("consumed", Type.INT64, "messages; null: no difference is known", is_nullable=True),
    Column("covered_seconds", Type.FLOAT64, "time with a known `produced`, mean over the partitions; 0: none"),
    Column("production_rate", Type.FLOAT64, "messages per second of covered time", is_nullable=True),
    Column("consumption_rate", Type.FLOAT64, "messages per second of covered time", is_nullable=True),
    Column(
        "production_rate_max",
        Type.FLOAT64,
        "messages per second in the steepest five minutes; null: no five minutes are half covered",
        is_nullable=True,
    ),
    Column("seconds_lagging", Type.FLOAT64, "sum of the intervals of the samples whose lag is above 0"),
    Column(
        "lagging_consumed",
        Type.INT64,
        "messages consumed in the samples whose lag is above 0; null: none known",
        is_nullable=True,
    ),
    Column("lagging_covered_seconds", Type.FLOAT64, "sum of `seconds` of these samples, where `consumed` is known"),
    Column("samples", Type.INT64, "samples of the topic's lag"),
    Column("cycles", Type.INT64, "samples of the topic, also those without a lag"),
    Column(
        "expected_samples",
        Type.INT64,
        "what the interval promises: 3600 / its mean, rounded, for each hour that has a row",
    ),
    Column("gaps", Type.INT64, "samples that came after a gap"),
    Column("resets", Type.INT64, "log ends that went down"),
    Column("rewinds", Type.INT64, "commits that went down"),
    Column("skips", Type.INT64, "commits that went up without all of it being read"),
    Column("recreations", Type.INT64, "partitions that began anew because the topic was made again, each time"),
    Column("partitions", Type.INT32, "most partitions in one sample"),
    Column("uncommitted_max", Type.INT32, "most partitions without a commit in one sample"),
    Column("stale_samples", Type.INT64, "samples in which every partition was stale"),
    Column("members_min", Type.INT32, "null: never asked", is_nullable=True),
    Column("members_mean", Type.FLOAT64, "null: never asked", is_nullable=True),
    Column("members_max", Type.INT32, "null: never asked", is_nullable=True),
    Column("skew", Type.FLOAT64, "largest partition's share of `produced`; null: nothing produced", is_nullable=True),
)

_NAMES = (
    Column("cluster", Type.TEXT, "the cluster's name in the settings"),
    Column("group", Type.TEXT, "the consumer group"),
    Column("topic", Type.TEXT, "the topic"),
)

HOURLY = (*_NAMES, Column("hour", Type.TIME, "start of the hour"), *_SUMMARY)

SUMMARY = (*HOURLY, Column("known_members", Type.INT64, "samples whose `members` is known"))
"""An hour's rows of HOURLY, and what the day's mean of members needs."""

DAILY = (
    *_NAMES,
    Column("day", Type.TIME, "start of the day, UTC"),
    *_SUMMARY,
    Column("hours", Type.INT32, "hours of the day that have a row"),
)
