"""A transaction's marker, which nobody will read, is distinguished from a record that somebody will read."""

import pytest

from adapter.settings.models import Settings
from adapter.verdicts.waits import RESIDUE_SECONDS
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig

PARTITION = ("orders", 0)
CYCLES = int(RESIDUE_SECONDS / 10)
"""At the interval of 10 s."""


def read_committed() -> Settings:
    return samples.settings(rules=[{"group": "billing", "isolation": "read_committed"}])


def rig(committed: int = 9, end: int = 10, settings: Settings | None = None) -> Rig:
    """A Stable group that stands so far behind the last stable offset; its listing is newer than its first cycle."""
    cluster = Kafka(
        topics={"orders": [1]},
        commits={"billing": {PARTITION: committed}},
        ends={PARTITION: end},
        members={"billing": {"orders"}},
    )
    made = Rig(cluster, settings or read_committed())
    made.run()
    return made


def lags(one: Rig, cycles: int) -> list[int]:
    found = []
    for _ in range(cycles):
        one.run()
        found.append(one.lag())
    return found


def test_a_lag_of_one_that_lasts_as_long_as_a_member_may_hold_a_record_is_a_marker() -> None:
    assert lags(rig(), CYCLES + 1) == [1] * (CYCLES - 1) + [0, 0]


def test_its_offsets_stay_as_they_were_read() -> None:
    one = rig()
    one.run(CYCLES)

    assert (one.view.snapshot.committed.tolist(), one.view.snapshot.log_end.tolist()) == ([9], [10])
    assert one.samples[0].observed.log_end.tolist() == [10]
    assert one.read("lead_min", samples.wants(group="billing")).values[0].milli // 1000 == 9


def test_the_history_is_told_from_when_on_it_is_one() -> None:
    one = rig()
    one.run(CYCLES - 1)
    before = one.samples[0].has_marker.tolist()
    one.run()

    assert (before, one.samples[0].has_marker.tolist()) == ([False], [True])


def test_where_no_rule_says_read_committed_a_one_stays_a_one() -> None:
    assert lags(rig(settings=samples.settings()), CYCLES + 3) == [1] * (CYCLES + 3)


@pytest.mark.parametrize("committed", [8, 0])
def test_more_than_one_is_no_marker(committed: int) -> None:
    assert set(lags(rig(committed), CYCLES + 3)) == {10 - committed}


def test_it_stays_found_when_the_group_becomes_empty() -> None:
    one = rig()
    one.run(CYCLES)
    one.kafka.members.clear()

    assert lags(one, CYCLES) == [0] * CYCLES


def test_in_a_group_that_is_not_stable_a_one_stays_a_one() -> None:
    one = rig()
    one.kafka.members.clear()

    assert lags(one, 2 * CYCLES)[3:] == [1] * (2 * CYCLES - 3)


@pytest.mark.parametrize(("read", "lag"), [({"orders"}, 0), ({"refunds"}, 1)])
def test_a_topic_that_no_member_reads_has_no_marker(read: set[str], lag: int) -> None:
    rule = {"group": "billing", "topics": ["orders"], "isolation": "read_committed"}
    one = rig(settings=samples.settings(rules=[rule]))
    one.kafka.members["billing"] = read
    one.run(2 * CYCLES)

    assert one.lag() == lag


def test_a_group_that_was_not_stable_begins_anew() -> None:
    one = rig()
    one.run(CYCLES - 10)
    one.kafka.moving = {"billing"}
    one.run(3)
    one.kafka.moving = set()
    one.run(3)

    assert lags(one, CYCLES - 5) == [1] * (CYCLES - 5)
    assert lags(one, 6)[-1] == 0


@pytest.mark.parametrize(("committed", "end"), [(10, 11), (9, 11)])
def test_any_movement_ends_it(committed: int, end: int) -> None:
    one = rig()
    one.run(CYCLES)
    assert one.lag() == 0
    one.kafka.commits["billing"][PARTITION], one.kafka.ends[PARTITION] = committed, end

    assert lags(one, CYCLES - 1) == [end - committed] * (CYCLES - 1)


def test_after_an_unread_while_in_which_nobody_may_have_read_it_it_begins_anew() -> None:
    one = rig()
    one.run(CYCLES - 3)
    one.kafka.silent = {1}
    assert lags(one, 4) == [1] * 4

    one.kafka.silent.clear()
    assert lags(one, CYCLES - 1) == [1] * (CYCLES - 1)
    assert lags(one, 3)[-1] == 0


def test_a_suspension_between_two_readings_proves_nothing_because_its_members_may_have_been_suspended_too() -> None:
    one = rig()
    one.run(3)
    one.clock.seconds += 2 * RESIDUE_SECONDS
    assert lags(one, CYCLES - 1) == [1] * (CYCLES - 1)

    assert lags(one, 3)[-1] == 0


def test_it_stays_found_after_a_suspension() -> None:
    one = rig()
    one.run(CYCLES)
    one.clock.seconds += 2 * RESIDUE_SECONDS

    assert lags(one, 2) == [0, 0]


def test_it_stays_found_while_it_is_not_read() -> None:
    one = rig()
    one.run(CYCLES)
    one.kafka.silent = {1}
    assert lags(one, 4) == [0] * 4

    one.kafka.silent.clear()
    assert lags(one, 2) == [0, 0]


def test_it_stays_found_when_another_group_comes() -> None:
    one = rig()
    one.run(CYCLES)
    one.kafka.commits["audit"] = {PARTITION: 0}
    found = lags(one, 6)

    assert found == [0] * 6
    assert one.lag("audit") == 10
