"""Which topics of a group count, from what its members were last described to read and what has happened since."""

import pytest

from adapter.cluster.groups import Kind
from adapter.lag.snapshot import State
from adapter.metrics.problems import Reason
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.samples import wants

MINUTE = 6
"""In cycles."""
BEFORE_DOUBT = 2 * MINUTE + MINUTE - 1
"""The cycles in which a group that is not Stable any more is not yet in doubt, wherever in a minute that begins."""
ORDERS, REFUNDS = ("orders", 0), ("refunds", 0)


def kafka(refunds_lag: int = 1000) -> Kafka:
    """billing, Stable, reads orders and has read all of it; it has a commit for refunds, which it does not read."""
    return Kafka(
        topics={"orders": [2], "refunds": [2]},
        commits={"billing": {ORDERS: 500, REFUNDS: 100}},
        ends={ORDERS: 500, REFUNDS: 100 + refunds_lag},
        members={"billing": {"orders"}},
    )


def running(cluster: Kafka, settings: Settings | None = None, cycles: int = MINUTE + 1) -> Rig:
    rig = Rig(cluster, settings)
    rig.run(cycles)
    return rig


def lags(rig: Rig, cycles: int) -> list[int]:
    found = []
    for _ in range(cycles):
        rig.run()
        found.append(rig.lag())
    return found


def test_a_listing_leaves_out_an_old_value_beside_the_doubt_about_another_group() -> None:
    third = ("third", 0)
    rig = running(
        Kafka(
            topics={"orders": [1], "refunds": [1], "third": [1]},
            commits={"billing": {ORDERS: 500, REFUNDS: 100}, "mail": {ORDERS: 500, third: 5}, "fine": {ORDERS: 497}},
            ends={ORDERS: 500, REFUNDS: 1100, third: 5},
            members={"billing": {"orders"}, "mail": {"orders"}},
        )
    )
    rig.kafka.moving = {"billing", "mail"}
    rig.run(2)
    rig.kafka.end_errors = {third: 5}
    rig.run(4 * MINUTE)

    assert [value.labels["group"] for value in rig.read("lag").values] == ["fine"]


# -- listings that do not tell the state of a group --------------------------------------------------------


def test_without_states_in_listings_a_topic_that_nobody_reads_is_left_out() -> None:
    cluster = kafka()
    cluster.lists_phases = False
    rig = running(cluster)

    assert lags(rig, 4 * MINUTE) == [0] * 4 * MINUTE


def test_without_states_in_listings_all_topics_count_once_two_descriptions_have_found_no_members() -> None:
    cluster = kafka()
    cluster.lists_phases = False
    rig = running(cluster)
    cluster.members.clear()
    found = lags(rig, 2 * MINUTE + 1)

    assert found[:MINUTE] == [0] * MINUTE
    assert found[-1] == 1000
    assert lags(rig, 2 * MINUTE) == [1000] * 2 * MINUTE


# -- a description that fails ----------------------------------------------------------------------------


@pytest.mark.parametrize("cycle", range(MINUTE))
def test_a_coordinator_that_is_loading_brings_no_stale_topic_back(cycle: int) -> None:
    rig = running(kafka(), cycles=MINUTE + cycle)
    rig.kafka.loading = {1}
    assert lags(rig, 2) == [0, 0]

    rig.kafka.loading.clear()
    assert lags(rig, MINUTE) == [0] * MINUTE


def test_a_failed_description_brings_no_stale_topic_back() -> None:
    rig = running(kafka())
    rig.kafka.undescribed = {"billing"}
    assert lags(rig, BEFORE_DOUBT) == [0] * BEFORE_DOUBT

    rig.kafka.undescribed.clear()
    rig.run(MINUTE)
    assert lags(rig, MINUTE) == [0] * MINUTE


def test_an_upgrade_to_the_new_protocol_brings_no_stale_topic_back() -> None:
    """It may come between the listing and the description."""
    rig = running(kafka())
    rig.brokers.before = {"Describe classic": lambda: rig.kafka.kinds.update(billing=Kind.CONSUMER)}

    assert lags(rig, 3 * MINUTE) == [0] * 3 * MINUTE


# -- a description that is old ---------------------------------------------------------------------------


