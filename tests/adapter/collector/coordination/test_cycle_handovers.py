"""What is read of a coordinator that has just taken over a group, and may report old commits or none."""

from collections import Counter

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED
from tests.support import samples
from tests.support.kafka.coordinators import LEADERS, READ, cluster, is_absent, move, named, rig_of
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0

BESIDE = named(0, 1)
"""Another group of the same partition."""
NEW_LEADER = 78
"""Kafka's error while a new leader does not know how far its followers are."""


def taking_over() -> Kafka:
    """Broker 1 has just taken over the group; it does not report all that has been committed."""
    kafka = cluster(LEADERS, READ)
    kafka.end_errors = {(OFFSETS_TOPIC, partition): NEW_LEADER for partition in (0, 3)}
    return kafka


def test_a_start_while_a_coordinator_takes_over_hides_no_group() -> None:
    """Until its followers have confirmed what it read, it lists none of its groups, without an error."""
    kafka = taking_over()
    kafka.unlisted = {READ}
    rig = rig_of(kafka)
    refused = str(rig.refusal(group=READ))
    kafka.unlisted.clear()
    kafka.end_errors.clear()
    rig.run()

    assert "broker 1 at kafka-1:9092 has not listed its groups yet" in refused
    assert rig.lag(READ) == 3


def test_a_start_while_a_coordinator_takes_over_serves_no_old_commits() -> None:
    kafka = taking_over()
    kafka.commits[READ] = {ORDERS_0: 2}
    rig = rig_of(kafka)
    refused = str(rig.refusal(group=READ))
    kafka.end_errors.clear()
    kafka.commits[READ] = {ORDERS_0: 7}
    rig.run()

    assert f"broker 1 has just taken over group {READ} and may report old commits" in refused
    assert rig.lag(READ) == 3


def test_the_first_commits_of_a_group_count_only_from_the_leader_that_was_asked_about_the_handover() -> None:
    """The group moves in the middle of the cycle: a rule names it, so that every broker is asked for it."""
    kafka = cluster(LEADERS, READ)
    rig = Rig(kafka, samples.settings(rules=[{"group": READ, "topics": ["orders"]}]))
    kafka.unlisted = {READ}
    kafka.coordinators = {READ: 2}
    kafka.commits[READ] = {ORDERS_0: 2}
    rig.run()
    refused = str(rig.refusal(group=READ))
    move(kafka, 0, 2)
    kafka.commits[READ] = {ORDERS_0: 7}
    rig.run()

    assert f"broker 2 has just taken over group {READ}" in refused
    assert rig.lag(READ) == 3


def test_old_commits_of_a_new_coordinator_make_no_lag_though_they_are_no_step_backward() -> None:
    """The adapter last read the same ones; newer ones were committed before the group moved."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 2)
    move(kafka, 0, 2)
    kafka.end_errors = {(OFFSETS_TOPIC, 0): NEW_LEADER}
    kafka.ends[ORDERS_0] = 1000
    served = [rig.run() and rig.lag(READ) for _ in range(3)]
    kafka.end_errors.clear()
    kafka.commits[READ] = {ORDERS_0: 998}
    rig.run()

    assert served == [3, 3, 3]
    assert rig.lag(READ) == 2


TWO_MINUTES, FIVE_MINUTES = 12, 30
RULE = [{"group": READ, "topics": ["orders"]}]


@pytest.mark.parametrize("cycles", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("commits", "rules", "lag"),
    [({ORDERS_0: 2}, [], 8), (None, RULE, 3), (None, [], None)],
    ids=["reset", "expired", "deleted"],
)
def test_what_becomes_of_a_sleeping_group_after_a_move_is_seen_within_two_minutes(
    cycles: int, commits: dict[tuple[str, int], int] | None, rules: list[dict[str, object]], lag: int | None
) -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6, rules=rules)
    move(kafka, 0, 2)
    rig.run(cycles)
    assert rig.lag(READ) == 3
    if commits is None:
        del kafka.commits[READ]
    else:
        kafka.commits[READ] = commits
    rig.run(TWO_MINUTES)

    assert is_absent(rig, READ) if lag is None else rig.lag(READ) == lag


def test_a_group_that_was_reset_before_its_new_coordinator_was_asked_is_believed_once_its_partition_grows() -> None:
    """Until then, the coordinator may report a commit from before the move."""
    kafka = cluster(LEADERS, READ, BESIDE)
    rig = rig_of(kafka, 6)
    move(kafka, 0, 2)
    kafka.commits[READ] = {ORDERS_0: 2}
    rig.run(4 * TWO_MINUTES)
    refused = str(rig.refusal(group=READ))
    kafka.commits[BESIDE] = {ORDERS_0: 8}
    rig.run(TWO_MINUTES)

    assert "reports older offsets than before" in refused
    assert rig.lag(READ) == 8


@pytest.mark.parametrize("stale", [{ORDERS_0: 2}, {}], ids=["older commits", "no commits"])
@pytest.mark.parametrize("moves", [[2], [2, 3]], ids=["one move", "two moves"])
def test_a_group_that_rests_keeps_its_commits_however_long_its_coordinator_reports_older_ones(
    moves: list[int], stale: dict[tuple[str, int], int]
) -> None:
    """Nothing was written to its partition since it was read, so these are the latest; messages still arrive."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6)
    served: list[int] = []
    for node in moves:
        move(kafka, 0, node)
        kafka.stale_commits = {node: {READ: stale}}
        rig.run(4 * TWO_MINUTES)
        kafka.ends[ORDERS_0] += 5
        rig.run()
        served.append(rig.lag(READ))

    assert served == [8, 13][: len(moves)]


