"""What compaction does with what retention has left, and with what comes after it."""

import shutil
from datetime import timedelta
from pathlib import Path

from spark.pipeline.days import BEGUN_TO_GO
from spark.pipeline.plan import LATE
from tests.support.history.compacting import compacted, hours_of
from tests.support.history.written_history import START, Row, read, sample, write

DAY = "date=2026-11-20"
EXPIRING = ("samples", "hours")


def figures(root: Path) -> list[Row]:
    return [*read(root, "hourly"), *read(root, "daily")]


def expire(root: Path, folder: str) -> None:
    for table in EXPIRING:
        shutil.rmtree(root / table / folder)


def test_an_hour_some_of_whose_files_are_gone_is_left_as_it_is_by_a_late_one(tmp_path: Path) -> None:
    (first,) = write(tmp_path, [sample(0, 1, 10), sample(10, 5, 20)])
    compacted(tmp_path)
    before = figures(tmp_path)
    first.unlink()
    (late,) = write(tmp_path, [sample(20, 6, 30)], "late")

    outcome = compacted(tmp_path)

    assert [(each.path, each.reason) for each in outcome.skipped] == [(str(late.relative_to(tmp_path)), LATE)]
    assert (outcome.hours, outcome.days, figures(tmp_path)) == ((), (), before)


def test_such_an_hour_is_not_made_again_for_what_the_hour_before_hands_over(tmp_path: Path) -> None:
    _, second = write(tmp_path, [sample(0, 1, 10), sample(3600, 5, 20)])
    write(tmp_path, [sample(3670, 6, 21)], "b")
    compacted(tmp_path)
    second.unlink()
    write(tmp_path, [sample(1800, 4, 15)], "late")

    outcome = compacted(tmp_path)

    assert (hours_of(outcome), outcome.skipped) == ([6], ())
    assert [row["cycles"] for row in read(tmp_path, "hourly")] == [2, 2]


def test_a_day_that_retention_took_keeps_its_figures_when_a_late_file_comes(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10), sample(3600, 5, 20), sample(7200, 6, 30), sample(86400, 7, 40)])
    compacted(tmp_path)
    before = figures(tmp_path)
    expire(tmp_path, DAY)
    (late,) = write(tmp_path, [sample(10, 1, 12)], "late")

    outcome = compacted(tmp_path)

    assert [(each.path, each.reason) for each in outcome.skipped] == [(str(late.relative_to(tmp_path)), LATE)]
    assert (outcome.hours, outcome.days, figures(tmp_path)) == ((), (), before)


def test_a_day_of_which_hours_are_gone_takes_no_new_hour_and_is_named(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10), sample(3600, 5, 20)])
    compacted(tmp_path)
    before = figures(tmp_path)
    expire(tmp_path, DAY)
    write(tmp_path, [sample(7200, 6, 30)])

    outcome = compacted(tmp_path)

    assert [(each.path, each.reason) for each in outcome.skipped] == [(f"hourly/{DAY}", BEGUN_TO_GO)]
    assert (outcome.days, figures(tmp_path)) == ((), before)


def test_tables_that_somebody_deleted_are_made_again_while_all_samples_are_there(tmp_path: Path) -> None:
    write(tmp_path, [sample(0, 1, 10), sample(3600, 5, 20)])
    compacted(tmp_path)
    before = figures(tmp_path)
    shutil.rmtree(tmp_path / "hours" / DAY / "hour=06")
    write(tmp_path, [sample(7200, 6, 30)])

    outcome = compacted(tmp_path)

    assert (hours_of(outcome), outcome.skipped) == ([6, 8], ())
    assert read(tmp_path, "hourly")[:2] == before[:2]


def test_a_torn_file_that_was_deleted_keeps_no_late_one_from_its_hour(tmp_path: Path) -> None:
    (torn,) = write(tmp_path, [sample(0, 1, 10)])
    torn.write_bytes(b"PAR1")
    write(tmp_path, [sample(10, 2, 20)], "b")
    compacted(tmp_path)
    torn.unlink()
    write(tmp_path, [sample(80, 3, 30)], "late")

    outcome = compacted(tmp_path)

    assert (hours_of(outcome), outcome.skipped) == ([6], ())
    assert [row["sampled_at"] for row in read(tmp_path, "totals")] == [
        START + timedelta(seconds=10),
        START + timedelta(seconds=80),
    ]