def test_a_topic_counts_at_once_when_its_commits_move_after_the_description() -> None:
    rig = running(kafka())
    rig.kafka.moving = {"billing"}
    rig.kafka.commits["billing"][REFUNDS] = 101
    rig.run()

    assert rig.lag() == 999


def test_a_topic_counts_at_once_when_its_first_commit_comes_after_the_description() -> None:
    cluster = kafka()
    del cluster.commits["billing"][REFUNDS]
    rig = running(cluster)
    rig.kafka.moving = {"billing"}
    rig.kafka.commits["billing"][REFUNDS] = 101
    rig.run()

    assert rig.lag() == 999


def test_a_topic_whose_commits_moved_counts_through_the_longest_rebalance() -> None:
    rig = running(kafka())
    rig.kafka.moving = {"billing"}
    rig.kafka.commits["billing"][REFUNDS] = 101

    assert lags(rig, 10 * MINUTE) == [999] * 10 * MINUTE


def test_a_topic_whose_commits_moved_is_stale_again_when_the_next_description_lacks_it() -> None:
    rig = running(kafka())
    rig.kafka.commits["billing"][REFUNDS] = 101
    rig.run()
    assert rig.lag() == 999

    rig.run(MINUTE)
    assert rig.lag() == 0


def test_the_last_commit_before_a_topic_was_abandoned_does_not_count_it() -> None:
    """The first cycle reads the commits before the members."""
    rig = running(kafka(), cycles=1)

    assert rig.lag() == 0


def test_a_commit_that_was_there_before_it_could_be_read_is_no_movement() -> None:
    cluster = kafka()
    cluster.commit_errors["billing"] = 14
    rig = running(cluster, cycles=2)
    cluster.commit_errors.clear()
    rig.run()

    assert rig.lag() == 0


def test_commits_that_expire_are_no_movement() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [2, 2]
    cluster.commits["billing"]["refunds", 1] = 7
    rig = running(cluster)
    del cluster.commits["billing"]["refunds", 1]

    assert lags(rig, 4) == [0] * 4


def test_the_same_commits_after_a_while_without_them_are_no_movement() -> None:
    """In a group that a rule names, whose last commits are remembered."""
    rig = running(kafka(), samples.settings(rules=[{"group": "billing"}]))
    rig.kafka.moving = {"billing"}
    commits = rig.kafka.commits["billing"]
    old = commits.pop(REFUNDS)
    assert lags(rig, 5) == [0] * 5
    commits[REFUNDS] = old

    assert lags(rig, 5) == [0] * 5


def test_another_commit_after_a_while_without_one_is_movement() -> None:
    rig = running(kafka())
    rig.kafka.moving = {"billing"}
    commits = rig.kafka.commits["billing"]
    old = commits.pop(REFUNDS)
    rig.run(5)
    commits[REFUNDS] = old + 1
    rig.run()

    assert rig.lag() == 999


def test_what_is_produced_into_a_topic_that_a_share_group_left_is_no_movement() -> None:
    cluster = kafka()
    cluster.kinds["billing"], cluster.commits["billing"] = Kind.SHARE, {}
    cluster.shares["billing"] = {ORDERS: (500, 0), REFUNDS: (100, 1000)}
    rig = running(cluster)
    cluster.ends[REFUNDS], cluster.shares["billing"][REFUNDS] = 1500, (100, 1300)
    rig.run()
    assert rig.lag() == 0

    cluster.shares["billing"][REFUNDS] = (101, 1299)
    rig.run()
    assert rig.lag() == 1299


# -- a topic in doubt ------------------------------------------------------------------------------------


def in_doubt(cluster: Kafka, settings: Settings | None = None) -> Rig:
    """billing was last described as Stable 60 s after the first cycle, and has not been Stable since."""
    rig = running(cluster, settings)
    rig.kafka.moving = {"billing"}
    rig.run(3 * MINUTE)
    return rig


def test_an_old_description_decides_for_the_time_of_two_more() -> None:
    rig = running(kafka())
    rig.kafka.moving = {"billing"}

    assert lags(rig, 2 * MINUTE) == [0] * 2 * MINUTE


