"""What compaction does where a table that it made itself is missing, or cannot be read any more."""

from pathlib import Path

import pytest

from spark.pipeline.batches import LOST
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.support.history.compacting import NOW, compacted, hours_of, no_session
from tests.support.history.written_history import Row, keyed, read, sample, write

DAY = "date=2026-11-20"
KEY = ("cluster", "group", "topic", "hour")


def hourly(root: Path) -> dict[tuple[object, ...], Row]:
    return dict(keyed(read(root, "hourly"), *KEY))


def spoil(root: Path, table: str, content: bytes | None) -> None:
    """Of the first hour; None: it goes."""
    path = root / "hours" / DAY / "hour=06" / f"{table}.parquet"
    path.write_bytes(content) if content is not None else path.unlink()


def history(root: Path) -> list[Path]:
    return write(root, [sample(0, 1, 10), sample(10, 2, 15), sample(3600, 5, 20)])


CONTENTS = [pytest.param(None, id="gone"), pytest.param(b"PAR1", id="torn"), pytest.param(b"PAR1" * 99, id="foreign")]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("table", ["carry", "totals", "partitions"])
def test_an_hour_of_which_a_table_is_spoilt_is_made_again(table: str, content: bytes | None, tmp_path: Path) -> None:
    whole, spoilt = tmp_path / "whole", tmp_path / "spoilt"
    for each in (whole, spoilt):
        history(each)
        compacted(each)
    spoil(spoilt, table, content)
    for each in (whole, spoilt):
        write(each, [sample(3670, 7, 30)], "late")

    compacted(whole)
    outcome = compacted(spoilt)

    assert (set(hours_of(outcome)), outcome.skipped) == ({6, 7}, ())
    assert hourly(spoilt) == hourly(whole)
    assert compact(LocalFiles(spoilt), no_session, NOW, NOW, lambda _: None).hours == ()


def test_what_cannot_be_handed_over_and_not_be_made_again_is_named_beside_the_hour(tmp_path: Path) -> None:
    first, _ = history(tmp_path)
    compacted(tmp_path)
    first.unlink()
    spoil(tmp_path, "carry", b"PAR1")
    write(tmp_path, [sample(3670, 7, 30)], "late")

    outcome = compacted(tmp_path)

    assert [(each.path, each.reason) for each in outcome.skipped] == [(f"hours/{DAY}/hour=06/carry.parquet", LOST)]
    assert hours_of(outcome) == [7]
    assert hours_of(compacted(tmp_path)) == []


def test_a_day_whose_hour_is_lost_stays_as_it_was_and_is_named(tmp_path: Path) -> None:
    first, _ = history(tmp_path)
    compacted(tmp_path)
    before = hourly(tmp_path)
    first.unlink()
    spoil(tmp_path, "totals", None)
    write(tmp_path, [sample(3670, 7, 30)], "late")

    outcome = compacted(tmp_path)

    reason = f"was not recomputed: hours/{DAY}/hour=06/totals.parquet is missing or cannot be read"
    assert [(each.path, each.reason) for each in outcome.skipped] == [(f"hourly/{DAY}", reason)]
    assert hourly(tmp_path) == before


@pytest.mark.parametrize("text", ["{", "[1]", '{"files": 3, "started_from": "", "carried": "", "writers": {}}', "\0"])
def test_an_hour_whose_record_cannot_be_read_is_made_again(text: str, tmp_path: Path) -> None:
    history(tmp_path)
    compacted(tmp_path)
    (tmp_path / "hours" / DAY / "hour=06" / "_record.json").write_text(text)

    outcome = compacted(tmp_path)

    assert (hours_of(outcome), outcome.skipped) == ([6], ())
