"""What the HPAs of a simulated run read is what the adapter would serve."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from adapter.cluster.groups import MemberCount
from adapter.columns import NOT_KNOWN
from adapter.lag.ring import COMMITS, ENDS, NOT_SEEN, Depth, Ring, Track, extended
from adapter.metrics.capacities import Capacities
from adapter.metrics.query import Metrics
from adapter.metrics.required import Demands
from adapter.verdicts.assignment import Sharing
from adapter.verdicts.recent import Counts
from local.promise import scenario
from local.promise.predicted import RequiredNumber, predicted
from tests.support import samples
from tests.support.samples import NOW, SteppedClock, row, store_of, view, wants

GROUP = scenario.BY_PROMISE
PARTITIONS, INTERVAL = scenario.PARTITIONS, scenario.INTERVAL_SECONDS
SECONDS, REST_SECONDS = 120, 20
RATE = 6.25
"""Messages per second in each partition."""
RESTING = PARTITIONS // 4
MEMBERS = 6


def ends(second: int) -> Counts:
    return np.full(PARTITIONS, int(RATE * second))


def commits(second: int) -> Counts:
    """The members are behind, and for a while they have not come to some of their partitions."""
    is_read = np.arange(PARTITIONS) >= RESTING
    return np.where(is_read, int(0.8 * RATE * second), int(0.8 * RATE * min(second, SECONDS - REST_SECONDS)))


def simulated(seconds: int) -> float:
    number = RequiredNumber(np.random.default_rng(1))
    for second in range(0, seconds + 1, INTERVAL):
        number.look(second, ends(second), commits(second))
    return number.value(seconds, MEMBERS, MEMBERS)


def served() -> float:
    """By the same log ends and commits."""
    settings = samples.settings(rules=[scenario.promise()], collection={"interval": f"{INTERVAL}s"})
    newest = zip(commits(SECONDS).tolist(), ends(SECONDS).tolist(), strict=True)
    rows = {(GROUP, scenario.TOPIC, at): row(committed, end) for at, (committed, end) in enumerate(newest)}
    made = view(rows, settings=settings)
    made.snapshot.moved_at[:] = NOW
    made.snapshot.moved_at[:RESTING] = NOW - REST_SECONDS
    made.snapshot.watched_since[:] = NOW - SECONDS
    ring = Ring(made.layout, remembered(ends, ENDS), remembered(commits, COMMITS), made.ring.starts)
    members = MemberCount(MEMBERS, NOW)
    made = replace(made, ring=ring, members_of=lambda _: members, sharing_of=lambda _: Sharing.BY_TOPIC)
    clock = SteppedClock()
    demands = Demands(Capacities(clock), clock.monotonic, expected=lambda *_: MEMBERS)
    metrics = Metrics(settings, store_of(made), clock, demands=demands)
    (item,) = metrics.read("kafka_consumergroup_required_replicas", wants(group=GROUP)).values
    return item.milli / 1000


def remembered(column: Callable[[int], Counts], depth: Depth) -> Track:
    known, is_read = Track((), np.full(PARTITIONS, NOT_KNOWN), np.full(PARTITIONS, NOT_SEEN)), np.ones(PARTITIONS, bool)
    for second in range(0, SECONDS + 1, INTERVAL):
        at = NOW - SECONDS + second
        known = extended(known, at, column(second), np.full(PARTITIONS, at), is_read, depth)
    return known


def test_the_simulated_number_is_the_one_that_the_adapter_serves() -> None:
    """Also while members read some of their partitions and the commits of the others rest."""
    assert simulated(SECONDS) == served() == 8


def test_there_is_no_simulated_number_before_rates_are_known() -> None:
    assert math.isnan(simulated(50))


def test_every_simulated_hpa_sees_the_lag() -> None:
    """Wherever in a second the cycles of the adapter begin."""
    runs = predicted(scenario.BY_LAG, number=5)

    assert min(run.replicas.max() for run in runs) > scenario.REPLICAS