def test_then_a_topic_with_lag_that_the_group_may_read_or_not_is_refused_in_plain_words() -> None:
    assert str(in_doubt(kafka()).refusal(group="billing")) == (
        "lag of group billing is not known: the group has not been described as Stable since 2026-11-18T11:07:40Z, and "
        "did not read topic refunds then; whether it reads the topic now is not known"
    )


def test_each_metric_that_depends_on_the_topic_in_doubt_is_refused() -> None:
    rig = in_doubt(kafka())

    for metric in ("records_lag_max", "lead_min"):
        assert rig.reasons(metric, group="billing") == [Reason.IN_DOUBT]
    assert [item.milli // 1000 for item in rig.read("uncommitted_partitions", wants(group="billing")).values] == [0]


def test_a_topic_that_was_read_is_answered_beside_the_one_in_doubt() -> None:
    rig = in_doubt(kafka())

    assert [item.milli // 1000 for item in rig.read("lag", wants(group="billing", topic="orders")).values] == [0]
    assert rig.reasons(group="billing", topic="refunds") == [Reason.IN_DOUBT]


def test_a_topic_in_doubt_without_lag_changes_no_answer() -> None:
    rig = in_doubt(kafka(refunds_lag=0))
    rig.kafka.ends[ORDERS] = 507
    rig.run()

    assert rig.lag() == 7


def test_a_listing_leaves_a_group_in_doubt_out_and_names_it() -> None:
    cluster = kafka()
    cluster.commits["audit"] = {ORDERS: 490}
    reading = in_doubt(cluster).read()

    assert [item.labels["group"] for item in reading.values] == ["audit"]
    assert [warning.split(":")[0] for warning in reading.warnings] == ["lag of group billing is not known"]


def test_the_next_description_of_a_stable_group_ends_the_doubt() -> None:
    rig = in_doubt(kafka())
    rig.kafka.moving.clear()
    rig.run(MINUTE)
    assert rig.lag() == 0

    rig = in_doubt(kafka())
    rig.kafka.moving.clear()
    rig.kafka.members["billing"] = {"orders", "refunds"}
    rig.run(MINUTE)
    assert rig.lag() == 1000


def test_an_empty_group_counts_every_topic_and_nothing_is_in_doubt() -> None:
    rig = in_doubt(kafka())
    rig.kafka.moving.clear()
    rig.kafka.members.clear()
    rig.run(MINUTE)

    assert rig.lag() == 1000


def test_a_group_that_one_listing_calls_empty_brings_no_stale_topic_back() -> None:
    """As a coordinator does that has just taken over, for some tenths of a second."""
    rig = running(kafka(), cycles=1)
    rig.run(2)
    members = dict(rig.kafka.members)
    rig.kafka.members.clear()
    assert lags(rig, 1) == [0], "this cycle lists the groups"

    rig.kafka.members |= members
    assert lags(rig, 2 * MINUTE) == [0] * 2 * MINUTE


@pytest.mark.parametrize(
    "given",
    [
        {"rules": [{"group": "billing", "topics": ["orders", "refunds"]}]},
        {"metrics": [{"name": "backlog", "value": "lag", "group": "billing", "topics": ["refunds"]}]},
    ],
    ids=["rule", "named metric"],
)
def test_topics_that_are_given_by_name_are_never_stale_and_never_in_doubt(given: dict[str, object]) -> None:
    rig = running(kafka(), samples.settings(**given))
    assert rig.lag() == 1000
    rig.kafka.moving = {"billing"}

    assert lags(rig, 10 * MINUTE) == [1000] * 10 * MINUTE


def test_a_topic_outside_of_the_groups_rule_is_never_in_doubt() -> None:
    rig = in_doubt(kafka(), samples.settings(rules=[{"groups": "bill.*", "topics": ["orders"]}]))

    assert rig.lag() == 0
    assert rig.reasons(group="billing", topic="refunds") == [Reason.NOTHING_SELECTED]


def test_the_history_has_a_topic_in_doubt_as_unknown() -> None:
    rig = in_doubt(kafka())
    sample = rig.samples[-1]

    assert dict(zip(map(sample.layout.name, range(2)), sample.state.tolist(), strict=True)) == {
        "orders/0": State.OK,
        "refunds/0": State.UNKNOWN,
    }
