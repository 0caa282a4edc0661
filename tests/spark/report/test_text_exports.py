import csv
import io
import json
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.advice.assessment import Report
from spark.figures import formatting
from spark.figures.model import Group, Still
from spark.report.fields import FIELDS
from spark.report.json_export import MOST_HOURS, SCHEMA, json_of
from spark.report.templating import at_a_glance
from spark.report.text_exports import csv_of, markdown, markdown_of
from spark.tables.sample_files import Skipped
from tests.support.history.advised_groups import decided_on
from tests.support.history.report_groups import MONDAY, group, hours, report_data, saturated, together, topic


def report(*groups: Group) -> Report:
    return decided_on(report_data(*groups))


def document(*groups: Group) -> dict[str, Any]:
    return dict(json.loads(json_of(report(*groups))))


def rows(*groups: Group) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_of(report(*groups)))))


BILLING = group("billing", topic("orders", hours(lag=lambda hour: 10.0 * hour)), capacity=saturated(60, 50))


def test_the_json_says_its_schema_and_its_range() -> None:
    found = document(BILLING)

    assert found["schema"] == SCHEMA == "kafka-lag-report/1"
    assert (found["from"], found["to"]) == ("2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z")


def test_the_same_figures_stand_in_json_and_csv() -> None:
    (of_group,), (row,) = document(BILLING)["groups"], rows(BILLING)
    (of_topic,) = of_group["topics"]

    assert float(row["lag_p95"]) == of_topic["lag"]["p95"]
    assert float(row["capacity_p50"]) == of_group["capacity"]["p50"] == 50
    assert int(row["target"]) == of_group["hpa"]["target_average_value"]["value"]
    assert float(row["produced"]) == sum(of_topic["hourly"]["produced"]) == 48 * 36_000


def test_a_topics_row_has_its_own_peak_and_partitions_and_those_of_its_group_where_only_it_has_any() -> None:
    loud, quiet = hours(production=lambda _: 30, partitions=30), hours(production=lambda _: 10, partitions=10)
    both = group("a", topic("loud", loud), topic("quiet", quiet))
    found = {row["topic"]: row for row in rows(replace(both, hours=together([loud, quiet]), jumped=np.zeros(48)))}

    assert [found[name]["peak_production_rate"] for name in ("loud", "quiet")] == ["30", "10"]
    assert [found[name]["partitions"] for name in ("loud", "quiet")] == ["30", "10"]
    assert {row["max_replicas"] for row in found.values()} == {"30"}


def test_there_is_a_row_for_each_group_and_topic() -> None:
    found = rows(group("a", topic("x"), topic("y")), BILLING)

    assert sorted((row["group"], row["topic"]) for row in found) == [("a", "x"), ("a", "y"), ("billing", "orders")]
    assert tuple(found[0]) == tuple(FIELDS)


def test_what_is_not_known_is_null_or_an_empty_cell_and_never_zero() -> None:
    unknown = group("a", replace(topic("x", hours(members_max=math.nan)), lag=None))
    (of_group,), (row,) = document(unknown)["groups"], rows(unknown)

    assert of_group["capacity"] is None
    assert of_group["topics"][0]["lag"] is None
    assert of_group["topics"][0]["hourly"]["members_max"] == [None] * 48
    assert (row["lag_p50"], row["capacity_p50"], row["members_max"]) == ("", "", "")


def test_a_backlog_that_never_drains_is_said_to_last() -> None:
    behind = topic("x", hours(production=lambda _: 500, lag_max=9e6))
    (of_topic,) = document(group("a", behind, capacity=saturated(60, 50)))["groups"][0]["topics"]

    assert (of_topic["drain_seconds"], of_topic["drains"]) == (None, False)


def test_drain_time_is_the_largest_lag_over_what_members_can_do_beside_production() -> None:
    behind = topic("x", hours(production=lambda _: 40, lag_max=6000))
    (of_topic,) = document(group("a", behind, capacity=saturated(60, 50)))["groups"][0]["topics"]

    assert of_topic["drain_seconds"] == 6000 / (2 * 50 - 40)


@settings(max_examples=30)
@given(st.text(max_size=30), st.text(max_size=30))
def test_names_come_back_whole(name: str, of_topic: str) -> None:
    it = group(name, topic(of_topic))
    (found,) = document(it)["groups"]
    row = next(csv.DictReader(io.StringIO(csv_of(report(it)), newline="")))

    assert (found["group"], found["topics"][0]["topic"]) == (name, of_topic)
    assert (unquoted(row["group"]), unquoted(row["topic"])) == (formatting.name(name), of_topic)


def unquoted(cell: str) -> str:
    return cell.removeprefix("'")


def test_a_group_without_a_name_is_seen_where_people_look_and_stays_as_it_is_for_programs() -> None:
    nameless = group("")
    headings = [line for line in markdown_of(report(nameless)).splitlines() if line.startswith("## ")]

    assert rows(nameless)[0]["group"] == '""'
    assert '| fine | "" | orders |' in markdown_of(report(nameless))
    assert headings[0] == '## ""'
    assert document(nameless)["groups"][0]["group"] == ""


