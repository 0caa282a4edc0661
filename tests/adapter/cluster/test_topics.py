"""Which of two leaders of a partition is believed."""

from collections.abc import Sequence

import numpy as np

from adapter.cluster.topics import Topic, Topology, updated, without_epochs
from tests.support import samples

BOTH = samples.topology({"orders": [1, 2], "refunds": [1]})
ORDERS = samples.topology({"orders": [1, 2]})
NOTHING_EXPECTED: frozenset[str] = frozenset()


def seen(*answers: Topology, expected: frozenset[str] = NOTHING_EXPECTED) -> Topology:
    known = Topology()
    for answer in answers:
        known = updated(known, answer, expected)
    return known


# -- leaders -------------------------------------------------------------------------------------


def led(leaders: Sequence[int], epochs: Sequence[int] | None, generation: str | None = "a") -> Topology:
    """One topic, its leaders and their epochs by partition."""
    columns = [None if column is None else np.array(column, dtype=np.int32) for column in (leaders, epochs)]
    assert columns[0] is not None
    return Topology(topics={"orders": Topic(generation, columns[0], columns[1])})


def leaders(*answers: Topology) -> list[int]:
    return [int(leader) for leader in seen(*answers).topics["orders"].leaders]


def test_a_leader_of_an_older_epoch_is_not_believed() -> None:
    assert leaders(led([1, 2], [5, 5]), led([3, 3], [6, 4])) == [3, 2]
    assert leaders(led([1, 2], [5, 5]), led([3, 3], [6, 4]), led([1, 2], [5, 5])) == [3, 2]


def test_a_leader_of_the_same_epoch_is_the_newest_one() -> None:
    """A broker that is away keeps its epoch in what some brokers say: the leader is -1 then."""
    assert leaders(led([1], [5]), led([-1], [5])) == [-1]


def test_a_topic_made_again_begins_with_its_own_epochs() -> None:
    assert leaders(led([1], [5]), led([2], [0], "b")) == [2]


def test_a_new_partition_has_the_leader_that_is_said() -> None:
    assert leaders(led([1], [5]), led([1, 2], [5, 0])) == [1, 2]
    assert leaders(led([1, 2], [5, 0]), led([3], [6])) == [3, 2]


def test_missing_epochs_prove_nothing() -> None:
    assert leaders(led([1], [5]), led([2], None)) == [2]
    assert leaders(led([1], None), led([2], [0]), led([3], [1])) == [3]


def test_a_broker_that_reports_no_topic_ids_makes_no_other_topic() -> None:
    with_id, without_id = led([1], [5]), led([2], [6], generation=None)

    topic = seen(with_id, without_id).topics["orders"]
    assert (topic.generation, topic.leaders.tolist()) == ("a", [2])
    assert leaders(with_id, led([2], [4], generation=None)) == [1]
    assert seen(without_id, with_id).topics["orders"].generation == "a"


def test_two_answers_without_topic_ids_prove_that_epochs_begin_anew() -> None:
    """As after a downgrade, if the topic was created again with fewer partitions."""
    with_id, made_again = led([1, 1], [5, 5]), led([2], [0], generation=None)

    assert leaders(with_id, made_again) == [1, 1]
    assert leaders(with_id, made_again, made_again) == [2]
    assert leaders(with_id, made_again, with_id, made_again) == [1, 1]
    assert leaders(with_id, made_again, made_again, led([3], [1], generation=None)) == [3]


def test_after_a_new_beginning_any_epoch_is_believed() -> None:
    known = without_epochs(seen(led([1], [5])))

    assert updated(known, led([2], [1]), NOTHING_EXPECTED).topics["orders"].leaders.tolist() == [2]


def test_the_same_leaders_in_a_new_epoch_are_news() -> None:
    before, after = seen(led([1], [5])), seen(led([1], [5]), led([1], [6]))

    assert after is not before
    assert seen(led([1], [5]), led([1], [6]), led([2], [5])).topics["orders"].leaders.tolist() == [1]
