"""Waits, rates and members as cycles make them: while groups work, brokers fail, topics are created again and settings
change."""

import pytest

from adapter.collector.cycle import Cycle
from adapter.lag.rules import Watching
from adapter.metrics.problems import NoMatch, Reason
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import BILLING, ORDERS_0, ORDERS_1, SILENT_2, given, kafka
from tests.support.samples import EPOCH, NOW, wants

MINUTE = 6
"""In cycles."""
PARTITIONS = (ORDERS_0, ORDERS_1, ("orders", 2))


def busy(cycles: int, produced: int = 100, consumed: int = 100, cluster: Kafka | None = None) -> Rig:
    """After so many cycles, between which so many messages come into each partition and are consumed from it. A message
    waits for 20 s if both are the same."""
    rig = Rig(cluster or kafka(), given())
    rig.kafka.members = {"billing": {"orders"}}
    rig.kafka.commits["billing"] = dict.fromkeys(PARTITIONS, 1000)
    rig.kafka.ends = dict.fromkeys(PARTITIONS, 1000 if consumed < produced else 1200)
    rig.run()
    work(rig, cycles, produced, consumed)
    return rig


def work(rig: Rig, cycles: int, produced: int = 100, consumed: int = 100) -> None:
    for _ in range(cycles):
        for partition in PARTITIONS:
            rig.kafka.ends[partition] += produced
            rig.kafka.commits["billing"][partition] += consumed
        rig.run()


def milli(rig: Rig, metric: str, **labels: str) -> int:
    (item,) = rig.read(metric, wants(**{"group": "billing", **labels})).values
    return item.milli


# -- the age of the oldest message that waits ------------------------------------------------------------------


def test_the_age_is_that_of_the_oldest_message_of_all_partitions() -> None:
    rig = busy(MINUTE)
    rig.kafka.commits["billing"][ORDERS_1] -= 150
    rig.run()
    (item,) = rig.read("lag_seconds", BILLING).values

    assert item == ({"cluster": "main", "group": "billing", "topic": "orders", "bound": "exact"}, 45_000, EPOCH + 70)


def test_a_group_that_has_caught_up_has_an_age_of_nothing() -> None:
    rig = Rig(kafka())
    rig.kafka.commits["billing"] = dict(rig.kafka.ends)
    rig.run()

    assert milli(rig, "lag_seconds") == 0


def test_a_message_from_before_the_first_cycle_is_refused_with_its_lower_bound() -> None:
    rig = Rig(kafka())
    rig.run(5)
    refusal = rig.refusal("lag_seconds", group="billing")

    assert [problem.reason for problem in refusal.problems] == [Reason.LOWER_BOUND]
    assert str(refusal) == (
        "age of the oldest waiting message of group billing is not known: orders/0 has a message that the adapter "
        "cannot date exactly: it is at least 40 s old (a selector with bound=lower reads this lower bound)"
    )


def test_a_selector_that_asks_for_lower_bounds_gets_one_that_says_so() -> None:
    rig = Rig(kafka())
    rig.run(5)
    (item,) = rig.read("lag_seconds", wants(group="billing", bound=["exact", "lower"])).values

    assert (item.labels["bound"], item.milli) == ("lower", 40_000)
    assert milli(rig, "lag_seconds", bound="lower") == 40_000
    assert rig.reasons("lag_seconds", group="billing", bound="exact") == [Reason.LOWER_BOUND]
    assert milli(busy(3), "lag_seconds", bound="exact") == 20_000
    assert busy(3).reasons("lag_seconds", group="billing", bound="lower") == [Reason.NOTHING_SELECTED]


def test_other_metrics_have_no_such_label() -> None:
    with pytest.raises(NoMatch):
        busy(3).read("lag", wants(group="billing", bound="exact"))


def test_one_partition_with_a_lower_bound_makes_the_value_one() -> None:
    rig = busy(3)
    rig.kafka.commits["billing"][ORDERS_0] = 5
    rig.run()

    assert rig.reasons("lag_seconds", group="billing") == [Reason.LOWER_BOUND]
    assert milli(rig, "lag_seconds", partition="1") == 30_000


def test_a_topic_that_was_created_again_begins_without_a_past() -> None:
    rig = busy(MINUTE)
    rig.kafka.generations = {"orders": "another"}
    rig.kafka.ends = dict.fromkeys(PARTITIONS, 50)
    rig.kafka.commits["billing"] = dict.fromkeys(PARTITIONS, 10)
    for _ in range(2 * MINUTE):
        rig.run()

    assert rig.lag() == 120
    assert rig.reasons("lag_seconds", group="billing") == [Reason.LOWER_BOUND]
    seconds = milli(rig, "lag_seconds", bound="lower") / 1000
    assert 0 < seconds < 20 * MINUTE


