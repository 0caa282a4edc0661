"""The columns of the tables that `compact` makes from the history's samples, each described once; docs/history.md says
how they are computed, and `spark.tables.layout` where they lie."""

from datetime import timedelta
from functools import partial

from adapter.history.contract import SAMPLES, Column, Type

_known = partial(Column, is_nullable=True)
"""A column that is null where nothing is known."""

_NAMES = (
    Column("cluster", Type.TEXT, "the cluster's name in the settings"),
    Column("group", Type.TEXT, "the consumer group"),
    Column("topic", Type.TEXT, "the topic"),
)
_PLACE = (*_NAMES, Column("partition", Type.INT32, "the partition's number"))

DELTAS = (
    *SAMPLES,
    _known("seconds", Type.FLOAT64, "since the last known log end; null: none, or not known now"),
    _known("produced", Type.INT64, "messages since then; null: also at a reset"),
    _known("consumed", Type.INT64, "messages since the last known commit; null: also at a rewind or a skip"),
    _known("lag", Type.INT64, "log_end - max(committed, log_start) where the state is ok or truncated"),
    Column("is_reset", Type.FLAG, "the log end went down: it is another log"),
    Column("is_rewind", Type.FLAG, "the commit went down: the group reads again"),
    Column(
        "is_skip",
        Type.FLAG,
        "the commit went up past messages that were not read: from below the start, or past the end",
    ),
    Column(
        "is_recreation", Type.FLAG, "first known sample of a generation after another one's: the topic was made again"
    ),
)
"""Of one series (cluster, group, topic, partition) and generation (`topic_id`)."""

