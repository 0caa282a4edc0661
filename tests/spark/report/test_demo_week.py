"""Every number of the demo week's report beside the truth that was put in: two tables, one row for each field.

A row has the field's path in report.json, the truth, a relative tolerance, and the reason for it. A field that no row
names fails a test, as does a row whose field is gone."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from local.histories.plausible_history import write_week
from spark.advice.assessment import Report
from spark.report.group_file import agreed
from tests.support.history.compacting import compacted, reported
from tests.support.history.demo_fields import (
    AS_COMPUTED,
    COVERAGE,
    EXACT,
    HOT,
    NOW,
    TOPIC_FIELDS,
    Between,
    Field,
    Key,
    Part,
)
from tests.support.history.demo_group_fields import GROUP_FIELDS
from tests.support.history.demo_truth import (
    GROUPS,
    MAX_WAIT,
    TOPICS,
    TopicTruth,
    hpa_over,
)
from tests.support.history.recommendations import assert_recommended_hpas_are_proven, recommended


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module", autouse=True)
def made(spark_session: SparkSession, output: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """With its files in `output`."""
    root = tmp_path_factory.mktemp("week")
    write_week(root)
    compacted(root)
    times = ("2026-11-09T00:00Z", "2026-11-16T00:00Z")
    return reported(root, output, spark_session, NOW, times, "Europe/Berlin", agreed(f"{MAX_WAIT}s", None, None))


@pytest.fixture(scope="module")
def document(output: Path) -> dict[str, Any]:
    return dict(json.loads((output / "report.json").read_text()))


@pytest.fixture(scope="module")
def groups(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {group["group"]: group for group in document["groups"]}


@pytest.fixture(scope="module")
def topics(groups: dict[str, dict[str, Any]]) -> dict[Key, dict[str, Any]]:
    return {(name, topic["topic"]): topic for name, group in groups.items() for topic in group["topics"]}


def numbers_in(part: Part, path: str = "") -> Iterator[str]:
    """The paths of all its numbers; a list's items have the list's path."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from numbers_in(value, f"{path}.{name}")
    elif isinstance(part, list):
        for value in part:
            yield from numbers_in(value, path)
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield path[1:]


def at(part: Part, path: str) -> Part:
    """What is there; the items of a list as a list, and None where a part of the path is null."""
    name, _, rest = path.partition(".")
    if part is None or not name:
        return part
    if isinstance(part, list):
        found = [at(item, path) for item in part]
        if all(isinstance(item, list) for item in found):
            return [value for item in found for value in item]
        return None if all(item is None for item in found) else found
    return at(part[name], rest)


def test_every_group_and_topic_is_there(topics: dict[Key, dict[str, Any]]) -> None:
    assert topics.keys() == TOPICS.keys()


def test_no_number_of_the_report_is_without_its_truth(document: dict[str, Any]) -> None:
    rows = {*(f"groups.topics.{it.path}" for it in TOPIC_FIELDS), *(f"groups.{it.path}" for it in GROUP_FIELDS)}

    assert set(numbers_in(document)) - rows - COVERAGE.keys() == set()
    of_none = {path for path in rows if path.endswith(("uncommitted.partitions",))}
    assert rows - set(numbers_in(document)) - of_none == set()


def test_no_row_is_loose_without_a_reason_of_its_own() -> None:
    loose = [field for field in (*TOPIC_FIELDS, *GROUP_FIELDS) if field.within > EXACT]

    assert [field.path for field in loose if field.because == AS_COMPUTED] == []


@pytest.mark.parametrize("field", TOPIC_FIELDS, ids=lambda field: field.path)
def test_a_topics_figures_are_what_was_put_in(topics: dict[Key, dict[str, Any]], field: Field) -> None:
    for key, truth in TOPICS.items():
        hold(at(topics[key], field.path), field.truth(key, truth), field, key)


