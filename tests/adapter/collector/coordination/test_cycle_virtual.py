"""Clusters that are not Apache Kafka: another hash, one address for all brokers, agents instead of leaders.

What is known of handovers and placement in Kafka must not make every answer of theirs doubtful forever."""

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.kafka.versions import Versions
from adapter.metrics.problems import Reason, ValueUnavailable
from tests.support import samples
from tests.support.kafka.coordinators import READ, cluster, is_absent, move, named, rig_of
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.other_makers import LEADERS, OLD, by_another_hash, of_another_maker
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0

SILENT_3 = "broker 3 at kafka-3:9092 does not answer"
RULE = {"group": "billing", "topics": ["orders"], "offsetReset": "earliest"}


def by_kafkas_hash(group: str) -> int:
    return LEADERS[partition_of(group, len(LEADERS))]


def assert_served(rig: Rig, kafka: Kafka) -> None:
    """Numbers follow the truth at once, forward and backward, and what does not exist is not found."""
    for committed in (8, 9, 5, 7):
        kafka.commits["billing"] = {ORDERS_0: committed}
        rig.run()
        assert rig.lag("billing") == 10 - committed
        assert is_absent(rig, "nobody")
        assert rig.read("lag").warnings == ()


def test_groups_that_another_hash_places_are_read_and_what_does_not_exist_is_not_found() -> None:
    kafka = of_another_maker("billing", "mail")
    rig = rig_of(kafka, 2)

    assert_served(rig, kafka)


def test_with_another_hash_any_unknown_group_may_be_at_a_silent_broker() -> None:
    kafka = of_another_maker("billing", silent={3})
    rig = rig_of(kafka, 4)

    for group in (f"unknown-{number}" for number in range(20)):
        assert rig.reasons(group=group) == [Reason.GROUP_MAY_EXIST]
        assert SILENT_3 in str(rig.refusal(group=group))


def test_groups_that_both_hashes_place_alike_prove_nothing() -> None:
    alike = next(name for name in (f"group-{n}" for n in range(100)) if by_another_hash(name) == by_kafkas_hash(name))
    kafka = of_another_maker(alike, silent={3})
    kafka.versions = dict.fromkeys(kafka.nodes, Versions(find_coordinator=None))
    rig = rig_of(kafka, 4)

    assert {str(rig.reasons(group=f"unknown-{number}")) for number in range(20)} == {str([Reason.GROUP_MAY_EXIST])}


def test_a_group_that_only_a_rule_names_is_read_where_another_hash_places_it() -> None:
    """No listing contradicts Kafka's hash here."""
    groups = [f"group-{'x' * number}" for number in range(6)]
    assert [name for name in groups if by_another_hash(name) != by_kafkas_hash(name)]
    rig = rig_of(of_another_maker(), 2, rules=[{**RULE, "group": name} for name in groups])

    assert [rig.lag(name) for name in groups] == [10] * 6


def test_groups_that_another_hash_places_are_read_in_the_first_cycle() -> None:
    groups = [f"group-{'x' * number}" for number in range(6)]
    rig = rig_of(of_another_maker(*groups))

    assert [rig.lag(name) for name in groups] == [3] * 6


def test_what_is_refuted_is_asked_again_after_five_minutes() -> None:
    rig = rig_of(of_another_maker("billing"))
    first = rig.counted()["FindCoordinator"]

    assert (first, _asked(rig, cycles=29), _asked(rig, cycles=29)) == (2, 0, 1)


def _asked(rig: Rig, cycles: int, kind: str = "FindCoordinator") -> int:
    asked = 0
    for _ in range(cycles):
        rig.run()
        asked += rig.counted()[kind]
    return asked


ALIKE = [name for name in (f"group-{n}" for n in range(30)) if by_another_hash(name) == by_kafkas_hash(name)][:4]
ELSEWHERE = next(name for name in (f"group-{n}" for n in range(30)) if by_another_hash(name) != by_kafkas_hash(name))


