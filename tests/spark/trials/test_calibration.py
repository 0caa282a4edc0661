from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.load import Load
from adapter.verdicts.simulation.replay import replayed
from adapter.verdicts.simulation.scalers import Lane
from spark.errors import Unusable
from spark.trials.calibration import Calibration, Courses, as_served, as_they_were, calibration_of
from spark.trials.minutes import Minutes
from tests.support.history.minutes import read_by

CONSUMERS = Consumers(50.0, (12,), interval_seconds=10.0)
DAY = np.arange(1440)
WAVE = 60 * (100 + 80 * np.sin(DAY / 1440 * 2 * np.pi))
"""Messages of each minute: 20/s to 180/s."""
STEADY = read_by(WAVE, np.full(1440, 3.0), 50.0)
"""Three members that do 50/s each: from 150/s on, messages wait."""


def calibrated(minutes: Minutes) -> tuple[Calibration, Courses, Courses]:
    """Also what was observed, and what the replay made of it."""
    (result,) = replayed([as_they_were(minutes, CONSUMERS)])
    calibration, observed = calibration_of(minutes, CONSUMERS, 60.0, 100, result)
    return calibration, observed, as_served(minutes, CONSUMERS, result)


def test_members_that_were_never_counted_are_named() -> None:
    with pytest.raises(Unusable, match="members of the group were not counted"):
        as_they_were(replace(STEADY, members_max=np.full(1440, np.nan)), CONSUMERS)


def test_minutes_without_a_count_of_members_have_the_replicas_of_the_last_count() -> None:
    """None of them is a minute with no replica, so that what was there costs what it did cost."""
    uncounted = np.where((DAY >= 300) & (DAY < 900), np.nan, 3.0)
    calibration, observed, _ = calibrated(replace(STEADY, members_min=uncounted, members_max=uncounted))

    assert calibration.observed.replica_hours == calibration.replayed.replica_hours == 72
    assert np.array_equal(observed.replicas, uncounted, equal_nan=True)


@pytest.mark.parametrize("members", [np.full(1440, 3.0), np.where(DAY < 480, 2.0, 4.0)])
def test_a_past_that_members_explain_is_reproduced(members: np.ndarray) -> None:
    calibration, observed, again = calibrated(read_by(WAVE, members, 50.0))

    assert calibration.misfit == ""
    assert calibration.off_seconds < 0.1 * calibration.observed.wait_p95
    assert calibration.replayed.wait_p50 == pytest.approx(calibration.observed.wait_p50, rel=0.05, abs=1)
    assert again.lag == pytest.approx(observed.lag, rel=0.1, abs=1000)
    assert calibration.replayed.minutes_above == pytest.approx(calibration.observed.minutes_above, rel=0.1)


def test_members_that_are_slower_by_day_are_replayed_so() -> None:
    """They do 50/s at night and 25/s for half of the day."""
    pace = np.where((DAY >= 480) & (DAY < 1200), 0.5, 1.0)
    slow = replace(read_by(WAVE, 3.0 * pace, 50.0), members_min=np.full(1440, 3.0), members_max=np.full(1440, 3.0))
    known, unknown = (calibrated(each)[0] for each in (replace(slow, pace=pace), slow))

    assert known.misfit == ""
    assert known.off_seconds < 0.1 * known.observed.wait_p95
    assert unknown.misfit != ""


def test_a_group_that_never_keeps_up_is_reproduced_and_its_backlog_is_no_time_before_a_commit() -> None:
    """Two members read 100/s of 120/s all day, so messages wait in every minute, and ever longer."""
    behind = read_by(np.full(1440, 60 * 120.0), np.full(1440, 2.0), 50.0)
    calibration, observed, again = calibrated(behind)
    enough = replayed([replace(as_they_were(behind, CONSUMERS), members=np.full(1440, 3))])[0]

    assert calibration.misfit == ""
    assert again.wait_seconds[-1] == pytest.approx(observed.wait_seconds[-1], rel=0.05)
    assert as_served(behind, CONSUMERS, enough).wait_seconds.max() < 30


def unsteady() -> Minutes:
    """Every tenth minute, two of three members were away for a part that the minute does not show."""
    late = np.where(DAY % 10 == 0, STEADY.wait_seconds + 9000, STEADY.wait_seconds)
    return replace(STEADY, wait_seconds=late, members_min=np.where(DAY % 10 == 0, 1.0, 3.0))


def unsteady_between_samples() -> Minutes:
    """Samples, one in a minute, see one member in every tenth minute, and three in the others."""
    away = DAY % 10 == 0
    counted = np.where(away, 1.0, 3.0)
    late = np.where(away, STEADY.wait_seconds + 9000, STEADY.wait_seconds)
    return replace(STEADY, wait_seconds=late, members_min=counted, members_max=counted)


