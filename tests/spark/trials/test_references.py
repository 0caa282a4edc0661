from dataclasses import replace

import numpy as np
import pytest

from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.promised import Promised
from adapter.verdicts.simulation.replay import replayed
from adapter.verdicts.simulation.scalers import Served
from spark.trials.minutes import Shape
from spark.trials.references import Candidate, foreseen, keda_of, lane_of_oracle, lanes_with
from tests.support.history.minutes import read_by

DAY = np.arange(720)
WAVE = read_by(60 * (100 + 80 * np.sin(DAY / 720 * 2 * np.pi)), np.full(720, 3.0), 50.0)
"""20/s to 180/s, read by three members that do 50/s each."""
CONSUMERS = Consumers(50.0, (12,), Assignor.UNIFORM, interval_seconds=10.0)
EVEN = Shape(WAVE.start[::60], np.full(12, 1 / 12))


def test_the_oracle_lets_hardly_anything_wait_and_costs_less_than_kedas_defaults() -> None:
    (keda,) = lanes_with(WAVE, CONSUMERS, [keda_of(CONSUMERS)], EVEN)
    oracle, of_keda = replayed([lane_of_oracle(WAVE, CONSUMERS), keda])

    assert np.percentile(oracle.wait_seconds, 99) < 30
    assert oracle.replicas.sum() < of_keda.replicas.sum()


def test_the_oracle_has_members_for_the_next_minute_before_it_comes() -> None:
    rising = replace(WAVE, produced=np.where(DAY < 300, 600.0, 9000.0))

    assert foreseen(rising, CONSUMERS)[297:301].tolist() == [1, 1, 3, 3]


def test_the_oracle_gives_the_busiest_partition_to_a_member_with_few_others() -> None:
    """53/s are too much for one member; of two, one reads nine tenths of them and five other partitions."""
    hot = replace(WAVE, produced=np.full(720, 53 * 60.0), skew=np.full(720, 0.9))

    assert foreseen(hot, CONSUMERS)[0] == 3


def test_the_oracle_has_a_member_for_each_partition_where_no_number_is_enough() -> None:
    assert foreseen(replace(WAVE, produced=np.full(720, 60_000.0)), CONSUMERS)[0] == 12


def test_the_oracle_keeps_all_members_until_what_waited_has_been_read() -> None:
    """Ten minutes bring 900/s to twelve members that do 600/s: another six minutes for what is left, at 100/s."""
    burst = replace(WAVE, produced=60.0 * np.where((DAY >= 100) & (DAY < 110), 900.0, 100.0), skew=np.full(720, 1 / 12))

    assert np.flatnonzero(foreseen(burst, CONSUMERS) == 12).tolist() == list(range(99, 116))


def test_the_oracle_reads_what_waited_at_the_beginning_of_the_range() -> None:
    """150,000 messages take twelve members that do 600/s five minutes, while 100/s arrive."""
    even = replace(WAVE, produced=np.full(720, 6000.0), skew=np.full(720, 1 / 12))
    late = replace(even, lag=np.append(151_500.0, even.lag[1:]))

    assert np.flatnonzero(foreseen(late, CONSUMERS) == 12).tolist() == list(range(5))
    assert foreseen(even, CONSUMERS).max() < 12


def test_the_oracle_takes_messages_on_their_way_in_the_first_known_minute_for_read() -> None:
    """100/s arrive, and commits and samples may be 15 s old."""
    unknown = np.where(DAY < 5, np.nan, 1.0)
    begun = replace(WAVE, produced=6000.0 * unknown, lag=1000.0 * unknown, skew=np.full(720, 1 / 12))

    assert foreseen(begun, CONSUMERS).max() < 12


def test_the_oracle_takes_a_topic_that_gets_nothing_for_what_it_is() -> None:
    """Three members of eight partitions have two busy ones each, although two of them have a quiet one besides."""
    both = Consumers(50.0, (6, 2), Assignor.RANGE)
    quiet = replace(WAVE, produced=np.full(720, 148 * 60.0), skew=np.full(720, 1 / 6))
    weighed = replace(quiet, weights=np.repeat([1.0, 0.001], [6, 2]))

    assert (foreseen(weighed, both)[0], foreseen(quiet, both)[0]) == (3, 6)


def test_the_oracle_knows_when_members_are_slower() -> None:
    steady = replace(WAVE, produced=np.full(720, 90 * 60.0), skew=np.full(720, 1 / 12))
    slower = replace(steady, pace=np.where(DAY < 300, 1.0, 0.5))

    assert foreseen(slower, CONSUMERS)[[0, 400]].tolist() == [2, 4]


def test_members_that_read_all_partitions_together_carry_no_whole_ones() -> None:
    """52/s: a fifth member of twelve partitions would still have three of them."""
    shared = Consumers(12.0, (12,), assignor=None)

    assert foreseen(replace(WAVE, produced=np.full(720, 52 * 60.0)), shared)[0] == 5


def test_kedas_hpa_is_served_no_more_lag_than_one_replica_for_each_partition_is_for() -> None:
    keda = keda_of(CONSUMERS)

    assert keda.served == Served(most=120.0)
    assert (keda.hpa.max_replicas, keda.hpa.behavior) == (100, None)


@pytest.mark.parametrize("rule", [None, Promised(60.0)], ids=["lag", "promise"])
def test_a_schedule_raises_the_least_replicas_ten_minutes_before_its_hours_and_lets_them_go_after(
    rule: Promised | None,
) -> None:
    quiet = read_by(np.zeros(720), np.full(720, 1.0), 50.0)
    of_keda = keda_of(CONSUMERS)
    scheduled = replace(of_keda, rule=rule, least_by_hour=tuple(5 if 3 <= hour < 6 else 1 for hour in range(12)))
    (replay,) = replayed(lanes_with(quiet, CONSUMERS, [scheduled], EVEN))

    assert np.flatnonzero(replay.replicas == 5)[[0, -1]].tolist() == [170, 359]
    assert set(replay.replicas[:170].tolist()) == set(replay.replicas[360:].tolist()) == {1}


def test_a_schedule_that_begins_with_more_is_back_at_the_least_in_hours_of_which_nothing_is_known() -> None:
    """An initial load: six replicas for the first hour, and one from then on; hours 3 to 5 have no row."""
    quiet = read_by(np.zeros(720), np.full(720, 1.0), 50.0)
    six = keda_of(CONSUMERS).hpa.model_copy(update={"min_replicas": 6})
    is_seen = ~np.isin(np.arange(12), [3, 4, 5])
    seen = Shape(EVEN.hour[is_seen], EVEN.skew[is_seen])
    (replay,) = replayed(lanes_with(quiet, CONSUMERS, [Candidate(six, least_by_hour=(6, *8 * [1]))], seen))

    assert np.flatnonzero(replay.replicas == 6).tolist() == list(range(60))
    assert set(replay.replicas[65:].tolist()) == {1}
