"""Each transform beside a few lines of plain Python that do the same, on random samples; all cases in one job."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.pipeline.read_by_spark import schema_of
from spark.report.told_by_spark import episodes_of, lag_figures_of, saturated_windows_of
from spark.rules.told import END_OF_EPISODE
from spark.tables.contract import TOTALS

START = datetime(2026, 6, 1, tzinfo=UTC)
THRESHOLD = 50
Row = dict[str, Any]


def sample(topic: str, seconds: float, lag: int | None, **other: object) -> Row:
    row: Row = dict.fromkeys(column.name for column in TOTALS)
    quiet = dict.fromkeys(("uncommitted", "stale", "unknown", "resets", "rewinds", "skips", "recreations"), 0)
    return {
        **row,
        **quiet,
        "sampled_at": START + timedelta(seconds=seconds),
        "interval_seconds": 10.0,
        "cluster": "main",
        "group": "billing",
        "topic": topic,
        "lag": lag,
        "partitions": 4,
        "members": 2,
        "seconds": 10.0,
        "produced": 0,
        "consumed": 100,
        "is_after_gap": False,
        **other,
    }


def totals(session: SparkSession, rows: list[Row]) -> DataFrame:
    schema = schema_of(TOTALS)
    columns = {name: [row[name] for row in rows] for name in schema.names}
    columns["sampled_at"] = pa.array(columns["sampled_at"], pa.timestamp("us", tz="UTC"))
    columns["interval_seconds"] = pa.array(columns["interval_seconds"], pa.float32())
    return session.createDataFrame(pa.table(columns), schema)


def thresholds(session: SparkSession, rows: list[Row]) -> DataFrame:
    topics = sorted({row["topic"] for row in rows})
    of = len(topics)
    names = {"cluster": ["main"] * of, "group": ["billing"] * of, "topic": topics, "threshold": [THRESHOLD] * of}
    return session.createDataFrame(pa.table(names))


def random_rows(seed: int) -> list[Row]:
    chance = Random(seed)  # noqa: S311 -- a history, no secret
    rows = []
    for number in range(30):
        at = 0.0
        for _ in range(chance.randint(1, 40)):
            at += chance.choice([10, 10, 10, 10, 20, 40, 50, 60, 200])
            lag = chance.choice([None, 0, 10, 50, 51, 60, 60, 60, 500])
            rows.append(sample(f"t{number}", at, lag, consumed=chance.choice([None, 0, 5])))
    return rows


def by_topic(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    known = [row for row in rows if row["lag"] is not None]
    for topic in sorted({row["topic"] for row in known}):
        yield topic, sorted((row for row in known if row["topic"] == topic), key=lambda row: row["sampled_at"])


def plain_episodes(rows: list[Row]) -> list[tuple[float, datetime]]:
    """Length and beginning of each."""
    found: list[list[datetime]] = []
    before: Row | None = None
    for row in rows:
        above = row["lag"] > THRESHOLD
        near = before is not None and (row["sampled_at"] - before["sampled_at"]).total_seconds() <= 10 * END_OF_EPISODE
        if above and near and before is not None and before["lag"] > THRESHOLD:
            found[-1][1] = row["sampled_at"]
        elif above:
            found.append([row["sampled_at"], row["sampled_at"]])
        before = row
    return [((last - first).total_seconds() + 10, first) for first, last in found]


def test_lag_figures_are_those_of_all_samples_with_a_known_lag(spark_session: SparkSession) -> None:
    rows = random_rows(1)
    found = {
        row["topic"]: row
        for row in lag_figures_of(totals(spark_session, rows), thresholds(spark_session, rows)).collect()
    }
    wanted = dict(by_topic(rows))

    assert found.keys() == wanted.keys()
    for topic, own in wanted.items():
        lags = [row["lag"] for row in own]
        row = found[topic]
        assert list(row["percentiles"]) == pytest.approx(list(np.percentile(lags, (50, 95, 99))), rel=1e-9)
        assert (row["samples"], row["lag_max"], row["lag_first"], row["lag_last"]) == (
            len(lags),
            max(lags),
            lags[0],
            lags[-1],
        )
        assert row["seconds_above"] == 10 * sum(lag > THRESHOLD for lag in lags)
        assert row["known_seconds"] == 10 * len(lags)
        assert row["lagging"] == sum(lag > 0 for lag in lags)
        assert row["moving"] == sum(it["lag"] > 0 and (it["consumed"] or 0) > 0 for it in own)


def test_episodes_are_those_that_plain_python_counts(spark_session: SparkSession) -> None:
    rows = random_rows(2)
    found = {
        row["topic"]: row for row in episodes_of(totals(spark_session, rows), thresholds(spark_session, rows)).collect()
    }
    wanted = {topic: plain for topic, own in by_topic(rows) if (plain := plain_episodes(own))}

    assert found.keys() == wanted.keys()
    for topic, episodes in wanted.items():
        longest = max(length for length, _ in episodes)
        assert (found[topic]["episodes"], found[topic]["longest_seconds"]) == (len(episodes), longest)
        began = START.timestamp() + (found[topic]["longest_began"] / 1e6 - START.timestamp())
        assert began in {first.timestamp() for length, first in episodes if length == longest}


def test_a_sample_below_the_threshold_ends_an_episode_and_one_unknown_does_not(spark_session: SparkSession) -> None:
    lags = [60, 60, 10, 60, None, 60, 60]
    rows = [sample("t", 10 * at, lag) for at, lag in enumerate(lags)]
    (row,) = episodes_of(totals(spark_session, rows), thresholds(spark_session, rows)).collect()

    assert (row["episodes"], row["longest_seconds"]) == (2, 40)
    assert row["longest_began"] == (START.timestamp() + 30) * 1e6


def minute(topic: str, at: int, **other: object) -> list[Row]:
    """Six samples of 10 s in which 100 messages each are worked off a backlog of thousands."""
    return [sample(topic, 60 * at + 10 * number, 9000 - 100 * number) | other for number in range(6)]


def test_a_window_gives_what_the_members_did_in_it(spark_session: SparkSession) -> None:
    """Of all topics of a group together; members beyond the partitions have nothing to do."""
    rows = [
        *(row | {"group": "one topic"} for row in minute("t", 0)),
        *(row | {"group": "two topics"} for row in [*minute("t", 0), *minute("u", 0, consumed=50)]),
        *(row | {"group": "idle members"} for row in minute("t", 0, members=9)),
    ]
    found = {row["group"]: row for row in saturated_windows_of(totals(spark_session, rows)).collect()}

    assert {name: (row["seconds"], row["consumed"], row["members"]) for name, row in found.items()} == {
        "one topic": (60, 600, 2),
        "two topics": (60, 900, 2),
        "idle members": (60, 600, 4),
    }


NOT_SATURATED = {
    "caught up": [*minute("t", 0)[:5], sample("t", 50, 0)],
    "a lag that is on its way": minute("t", 0, produced=100, lag=250),
    "a lag not known": [*minute("t", 0)[:5], sample("t", 50, None)],
    "a member that came": [*minute("t", 0)[:5], sample("t", 50, 8000, members=3)],
    "no member": minute("t", 0, members=0),
    "members not counted": minute("t", 0, members=None),
    "a rewind": [*minute("t", 0)[:5], sample("t", 50, 8000, rewinds=1)],
    "a gap": [*minute("t", 0)[:5], sample("t", 50, 8000, is_after_gap=True)],
    "half a window": minute("t", 0)[:3],
    "what was consumed while nobody knew": [sample("t", -10, None), *minute("t", 0)],
}


def test_windows_that_teach_nothing_are_left_out(spark_session: SparkSession) -> None:
    """Each case is a group of its own; one more has a window that misses a sixth of its time."""
    cases = NOT_SATURATED | {"five samples of six": minute("t", 0)[:5]}
    rows = [row | {"group": name} for name, own in cases.items() for row in own]

    assert [row["group"] for row in saturated_windows_of(totals(spark_session, rows)).collect()] == [
        "five samples of six"
    ]