def poisoned() -> Minutes:
    """One partition is not read for half of the day, and the replay does not know of it."""
    late = np.where(DAY >= 720, STEADY.wait_seconds + 60.0 * (DAY - 720), STEADY.wait_seconds)
    return replace(STEADY, wait_seconds=late, partitions_with_lag=np.where(DAY >= 720, 1.0, STEADY.partitions_with_lag))


def bursting() -> Minutes:
    return replace(STEADY, wait_seconds=STEADY.wait_seconds * 2)


def bursting_and_seldom_counted() -> Minutes:
    """Members were counted in every other minute, and there were always three of them."""
    counted = np.where(DAY % 2 == 0, np.nan, 3.0)
    return replace(bursting(), members_min=counted, members_max=counted)


def quicker() -> Minutes:
    return replace(STEADY, wait_seconds=STEADY.wait_seconds / 2)


def with_two_busy(second: int) -> Minutes:
    """Two partitions, 0 and `second`, each get a quarter of all messages. The range assignor gives the first four
    partitions to one of three members."""
    weights = np.where(np.isin(np.arange(12), [0, second]), 5.0, 1.0)
    skew = np.full(1440, 0.25)
    produced = 60 * (80 + 50 * np.sin(DAY / 1440 * 2 * np.pi))
    load = Load(produced, skew, 0.0, 0.0, weights / 5)
    (real,) = replayed([Lane(load, CONSUMERS, members=np.full(1440, 3))])
    seen = read_by(produced, np.full(1440, 3.0), 50.0)
    return replace(seen, lag=real.lag.astype(float), wait_seconds=real.wait_seconds.astype(float) + 5.0, skew=skew)


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (partial(with_two_busy, 1), "waited longer than the minutes explain: "),
        (partial(with_two_busy, 4), "waited shorter than the minutes explain: "),
        (unsteady, "members came and went in 10\u202f% of the minutes"),
        (unsteady_between_samples, "members came and went in 19.9\u202f% of the minutes"),
        (poisoned, "1 of 12 partitions had the lag"),
        (bursting, "in bursts within a minute"),
        (bursting_and_seldom_counted, "in bursts within a minute"),
        (quicker, "members did more than"),
    ],
)
def test_what_does_not_fit_is_named(of: Callable[[], Minutes], why: str) -> None:
    calibration, _, _ = calibrated(of())

    assert why in calibration.misfit
    assert calibration.doubt == ""
    assert not calibration.is_close


KEEPING_UP = read_by(np.full(1440, 60 * 60.0), np.full(1440, 3.0), 50.0)
"""Messages wait for the next commit alone."""


@pytest.mark.parametrize(
    ("interval", "promised", "observed", "off", "is_reproduced"),
    [
        (60.0, 300.0, 1000.0, 240.0, True),
        (60.0, 300.0, 1000.0, 260.0, False),
        (60.0, 300.0, 20.0, 29.0, True),
        (60.0, 300.0, 10.0, 50.0, False),
        (60.0, 100.0, 20.0, 29.0, False),
        (60.0, 100.0, 20.0, 24.0, True),
        (10.0, 300.0, 10.0, 6.0, False),
    ],
)
def test_waits_may_be_off_by_a_quarter_or_by_what_samples_cannot_show_where_it_is_small_beside_the_promise(
    interval: float, promised: float, observed: float, off: float, *, is_reproduced: bool
) -> None:
    consumers = replace(CONSUMERS, interval_seconds=interval)
    (result,) = replayed([as_they_were(KEEPING_UP, consumers)])
    waits = np.full(1440, np.float32(observed + off))
    minutes = replace(KEEPING_UP, wait_seconds=np.full(1440, observed))
    flights = as_served(minutes, consumers, result).wait_seconds - result.wait_seconds
    result = replace(result, wait_seconds=waits - flights.astype(np.float32))

    calibration, _ = calibration_of(minutes, consumers, promised, 100, result)

    assert calibration.off_seconds == pytest.approx(off, abs=0.01)
    assert (calibration.misfit == "") == is_reproduced


def test_a_past_that_is_reproduced_only_as_far_as_samples_show_it_says_so() -> None:
    """Samples once a minute see waits of 16 s, where the replay has the 5 s until a commit."""
    seldom = replace(CONSUMERS, interval_seconds=60.0)
    waits = np.where(DAY % 2 == 0, 5.0, 16.0)
    (result,) = replayed([as_they_were(KEEPING_UP, seldom)])
    calibration, _ = calibration_of(replace(KEEPING_UP, wait_seconds=waits), seldom, 300.0, 100, result)

    assert calibration.misfit == ""
    assert calibration.doubt.startswith(
        "The wait p95 is off by 11\u202fs. That is more than 25\u202f% of it, but no more"
    )
