"""A transaction marker behind the commit is no message, also where the adapter did not recognise it."""

from pathlib import Path

import pytest

from adapter.verdicts.waits import RESIDUE_SECONDS
from tests.support.history.compacting import compacted
from tests.support.history.written_history import Row, read, sample, write

COMMITTED = 9


def at_rest(seconds: float, committed: int = COMMITTED, **other: object) -> list[Row]:
    """A sample every 30 s for so long, one offset behind the log end."""
    samples = range(int(seconds) // 30 + 1)
    columns = {"isolation": "read_committed"} | other
    return [sample(30 * each, committed, COMMITTED + 1, **columns) for each in samples]


def lags_of(place: Path, rows: list[Row]) -> set[object]:
    write(place, rows)
    compacted(place)
    return {row["lag"] for row in read(place, "deltas")}


def test_what_members_leave_for_five_minutes_is_a_marker_from_its_first_sample_on(tmp_path: Path) -> None:
    assert lags_of(tmp_path, at_rest(RESIDUE_SECONDS)) == {0}


@pytest.mark.parametrize(
    "rows",
    [
        at_rest(RESIDUE_SECONDS - 30),
        at_rest(RESIDUE_SECONDS, isolation="read_uncommitted"),
        at_rest(RESIDUE_SECONDS, members=0),
        at_rest(RESIDUE_SECONDS, members=None),
        [
            *at_rest(RESIDUE_SECONDS)[:5],
            *(row | {"committed": 8, "log_end": 9} for row in at_rest(RESIDUE_SECONDS)[5:]),
        ],
    ],
    ids=["for less", "read uncommitted", "without members", "members unknown", "moved"],
)
def test_what_may_still_be_read_is_a_message(rows: list[Row], tmp_path: Path) -> None:
    assert lags_of(tmp_path, rows) == {1}


@pytest.mark.parametrize(("log_end", "lags"), [(COMMITTED + 1, {0, 1}), (COMMITTED + 2, {0})])
def test_what_is_read_at_last_was_a_message_and_what_is_passed_with_the_next_one_a_marker(
    log_end: int, lags: set[int], tmp_path: Path
) -> None:
    at_first = at_rest(RESIDUE_SECONDS)
    last = sample(30 * len(at_first), log_end, log_end, isolation="read_committed")

    assert lags_of(tmp_path, [*at_first, last]) == lags


def test_two_offsets_are_no_marker(tmp_path: Path) -> None:
    assert lags_of(tmp_path, at_rest(RESIDUE_SECONDS, committed=COMMITTED - 1)) == {2}
