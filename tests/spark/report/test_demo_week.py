"""Every number of the demo week's report beside the truth that was put in: minute by minute, from `plausible_world`."""

import csv
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from local.histories.plausible_history import AWAY, DOWN, SEED, write_week
from local.histories.plausible_world import MINUTES, TOPICS, Numbers, Rates, Read, at, week
from spark.pipeline.compact import compact
from spark.report.build import report, requested
from spark.report.group_file import agreed
from spark.storage.local import LocalFiles

MAX_WAIT = 120
NOW = datetime(2026, 11, 16, 1, tzinfo=UTC)
READS = {(read.reader.group, read.reader.topic): read for read in week(SEED)}
GROUPS = sorted({group for group, _ in READS})
SATURATED = {"checkout", "clickstream", "reporting", "search-index"}
"""Groups that had more to do than they could, at times."""
HOT, STUCK = "clickstream", "mail"
DUE = np.setdiff1d(np.arange(MINUTES), DOWN)
"""Minutes in which an adapter ran."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Of a group and topic; lags are of the minutes in which the lag was known."""

    known: Numbers
    """Minutes."""
    lag: Numbers
    produced: Numbers
    """By hour of the week, of all partitions."""
    consumed: Numbers


def truth_of(read: Read) -> Truth:
    log, committed = read.log, read.committed
    known = np.setdiff1d(DUE, AWAY)
    known = known[(committed[:, known] >= 0).all(axis=0)]
    lag = (log.log_end - np.maximum(committed, log.log_start)).sum(axis=0)[known]
    ends = np.setdiff1d(DUE, AWAY) if len(committed) > 1 else DUE
    return Truth(known, lag, _by_hour(log.log_end, log.generation, ends), _by_hour(committed, log.generation, DUE))