TOTALS = (
    Column("sampled_at", Type.TIME, "start of the collection cycle"),
    Column("interval_seconds", Type.FLOAT32, "seconds between two samples of this group while all is well"),
    *_NAMES,
    _known("lag", Type.INT64, "sum over the partitions with a commit; null: not a sample of the topic's lag"),
    _known("lag_max", Type.INT64, "of the partition that lags most; null as `lag`"),
    _known("wait_seconds", Type.FLOAT64, "age of the oldest message that waits, in any partition; null as `lag`"),
    Column("wait_is_bound", Type.FLAG, "whether it is at least that old: it was there before the history"),
    _known("partitions_with_lag", Type.INT32, "partitions whose lag is above 0; null as `lag`"),
    Column("partitions", Type.INT32, "partitions in this sample"),
    Column("uncommitted", Type.INT32, "of them without a commit"),
    Column("stale", Type.INT32, "of them read by no member"),
    Column("unknown", Type.INT32, "of the others, with a commit or an end that is not known or not to be believed"),
    _known("members", Type.INT32, "members of the group; null: not asked"),
    _known("seconds", Type.FLOAT64, "sum of the partitions' seconds with a known `produced`, divided by `partitions`"),
    _known("produced", Type.INT64, "messages; sum of what is known; null: nothing is"),
    _known("consumed", Type.INT64, "messages; sum of what is known; null: nothing is"),
    _known("waiting", Type.INT32, "partitions with a backlog throughout; null: written before there was this column"),
    _known("waiting_consumed", Type.INT64, "messages consumed from these; null: as `waiting`"),
    Column("resets", Type.INT32, "partitions whose log end went down"),
    Column("rewinds", Type.INT32, "partitions whose commit went down"),
    Column("skips", Type.INT32, "partitions whose commit went up without all of it being read"),
    Column("recreations", Type.INT32, "partitions with their first known sample since the topic was made again"),
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

COVERED_SECONDS = 1800.0
"""An hour with less covered time says too little about its rate."""

EVENTS = ("resets", "rewinds", "skips", "recreations")
"""Columns of TOTALS. A sample with one of these says nothing about a rate."""

REMEMBERED = timedelta(days=31)
"""A series of which nothing was known for longer starts anew."""

CARRIED = (
    *_NAMES,
    _known("topic_id", Type.TEXT, "the topic's generation"),
    _PLACE[-1],
    _known("seen_at", Type.TIME, "last sample in which anything was known"),
    _known("end_at", Type.TIME, "last sample in which the end was known"),
    _known("log_end", Type.INT64, "then"),
    _known("committed", Type.INT64, "in the last sample in which it was known"),
    _known("log_start", Type.INT64, "then"),
    _known("writer", Type.TEXT, "of the sample at `end_at`"),
    _known("interval_seconds", Type.FLOAT32, "in that sample"),
    Column("is_reset", Type.FLAG, "the log end went down in that sample"),
)
"""What an hour hands to the next: the last known values of every series' generation. Rows without `seen_at` are earlier
log ends of a series that its commit has not passed (`spark.rules.trail`)."""

PARTITIONS = (
    *_PLACE,
    Column("starts_at", Type.TIME, "start of the hour"),
    Column("samples", Type.INT64, "rows in this hour"),
    _known("seconds", Type.FLOAT64, "sum where `produced` is known; null: nowhere"),
    _known("produced", Type.INT64, "messages"),
    _known("consumed", Type.INT64, "messages"),
    _known("lag_max", Type.INT64, "messages"),
    _known("moved_at", Type.TIME, "last sample in which the commit moved, or in which the lag was 0; null: none"),
    _known("uncommitted_lag", Type.INT64, "what the settings count if the last sample has no commit; null: else"),
    _known("owner", Type.TEXT, "of the last sample; null: none, or not known"),
)

_SUMMARY = (
    _known("lag_p50", Type.FLOAT64, "median of the topic's lag over its samples, interpolated; null: no sample"),
    _known("lag_p95", Type.FLOAT64, "95th percentile"),
    _known("lag_p99", Type.FLOAT64, "99th percentile"),
    _known("lag_max", Type.INT64, "largest topic lag"),
    _known("lag_mean", Type.FLOAT64, "mean topic lag"),
    _known("lag_partition_max", Type.INT64, "largest lag of one partition in a sample of the topic's lag"),
    _known("wait_p50", Type.FLOAT64, "median wait in seconds over the same samples, interpolated; null: none is known"),
    _known("wait_p95", Type.FLOAT64, "95th percentile"),
    _known("wait_p99", Type.FLOAT64, "99th percentile"),
    _known("wait_max", Type.FLOAT64, "longest wait"),
    _known("wait_bounds", Type.INT64, "of these samples those whose wait is a lower bound; null: no wait is known"),
    _known("produced", Type.INT64, "messages; null: no difference is known"),
    _known("consumed", Type.INT64, "messages; null: no difference is known"),
    Column("covered_seconds", Type.FLOAT64, "time with a known `produced`, mean over the partitions; 0: none"),
    _known("production_rate", Type.FLOAT64, "messages per second of covered time"),
    _known("consumption_rate", Type.FLOAT64, "messages per second of covered time"),
    _known("production_rate_max", Type.FLOAT64, "in the steepest five minutes; null: none are half covered"),
    Column("seconds_lagging", Type.FLOAT64, "sum of the intervals of the samples whose lag is above 0"),
    _known("lagging_consumed", Type.INT64, "messages consumed in the samples whose lag is above 0"),
    Column("lagging_covered_seconds", Type.FLOAT64, "sum of `seconds` of these samples, where `consumed` is known"),
    Column("samples", Type.INT64, "samples of the topic's lag"),
    Column("cycles", Type.INT64, "samples of the topic, also those without a lag"),
    Column("expected_samples", Type.INT64, "3600 / the mean interval, rounded, for each hour that has a row"),
    Column("gaps", Type.INT64, "samples that came after a gap"),
    Column("resets", Type.INT64, "log ends that went down"),
    Column("rewinds", Type.INT64, "commits that went down"),
    Column("skips", Type.INT64, "commits that went up without all of it being read"),
    Column("recreations", Type.INT64, "partitions that began anew because the topic was made again, each time"),
    Column("partitions", Type.INT32, "most partitions in one sample"),
    Column("uncommitted_max", Type.INT32, "most partitions without a commit in one sample"),
    Column("stale_samples", Type.INT64, "samples in which every partition was stale"),
    _known("members_min", Type.INT32, "null: never asked"),
    _known("members_mean", Type.FLOAT64, "null: never asked"),
    _known("members_max", Type.INT32, "null: never asked"),
    _known("skew", Type.FLOAT64, "largest partition's share of `produced`; null: nothing produced"),
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

_OF_MINUTE = (
    *_NAMES[:2],
    Column("minute", Type.TIME, "start of the minute"),
    _known("produced", Type.INT64, "messages; null: no difference is known"),
    _known("consumed", Type.INT64, "messages; null: no difference is known"),
    _known("lag", Type.INT64, "sum of the topics' last known lags of the minute, right by 2 %; null: one is not known"),
    _known("wait_seconds", Type.FLOAT32, "longest wait of a sample of any topic, right by 2 %; null as `lag`"),
    Column("wait_is_bound", Type.FLAG, "whether it is at least that long"),
    _known("members_min", Type.INT32, "null: not asked"),
    _known("members_max", Type.INT32, "null: not asked"),
    _known("partitions_with_lag", Type.INT32, "in the samples of `lag`; null as `lag`"),
)

MINUTES = (
    *_OF_MINUTE,
    _known("skew", Type.FLOAT32, "largest partition's share of `produced`, right by 2 %; null: nothing produced"),
)

PER_MINUTE = (
    *_OF_MINUTE,
    _known("largest", Type.INT64, "most messages produced in one partition"),
    Column("unknown", Type.INT32, "topics whose lag is not known in the whole minute"),
)
"""What an hour adds to MINUTES: several rows of one minute for a group whose topics are computed in several parts."""
