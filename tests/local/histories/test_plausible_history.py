"""The history that is made up: it is the adapter's own format, always the same, and has in it what it is made for."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute as pc
from pyarrow import dataset

from adapter.history.contract import SAMPLES
from local.demo import report
from local.histories import large_day, plausible_world
from local.histories.plausible_history import SEED, WRITERS, write_large_day, write_week
from local.histories.plausible_world import at, moment
from local.processes import wait_until


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    write_week(folder)
    return folder


@pytest.fixture(scope="module")
def week(location: Path) -> pa.Table:
    return dataset.dataset(location / "samples", partitioning=None).to_table()


def chosen(table: pa.Table, **values: str) -> pa.Table:
    for name, value in values.items():
        table = table.filter(pc.equal(table[name], value))
    return table.sort_by([("partition", "ascending"), ("sampled_at", "ascending")])


def between(table: pa.Table, begin: int, end: int) -> pa.Table:
    """Of those minutes of the week."""
    times = pc.and_(pc.greater_equal(table["sampled_at"], moment(begin)), pc.less(table["sampled_at"], moment(end)))
    return table.filter(times)


def test_it_has_the_contracts_columns_and_a_file_for_each_hour_with_an_adapter(location: Path, week: pa.Table) -> None:
    assert week.column_names == [column.name for column in SAMPLES]
    assert len(list(location.rglob("*.parquet"))) == 7 * 24 - 3 + 1


def test_the_same_seed_creates_the_same_bytes_and_another_one_other_offsets(location: Path, tmp_path: Path) -> None:
    def digest(folder: Path) -> str:
        files = sorted(folder.rglob("*.parquet"))
        return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()

    write_week(tmp_path)
    one, other = (plausible_world.week(seed)[0].committed for seed in (SEED, 1))

    assert digest(tmp_path) == digest(location)
    assert (one != other).any()


def test_offsets_only_move_forward_within_a_generation(week: pa.Table) -> None:
    one_writer = between(week, at(2, 0), at(5, 0))
    for group in set(week["group"].to_pylist()):
        rows = chosen(one_writer, group=group).to_pandas()
        for _, own in rows.groupby(["topic", "topic_id", "partition"]):
            for column in ("committed", "log_end", "log_start"):
                assert (own[column].dropna().diff().dropna() >= 0).all(), (group, column)


def test_commits_are_never_beyond_the_log(week: pa.Table) -> None:
    known = week.filter(pc.and_(pc.is_valid(week["committed"]), pc.is_valid(week["log_end"])))

    assert known.num_rows > 600_000
    assert pc.all(pc.less_equal(known["committed"], known["log_end"])).as_py()


def test_the_stuck_group_has_members_and_does_not_move_while_its_lag_grows(week: pa.Table) -> None:
    rows = chosen(between(week, at(3, 14, 20), at(4, 14, 20)), group="mail", state="ok")
    first = rows.filter(pc.equal(rows["partition"], 0))

    assert pc.count_distinct(first["committed"]).as_py() == 1
    assert pc.min(rows["members"]).as_py() == 3
    assert first["log_end"][-1].as_py() - first["committed"][-1].as_py() > 500_000


def test_a_topic_is_made_again_and_begins_at_zero(week: pa.Table) -> None:
    before = chosen(between(week, at(2, 9, 29), at(2, 9, 30)), group="audit")
    after = chosen(between(week, at(2, 9, 30), at(2, 9, 31)), group="audit")

    assert set(before["topic_id"].to_pylist()).isdisjoint(after["topic_id"].to_pylist())
    assert pc.max(after["log_end"]).as_py() < 10_000 < pc.min(before["log_end"]).as_py()
    assert set(after["state"].to_pylist()) == {"no_commit"}


def test_no_adapter_wrote_on_saturday_night_and_two_did_on_tuesday_morning(location: Path, week: pa.Table) -> None:
    tuesday = [path.name for path in location.glob("samples/date=2026-11-10/hour=10/*")]

    assert between(week, at(5, 2), at(5, 5)).num_rows == 0
    assert sorted(name.rpartition("-")[0] for name in tuesday) == sorted(WRITERS)
    assert between(week, at(1, 10), at(1, 11)).num_rows == 2 * between(week, at(1, 11), at(1, 12)).num_rows


def test_the_group_scaled_by_hand_is_saturated_on_some_evening(week: pa.Table) -> None:
    evening = chosen(between(week, at(0, 20), at(0, 21)), group="checkout")
    first = evening.filter(pc.equal(evening["partition"], 0))
    lag = np.array(first["log_end"]) - np.array(first["committed"])
    consumed = np.diff(np.array(first["committed"])) / 60

    assert (np.diff(lag)[-20:] > 0).mean() > 0.8
    assert np.median(consumed) == pytest.approx(85 * 4 / 12, rel=0.05)


def test_a_hot_partition_and_more_members_than_partitions_are_there(week: pa.Table) -> None:
    monday = between(week, 0, at(1, 0))
    clicks = chosen(monday, group="clickstream").to_pandas().groupby("partition")["log_end"]
    produced = clicks.max() - clicks.min()

    assert produced[0] / produced.sum() == pytest.approx(0.35 + 0.65 / 16, abs=0.01)
    assert pc.min(chosen(monday, group="thumbnails")["members"]).as_py() > 4


def test_a_broker_that_was_away_leaves_unknown_ends(week: pa.Table) -> None:
    away = between(week, at(6, 20), at(6, 20, 10))
    unknown = chosen(away, state="unknown")

    assert 0 < unknown.num_rows < away.num_rows
    assert unknown["log_end"].null_count == unknown["received_at"].null_count == unknown.num_rows


def test_a_large_day_has_a_row_for_every_partition_and_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_day, "FLUSH_SECONDS", 21_600)
    written = write_large_day(tmp_path, partitions=20, interval=3600, days=1)
    rows = dataset.dataset(tmp_path / "samples", partitioning=None).to_table()

    assert (written.rows, written.files, rows.num_rows) == (20 * 24, 4, 20 * 24)
    assert len(set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True))) == 20
    assert pc.all(pc.less_equal(rows["committed"], rows["log_end"])).as_py()


class Commands:
    """Runs none of them, and says that they ended with `status`."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.ran: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> int:
        self.ran.append(list(command))
        return self.status


def test_the_demo_compacts_the_whole_week_and_then_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Commands(status=0)
    assert report.show(tmp_path / "demo", run) == 0

    assert [command[1:4] for command in run.ran] == [["-m", "spark", "compact"], ["-m", "spark", "report"]]
    assert run.ran[0][-1] == "2026-11-16T00:00:00Z"
    assert capsys.readouterr().out.splitlines()[-1] == f"the report: {tmp_path}/demo/report/report.html"


def test_the_demo_ends_with_the_command_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Commands(status=3)
    assert report.show(tmp_path / "demo", run) == 3

    assert len(run.ran) == 1
    assert capsys.readouterr().err == "compacting failed with status 3\n"


def test_the_demos_command_ends_with_it(tmp_path: Path) -> None:
    """Stopped by SIGTERM, as `make` is by whatever runs it."""
    mark = tmp_path / "runs"
    child = f"import pathlib, os, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys\n"
        "from local.processes import exit_on_sigterm\n"
        "from local.demo.report import _run\n"
        f"with exit_on_sigterm():\n    _run([sys.executable, '-c', {child!r}])\n"
    )
    demo = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_until(lambda: mark.exists() and bool(mark.read_text()), "the command to run", 60)
        demo.terminate()
        assert demo.wait(30) == 128 + signal.SIGTERM
    finally:
        demo.kill()
        demo.wait()

    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