@pytest.mark.parametrize("is_single", [True, False], ids=["OffsetFetch 7", "OffsetFetch 8"])
def test_a_group_that_another_hash_places_is_read_where_the_acls_allow_no_proof(*, is_single: bool) -> None:
    groups = {*ALIKE, ELSEWHERE}
    kafka = of_another_maker(*groups, unlisted=groups, describable=groups)
    if is_single:
        kafka.versions = dict.fromkeys(kafka.nodes, OLD)
    rig = rig_of(kafka, rules=[{**RULE, "group": group} for group in groups])
    assert f"broker {by_another_hash(ELSEWHERE)} has just taken over" in str(rig.refusal(group=ELSEWHERE))
    rig.run(4)

    assert [rig.lag(group) for group in groups] == [3] * 5
    assert _asked(rig, 30, "Metadata") <= 10


def test_what_is_refuted_stays_so_after_a_new_connection_to_all_brokers() -> None:
    kafka = of_another_maker(ELSEWHERE, unlisted={ELSEWHERE}, describable={ELSEWHERE})
    rig = rig_of(kafka, 6, rules=[{**RULE, "group": ELSEWHERE}])
    kafka.refusing = set(kafka.nodes)
    while not rig.brokers.closes:
        rig.run()
    kafka.refusing = set()
    kafka.commits[ELSEWHERE] = {ORDERS_0: 8}
    rig.run()

    assert rig.lag(ELSEWHERE) == 2


def test_metadata_that_shows_a_group_s_coordinator_late_refutes_nothing() -> None:
    """So an unknown group of a broker that has listed all its groups is absent."""
    kafka = cluster([1, 2, 3, 4] * 2, READ)
    kafka.unlisted, kafka.coordinators = {READ}, {READ: 2}
    rig = rig_of(kafka, 3, rules=[{**RULE, "group": READ}])
    assert f"broker 2 has just taken over group {READ}" in str(rig.refusal(group=READ))
    kafka.coordinators = {}
    rig.run(4)
    kafka.silent = {4}
    rig.run(4)

    assert rig.lag(READ) == 3
    assert is_absent(rig, named(0, 1))
    assert not is_absent(rig, named(3, 1))


def test_leaders_that_are_all_elected_while_the_proof_is_sought_refute_nothing() -> None:
    kafka = cluster([1, 2, 3, 4] * 2, "billing")
    rig = Rig(kafka, samples.settings(rules=[RULE]))

    def elect() -> None:
        for partition, leader in enumerate(kafka.topics[OFFSETS_TOPIC]):
            move(kafka, partition, leader % 4 + 1)

    rig.brokers.before["FindCoordinator"] = elect
    rig.run()

    assert rig.counted()["FindCoordinator"] == 2
    rig.run()
    assert rig.lag("billing") == 3
    assert rig.counted()["FindCoordinator"] == 0, "it is proven"


def test_a_broker_that_names_former_leaders_to_a_new_client_refutes_nothing() -> None:
    kafka = cluster([1, 2, 3, 4] * 2, "billing")
    rig = rig_of(kafka, 6)
    kafka.silent = set(kafka.nodes)
    while not rig.brokers.closes:
        rig.run()
    kafka.believed = {1: {OFFSETS_TOPIC: (list(kafka.topics[OFFSETS_TOPIC]), [0] * 8)}}
    for partition, leader in enumerate(kafka.topics[OFFSETS_TOPIC]):
        move(kafka, partition, leader % 4 + 1)
    rig.brokers.before["FindCoordinator"] = kafka.believed.clear
    kafka.silent = set()
    rig.run(6)
    kafka.silent = {kafka.topics[OFFSETS_TOPIC][partition_of("other", 8)]}
    rig.run(8)

    unknown = (name for name in (f"unknown-{number}" for number in range(100)))
    elsewhere = next(name for name in unknown if kafka.topics[OFFSETS_TOPIC][partition_of(name, 8)] not in kafka.silent)
    assert is_absent(rig, elsewhere)


def test_in_kafka_it_is_asked_once() -> None:
    rig = rig_of(cluster([1, 2, 3, 4], "billing"))
    assert rig.counted()["FindCoordinator"] == 1
    for _ in range(10):
        rig.run()
        assert rig.counted()["FindCoordinator"] == 0


@pytest.mark.parametrize("is_hidden", [True, False], ids=["without", "with an offsets topic"])
def test_one_address_that_is_all_brokers_is_believed(*, is_hidden: bool) -> None:
    kafka = cluster([1] * 8, "billing")
    kafka.nodes = (1,)
    if is_hidden:
        del kafka.topics[OFFSETS_TOPIC]
    rig = rig_of(kafka, 2)

    assert_served(rig, kafka)