def test_a_group_that_has_rested_for_five_minutes_keeps_its_commits_after_a_move() -> None:
    """Log ends are requested that often, so that of its last commit is known by then."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6)
    kafka.commits[READ] = {ORDERS_0: 8}
    rig.run(FIVE_MINUTES + 2)
    move(kafka, 0, 2)
    kafka.stale_commits = {2: {READ: {ORDERS_0: 7}}}
    rig.run(TWO_MINUTES)

    assert rig.lag(READ) == 2


def test_a_commit_from_before_a_reset_is_not_believed_after_a_move() -> None:
    """It is later than the one that was known, which is no step backward."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6)
    kafka.commits[READ] = {ORDERS_0: 2}
    rig.run(FIVE_MINUTES + 2)
    move(kafka, 0, 2)
    kafka.stale_commits = {2: {READ: {ORDERS_0: 7}}}
    served = {rig.run() and rig.lag(READ) for _ in range(TWO_MINUTES)}
    kafka.stale_commits.clear()
    kafka.commits[READ] = {ORDERS_0: 9}
    rig.run()

    assert served == {8}
    assert rig.lag(READ) == 1


def test_a_coordinator_that_lost_its_groups_and_took_them_over_again_between_two_cycles_is_not_believed() -> None:
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6)
    kafka.stale_commits = {1: {READ: {ORDERS_0: 2}}}
    served = {rig.run() and rig.lag(READ) for _ in range(TWO_MINUTES)}

    assert served == {3}


def test_a_group_whose_last_commit_came_with_the_move_is_refused_while_its_coordinator_reports_older_ones() -> None:
    """It may have been reset between its last answer and the move."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6)
    kafka.commits[READ] = {ORDERS_0: 8}
    rig.run()
    move(kafka, 0, 2)
    kafka.stale_commits = {2: {READ: {ORDERS_0: 7}}}
    rig.run(TWO_MINUTES)

    assert "reports older offsets than before" in str(rig.refusal(group=READ))


def test_a_log_end_of_another_offsets_topic_proves_nothing() -> None:
    """It was deleted and created again, and has as many records by chance."""
    kafka = cluster(LEADERS, READ)
    rig = rig_of(kafka, 6)
    move(kafka, 0, 2)
    kafka.generations[OFFSETS_TOPIC] = "c"
    kafka.stale_commits = {2: {READ: {ORDERS_0: 2}}}
    rig.run(TWO_MINUTES)

    assert "reports older offsets than before" in str(rig.refusal(group=READ))


def test_coordinators_that_stay_behind_cost_one_request_a_cycle_each() -> None:
    moves = [(0, 2), (1, 3), (6, 1)]
    kafka = cluster(LEADERS, *(named(partition) for partition, _ in moves))
    rig = rig_of(kafka, 6)
    for partition, node in moves:
        move(kafka, partition, node)
        kafka.stale_commits[node] = {named(partition): {ORDERS_0: 2}}
    rig.run(4)
    asked: list[int] = []
    for _ in range(TWO_MINUTES):
        rig.run()
        plans = rig.asked("ListOffsets read_uncommitted")
        asked += [node for plan in plans for node, topics in plan.items() if OFFSETS_TOPIC in topics]  # type: ignore[attr-defined]

    assert Counter(asked) == dict.fromkeys((1, 2, 3), TWO_MINUTES)


def test_where_the_end_of_a_handover_cannot_be_asked_for_groups_are_read_as_if_it_were_over() -> None:
    kafka = taking_over()
    kafka.end_errors = dict.fromkeys(kafka.end_errors, TOPIC_NOT_AUTHORIZED)

    assert rig_of(kafka).lag(READ) == 3


def test_a_start_asks_each_leader_of_the_offsets_topic_once_whether_its_handover_is_over() -> None:
    rig = rig_of(cluster(LEADERS, READ))

    asked = {node: set(topics) for plan in rig.asked("ListOffsets read_uncommitted") for node, topics in plan.items()}  # type: ignore[attr-defined]
    assert [node for node, topics in asked.items() if OFFSETS_TOPIC in topics] == [2, 3, 4]