def test_a_log_end_that_cannot_be_read_makes_the_age_that_of_the_last_reading() -> None:
    rig = busy(MINUTE)
    rig.kafka.silent = {2}
    work(rig, 1)
    (item,) = rig.read("lag_seconds", BILLING).values

    assert item.milli == 20_000
    assert item.measured_at == EPOCH + 60


@pytest.mark.parametrize("cycles", range(30, 36))
def test_an_age_stays_that_of_its_timestamp_while_log_ends_are_read_and_older_ones_dropped(cycles: int) -> None:
    rig = busy(cycles)
    rig.kafka.commit_errors = {"billing": 16}
    work(rig, 5, produced=1000, consumed=0)
    (item,) = rig.read("lag_seconds", BILLING).values

    assert item.measured_at == EPOCH + 10 * cycles
    assert item.milli == pytest.approx(20_000, abs=10_000)


def test_log_ends_that_were_read_while_the_coordinator_was_silent_date_messages_of_that_time() -> None:
    rig = busy(MINUTE)
    coordinator = {"billing": "no broker answers for it"}
    rig.kafka.commit_errors = dict.fromkeys(coordinator, 16)
    work(rig, 4, consumed=0)
    work(rig, 1, produced=800, consumed=0)
    rig.kafka.commit_errors = {}
    work(rig, 1, produced=0, consumed=600)

    assert milli(rig, "lag_seconds") == pytest.approx(15_000, abs=5_000)


def test_a_new_collector_of_the_cluster_goes_on_with_what_the_former_saw() -> None:
    rig = busy(2 * MINUTE)
    watching = Watching(samples.settings(), "main")
    new = Cycle(watching, rig.brokers, rig.store.feeds["main"], rig.clock, rig.memory)
    new.recall(rig.cycle.remembered(everything=True))
    new.follow(rig.cycle)
    rig.cycle = new
    work(rig, 1)

    assert milli(rig, "lag_seconds") == 20_000
    assert milli(rig, "production_rate") == 30_000


# -- rates -----------------------------------------------------------------------------------------------------


def test_rates_are_messages_per_second_of_each_topic() -> None:
    rig = busy(2 * MINUTE, produced=5, consumed=3)
    (production,) = rig.read("production_rate", BILLING).values
    (consumption,) = rig.read("consumption_rate", BILLING).values

    assert production == ({"cluster": "main", "group": "billing", "topic": "orders"}, 1500, EPOCH + 120)
    assert consumption.milli == 900
    assert milli(rig, "production_rate", partition="1") == 500


def test_a_topic_at_rest_has_rates_of_nothing() -> None:
    rig = busy(2 * MINUTE, produced=0, consumed=0)

    assert milli(rig, "production_rate") == milli(rig, "consumption_rate") == 0


def test_a_rate_is_refused_before_a_minute_has_passed() -> None:
    refusal = busy(4).refusal("production_rate", group="billing")

    assert [problem.reason for problem in refusal.problems] == [Reason.MOVEMENT_UNKNOWN]
    assert str(refusal) == (
        "production rate of group billing is not known: orders/0 has been followed for 40 s, and a rate covers 60 s in "
        "which its offset does not go backward"
    )
    assert milli(busy(6), "production_rate") == 30_000


def test_a_minute_that_was_read_a_little_short_is_a_minute() -> None:
    rig = busy(5)
    rig.clock.seconds -= 0.1
    work(rig, 1)

    assert milli(rig, "production_rate") == pytest.approx(30_000, rel=0.01)


def test_reads_of_partitions_are_estimated_by_their_number() -> None:
    rig = Rig(Kafka(topics={"orders": [1] * 3000}, ends={}, commits={"billing": {ORDERS_0: 0}}), given())
    rig.run()
    efforts = [rig.metrics.effort(f"kafka_consumergroup_{name}", BILLING) for name in ("lag", "lag_seconds", "members")]

    assert efforts[1] >= efforts[0] + 300
    assert efforts[2] == efforts[0]


def test_a_commit_that_was_set_back_is_no_consumption() -> None:
    rig = busy(2 * MINUTE)
    rig.kafka.commits["billing"][ORDERS_1] -= 900
    work(rig, 1)

    assert rig.reasons("consumption_rate", group="billing") == [Reason.MOVEMENT_UNKNOWN]
    assert milli(rig, "production_rate") == 30_000
    work(rig, 2 * MINUTE)
    assert milli(rig, "consumption_rate") == 30_000


def test_a_group_without_commits_consumes_nothing() -> None:
    rig = Rig(Kafka(topics={"orders": [1]}, ends={ORDERS_0: 5}), given())
    rig.run(2 * MINUTE)

    assert milli(rig, "consumption_rate") == 0


def test_a_rate_of_partitions_that_cannot_be_read_is_refused_like_their_lag() -> None:
    rig = busy(2 * MINUTE)
    rig.kafka.silent = {2}
    work(rig, MINUTE + 1)
    refusal = rig.refusal("production_rate", group="billing")

    assert [problem.reason for problem in refusal.problems] == [Reason.NOT_READ_SINCE]
    assert SILENT_2 in str(refusal)


