"""Where a group belongs is what Kafka's own Java works out; what a listing proves depends on who led what meanwhile."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.cluster.coordinators import (
    OFFSETS_TOPIC,
    PROOF,
    SHARE_STATE_TOPIC,
    ListingTimes,
    Placement,
    Round,
    evidence,
    java_hash,
    moves_without_election,
    partition_of,
    proving_groups,
    share_state_keepers,
    updated_times,
)
from adapter.cluster.groups import Listing
from adapter.cluster.topics import Topic, Topology
from adapter.columns import NEVER

PROVEN = ListingTimes(placement=Placement.PROVEN)
"""Of a cluster that places groups as Kafka does."""

# From `String.hashCode` and `org.apache.kafka.common.utils.Utils.abs` of kafka-clients 4.3.1 on Java 17.
BY_JAVA = {
    "": (0, 0, 0),
    "billing": (-109829509, 9, 6),
    "Billing Service/eu": (-1162182321, 21, 6),
    "gruppe-\u00e4": (673522898, 48, 6),
    "\u65e5\u672c\u8a9e": (25921943, 43, 5),
    "\U0001f600 emoji": (-1572615351, 1, 6),
    "polygenelubricants": (-2147483648, 0, 0),
    "a\0b": (93315, 15, 5),
    "x" * 249: (-1202799496, 46, 3),
}


@pytest.mark.parametrize(("name", "reported"), BY_JAVA.items())
def test_a_group_belongs_to_the_partition_that_kafka_s_own_java_chooses(
    name: str, reported: tuple[int, int, int]
) -> None:
    assert (java_hash(name), partition_of(name, 50), partition_of(name, 7)) == reported


@given(st.text(), st.text(), st.integers(1, 1000))
def test_a_partition_exists_and_the_hash_is_a_polynomial_over_its_letters(one: str, other: str, count: int) -> None:
    assert 0 <= partition_of(one, count) < count
    shifted = java_hash(one) * 31 ** (len(other.encode("utf-16-le")) // 2)
    assert (shifted + java_hash(other) - java_hash(one + other)) % 2**32 == 0


def test_the_state_of_a_share_group_is_kept_where_kafka_s_own_java_says() -> None:
    """`SharePartitionKey.asCoordinatorKey` of Kafka 4.3.1 is `shared:ASNFZ4mrze_-3LqYdlQyEA:3`, its hash 1748307869."""
    assert java_hash("shared:ASNFZ4mrze_-3LqYdlQyEA:3") == 1748307869
    count = 50
    topology = Topology(
        topics={
            "orders": Topic("01234567-89ab-cdef-fedc-ba9876543210", np.zeros(4, dtype=np.int32)),
            SHARE_STATE_TOPIC: Topic("b", np.arange(count, dtype=np.int32)),
        }
    )

    keepers = share_state_keepers("shared", ["orders", "gone"], topology)
    assert keepers == {partition_of(f"shared:ASNFZ4mrze_-3LqYdlQyEA:{index}", count) for index in range(4)}
    assert 1748307869 % count in keepers
    assert share_state_keepers("shared", ["orders"], Topology()) == frozenset()


# -- what a listing proves -----------------------------------------------------------------------


def led(*leaders: int, epochs: tuple[int, ...] = (), generation: str = "a", brokers: int = 4) -> Topology:
    reported = np.array(epochs or [0] * len(leaders), dtype=np.int32)
    return Topology(
        brokers={node: f"kafka-{node}:9092" for node in range(1, brokers + 1)},
        topics={OFFSETS_TOPIC: Topic(generation, np.array(leaders, dtype=np.int32), reported)},
    )


def listing(*groups: str, loading: bool = False) -> Listing:
    return Listing(frozenset(groups), loading)


def heard(
    before: Topology, after: Topology, *nodes: int, known: ListingTimes | None = None, at: float = 7.0
) -> list[float]:
    listed = Round(at, {node: listing() for node in nodes}, before, is_full=True)
    return [float(one) for one in updated_times(known or PROVEN, listed, after).partitions]


def test_a_broker_s_list_is_about_the_partitions_that_it_leads() -> None:
    assert heard(led(1, 2, 1), led(1, 2, 1), 1) == [7, NEVER, 7]


def test_a_broker_that_leads_a_partition_only_before_or_only_after_proves_nothing() -> None:
    assert heard(led(1, 2), led(2, 2, epochs=(1, 0)), 1, 2) == [NEVER, 7]


def test_a_broker_that_lost_and_regained_a_partition_meanwhile_proves_nothing() -> None:
    assert heard(led(1), led(1, epochs=(2,)), 1) == [NEVER]


def test_a_broker_that_is_still_loading_proves_nothing() -> None:
    listed = Round(7.0, {1: listing(loading=True)}, led(1), is_full=True)

    assert updated_times(PROVEN, listed, led(1)).partitions.tolist() == [NEVER]


def test_what_was_listed_before_stays_known_when_the_leader_moves() -> None:
    known = updated_times(PROVEN, Round(3.0, {1: listing()}, led(1), is_full=True), led(1))

    assert heard(led(1), led(2, epochs=(1,)), 1, known=known) == [3]
    assert heard(led(2, epochs=(1,)), led(2, epochs=(1,)), 2, known=known) == [7]


def test_an_offsets_topic_made_again_begins_with_nothing() -> None:
    known = updated_times(PROVEN, Round(3.0, {1: listing()}, led(1), is_full=True), led(1))

    assert heard(led(1), led(1, generation="b"), 1, known=known) == [NEVER]


def test_a_new_partition_was_never_listed() -> None:
    assert heard(led(1), led(1, 1), 1) == [7, NEVER]


def test_a_broker_that_leads_nothing_need_not_be_listed() -> None:
    known = updated_times(PROVEN, Round(7.0, {1: listing()}, led(1, 2, -1), is_full=True), led(1, 2, -1))

    assert known.not_listed_since(7.0, led(1, 2, -1)) == {2}
    assert known.not_listed_since(8.0, led(1, 2, -1)) == {1, 2}


def test_without_a_visible_offsets_topic_every_broker_counts() -> None:
    hidden = Topology(brokers=led(1).brokers)
    known = updated_times(PROVEN, Round(7.0, {1: listing("billing"), 2: listing()}, hidden, is_full=True), hidden)

    assert known.not_listed_since(7.0, hidden) == {3, 4}
    assert known.leader_of(hidden)("billing") == -1


def test_a_group_at_a_broker_that_should_not_have_it_makes_every_broker_count_until_that_is_over() -> None:
    """As for good after the number of partitions was changed under running brokers, and for a moment in a move."""
    topology = led(1, 2)
    (misplaced,) = [name for name in ("billing", "audit") if partition_of(name, 2) == 1][:1]
    known = updated_times(PROVEN, Round(6.0, {4: listing()}, topology, is_full=True), topology)
    listed = Round(7.0, {1: listing(misplaced), 2: listing()}, topology, is_full=True)
    doubtful = updated_times(known, listed, topology)
    assert doubtful.offsets_topic(topology) is None
    assert doubtful.not_listed_since(6.0, topology) == {1, 2, 3, 4}, "the lists may be of other brokers"
    doubtful = updated_times(doubtful, listed, topology)
    assert doubtful.not_listed_since(7.0, topology) == {3, 4}

    clear = updated_times(doubtful, Round(8.0, {1: listing()}, topology, is_full=True), topology)
    assert clear.offsets_topic(topology) is topology.topics[OFFSETS_TOPIC]


# -- whether groups are placed as expected -----------------------------------------------------------------------


THREE = led(*[1, 2, 3] * 16).topics[OFFSETS_TOPIC]


def by_java(topic: Topic, names: Iterable[str]) -> dict[str, int]:
    return {name: int(topic.leaders[partition_of(name, len(topic.leaders))]) for name in names}


def test_among_three_brokers_fourteen_groups_prove_the_placement_and_thirteen_do_not() -> None:
    names = [f"app-{number}" for number in range(14)]

    assert evidence(THREE, by_java(THREE, names)) >= PROOF > evidence(THREE, by_java(THREE, names[:13]))


def test_a_group_elsewhere_weighs_more_than_one_that_is_there() -> None:
    placed = by_java(THREE, ["app-7", "app-8"])

    assert evidence(THREE, {**placed, "app-7": placed["app-7"] % 3 + 1}) < 0


@pytest.mark.parametrize("count", [2, 3, 5, 12, 100])
def test_names_that_no_group_need_have_are_a_proof_though_some_partitions_move(count: int) -> None:
    topic = led(*[number % count + 1 for number in range(50)]).topics[OFFSETS_TOPIC]
    names = proving_groups(topic)
    placed = by_java(topic, names)

    assert evidence(topic, {**placed, names[0]: placed[names[0]] % count + 1}) >= PROOF
    assert len(names) <= 40


def test_where_one_broker_coordinates_every_group_no_name_proves_anything_and_none_is_needed() -> None:
    alone = led(2, 2, 2)

    assert proving_groups(alone.topics[OFFSETS_TOPIC]) == []
    assert ListingTimes().coordinating_topic(alone) is alone.topics[OFFSETS_TOPIC]


@given(st.integers(2, 12), st.randoms(use_true_random=False))
def test_another_hash_is_not_taken_for_kafka_s(brokers: int, random: Random) -> None:
    topic = led(*[number % brokers + 1 for number in range(16)]).topics[OFFSETS_TOPIC]

    assert evidence(topic, {name: random.randint(1, brokers) for name in proving_groups(topic)}) < PROOF


def test_without_a_proof_every_broker_that_has_not_listed_its_groups_counts() -> None:
    topology = led(1, 2)
    listed = Round(7.0, {1: listing(), 2: listing()}, topology, is_full=True)

    assert updated_times(ListingTimes(), listed, topology).not_listed_since(7.0, topology) == {3, 4}
    assert updated_times(PROVEN, listed, topology).not_listed_since(7.0, topology) == frozenset()


def test_listed_groups_prove_the_placement() -> None:
    names = by_java(THREE, [f"app-{number}" for number in range(40)])
    topology = Topology(brokers=led(1).brokers, topics={OFFSETS_TOPIC: THREE})
    listings = {node: listing(*(name for name, place in names.items() if place == node)) for node in (1, 2, 3)}

    known = updated_times(ListingTimes(), Round(7.0, listings, topology, is_full=True), topology)
    assert known.placement is Placement.PROVEN


@pytest.mark.parametrize("epochs", [None, (-1, -1)])
def test_leaders_without_epochs_do_not_show_who_coordinates_a_group(epochs: tuple[int, int] | None) -> None:
    topic = led(1, 2).topics[OFFSETS_TOPIC]
    column = None if epochs is None else np.array(epochs, dtype=np.int32)

    topology = Topology(topics={OFFSETS_TOPIC: replace(topic, epochs=column)})
    assert PROVEN.coordinating_topic(topology) is None


def test_a_leader_that_changes_within_an_epoch_was_not_elected() -> None:
    def topic(leader: int, epoch: int) -> Topic:
        return led(leader, epochs=(epoch,)).topics[OFFSETS_TOPIC]

    assert moves_without_election(topic(1, 5), topic(2, 5))
    assert not moves_without_election(topic(1, 5), topic(2, 6))
    assert not moves_without_election(topic(1, 5), topic(-1, 5)), "its leader is away"
    assert not moves_without_election(topic(1, 5), topic(1, 5))


nodes = st.integers(1, 4)


@given(st.lists(st.tuples(nodes, nodes, nodes, st.booleans(), st.booleans()), min_size=1))
def test_a_partition_counts_as_listed_only_if_its_leader_listed_it_all_the_while(
    partitions: list[tuple[int, int, int, bool, bool]],
) -> None:
    """The truth may change twice while Metadata is asked, groups are listed, and Metadata is asked again."""
    first, epochs = [row[0] for row in partitions], [0] * len(partitions)
    before = led(*first, epochs=tuple(epochs))
    second = [row[1] if row[3] else row[0] for row in partitions]
    later = [epoch + (one != other) for epoch, one, other in zip(epochs, first, second, strict=True)]
    third = [row[2] if row[4] else leader for row, leader in zip(partitions, second, strict=True)]
    last = [epoch + (one != other) for epoch, one, other in zip(later, second, third, strict=True)]
    listed = Round(7.0, {node: listing() for node in (1, 2, 3)}, before, is_full=True)

    at = updated_times(PROVEN, listed, led(*third, epochs=tuple(last))).partitions.tolist()

    for leaders, then in zip(zip(first, second, third, strict=True), at, strict=True):
        assert then == NEVER or (len(set(leaders)) == 1 and leaders[0] in listed.whole)
