"""How often a group commits, by the views that somebody looked at."""

from dataclasses import replace

import pytest

from adapter.metrics.store import ClusterView
from adapter.overview.commit_pace import CommitPace, CommitWatch
from tests.support.samples import NOW, row, view

FIRST = view({("billing", "orders", 0): row(0, 1000), ("billing", "orders", 1): row(None, 0)})


def later(seconds: float, committed: int) -> ClusterView:
    """The same rows, of which the first one has this commit so many seconds later."""
    snapshot = FIRST.snapshot
    commits, received = snapshot.committed.copy(), snapshot.received.copy()
    commits[0], received[0] = committed, NOW + seconds
    return replace(FIRST, snapshot=replace(snapshot, committed=commits, received=received))


def watched(*views: ClusterView) -> CommitPace | None:
    watch = CommitWatch()
    for each in (FIRST, *views):
        watch.look([each])
    return watch.of(FIRST, "billing")


def test_the_pace_is_between_the_first_and_the_last_move() -> None:
    pace = watched(*(later(at, 10 * (at - at % 3)) for at in range(3, 13)))

    assert pace == CommitPace(seconds=3.0, per_second=10.0)


def test_a_commit_in_every_read_shows_only_how_rare_they_are_at_most() -> None:
    pace = watched(*(later(at, 10 * at) for at in (3, 6, 9, 12)))

    assert pace == CommitPace(seconds=3.0, per_second=10.0, is_bound=True)


def test_views_without_a_new_commit_do_not_count() -> None:
    pace = watched(later(3, 30), later(4, 30), later(5, 30), later(8, 80), later(13, 130))

    assert pace is not None
    assert pace.seconds == pytest.approx(5.0)


def test_two_moves_show_nothing() -> None:
    assert watched(later(3, 30), later(6, 60)) is None


def test_other_rows_begin_anew() -> None:
    watch = CommitWatch()
    for each in (FIRST, *(later(at, 10 * at) for at in (3, 6, 9, 12))):
        watch.look([each])
    other = view({("billing", "orders", 0): row(120, 1000)})
    watch.look([other])

    assert watch.of(other, "billing") is None
