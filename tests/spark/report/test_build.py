"""The report as a command: from samples through `compact` to its files, and what it refuses."""

import csv
import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from spark.engine.progress import Progress
from spark.errors import Interrupted, Unusable
from spark.pipeline.compact import compact
from spark.report.build import FOLDERS, report
from spark.report.group_file import agreed
from spark.report.json_export import SCHEMA
from spark.report.request import requested
from spark.report.tables import Tables
from spark.storage.local import LocalFiles
from spark.storage.report_output import output_at
from spark.time_options import parsed_time, zone_of
from tests.support.history.compacting import compacted, in_process, reported
from tests.support.history.report_groups import group, report_data
from tests.support.history.written_history import START, sample, write

NOW = START + timedelta(days=2)


def refused_session() -> SparkSession:
    raise AssertionError("a session was asked for")


def made(root: Path, output: Path, session: SparkSession, since: str | None = None, until: str | None = None) -> None:
    reported(root, output, session, NOW, (since, until), "Europe/Berlin")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours: 10 messages/s on two partitions, 1,000 waiting soon after the first hour; one file is torn."""
    root = tmp_path_factory.mktemp("history")
    rows = []
    for number in range(720):
        for partition in (0, 1):
            end = 50 * number
            committed = end if number < 360 else max(50 * 359, end - 500)
            rows.append(sample(10 * number, committed, end, partition=partition))
    write(root, rows)
    (root / "samples/date=2026-11-20/hour=06/torn.parquet").write_bytes(b"PAR1")
    compacted(root)
    return root


def test_every_file_has_the_numbers_that_were_put_in(
    spark_session: SparkSession, history: Path, tmp_path: Path
) -> None:
    made(history, tmp_path, spark_session)
    document = json.loads((tmp_path / "report.json").read_text())
    ((group,), row) = document["groups"], next(csv.DictReader((tmp_path / "groups.csv").read_text().splitlines()))
    (topic,) = group["topics"]

    assert document["schema"] == SCHEMA
    assert (document["from"], document["to"]) == ("2026-11-20T06:00:00Z", "2026-11-20T08:00:00Z")
    assert topic["hourly"]["produced"] == [2 * 50 * 359, 2 * 50 * 360]
    assert row["consumed"] == str(2 * 50 * 719 - 1000)
    assert group["production_rate"]["peak"] == pytest.approx(10)
    assert topic["lag"] == {
        "samples": 720,
        "p50": 50,
        "p95": 1000,
        "p99": 1000,
        "max": 1000,
        "first": 0,
        "last": 1000,
        "since": "2026-11-20T06:00:00Z",
        "until": "2026-11-20T08:00:00Z",
    }
    assert topic["threshold"]["value"] == 600
    assert (topic["threshold"]["seconds_above"], topic["threshold"]["episodes"]) == (3540, 1)
    assert topic["threshold"]["longest_from"] == "2026-11-20T07:01:00Z"
    assert [(share["partition"], share["produced"]) for share in topic["partitions"]["of"]] == [
        (0, 18_000),
        (1, 18_000),
    ]
    assert group["capacity"] is None, "messages always wait 100 s: members keep up, and read late"
    assert [skipped["file"] for skipped in document["coverage"]["skipped"]] == [
        "samples/date=2026-11-20/hour=06/torn.parquet"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "groups.csv",
        "hpa",
        "report.html",
        "report.json",
        "report.md",
    ]
    assert [path.name for path in (tmp_path / "hpa").iterdir()] == ["billing.yaml"]


def test_figures_of_samples_that_retention_took_are_unknown_and_never_0(
    spark_session: SparkSession, history: Path, tmp_path: Path
) -> None:
    """Of the second hour, then of both; the hourly table knows the lag of either."""
    root = tmp_path / "history"
    shutil.copytree(history, root)
    found = []
    for hour in ("06", "07"):
        for table in ("totals", "partitions", "deltas"):
            (root / f"hours/date=2026-11-20/hour={hour}/{table}.parquet").unlink()
        made(root, tmp_path / hour, spark_session)
        document = json.loads((tmp_path / hour / "report.json").read_text())
        row = next(csv.DictReader((tmp_path / hour / "groups.csv").read_text().splitlines()))
        found.append((document["groups"][0]["topics"][0], row))
    (partly, part_row), (gone, gone_row) = found

    assert (partly["lag"]["since"], partly["lag"]["until"]) == ("2026-11-20T07:00:00Z", "2026-11-20T08:00:00Z")
    assert (partly["lag"]["samples"], partly["lag"]["first"], part_row["lag_p50"]) == (360, 100, "1000")
    assert gone["lag"] is None
    assert {gone["threshold"][name] for name in ("seconds_above", "episodes", "longest_seconds")} == {None}
    assert {gone_row[name] for name in ("lag_p50", "lag_p95", "lag_last", "seconds_above", "episodes")} == {""}
    assert (gone["hourly"]["lag_max"], gone_row["lag_max"]) == ([0, 1000], "1000")
    assert "no samples left" in (tmp_path / "07/report.html").read_text()


def test_without_a_range_a_report_is_about_the_last_two_weeks_before_now_or_else_of_data(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    """Weeks later it is made of what there is, and says how old that is."""
    root = tmp_path / "history"
    week = [sample(day * 86_400 + 10 * number, number, number) for day in (0, 20) for number in range(360)]
    write(root, week)
    late = START + timedelta(days=60)
    compact(LocalFiles(root), in_process, late, late, lambda _: None)
    for name, now in (("soon", START + timedelta(days=21)), ("weeks later", late)):
        reported(root, tmp_path / name, spark_session, now)
    soon, later = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("soon", "weeks later"))

    assert soon["from"] == later["from"] == "2026-12-10T06:00:00Z"
    assert (soon["age_seconds"], later["age_seconds"]) == (23 * 3600, 40 * 86_400 - 3600)
    assert "The newest data is 39\u202fd 23\u202fh old" in (tmp_path / "weeks later/report.html").read_text()


def test_a_topic_that_was_made_again_is_told(spark_session: SparkSession, tmp_path: Path) -> None:
    """At 06:30 UTC, which is 07:30 in the zone of the report."""
    root, output = tmp_path / "history", tmp_path / "report"
    old = [sample(10 * number, 500 + number, 900 + number, topic_id="old") for number in range(180)]
    new = [sample(1800 + 10 * number, number, number, topic_id="new") for number in range(180)]
    write(root, old + new)
    compacted(root)
    made(root, output, spark_session)
    document = json.loads((output / "report.json").read_text())
    codes = [finding["code"] for finding in document["groups"][0]["findings"]]

    assert document["coverage"]["recreations"] == 1
    assert document["groups"][0]["topics"][0]["hourly"]["recreations"] == [1]
    assert ("recreations" in codes, "rewinds" in codes, "resets" in codes) == (True, False, False)
    assert "Deleted and made again on Fri 2026-11-20 07:30: orders." in (output / "report.html").read_text()


@pytest.mark.parametrize("limits", [{"since": "2026-11-21"}, {"until": "0001-01-01T00:30Z"}])
def test_a_range_without_data_is_a_report_that_says_so(
    spark_session: SparkSession, history: Path, tmp_path: Path, limits: dict[str, str]
) -> None:
    made(history, tmp_path, spark_session, **limits)

    assert json.loads((tmp_path / "report.json").read_text())["groups"] == []
    assert "There is no group in this range." in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("since", "to", "zone", "said"),
    [
        (None, None, "Mars/Base", "^--timezone: is .*; must be a time zone"),
        (None, None, "../etc/passwd", "^--timezone: is .*; must be a time zone"),
        (None, None, "", "^--timezone: is .*; must be a time zone"),
        ("yesterday", None, "UTC", "^--from: is 'yesterday'; must be a time"),
        (None, "2026-13-01", "UTC", "^--to: is '2026-13-01'; must be a time"),
        (
            "0001-01-01",
            None,
            "Asia/Tokyo",
            "^--from 0001-01-01 in Asia/Tokyo or UTC is outside the years 1 to 9999",
        ),
        (
            None,
            "9999-12-31T23:00",
            "America/New_York",
            "^--to 9999-12-31T23:00 in America/New_York or UTC is outside",
        ),
        (
            "0001-01-01T00:00Z",
            None,
            "America/New_York",
            "^--from 0001-01-01T00:00Z in America/New_York or UTC is outside",
        ),
        ("2026-11-02", "2026-11-01", "UTC", "is not before"),
        ("2026-11-02", "2026-11-02", "UTC", "is not before"),
        ("9999-12-31", None, "UTC", "^--from 9999-12-31 is in the future"),
    ],
)
def test_bad_flags_are_refused_in_a_sentence(since: str | None, to: str | None, zone: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        requested("history", "report", (since, to), zone, NOW)


def test_an_end_in_the_future_is_no_end() -> None:
    """It must neither replace a good report with an empty one, nor make old data look new."""
    wanted = requested("history", "report", (None, "9999-12-31"), "UTC", NOW).wanted

    assert (wanted.since, wanted.until) == (None, None)


def test_a_time_without_a_zone_is_one_of_the_readers() -> None:
    berlin = zone_of("Europe/Berlin")

    assert parsed_time("--from", "2026-06-01T09:00", berlin) == datetime(2026, 6, 1, 7, tzinfo=UTC)
    assert parsed_time("--from", "2026-06-01T09:00Z", berlin) == datetime(2026, 6, 1, 9, tzinfo=UTC)


def test_a_location_without_tables_is_refused_before_spark_starts(tmp_path: Path) -> None:
    output = tmp_path / "report"
    request = requested(str(tmp_path), str(output), (None, None), "UTC", NOW)
    with pytest.raises(Unusable, match="run `compact` first"):
        report(request, LocalFiles(tmp_path), refused_session, lambda _: None, lambda: None)

    assert not output.exists()


def test_a_damaged_table_is_named_in_a_sentence(spark_session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "hourly/date=2026-11-20").mkdir(parents=True)
    (tmp_path / "hourly/date=2026-11-20/hourly.parquet").write_bytes(b"PAR1 no more")

    with pytest.raises(Unusable, match=r"hourly\.parquet cannot be read"):
        made(tmp_path, tmp_path / "report", spark_session)


def test_a_new_report_takes_the_place_of_the_old_one_as_a_whole(tmp_path: Path) -> None:
    output_at(str(tmp_path)).publish(
        [("report.md", "old"), ("hpa/gone.yaml", "old"), ("groups/gone.html", "")], FOLDERS
    )
    output_at(str(tmp_path)).publish([("report.md", "new"), ("hpa/kept.yaml", "new")], FOLDERS)

    assert (tmp_path / "report.md").read_text() == "new"
    assert [path.name for path in (tmp_path / "hpa").iterdir()] == ["kept.yaml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hpa", "report.md"]


def test_what_is_published_beside_a_report_leaves_its_folders(tmp_path: Path) -> None:
    """As a replay does."""
    output_at(str(tmp_path)).publish([("hpa/billing.yaml", "")], FOLDERS)
    output_at(str(tmp_path)).publish([("replay.html", "")])

    assert (tmp_path / "hpa/billing.yaml").exists()


def test_a_report_that_is_interrupted_leaves_the_old_one(
    spark_session: SparkSession, history: Path, tmp_path: Path
) -> None:
    output_at(str(tmp_path)).publish([("report.md", "old")], FOLDERS)
    request = requested(str(history), str(tmp_path), (None, None), "UTC", NOW)

    def interrupt() -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        report(request, LocalFiles(history), lambda: spark_session, lambda _: None, interrupt)

    assert (tmp_path / "report.md").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_a_report_that_is_interrupted_while_it_is_written_leaves_the_old_one_and_told_how_far_it_was(
    tmp_path: Path,
) -> None:
    (tmp_path / "history/hourly/date=2026-11-20").mkdir(parents=True)
    (tmp_path / "history/hourly/date=2026-11-20/hourly.parquet").touch()
    output, shown = tmp_path / "report", list[str]()
    output.mkdir()
    output_at(str(output)).publish([("report.md", "old"), ("hpa/old.yaml", "old")], FOLDERS)
    request = requested("history", str(output), (None, None), "UTC", NOW)

    def interrupt() -> None:
        if "writing report.json, file 2" in shown:
            raise Interrupted

    gathered = mock.patch("spark.report.build.gathered", return_value=report_data(group()))
    with gathered, pytest.raises(Interrupted):
        report(request, LocalFiles(tmp_path / "history"), mock.Mock(), lambda _: None, interrupt, shown.append)

    assert shown == ["writing hpa/billing.yaml, file 1", "writing report.json, file 2"]
    assert sorted(str(path.relative_to(output)) for path in output.rglob("*")) == ["hpa", "hpa/old.yaml", "report.md"]


def test_a_job_of_a_report_tells_how_far_it_is() -> None:
    shown = list[str]()
    with mock.patch("spark.report.tables.run", return_value=[]) as run:
        Tables(mock.create_autospec(SparkSession), LocalFiles(Path()), shown.append).partitions({})
    run.call_args.args[4](Progress(1, 4, None))

    assert re.fullmatch("partitions of the busiest hours: 1 of 4 done, [0-9]+ s left", shown[0])


def test_an_output_that_is_no_place_of_ours_is_refused() -> None:
    with pytest.raises(Unusable, match=r"^'hdfs://lag/reports' is neither a path nor s3://"):
        output_at("hdfs://lag/reports")


def test_only_the_chosen_groups_are_reported_by_what_was_agreed_on(
    spark_session: SparkSession, history: Path, tmp_path: Path
) -> None:
    """The busiest hour produces 10/s, so that the threshold of a wait of two minutes is 1,200."""
    (tmp_path / "groups.yaml").write_text("groups: [{group: billing, owner: Payments, maxWait: 2m}]")
    chosen, unknown = (
        agreed("60s", None, tmp_path / "groups.yaml", names) for names in (["billing"], ["billing", "bililng"])
    )
    reported(history, tmp_path / "report", spark_session, NOW, agreements=chosen)
    made = (tmp_path / "report/report.json").read_text()
    (billing,) = json.loads(made)["groups"]

    assert (billing["owner"], billing["max_wait_seconds"]) == ("Payments", 120)
    assert billing["topics"][0]["threshold"]["value"] == 1200
    with pytest.raises(Unusable, match=r"^--group bililng: the range has no such group; did you mean 'billing'\?$"):
        reported(history, tmp_path / "report", spark_session, NOW, agreements=unknown)
    assert (tmp_path / "report/report.json").read_text() == made