def test_markdown_tells_groups_of_several_clusters_apart() -> None:
    lines = markdown_of(report(group("a"), replace(group("a"), cluster="eu"))).splitlines()

    assert [line for line in lines if line.startswith("## a")] == ["## a (eu)", "## a (main)"]
    assert [line.split(" | ")[1] for line in lines if line.startswith("| fine")] == ["a (eu)", "a (main)"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@a", "\t=1", "\r=1", "'=1"])
def test_no_name_begins_a_formula_in_a_spreadsheet(name: str) -> None:
    row = next(csv.DictReader(io.StringIO(csv_of(report(group(name, topic("-x")))), newline="")))

    assert (row["group"], row["topic"], row["cluster"]) == (f"'{name}", "'-x", "main")


def test_no_name_begins_a_formula_where_semicolons_separate_cells() -> None:
    row = next(csv.DictReader(io.StringIO(csv_of(report(group("a;=1;b;'=1"))), newline="")))

    assert row["group"] == "a;'=1;b;''=1"


@pytest.mark.parametrize("name", ["a|b", "a\nb", "<script>", "`*_[x](y)", "# a"])
def test_a_name_stays_in_its_cell_of_the_markdown(name: str) -> None:
    line = next(line for line in markdown_of(report(group(name))).splitlines() if "| orders |" in line)

    assert line.replace("\\|", "").count("|") == 10
    assert "<script>" not in line
    assert markdown(name) in line


def test_markdown_names_what_was_skipped() -> None:
    torn = Skipped("samples/date=2026-06-01/hour=00/a*.parquet", "is torn")
    text = markdown_of(decided_on(replace(report_data(group()), skipped=(torn,))))

    assert "1 file of the history was skipped." in text
    assert "- samples/date=2026-06-01/hour=00/a\\*.parquet: is torn\n" in text


def test_hours_without_any_group_and_samples_after_a_gap_are_told_as_such() -> None:
    early = topic("orders", hours(number=3, gaps=2))
    late = topic("orders", hours(number=3, gaps=1, since=MONDAY + timedelta(hours=7)))
    of = report(group("billing", early), group("shop", late))
    coverage = json.loads(json_of(of))["coverage"]

    assert (coverage["missing_hours"], coverage["late_samples"]) == (4, 9)
    assert coverage["gaps"] == [{"from": "2026-06-01T03:00:00Z", "to": "2026-06-01T07:00:00Z"}]
    assert "9 samples came after a gap" in markdown_of(of)


def test_data_that_is_days_old_is_said_to_be_so_first_and_asks_nobody_to_act_now() -> None:
    stuck = group("a", topic("x", hours(lag=lambda _: 500.0, consumed=0.0)))
    old, asked_for = (decided_on(report_data(stuck, is_past=is_past)) for is_past in (False, True))
    said = json.loads(json_of(old))

    assert at_a_glance(old).startswith("The newest data is 6\u202fd old: what it shows may be over. Worth watching: a.")
    assert (said["age_seconds"], said["groups"][0]["severity"]) == (6 * 86400, "watch")
    assert at_a_glance(asked_for) == "1 of 1 group needs attention now: a."


def test_of_a_year_the_json_has_the_newest_hours_alone() -> None:
    (of_topic,) = document(group("a", topic("x", hours(24 * 365))))["groups"][0]["topics"]

    assert len(of_topic["hourly"]["hour"]) == len(of_topic["hourly"]["lag_p95"]) == MOST_HOURS
    assert of_topic["hourly"]["hour"][-1] == "2027-05-31T23:00:00Z"


def test_a_group_that_ended_before_the_others_asks_nobody_to_act_now() -> None:
    """Who deleted a group, as the report had asked for, is not asked again for two weeks."""
    gone = group("gone", topic("x", hours(lag=lambda _: 500.0, members_max=0)))
    other = group("other", topic("y", hours(number=60)))
    alone, beside = (json.loads(json_of(report(*groups)))["groups"][0] for groups in ((gone,), (gone, other)))

    assert (alone["severity"], beside["severity"]) == ("act now", "watch")
    assert "ended" not in {it["code"] for it in alone["findings"]}
    (ended,) = (it for it in beside["findings"] if it["code"] == "ended")
    assert ended["words"].startswith("Ended on Wed 2026-06-03 02:00, with a lag of 500 messages: ")


def test_markdown_has_the_age_of_the_data_and_why_no_hpa_is_recommended() -> None:
    said = markdown_of(report(group("billing", topic())))

    assert "The newest data is 6\u202fd old." in said
    assert "- **HPA target**: none. What a member can do is not known: the group was never seen saturated." in said


def test_csv_counts_what_is_stuck_or_has_no_commit() -> None:
    still = Still(2, (0, 1), MONDAY, True, MONDAY + timedelta(days=2), 900, ())
    (row,) = rows(group("a", replace(topic(), still=still, uncommitted=3, uncommitted_lag=70)))

    names = ("stuck_partitions", "uncommitted_partitions", "uncommitted_messages")

    assert [row[name] for name in names] == ["2", "3", "70"]


def test_a_topics_forecast_says_how_far_off_it_was_and_is_null_before_two_weeks_were_seen() -> None:
    daily = hours(14 * 24, production=lambda hour: 100 if hour % 24 == 9 else 10)
    found = document(group("a", topic("x", daily), topic("y")))["groups"][0]["topics"]
    forecast = {of_topic["topic"]: of_topic["forecast"] for of_topic in found}

    assert forecast["y"] is None
    assert (forecast["x"]["error"], forecast["x"]["is_better"]) == (pytest.approx(0, abs=1e-9), True)
    assert forecast["x"]["error_of_last_hour"] == pytest.approx(180 / (100 + 23 * 10), rel=0.01)
