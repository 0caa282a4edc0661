"""The lag of every group over the last hour: a value each minute, and nothing where it was not known."""

import numpy as np

from adapter.metrics.query import Metrics
from adapter.overview.trends import LOOK_SECONDS, LagTrends, TrendsFollower
from tests.support.samples import NEVER_READ, Key, Row, SteppedClock, row, settings, store_of, view

BILLING, MAIL = ("main", "billing"), ("main", "mail")


def followed(*looks: dict[tuple[str, str], float]) -> LagTrends:
    trends = LagTrends()
    for number, lags in enumerate(looks):
        trends = trends.followed_by(number * LOOK_SECONDS, list(lags), np.array(list(lags.values())))
    return trends


def shown(trends: LagTrends, place: tuple[str, str]) -> list[float | None]:
    return [None if np.isnan(lag) else lag for lag in trends.of(place).tolist()]


def test_a_group_has_the_lag_of_each_look() -> None:
    trends = followed({BILLING: 5.0, MAIL: 0.0}, {BILLING: 7.0, MAIL: 1.0})

    assert (shown(trends, BILLING), shown(trends, MAIL)) == ([5.0, 7.0], [0.0, 1.0])
    assert trends.at.tolist() == [0.0, 60.0]


def test_a_lag_that_is_not_known_is_a_gap_and_never_0() -> None:
    trends = followed({BILLING: 5.0}, {}, {MAIL: 2.0, BILLING: 6.0})

    assert (shown(trends, BILLING), shown(trends, MAIL)) == ([5.0, None, 6.0], [None, None, 2.0])


def test_a_group_that_nobody_knows_has_only_gaps() -> None:
    assert shown(followed({BILLING: 5.0}), MAIL) == [None]


def test_looks_of_more_than_an_hour_ago_and_groups_without_later_ones_are_forgotten() -> None:
    trends = followed({BILLING: 5.0, MAIL: 9.0}, *60 * [{BILLING: 1.0}])

    assert (len(trends.at), trends.lags.shape) == (60, (1, 60))
    assert shown(trends, MAIL) == 60 * [None]


def test_an_hour_takes_480_bytes_of_a_group() -> None:
    places = [("main", f"group-{number}") for number in range(1000)]
    trends = LagTrends()
    for number in range(100):
        trends = trends.followed_by(number * LOOK_SECONDS, places, np.ones(len(places)))

    assert trends.lags.nbytes == 480 * len(places)


def test_each_turn_looks_at_what_a_listing_of_lags_returns() -> None:
    rows: dict[Key, Row] = {
        ("billing", "orders", 0): row(0, 12),
        ("billing", "orders", 1): row(0, 30),
        ("mail", "mails", 0): NEVER_READ,
    }
    clock = SteppedClock()
    follower = TrendsFollower(lambda: Metrics(settings(), store_of(view(rows)), clock), clock.monotonic)

    assert follower.turn() == LOOK_SECONDS
    assert (shown(follower.current, BILLING), shown(follower.current, MAIL)) == ([42.0], [None])
    assert follower.current.at.tolist() == [clock.monotonic()]