@pytest.mark.parametrize("epochs", [[0] * 8, [-1] * 8, None], ids=["of one epoch", "of no epoch", "without epochs"])
@pytest.mark.parametrize("is_hidden", [True, False], ids=["without", "with an offsets topic"])
def test_agents_that_each_metadata_names_as_other_leaders_are_believed(
    *, is_hidden: bool, epochs: list[int] | None
) -> None:
    kafka = cluster([1, 2, 3, 4] * 2, "billing")
    kafka.are_agents, kafka.generations = True, {}
    kafka.epochs = {} if epochs is None else {OFFSETS_TOPIC: epochs, "orders": epochs[:1]}
    if is_hidden:
        del kafka.topics[OFFSETS_TOPIC]
    rig = rig_of(kafka, 5)

    assert_served(rig, kafka)


def test_leaders_that_change_without_an_election_do_not_show_who_coordinates_a_group() -> None:
    """FindCoordinator agrees with each Metadata, and no listing contradicts it."""
    kafka = cluster([1, 2, 3, 4] * 12, "billing")
    kafka.are_agents, kafka.unlisted = True, {"billing"}
    rig = rig_of(kafka, 6, rules=[RULE])

    assert_served(rig, kafka)


def test_a_cluster_whose_leaders_once_changed_without_an_election_is_believed_again_once_it_is_proven() -> None:
    """Then an unknown group of a broker that has listed all its groups is absent, though another broker is silent."""
    kafka = cluster([1, 2, 3, 4] * 2, "billing")
    rig = rig_of(kafka, 2)
    kafka.topics[OFFSETS_TOPIC][0], kafka.topics[OFFSETS_TOPIC][1] = 2, 1
    rig.run(2)
    kafka.silent = {4}
    rig.run(2)
    assert not is_absent(rig, named(0, 1))
    rig.run(31)

    assert is_absent(rig, named(0, 1))
    assert not is_absent(rig, named(3, 1))


def test_without_leader_epochs_what_does_not_exist_is_not_found() -> None:
    """Before Metadata 7."""
    kafka = cluster([1, 2, 3, 4] * 2, "billing")
    kafka.epochs = {}
    rig = rig_of(kafka, 6)

    assert_served(rig, kafka)


def test_a_group_that_is_reset_while_its_coordinator_throttles_the_adapter_is_believed() -> None:
    """Hosted clusters hide the topic whose log end would end a doubt, and a group that sleeps commits nothing."""
    kafka = cluster([1], "billing")
    del kafka.topics[OFFSETS_TOPIC]
    rig = rig_of(kafka, 3)
    kafka.throttling = {1}
    rig.run()
    kafka.commits["billing"] = {ORDERS_0: 2}
    kafka.throttling = set()
    rig.run()

    assert rig.lag("billing") == 8


@pytest.mark.parametrize("every", [100, 9, 3], ids=["once", "every 90 s", "every 30 s"])
@pytest.mark.parametrize("commits", [{ORDERS_0: 2}, None], ids=["reset", "deleted"])
def test_a_group_that_was_reset_while_the_connection_broke_is_believed_within_seven_minutes(
    commits: dict[tuple[str, int], int] | None, every: int
) -> None:
    """Where no log end can end the doubt: the coordinator may as well report what it knew as a follower."""
    kafka = cluster([1], "billing")
    del kafka.topics[OFFSETS_TOPIC]
    rig = rig_of(kafka, 3)
    kafka.commits["billing"] = {ORDERS_0: 2}
    if commits is None:
        del kafka.commits["billing"]
    served = set[int | None]()
    for cycle in range(30):
        kafka.refusing = {1} if cycle % every == 0 else set()
        rig.run()
        served.add(_lag_or_none(rig))
    for cycle in range(30, 42):
        kafka.refusing = {1} if cycle % every == 0 else set()
        rig.run()
    kafka.refusing = set()
    rig.run(1 if commits else 10)  # a group that is gone counts as absent only after a while without failures

    assert served == {3, None}
    assert is_absent(rig, "billing") if commits is None else rig.lag("billing") == 8


def _lag_or_none(rig: Rig) -> int | None:
    try:
        return rig.lag("billing")
    except ValueUnavailable:
        return None