@pytest.mark.parametrize("field", GROUP_FIELDS, ids=lambda field: field.path)
def test_a_groups_figures_are_what_was_put_in(groups: dict[str, dict[str, Any]], field: Field) -> None:
    for name, truth in GROUPS.items():
        hold(at(groups[name], field.path), field.truth(name, truth), field, name)


def hold(found: Part, truth: Part, field: Field, of: object) -> None:
    if truth is None:
        assert found is None, of
    elif isinstance(truth, Between):
        values = np.array(found, np.float64)
        is_within = (values >= truth.low) & (values <= truth.high)
        assert (is_within | (isinstance(found, list) & np.isnan(values))).all(), f"{of}: {truth.because}"
    else:
        message = f"{of}: {field.because}"
        np.testing.assert_allclose(
            np.array(found, np.float64), np.array(truth, np.float64), rtol=field.within, err_msg=message
        )


@pytest.mark.parametrize(("path", "truth"), COVERAGE.items())
def test_coverage_counts_the_hours_that_nobody_saw(document: dict[str, Any], path: str, truth: float) -> None:
    assert at(document, path) == truth
    assert document["coverage"]["gaps"] == [{"from": "2026-11-14T02:00:00Z", "to": "2026-11-14T05:00:00Z"}]


@pytest.mark.parametrize("group", ["checkout", "search-index"])
def test_the_recommended_hpa_keeps_the_reports_own_threshold(groups: dict[str, dict[str, Any]], group: str) -> None:
    """Every minute of the week again, with an HPA of our own in steps of 15 s: above the threshold in less than one
    twentieth of the time, where it was above in a fifth of it before."""
    found = groups[group]
    (topic,) = found["topics"]
    read = TOPICS[group, topic["topic"]].read
    ends, hpa = read.log.log_end.sum(axis=0), found["hpa"]
    target, least, most = (hpa[key]["value"] for key in ("target_average_value", "min_replicas", "max_replicas"))
    pods, window = hpa["scale_up"]["policies"][0]["value"], hpa["scale_down"]["stabilization_window_seconds"]["value"]
    rate = np.diff(ends, prepend=ends[0]) / 60
    lag, replicas = hpa_over(rate, read.reader.member_per_second, target, least, most, pods, window)
    above = np.mean(lag > topic["threshold"]["value"])

    assert above < 0.05
    assert above < topic["threshold"]["seconds_above"] / topic["threshold"]["known_seconds"]
    assert len(set(replicas)) > 1


def test_what_happened_is_reproduced_wherever_an_hpa_is_recommended(made: Report) -> None:
    assert_recommended_hpas_are_proven(made)
    assert {"checkout", "search-index"} <= recommended(made).keys()


@pytest.mark.parametrize(
    ("group", "code", "severity"),
    [
        ("mail", "stuck", "act now"),
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


CSV_TRUTH: dict[str, Callable[[Key, TopicTruth], Any]] = {
    "production_rate": lambda _, of: of.mean_rate,
    "consumption_rate": lambda _, of: of.consumed.sum() / of.covered.sum(),
    "peak_production_rate": lambda _, of: of.rate.max(),
    "production_rate_max": lambda _, of: of.steepest.max(),
    "partitions": lambda _, of: len(of.read.committed),
    "skew": lambda _, of: np.median(of.produced.max(axis=0) / of.produced.sum(axis=0)),
    "members_now": lambda key, _: GROUPS[key[0]].members[-60:].max(),
    "late_samples": lambda *_: 1,
}


@pytest.fixture(scope="module")
def rows(output: Path) -> dict[Key, dict[str, str]]:
    read = csv.DictReader((output / "groups.csv").read_text().splitlines())
    return {(row["group"], row["topic"]): row for row in read}


@pytest.mark.parametrize("name", CSV_TRUTH)
def test_the_csv_has_the_truth_of_what_stands_in_it_alone(rows: dict[Key, dict[str, str]], name: str) -> None:
    """All its other columns are figures of report.json."""
    for key, truth in TOPICS.items():
        assert float(rows[key][name]) == pytest.approx(float(CSV_TRUTH[name](key, truth)), rel=1e-9), key
