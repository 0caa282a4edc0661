"""The kernel without a JVM, beside a few lines of plain Python that compute the same from random samples of hours."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adapter.history.arrow import ARROW_TYPES
from spark.folds.episodes import END_OF_EPISODE
from spark.folds.lag_statistics import STATISTICS, statistics_of
from spark.folds.topic_samples import COLUMNS, Topics
from spark.folds.wait_figures import at_least
from spark.tables.columns import rows_of

START = datetime(2026, 6, 1, tzinfo=UTC)
THRESHOLD = 50
SCHEMA = pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in COLUMNS])
Row = dict[str, Any]


def sample(topic: str, seconds: float, lag: int | None, **other: object) -> Row:
    return {
        "sampled_at": START + timedelta(seconds=seconds),
        "interval_seconds": 10.0,
        "cluster": "main",
        "group": "billing",
        "topic": topic,
        "lag": lag,
        "partitions": 4,
        "unknown": int(lag is None),
        "members": 2,
        "seconds": 10.0,
        "produced": 10,
        "consumed": 100,
        "waiting": 0,
        "waiting_consumed": 0,
        "resets": 0,
        "rewinds": 0,
        "skips": 0,
        "recreations": 0,
        "is_after_gap": False,
        **other,
    }


def statistics(rows: Iterable[Row], *, threshold: int = THRESHOLD) -> dict[str, Row]:
    """By group; rows come in any order within an hour."""
    hours: dict[datetime, list[Row]] = {}
    for row in rows:
        hours.setdefault(row["sampled_at"].replace(minute=0, second=0, microsecond=0), []).append(row)
    keys = sorted({(row["cluster"], row["group"], row["topic"]) for of in hours.values() for row in of})
    chance = Random(7)  # noqa: S311 -- an order, no secret
    tables = [pa.Table.from_pylist(chance.sample(hours[hour], len(hours[hour])), SCHEMA) for hour in sorted(hours)]
    found = statistics_of((rows_of(table, COLUMNS) for table in tables), Topics(keys, np.full(len(keys), threshold)))
    assert found.schema == STATISTICS
    return {row["group"]: row for row in found.to_pylist()}


def topics_in(rows: Iterable[Row], **settings: int) -> dict[str, Row]:
    (group,) = statistics(rows, **settings).values()
    return {row["topic"]: row for row in group["topics"]}


def random_rows(seed: int) -> list[Row]:
    """Thirty topics over three hours."""
    chance = Random(seed)  # noqa: S311 -- a history, no secret
    rows = []
    for number in range(30):
        at = chance.choice([0.0, 3500.0, 7000.0])
        for _ in range(chance.randint(1, 40)):
            at += chance.choice([10, 10, 10, 10, 20, 40, 50, 60, 200])
            lag = chance.choice([None, 0, 10, 50, 51, 60, 60, 60, 500])
            rows.append(sample(f"t{number}", at, lag, consumed=chance.choice([None, 0, 5])))
    return rows


def known_by_topic(rows: list[Row]) -> dict[str, list[Row]]:
    """`moved`: whether commits did, since the sample before."""
    found: dict[str, list[Row]] = {}
    moved: dict[str, bool] = {}
    for row in sorted(rows, key=lambda row: row["sampled_at"]):
        moved[row["topic"]] = moved.get(row["topic"], False) or (row["consumed"] or 0) > 0
        if row["lag"] is not None:
            found.setdefault(row["topic"], []).append(row | {"moved": moved.pop(row["topic"])})
    return found


def bridged_seconds(before: Row | None, row: Row) -> float | None:
    """From the sample before, beyond its own interval, within an episode; None: the episode, if any, had ended."""
    if before is None or before["lag"] <= THRESHOLD or row["lag"] <= THRESHOLD:
        return None
    passed: float = (row["sampled_at"] - before["sampled_at"]).total_seconds()
    if passed <= 10 * END_OF_EPISODE:
        return 0.0
    return None if row["moved"] else passed - 10


def plain_episodes(rows: list[Row]) -> list[tuple[float, datetime]]:
    """Length and beginning of each."""
    found: list[list[datetime]] = []
    before: Row | None = None
    for row in rows:
        if bridged_seconds(before, row) is not None:
            found[-1][1] = row["sampled_at"]
        elif row["lag"] > THRESHOLD:
            found.append([row["sampled_at"], row["sampled_at"]])
        before = row
    return [((last - first).total_seconds() + 10, first) for first, last in found]


def test_lag_figures_are_those_of_all_samples_with_a_known_lag() -> None:
    rows = random_rows(1)
    found = topics_in(rows)
    wanted = known_by_topic(rows)

    assert {topic for topic, row in found.items() if row["samples"]} == wanted.keys()
    for topic, own in wanted.items():
        lags, row = [each["lag"] for each in own], found[topic]
        assert [row["p50"], row["p95"], row["p99"]] == pytest.approx(list(np.percentile(lags, (50, 95, 99))))
        assert [row[name] for name in ("samples", "max", "first", "last")] == [len(lags), max(lags), lags[0], lags[-1]]
        assert (row["since"], row["until"]) == (own[0]["sampled_at"], own[-1]["sampled_at"] + timedelta(seconds=10))
        bridged = sum(bridged_seconds(*pair) or 0.0 for pair in pairwise(own))
        assert row["seconds_above"] == 10 * sum(lag > THRESHOLD for lag in lags) + bridged
        assert row["known_seconds"] == 10 * len(lags) + bridged
        assert row["lagging"] == sum(each["lag"] > 0 or (each["consumed"] or 0) > 0 for each in own)
        assert row["moving"] == sum((each["consumed"] or 0) > 0 for each in own)


def test_a_topic_without_a_known_lag_has_no_figures() -> None:
    (row,) = topics_in([sample("t", 0, None)]).values()

    assert (row["samples"], row["episodes"]) == (0, 0)
    assert {row[name] for name in ("p50", "p95", "p99", "max", "first", "last", "since", "until", "longest_from")} == {
        None
    }


def test_episodes_are_those_that_plain_python_counts_also_across_hours() -> None:
    rows = random_rows(2)
    found = topics_in(rows)
    wanted = {topic: plain_episodes(own) for topic, own in known_by_topic(rows).items()}

    ends = [(first, first + timedelta(seconds=length - 10)) for of in wanted.values() for length, first in of]
    assert any(first.hour != last.hour for first, last in ends)
    for topic, episodes in wanted.items():
        row, longest = found[topic], max((length for length, _ in episodes), default=0)
        assert (row["episodes"], row["longest_seconds"]) == (len(episodes), longest)
        assert row["longest_from"] == min((first for length, first in episodes if length == longest), default=None)
        ends = [(first, first + timedelta(seconds=length)) for length, first in episodes]
        assert (row["first_from"], row["last_until"]) == ((ends[0][0], ends[-1][1]) if ends else (None, None))
        quiet = [(later[0] - earlier[1]).total_seconds() for earlier, later in pairwise(ends)]
        assert row["longest_quiet"] == max(quiet, default=0)


def test_a_sample_below_the_threshold_ends_an_episode_and_one_unknown_does_not() -> None:
    lags = [60, 60, 10, 60, None, 60, 60]
    (row,) = topics_in([sample("t", 3570 + 10 * at, lag) for at, lag in enumerate(lags)]).values()

    assert (row["episodes"], row["longest_seconds"]) == (2, 40)
    assert row["longest_from"] == START + timedelta(hours=1)


@pytest.mark.parametrize(("consumed", "longest"), [(0, 1620), (1, 20)])
def test_a_gap_over_which_no_commit_moved_does_not_split_an_episode(consumed: int, longest: int) -> None:
    rows = [sample("t", at, 60, consumed=consumed) for at in (0, 10, 1600, 1610)]
    (row,) = topics_in(rows).values()

    assert (row["longest_seconds"], row["episodes"]) == (longest, 2 if consumed else 1)
    assert row["seconds_above"] == row["known_seconds"] == (40 if consumed else 1620)


def minute(topic: str, at: int, **other: object) -> list[Row]:
    """Six samples of 10 s in which 100 messages each are worked off a backlog of thousands, on all four partitions."""
    busy = {"waiting": 4, "waiting_consumed": other.get("consumed", 100)} | other
    return [sample(topic, 60 * at + 10 * number, 9000 - 100 * number) | busy for number in range(6)]


def test_a_saturated_window_shows_what_one_member_can_do() -> None:
    """Of all topics of a group together; members beyond the partitions have nothing to do."""
    cases = {
        "one topic": minute("t", 0),
        "two topics": [*minute("t", 0), *minute("u", 0, consumed=50)],
        "idle members": minute("t", 0, members=9),
        "two windows": [*minute("t", 0), *minute("t", 60, consumed=300)],
        "one partition of four": minute("t", 0, waiting=1, waiting_consumed=25),
        "a topic that keeps up": [*minute("t", 0), *minute("u", 0, consumed=50, waiting=0, waiting_consumed=0)],
        "a topic without a lag": [*minute("t", 0), *minute("u", 0, lag=None, unknown=0, consumed=None, waiting=0)],
    }
    found = statistics(row | {"group": name} for name, rows in cases.items() for row in rows)
    figures = ("windows", "seconds", "p50", "p95")
    capacities = {name: tuple(row["capacity"][figure] for figure in figures) for name, row in found.items()}

    assert capacities == {
        "one topic": (1, 60, 5, 5),
        "two topics": (1, 60, 7.5, 7.5),
        "idle members": (1, 60, 2.5, 2.5),
        "two windows": (2, 120, 10, pytest.approx(14.5)),
        "one partition of four": (1, 60, 5, 5),
        "a topic that keeps up": (1, 60, 7.5, 7.5),
        "a topic without a lag": (1, 60, 5, 5),
    }


NOT_SATURATED = {
    "caught up": [*minute("t", 0)[:5], sample("t", 50, 0)],
    "no partition with a backlog": minute("t", 0, waiting=0, waiting_consumed=0),
    "partitions not looked at": minute("t", 0, waiting=None, waiting_consumed=None),
    "a lag not known": [*minute("t", 0)[:5], minute("t", 0, lag=None, unknown=1)[5]],
    "a member that came": [*minute("t", 0)[:5], minute("t", 0, members=3)[5]],
    "no member": minute("t", 0, members=0),
    "members not counted": minute("t", 0, members=None),
    "nothing consumed": minute("t", 0, consumed=0),
    "a rewind": [*minute("t", 0)[:5], minute("t", 0, rewinds=1)[5]],
    "a gap": [*minute("t", 0)[:5], minute("t", 0, is_after_gap=True)[5]],
    "half a window": minute("t", 0)[:3],
    "what was consumed while nobody knew": [sample("t", 50, None), *minute("t", 1)],
    "what was consumed while nobody knew, an hour before": [sample("t", 3590, None), *minute("t", 60)],
    "another interval, and back": [
        row | {"interval_seconds": 10 + at % 2 * 10} for at, row in enumerate(minute("t", 0))
    ],
}


def test_windows_that_teach_nothing_are_left_out() -> None:
    """Each case is a group of its own; one more has a window that misses a sixth of its time."""
    cases = NOT_SATURATED | {"five samples of six": minute("t", 0)[:5]}
    found = statistics(row | {"group": name} for name, own in cases.items() for row in own)

    assert {name for name, row in found.items() if row["capacity"]} == {"five samples of six"}


def test_commits_that_jump_and_those_of_no_member_are_summed_by_hour() -> None:
    rows = [
        *(sample("t", 10 * at, 500) for at in range(5)),
        sample("t", 50, 500, rewinds=1, consumed=7),
        sample("u", 50, 500, skips=1, consumed=8),
        sample("t", 60, 500, is_after_gap=True, consumed=None),
        sample("t", 70, 500, members=0, consumed=900),
        sample("t", 3650, 500, recreations=4, resets=1, consumed=40),
        sample("t", 3660, 500, members=0, is_after_gap=True, consumed=2),
    ]
    (group,) = statistics(rows).values()

    assert group["jumps"] == [
        {"hour": START, "messages": 915},
        {"hour": START + timedelta(hours=1), "messages": 42},
    ]


@pytest.mark.parametrize("members", [0, None])
def test_a_group_that_never_has_a_member_reads_without_being_a_group(members: int | None) -> None:
    rows = [sample("t", 10 * at, 500, members=members, rewinds=int(at == 1)) for at in range(3)]
    (group,) = statistics(rows).values()

    assert group["jumps"] == [{"hour": START, "messages": 100}]


def test_rows_of_other_groups_are_ignored() -> None:
    table = pa.Table.from_pylist([sample("t", 0, 60), sample("t", 0, 70) | {"group": "other"}], SCHEMA)
    found = statistics_of([rows_of(table, COLUMNS)], Topics([("main", "billing", "t")], np.array([1])))

    assert [row["max"] for row in found["topics"].to_pylist()[0]] == [60]


def test_hours_without_a_row_and_no_hours_at_all_make_no_figures() -> None:
    nothing = rows_of(SCHEMA.empty_table(), COLUMNS)
    for hours in ([], [nothing]):
        (row,) = statistics_of(hours, Topics([("main", "billing", "t")], np.array([1]))).to_pylist()

        assert (row["jumps"], row["capacity"], row["topics"][0]["samples"]) == ([], None, 0)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((), set()),
        ((0,), {"p99", "max", "first"}),
        (range(10), {"p95", "p99", "max", "first"}),
        (range(60), {"p50", "p95", "p99", "max", "first"}),
        ((99,), {"p99", "max", "last"}),
    ],
)
def test_waits_that_would_be_longer_if_a_bound_were_are_lower_bounds(bounds: Iterable[int], expected: set[str]) -> None:
    """There are a hundred samples. In those of `bounds`, a message from before the history waits."""
    rows = [sample("t", 10 * at, 5, wait_seconds=60.0, wait_is_bound=at in set(bounds)) for at in range(100)]
    (group,) = statistics(rows).values()

    assert at_least(group["topics"][0]["wait_at_least"]) == expected
    assert group["topics"][0]["wait_bounds"] == len(set(bounds))
    assert group["topics"][0]["wait_max"] == 60