def _by_hour(offsets: Numbers, generation: NDArray[np.int32], minutes: Numbers) -> Numbers:
    """What was added since the minute before that is known, in the later one's hour; nothing across generations."""
    found = np.zeros(MINUTES // 60, np.int64)
    for partition in offsets:
        for kind in (0, 1):
            own = minutes[(generation[minutes] == kind) & (partition[minutes] >= 0)]
            np.add.at(found, own[1:] // 60, np.diff(partition[own]))
    return found


TRUTH = {key: truth_of(read) for key, read in READS.items()}


@pytest.fixture(scope="module")
def output(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, output = tmp_path_factory.mktemp("week"), tmp_path_factory.mktemp("report")
    write_week(root)
    compact(LocalFiles(root), lambda: spark_session, NOW, NOW, lambda _: None)
    times = ("2026-11-09T00:00Z", "2026-11-16T00:00Z")
    request = requested(str(root), str(output), times, "Europe/Berlin", NOW, agreed(f"{MAX_WAIT}s", None, None))
    report(request, LocalFiles(root), lambda: spark_session, lambda _: None, lambda: None)
    return output


@pytest.fixture(scope="module")
def document(output: Path) -> dict[str, Any]:
    return dict(json.loads((output / "report.json").read_text()))


@pytest.fixture(scope="module")
def groups(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {group["group"]: group for group in document["groups"]}


@pytest.fixture(scope="module")
def topics(groups: dict[str, dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(name, topic["topic"]): topic for name, group in groups.items() for topic in group["topics"]}


def test_every_group_and_topic_is_there(topics: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert topics.keys() == TRUTH.keys()


@pytest.mark.parametrize("key", sorted(TRUTH), ids="/".join)
def test_lag_is_what_waited(topics: dict[tuple[str, str], dict[str, Any]], key: tuple[str, str]) -> None:
    lag, truth = topics[key]["lag"], TRUTH[key]
    percentiles = np.percentile(truth.lag, (50, 95, 99))

    assert [lag[name] for name in ("p50", "p95", "p99")] == pytest.approx(percentiles.tolist(), rel=1e-9)
    assert [lag[name] for name in ("samples", "max", "first", "last")] == [
        len(truth.lag),
        truth.lag.max(),
        truth.lag[0],
        truth.lag[-1],
    ]


@pytest.mark.parametrize("key", sorted(TRUTH), ids="/".join)
def test_hours_and_days_have_what_was_in_them(
    topics: dict[tuple[str, str], dict[str, Any]], key: tuple[str, str]
) -> None:
    topic, truth = topics[key], TRUTH[key]
    hours = np.unique(DUE // 60)
    by_hour = [truth.lag[truth.known // 60 == hour] for hour in hours]
    by_day = [truth.lag[truth.known // 1440 == day] for day in range(7)]

    assert topic["hourly"]["lag_max"] == [lags.max() for lags in by_hour]
    assert topic["hourly"]["lag_p95"] == pytest.approx([np.percentile(lags, 95) for lags in by_hour])
    assert topic["daily"]["lag_p50"] == pytest.approx([np.median(lags) for lags in by_day])
    assert topic["daily"]["lag_max"] == [lags.max() for lags in by_day]
    assert topic["hourly"]["consumed"] == truth.consumed[hours].tolist()
    assert sum(topic["hourly"]["produced"]) == sum(topic["daily"]["produced"]) == truth.produced.sum()


@pytest.mark.parametrize("key", sorted(TRUTH), ids="/".join)
def test_the_threshold_is_what_the_busiest_hour_produced_in_the_agreed_wait(
    topics: dict[tuple[str, str], dict[str, Any]], key: tuple[str, str]
) -> None:
    threshold, truth = topics[key]["threshold"], TRUTH[key]
    whole = np.setdiff1d(np.arange(len(truth.produced)), (0, *(minute // 60 for minute in (DOWN.start, DOWN.stop))))
    busiest = truth.produced[whole].max() / 3600

    assert threshold["value"] == pytest.approx(MAX_WAIT * busiest, rel=0.02)
    stood_still = 60 * minutes_above_without_a_move(key, threshold["value"])
    assert threshold["seconds_above"] == 60 * np.count_nonzero(truth.lag > threshold["value"]) + stood_still
    assert threshold["known_seconds"] == 60 * len(truth.lag) + stood_still


def minutes_above_without_a_move(key: tuple[str, str], threshold: int) -> int:
    """Minutes without a known lag, more than five in a row, over which no commit moved."""
    truth, committed = TRUTH[key], READS[key].committed
    return sum(
        int(after - before - 1)
        for before, after, least in zip(
            truth.known[:-1], truth.known[1:], np.minimum(truth.lag[:-1], truth.lag[1:]), strict=True
        )
        if after - before > 5 and least > threshold and (committed[:, before] == committed[:, after]).all()
    )


@pytest.mark.parametrize("group", GROUPS)
def test_a_member_does_what_was_put_in_or_nobody_knows(groups: dict[str, dict[str, Any]], group: str) -> None:
    found = groups[group]
    readers = [read.reader for key, read in READS.items() if key[0] == group]
    reader, truth = readers[0], sum(reader.member_per_second for reader in readers)

    assert (found["capacity"] is not None) == (group in SATURATED)
    assert found["capacity_at_least"] <= truth * 1.03
    if found["capacity"]:
        assert found["capacity"]["p50"] == pytest.approx(truth, rel=0.03)
        assert found["capacity_at_least"] <= found["capacity"]["p50"] <= found["capacity"]["p95"]
    assert found["members_max"] == reader.members.max()


@pytest.mark.parametrize("key", sorted(TRUTH), ids="/".join)
def test_production_by_weekday_and_hour_is_in_local_time(
    topics: dict[tuple[str, str], dict[str, Any]], key: tuple[str, str]
) -> None:
    """Berlin is an hour ahead: the week's last hour is one of the next Monday, of which no row can be made."""
    hours = np.setdiff1d(np.arange(1, 167), (DOWN.start // 60, DOWN.stop // 60, AWAY.start // 60, at(2, 9) // 60))
    hours = np.setdiff1d(hours, DUE[np.isin(DUE, DOWN)] // 60)
    hours = hours[np.isin(hours, DUE // 60)]
    week = np.array(topics[key]["production_by_weekday_and_hour"], float)
    local = (hours + 1) % 168

    assert np.isnan(week[0, 0])
    assert week[local // 24, local % 24] == pytest.approx(TRUTH[key].produced[hours] / 3600, rel=1e-6)


def test_the_hot_partition_has_the_share_that_was_put_in(topics: dict[tuple[str, str], dict[str, Any]]) -> None:
    (topic,) = (topic for topic in TOPICS if topic.hot_share)
    of = topics[HOT, topic.name]["partitions"]["of"]
    produced = {share["partition"]: share["produced"] for share in of}

    assert produced[0] / sum(produced.values()) == pytest.approx(topic.hot_share + 0.65 / topic.partitions, rel=0.02)


def test_coverage_counts_the_hours_that_nobody_saw(document: dict[str, Any]) -> None:
    coverage = document["coverage"]

    assert coverage["samples"] == sum(len(truth.lag) for truth in TRUTH.values())
    assert coverage["expected_samples"] == len(TRUTH) * MINUTES
    assert coverage["missing_hours"] == len(DOWN) / 60
    assert coverage["gaps"] == [{"from": "2026-11-14T02:00:00Z", "to": "2026-11-14T05:00:00Z"}]
    assert (coverage["resets"], coverage["rewinds"], coverage["recreations"]) == (0, 0, 4)
    assert document["age_seconds"] == 3600


@pytest.mark.parametrize("group", GROUPS)
def test_a_target_is_recommended_where_the_truth_allows_one(groups: dict[str, dict[str, Any]], group: str) -> None:
    target = groups[group]["hpa"]["target_average_value"]
    reader = next(read.reader for key, read in READS.items() if key[0] == group)

    assert (target["value"] is None) == (group not in SATURATED - {HOT}), target["reason"]
    if target["value"] is not None:
        assert target["value"] == pytest.approx(reader.member_per_second * MAX_WAIT / 1.2, rel=0.05)


@pytest.mark.parametrize("group", ["checkout", "search-index"])
def test_the_recommended_hpa_keeps_the_reports_own_threshold(groups: dict[str, dict[str, Any]], group: str) -> None:
    """Every minute of the week again, with an HPA of our own in steps of 15 s: above the threshold in less than one
    twentieth of the time, where it was above in a fifth of it before."""
    found = groups[group]
    (topic,) = found["topics"]
    read = READS[group, topic["topic"]]
    rate = np.diff(read.log.log_end.sum(axis=0), prepend=read.log.log_end[:, 0].sum()) / 60
    lag, changes = hpa_over(rate, read.reader.member_per_second, found["hpa"])
    above = np.mean(lag > topic["threshold"]["value"])

    assert above < 0.05
    assert above < topic["threshold"]["seconds_above"] / topic["threshold"]["known_seconds"]
    assert changes > 0


def hpa_over(rate: Rates, member: float, hpa: dict[str, Any]) -> tuple[Rates, int]:
    """The lag after every step of 15 s, and how often the replicas changed."""
    target, least, most = (hpa[key]["value"] for key in ("target_average_value", "min_replicas", "max_replicas"))
    pods = hpa["scale_up"]["policies"][0]["value"]
    window = hpa["scale_down"]["stabilization_window_seconds"]["value"] // 15
    wanted, lag, seen, changes, recent = [max(least, 1)] * 4, 0.0, 0.0, 0, [max(least, 1)]
    lags = np.empty(4 * len(rate))
    for step in range(len(lags)):
        lag = max(0.0, lag + 15 * (rate[step // 4] - member * min(wanted[-4:])))
        seen = lag if step % 4 == 0 else seen
        now = wanted[-1]
        desired = now if abs(seen / (target * now) - 1) <= 0.1 else min(max(math.ceil(seen / target), least), most)
        recent = [*recent, desired][-window:]
        new = min(desired, max(now + pods, 2 * now)) if desired > now else min(now, max(*recent, now // 2))
        changes += new != now
        wanted.append(new)
        lags[step] = lag
    return lags, changes


@pytest.mark.parametrize(
    ("group", "code", "severity"),
    [
        (STUCK, "stuck", "act now"),
        (HOT, "hot_partition", None),
        ("thumbnails", "idle_members", "watch"),
        ("audit", "recreations", "watch"),
        ("checkout", "above_threshold", "watch"),
        ("reporting", "lag_without_members", "act now"),
    ],
)
def test_what_was_put_in_is_found(
    groups: dict[str, dict[str, Any]], group: str, code: str, severity: str | None
) -> None:
    first = groups[group]["findings"][0]

    assert first["code"] == code
    assert severity is None or groups[group]["severity"] == severity


def test_the_csv_has_the_same_truth(output: Path) -> None:
    rows = list(csv.DictReader((output / "groups.csv").read_text().splitlines()))
    found = {(row["group"], row["topic"]): row for row in rows}

    assert found.keys() == TRUTH.keys()
    for key, truth in TRUTH.items():
        assert int(found[key]["produced"]) == truth.produced.sum()
        assert int(found[key]["consumed"]) == truth.consumed.sum()
        assert int(found[key]["lag_max"]) == truth.lag.max()
        assert int(found[key]["partitions"]) == len(READS[key].committed)