# -- members ---------------------------------------------------------------------------------------------------


def test_the_members_of_a_group_are_counted_once_whatever_it_reads() -> None:
    rig = busy(1)
    rig.kafka.member_counts = {"billing": 4}
    rig.run(2 * MINUTE)
    (item,) = rig.read("members", BILLING).values

    assert (item.labels, item.milli) == ({"cluster": "main", "group": "billing"}, 4000)
    assert EPOCH + 130 - 60 <= item.measured_at <= EPOCH + 130


def test_an_empty_group_has_no_members() -> None:
    rig = Rig(kafka())
    rig.run(MINUTE)

    assert milli(rig, "members") == 0


def test_the_members_of_a_group_that_rebalances_are_not_known() -> None:
    rig = busy(MINUTE)
    assert milli(rig, "members") == 1000

    rig.kafka.moving = {"billing"}
    rig.run(MINUTE)
    refusal = rig.refusal("members", group="billing")

    assert [problem.reason for problem in refusal.problems] == [Reason.MEMBERS_UNKNOWN]
    assert str(refusal) == (
        "number of members of group billing is not known: it has not been described as Stable or Empty since its last "
        "change"
    )


def test_named_metrics_serve_each_of_them() -> None:
    named = [
        {"name": f"of-{value}", "value": value, "group": "billing", "topics": ["orders"]}
        for value in ("lag_seconds", "production_rate", "consumption_rate", "members")
    ]
    rig = Rig(kafka(), samples.settings(metrics=named))
    rig.kafka.members = {"billing": {"orders"}}
    rig.kafka.commits["billing"] = dict(rig.kafka.ends)
    rig.run(MINUTE + 1)

    assert [rig.read(str(metric["name"])).values[0].milli for metric in named] == [0, 0, 0, 1000]
    assert rig.clock.seconds == NOW + 60


# -- the time until data loss ----------------------------------------------------------------------------------


def retained(cycles: int, deleted: int = 20) -> Rig:
    """After so many cycles, between which so many messages are deleted from the first partition."""
    one = busy(0)
    for _ in range(cycles):
        one.kafka.starts[ORDERS_0] = one.kafka.starts.get(ORDERS_0, 0) + deleted
        work(one, 1)
    return one


def test_the_time_until_data_loss_is_the_lead_over_the_speed_of_deletion() -> None:
    rig = retained(20 * MINUTE)
    (item,) = rig.read("seconds_to_data_loss", BILLING).values
    lead = 1000 + 100 * 20 * MINUTE - 20 * 20 * MINUTE

    assert item.labels == {"cluster": "main", "group": "billing", "topic": "orders"}
    assert item.milli == pytest.approx(1000 * lead / 2, rel=0.02)
    assert item.measured_at == EPOCH + 1200


def test_deleted_messages_that_were_not_consumed_leave_no_time() -> None:
    rig = retained(20 * MINUTE)
    rig.kafka.commits["billing"][ORDERS_0] = 50
    rig.run()

    assert milli(rig, "seconds_to_data_loss") == 0


def test_log_starts_are_remembered_as_often_as_they_are_read() -> None:
    rig = busy(2 * MINUTE)

    assert [tick.at - NOW for tick in rig.view.ring.starts.ticks] == [0, 60, 120]


def test_a_log_start_that_does_not_move_says_nothing_of_data_loss() -> None:
    refusal = retained(20 * MINUTE, deleted=0).refusal("seconds_to_data_loss", group="billing")

    assert [problem.reason for problem in refusal.problems] == [Reason.MOVEMENT_UNKNOWN]
    assert str(refusal) == (
        "time until data loss of group billing is not known: orders/0 has been followed for 1200 s, and no message was "
        "deleted"
    )


def test_data_loss_is_refused_before_a_log_start_was_followed_for_long_enough() -> None:
    refusal = retained(5 * MINUTE).refusal("seconds_to_data_loss", group="billing")

    assert [problem.reason for problem in refusal.problems] == [Reason.MOVEMENT_UNKNOWN]
    assert str(refusal).endswith("the log start of orders/0 has been followed for 300 s, not for 600 s")


def test_a_group_that_has_caught_up_has_nothing_to_lose() -> None:
    rig = retained(20 * MINUTE)
    rig.kafka.commits["billing"] = dict(rig.kafka.ends)
    rig.run()

    assert rig.reasons("seconds_to_data_loss", group="billing") == [Reason.NOTHING_TO_LOSE]


def test_a_group_without_commits_has_no_time_until_data_loss() -> None:
    rig = Rig(Kafka(topics={"orders": [1]}, ends={ORDERS_0: 5}), given())
    rig.run(2)

    assert rig.reasons("seconds_to_data_loss", group="billing") == [Reason.NO_COMMIT]
