"""What compaction does where a table that it made itself is missing, or cannot be read any more."""

import shutil
from pathlib import Path

import pytest

from spark.pipeline.compact import LOST, compact
from spark.storage.local import LocalFiles
from tests.compacting import IN_MEMORY, NOW, Way, compacted, hours_of, no_session
from tests.written_history import Row, keyed, read, sample, write

DAY = "date=2026-11-20"
KEY = ("cluster", "group", "topic", "hour")
IN_MEMORY_WAY = Way(IN_MEMORY, no_session)


def hourly(root: Path) -> dict[tuple[object, ...], Row]:
    return dict(keyed(read(root, "hourly"), *KEY))


def spoil(root: Path, table: str, content: bytes | None) -> None:
    """Of the first hour; None: it goes."""
    for path in (root / table / DAY / "hour=06").glob("*.parquet"):
        path.write_bytes(content) if content is not None else path.unlink()


def history(root: Path) -> list[Path]:
    return write(root, [sample(0, 1, 10), sample(10, 2, 15), sample(3600, 5, 20)])


CONTENTS = [pytest.param(None, id="gone"), pytest.param(b"PAR1", id="torn"), pytest.param(b"PAR1" * 99, id="foreign")]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("table", ["_carry", "totals", "partitions"])
def test_an_hour_of_which_a_table_is_spoilt_is_made_again(table: str, content: bytes | None, tmp_path: Path) -> None:
    check_that_it_is_made_again(IN_MEMORY_WAY, table, content, tmp_path)


@pytest.mark.parametrize(("table", "content"), [("_carry", b"PAR1"), ("partitions", None)])
def test_so_is_it_by_spark(table: str, content: bytes | None, way: Way, tmp_path: Path) -> None:
    check_that_it_is_made_again(way, table, content, tmp_path)


def check_that_it_is_made_again(way: Way, table: str, content: bytes | None, root: Path) -> None:
    whole, spoilt = root / "whole", root / "spoilt"
    for each in (whole, spoilt):
        history(each)
        compacted(each, way)
    spoil(spoilt, table, content)
    for each in (whole, spoilt):
        write(each, [sample(3670, 7, 30)], "late")

    compacted(whole, way)
    outcome = compacted(spoilt, way)

    assert (set(hours_of(outcome)), outcome.skipped) == ({6, 7}, ())
    assert hourly(spoilt) == hourly(whole)
    assert compact(LocalFiles(spoilt), no_session, NOW, NOW, lambda _: None).hours == ()


def test_what_cannot_be_handed_over_and_not_be_made_again_is_named_beside_the_hour(tmp_path: Path) -> None:
    first, _ = history(tmp_path)
    compacted(tmp_path, IN_MEMORY_WAY)
    first.unlink()
    spoil(tmp_path, "_carry", b"PAR1")
    write(tmp_path, [sample(3670, 7, 30)], "late")

    outcome = compacted(tmp_path, IN_MEMORY_WAY)

    assert [(each.path, each.reason) for each in outcome.skipped] == [(f"_carry/{DAY}/hour=06", LOST)]
    assert hours_of(outcome) == [7]
    assert hours_of(compacted(tmp_path, IN_MEMORY_WAY)) == []


def test_a_day_whose_hour_is_lost_stays_as_it_was_and_is_named(tmp_path: Path) -> None:
    first, _ = history(tmp_path)
    compacted(tmp_path, IN_MEMORY_WAY)
    before = hourly(tmp_path)
    first.unlink()
    shutil.rmtree(tmp_path / "totals" / DAY / "hour=06")
    write(tmp_path, [sample(3670, 7, 30)], "late")

    outcome = compacted(tmp_path, IN_MEMORY_WAY)

    reason = f"stays as it was, for totals/{DAY}/hour=06 is missing or cannot be read"
    assert [(each.path, each.reason) for each in outcome.skipped] == [(f"hourly/{DAY}", reason)]
    assert hourly(tmp_path) == before


@pytest.mark.parametrize("text", ["{", "[1]", '{"files": 3, "started_from": "", "carried": "", "writers": {}}', "\0"])
def test_an_hour_whose_record_cannot_be_read_is_made_again(text: str, tmp_path: Path) -> None:
    history(tmp_path)
    compacted(tmp_path, IN_MEMORY_WAY)
    (tmp_path / "deltas" / DAY / "hour=06" / "_inputs.json").write_text(text)

    outcome = compacted(tmp_path, IN_MEMORY_WAY)

    assert (hours_of(outcome), outcome.skipped) == ([6], ())
