"""Reads of the replicas that keep a promise, and of what one member can read: what they follow from, and why not."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from adapter.cluster.groups import MemberCount
from adapter.conditions import DEMAND, Conditions, ConditionStatus
from adapter.lag.forecast import Forecast as ForecastOfHours
from adapter.lag.forecast import Load, Pattern
from adapter.lag.ring import Ring, Tick, Track
from adapter.lag.saturation import BusyWindow
from adapter.metrics.capacities import Capacities
from adapter.metrics.problems import NoMatch, Reason, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.required import Demands
from adapter.metrics.store import ClusterView
from adapter.settings.models import Settings
from adapter.verdicts.assignment import Sharing
from tests.support import samples
from tests.support.samples import EPOCH, NOW, MetricsReader, SteppedClock, row, store_of, view, wants

BILLING = wants(group="billing")
PARTITIONS = 8
WINDOW = 60.0


def by_rule(**objective: object) -> Settings:
    rule = {"group": "billing", "topics": ["orders"], "objective": {"maxWait": "30s", **objective}}
    return samples.settings(rules=[rule])


HINTED = by_rule(capacityHint=100)
HINTED_RULE = {"group": "billing", "topics": ["orders"], "objective": {"maxWait": "30s", "capacityHint": 100}}


def moving(settings: Settings, rates: Mapping[int, float], lags: Mapping[int, int] | None = None) -> ClusterView:
    """A group of eight partitions whose log ends move at these rates (others: 0), and whose lags are these."""
    lags = lags or {}
    ends = {at: 100_000 + round(rates.get(at, 0) * WINDOW) for at in range(PARTITIONS)}
    made = view(
        {("billing", "orders", at): row(ends[at] - lags.get(at, 0), ends[at]) for at in ends}, settings=settings
    )
    now = made.snapshot.log_end
    earlier = now - np.array([round(rates.get(at, 0) * WINDOW) for at in range(PARTITIONS)])
    age = np.zeros(PARTITIONS, np.float32)
    begun = np.full(PARTITIONS, NOW - WINDOW)
    ends_track = Track((Tick(NOW - WINDOW, earlier, age), Tick(NOW, now, age)), earlier, begun)
    committed = made.snapshot.committed
    commits = Track((Tick(NOW - WINDOW, committed, age), Tick(NOW, committed, age)), committed, begun)
    made.snapshot.moved_at[:] = NOW
    made.snapshot.watched_since[:] = NOW - 1000
    ring = Ring(made.layout, ends_track, commits, commits)
    return replace(made, ring=ring, members_of=lambda _: MemberCount(2, NOW), sharing_of=lambda _: Sharing.TOGETHER)


class Reader(MetricsReader):
    """Reads by these settings; HPAs have so many replicas."""

    def __init__(self, settings: Settings, cluster: ClusterView, replicas: int | None = 2) -> None:
        self.clock, self.conditions = SteppedClock(), Conditions(lambda: EPOCH)
        self.capacities = Capacities(self.clock)
        expected = {"billing": replicas}
        demands = self.demands = Demands(
            self.capacities, self.clock.monotonic, self.conditions, lambda _, group: expected.get(group)
        )
        self._store = store_of(cluster)
        self.metrics = Metrics(settings, self._store, self.clock, demands=demands)

    def replace(self, cluster: ClusterView) -> None:
        self._store.feeds["main"].replace(cluster)

    def number(self, metric: str = "required_replicas") -> float:
        (item,) = self.read(metric, () if metric == "r" else BILLING).values
        return item.milli / 1000

    def labels(self, metric: str = "required_replicas") -> dict[str, str]:
        (item,) = self.read(metric, BILLING).values
        return {key: value for key, value in item.labels.items() if key not in {"cluster", "group", "topic"}}


EVENLY = dict.fromkeys(range(PARTITIONS), 45.0)


def test_the_number_follows_from_what_arrives_in_whole_partitions() -> None:
    """360 messages/s: 4 members of 90, with two partitions each."""
    reader = Reader(HINTED, moving(HINTED, EVENLY))

    assert (reader.number(), reader.labels()) == (4, {"basis": "rates"})


def test_a_named_metric_and_the_replicas_of_a_rule_give_the_same() -> None:
    shape = {"maxWait": "30s", "capacityHint": 100}
    metric = {"name": "r", "value": "required_replicas", "group": "billing", "topics": ["orders"], "replicas": shape}
    named = samples.settings(metrics=[metric])
    rule = samples.settings(rules=[{"group": "billing", "topics": ["orders"], "replicas": shape}])

    assert Reader(named, moving(named, EVENLY)).number("r") == 4
    assert Reader(rule, moving(rule, EVENLY)).number("replicas") == 4


def test_the_shaping_of_the_rule_counts() -> None:
    settings = samples.settings(rules=[HINTED_RULE | {"replicas": {"consumersPerReplica": 2}}])

    assert Reader(settings, moving(settings, EVENLY), replicas=1).number() == 2


def test_nothing_that_waits_or_arrives_is_zero() -> None:
    assert Reader(HINTED, moving(HINTED, {}), replicas=None).number() == 0


def test_a_lag_at_or_below_the_activation_is_zero_if_nothing_arrives() -> None:
    settings = samples.settings(rules=[HINTED_RULE | {"replicas": {"activation": 5}}])

    assert Reader(settings, moving(settings, {}, {0: 5}), replicas=None).number() == 0
    assert Reader(settings, moving(settings, {}, {0: 6}), replicas=None).number() == 1


def test_hot_partitions_and_those_that_stand_still_are_named_once_in_a_condition() -> None:
    made = moving(HINTED, {0: 500.0, 1: 10.0}, {0: 90_000, 2: 9000})
    made.snapshot.moved_at[2] = NOW - 500
    reader = Reader(HINTED, made)

    assert reader.labels() == {"basis": "rates", "hot": "orders/0", "still": "orders/2"}
    reader.metrics.look()
    (condition,) = reader.conditions.current
    assert (condition.name, condition.status) == (DEMAND.name, ConditionStatus.FALSE)
    assert "orders/0" in condition.details
    assert "orders/2" in condition.details


def test_the_condition_ends_with_the_reads() -> None:
    reader = Reader(HINTED, moving(HINTED, {0: 500.0}))
    reader.number()
    reader.metrics.look()

    reader.clock.seconds += 601
    reader.metrics.look()

    assert reader.conditions.current == ()


def test_without_a_capacity_the_number_is_unknown_and_says_what_is_missing() -> None:
    settings = by_rule()
    refusal = Reader(settings, moving(settings, EVENLY)).refusal("required_replicas", BILLING)

    assert isinstance(refusal, ValueUnavailable)
    assert [problem.reason for problem in refusal.problems] == [Reason.CAPACITY_UNKNOWN]
    assert "capacityHint" in str(refusal)


def test_rates_that_are_not_known_yet_are_not_zero() -> None:
    made = moving(HINTED, EVENLY)
    young = replace(made, ring=replace(made.ring, ends=replace(made.ring.ends, begun=np.full(PARTITIONS, NOW - 5))))

    assert Reader(HINTED, young).reasons("required_replicas", BILLING) == [Reason.MOVEMENT_UNKNOWN]


@pytest.mark.parametrize("metric", ["required_replicas", "capacity"])
def test_a_group_without_an_objective_is_refused_with_what_to_configure(metric: str) -> None:
    settings = samples.settings()
    refusal = Reader(settings, moving(settings, EVENLY)).refusal(metric, BILLING)

    assert isinstance(refusal, NoMatch)
    assert refusal.problems[0].reason is Reason.NOT_CONFIGURED
    assert "objective: {maxWait: 30s}" in str(refusal)


def test_a_number_does_not_fall_while_members_are_missing() -> None:
    made = moving(HINTED, EVENLY)
    reader = Reader(HINTED, made, replicas=6)

    assert (reader.number(), reader.labels()["basis"]) == (6, "held")


def test_members_that_are_never_as_many_as_the_pods_are_named_in_the_condition() -> None:
    settings = samples.settings(rules=[HINTED_RULE], collection={"maxAge": "10m"})
    reader = Reader(settings, moving(settings, EVENLY), replicas=6)
    reader.number()
    reader.clock.seconds += 301
    reader.number()
    reader.metrics.look()

    (condition,) = reader.conditions.current
    assert "group billing: it has 2 members and not the 6 that its HPAs have" in condition.details


def test_a_learned_capacity_counts_instead_of_the_hint() -> None:
    reader = Reader(HINTED, moving(HINTED, EVENLY))
    windows = tuple(BusyWindow(EPOCH - 60.0 * at, 60.0, 50.0, 3000.0, 6) for at in range(20, 0, -1))
    hinted = reader.number("capacity"), reader.labels("capacity")

    reader.capacities.recall("main", {"billing": windows})

    assert hinted == (100, {"source": "hint"})
    assert (reader.number("capacity"), reader.number()) == (50, 8)
    assert reader.labels("capacity") == {"source": "learned", "windows": "20", "newest": "2026-11-18T11:05:40Z"}


def test_too_few_windows_show_no_capacity() -> None:
    settings = by_rule()
    reader = Reader(settings, moving(settings, EVENLY))
    windows = tuple(BusyWindow(EPOCH - 60.0 * at, 60.0, 50.0, 3000.0, 6) for at in range(9))
    reader.capacities.recall("main", {"billing": windows})

    assert reader.reasons("capacity", BILLING) == [Reason.CAPACITY_UNKNOWN]


def test_nothing_stands_still_in_a_group_without_members() -> None:
    """Nobody moves its commits, and the first member will."""
    made = moving(HINTED, {}, dict.fromkeys(range(PARTITIONS), 5000))
    made.snapshot.moved_at[:] = NOW - 500
    asleep = replace(made, members_of=lambda _: MemberCount(0, NOW))

    assert Reader(HINTED, asleep, replicas=0).number() == 7
    assert Reader(HINTED, made).labels()["still"].startswith("orders/0")


def test_messages_on_their_way_do_not_count_until_they_should_have_been_committed() -> None:
    """45 messages/s in each partition: 450 in an interval, and 1,350 since a commit that moved 20 s ago."""
    at_once, late = (moving(HINTED, EVENLY, dict.fromkeys(range(PARTITIONS), 1350)) for _ in range(2))
    late.snapshot.moved_at[:] = NOW - 20

    assert Reader(HINTED, late).number() == 4
    assert Reader(HINTED, at_once).number() == 6


def test_what_has_just_begun_to_wait_does_not_stand_still() -> None:
    """The partition was at rest for minutes."""
    made = moving(HINTED, {0: 20.0}, {0: 1200})
    made.snapshot.moved_at[0] = NOW - 500

    assert "still" not in Reader(HINTED, made).labels()


def test_a_partition_that_is_hot_now_and_then_is_said_once() -> None:
    reader = Reader(HINTED, moving(HINTED, {0: 500.0}))
    reader.number()
    reader.metrics.look()
    (first,) = reader.conditions.current

    reader.replace(moving(HINTED, {0: 50.0}))
    reader.clock.seconds += 30
    assert "hot" not in reader.labels()
    reader.metrics.look()

    assert reader.conditions.current == (first,)


# -- the forecast ------------------------------------------------------------------------------------------

FORETOLD = by_rule(capacityHint=100, forecastTimeZone="UTC")
USUAL = np.full(24, 360.0)
"""360 messages/s at any hour."""


def pattern_at(reader: Reader, *, busier: float, skill: float = 0.5) -> Pattern:
    """One by whose next hour so many times as much comes, and that hour begins within a minute."""
    usual = USUAL.copy()
    usual[(datetime.fromtimestamp(reader.clock.time() + 60, UTC)).hour] *= busier
    return Pattern(
        ForecastOfHours(by_weekday=False, error=1 - skill, error_of_last_hour=1.0, hours=168),
        usual,
        ZoneInfo("UTC"),
        EPOCH,
    )


def foretold(busier: float, skill: float = 0.5, settings: Settings = FORETOLD) -> Reader:
    reader = Reader(settings, moving(settings, EVENLY))
    # So that the next hour begins half a minute later.
    reader.clock.ahead = 3570 - reader.clock.time() % 3600
    pattern = pattern_at(reader, busier=busier, skill=skill)
    reader.demands.patterns = lambda load: (
        pattern if load == Load("main", "billing", frozenset({"orders"}), "UTC") else "no"
    )
    return reader


def test_replicas_for_the_next_hour_are_required_when_it_is_about_to_begin() -> None:
    """360 messages/s need 4 members, and 720 need all 8."""
    reader = foretold(busier=2.0)

    assert (reader.number(), reader.number("required_replicas_forecast")) == (8, 8)
    assert reader.labels("required_replicas_forecast") == {"basis": "rates", "forecast": "daily", "skill": "0.50"}
    assert reader.labels()["skill"] == "0.50"


def test_a_forecast_that_is_worth_too_little_is_shown_and_does_not_count() -> None:
    reader = foretold(busier=2.0, skill=0.09)

    assert (reader.number(), reader.number("required_replicas_forecast")) == (4, 8)
    assert reader.labels() == {"basis": "rates"}


def test_a_partition_that_only_the_forecast_makes_hot_is_not_said_to_be_so_now() -> None:
    """45 messages/s arrive in each partition and 108 are expected, and one member reads 100."""
    reader = foretold(busier=2.4)
    assert "hot" in reader.labels()
    reader.metrics.look()
    (foreseen,) = reader.conditions.current

    assert "more is expected in orders/0 than one member can read" in foreseen.details
    assert "arrives" not in foreseen.details


def test_a_forecast_never_makes_the_required_number_smaller() -> None:
    reader = foretold(busier=0.5)

    assert (reader.number(), reader.number("required_replicas_forecast")) == (4, 2)


def test_without_a_pattern_the_forecast_is_refused_with_the_reason_and_the_required_number_is_as_before() -> None:
    reader = Reader(FORETOLD, moving(FORETOLD, EVENLY))
    refusal = reader.refusal("required_replicas_forecast", BILLING)

    assert reader.number() == 4
    assert [problem.reason for problem in refusal.problems] == [Reason.FORECAST_UNKNOWN]
    assert "no history is kept" in str(refusal)


def test_without_a_time_zone_there_is_no_forecast() -> None:
    reader = foretold(busier=2.0, settings=HINTED)

    assert reader.number() == 4
    assert reader.reasons("required_replicas_forecast", BILLING) == [Reason.NOT_CONFIGURED]


def test_some_partitions_have_no_forecast() -> None:
    reader = foretold(busier=2.0)

    assert reader.reasons("required_replicas_forecast", wants(group="billing", partition="1")) == [
        Reason.FORECAST_UNKNOWN
    ]
