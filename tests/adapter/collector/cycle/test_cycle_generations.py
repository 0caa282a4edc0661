"""Topics that are made again under their name, and brokers that tell of a topic as it was: never too low a lag."""

from collections import Counter

import pytest

from adapter.metrics.problems import NoMatch, ValueUnavailable
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig


def made_again(kafka: Kafka, number: int, end: int, commits: dict[int, int]) -> None:
    """Topic orders under another id, from offset 0 on."""
    kafka.generations["orders"] = f"id-{number}"
    for partition in range(len(kafka.topics["orders"])):
        kafka.ends["orders", partition] = end
        kafka.starts["orders", partition] = 0
    kafka.commits["billing"] = {("orders", partition): offset for partition, offset in commits.items()}


def test_a_log_start_of_the_topic_before_hides_no_message_of_the_new_one() -> None:
    kafka = Kafka({"orders": [1]}, {"billing": {("orders", 0): 1_500}}, ends={("orders", 0): 2_000})
    kafka.generations["orders"], kafka.starts["orders", 0] = "id-1", 1_000
    rig = Rig(kafka)
    rig.run(2)
    assert rig.lag() == 500

    made_again(kafka, 2, end=10, commits={0: 3})
    seen = served(rig, 4)

    assert set(seen) <= {500, None, 7}
    assert seen[2:] == [7, 7], seen


def test_a_log_start_of_the_topic_before_hides_no_message_of_a_new_one_that_is_longer() -> None:
    kafka = Kafka({"orders": [1]}, {"billing": {("orders", 0): 1_500}}, ends={("orders", 0): 2_000})
    kafka.generations["orders"], kafka.starts["orders", 0] = "id-1", 1_000
    rig = Rig(kafka)
    rig.run(2)

    made_again(kafka, 2, end=2_500, commits={0: 100})
    rig.run()

    assert rig.lag() == 2_400


@pytest.mark.parametrize("end", [10, 1_600, 2_500])
def test_without_topic_ids_a_topic_made_again_is_recognised_by_its_offsets(end: int) -> None:
    kafka = Kafka({"orders": [1]}, {"billing": {("orders", 0): 1_500}}, ends={("orders", 0): 2_000})
    kafka.starts["orders", 0] = 1_000
    rig = Rig(kafka)
    rig.run(2)
    assert rig.lag() == 500

    made_again(kafka, 2, end=end, commits={0: 3})
    kafka.generations = {}
    seen = served(rig, 4)

    assert set(seen) <= {500, None, end - 3}
    assert seen[2:] == [end - 3] * 2, seen


def test_an_end_that_goes_backward_is_a_reason_to_look() -> None:
    kafka = Kafka({"orders": [1]}, {"billing": {("orders", 0): 1_500}}, ends={("orders", 0): 2_000})
    kafka.generations["orders"] = "id-1"
    rig = Rig(kafka)
    rig.run()

    made_again(kafka, 2, end=1_600, commits={0: 1_500})
    rig.run(2)

    assert rig.view.layout.generations["orders"] == "id-2"


def test_a_broker_that_has_not_heard_of_new_partitions_takes_none_away() -> None:
    kafka = Kafka({"orders": [1, 1]}, {"billing": {("orders", 0): 0, ("orders", 1): 0}}, generations={"orders": "id-1"})
    kafka.ends = {("orders", 0): 5, ("orders", 1): 70}
    rig = Rig(kafka)
    rig.run(2)
    assert rig.lag() == 75

    kafka.topics["orders"] = [1]  # Metadata of a broker that is behind
    kafka.ends["orders", 0] = 6
    rig.run(4)

    assert len(rig.view.layout) == 2, "partitions are never taken away from a topic"


@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_partition_with_a_commit_counts_though_one_broker_has_not_heard_of_it(node: int) -> None:
    kafka = Kafka({"orders": [1]}, {"billing": {("orders", 0): 0}}, generations={"orders": "id-1"})
    kafka.ends = {("orders", 0): 5}
    rig = Rig(kafka)
    rig.run(5)

    kafka.topics["orders"], kafka.ends["orders", 1], kafka.commits["billing"]["orders", 1] = [1, 1], 70, 0
    kafka.behind = {node: {"orders": 1}}
    rig.run(2)

    assert rig.lag() == 75


def test_metadata_is_not_requested_without_end_for_a_partition_that_does_not_exist() -> None:
    kafka = Kafka({"orders": [1]}, {"billing": {("orders", 0): 0, ("orders", 1): 0}})
    rig = Rig(kafka, samples.settings(collection={"interval": "5s"}))
    rig.run(5)
    asked = []
    for _ in range(4):
        rig.run()
        asked.append(rig.counted()["Metadata"])

    assert sum(asked) <= 1


def test_a_topic_whose_commits_come_back_counts_at_once() -> None:
    settings = samples.settings(collection={"interval": "10s", "maxAge": "160s"})
    kafka = Kafka({"orders": [1], "bills": [1]}, {"billing": {("orders", 0): 0, ("bills", 0): 0}})
    kafka.ends = {("orders", 0): 5, ("bills", 0): 70}
    rig = Rig(kafka, settings)
    rig.run(12)

    del kafka.commits["billing"]["bills", 0]
    rig.run(3)
    assert rig.lag() == 5

    kafka.commits["billing"]["bills", 0] = 0
    rig.run(2)
    assert rig.lag() == 75


def test_a_new_topic_counts_even_if_a_broker_that_was_silent_reports_it() -> None:
    kafka = Kafka({"orders": [1], "bills": [1]}, {"billing": {("orders", 0): 0}}, {"billing": 2})
    kafka.ends = {("orders", 0): 5, ("bills", 0): 70}
    rig = Rig(kafka)
    rig.run()
    kafka.silent = {2}
    rig.run()

    kafka.silent, kafka.commits["billing"]["bills", 0] = set(), 0
    rig.run()

    assert rig.lag() == 75


@pytest.mark.parametrize(("commits", "lag"), [({}, 10 + 10), ({0: 4}, 6 + 10)], ids=["no commit", "one commit"])
def test_a_topic_made_again_as_long_as_before_is_not_counted_from_the_commits_before(
    commits: dict[int, int], lag: int
) -> None:
    """What was served before stays until it is too old. No offset goes backward."""
    kafka = Kafka({"orders": [1, 2]}, {"billing": {("orders", 0): 10, ("orders", 1): 10}})
    kafka.ends, kafka.generations["orders"] = {("orders", 0): 10, ("orders", 1): 10}, "id-1"
    settings = samples.settings(
        collection={"interval": "1s", "maxAge": "5s"}, rules=[{"group": "billing", "topics": ["orders"]}]
    )
    rig = Rig(kafka, settings)
    rig.run(35)
    made_again(kafka, 2, end=10, commits=commits)
    seen = served(rig, 20)

    assert set(seen[5:15]) <= {None, lag}
    assert set(seen[15:]) == {lag}


def test_commits_that_go_missing_all_the_time_cost_no_more_requests_than_the_look_at_the_brokers() -> None:
    groups = [f"group-{number}" for number in range(100)]
    kafka = Kafka({"orders": [1, 1]}, {group: {("orders", 0): 0, ("orders", 1): 0} for group in groups})
    rig = Rig(kafka, samples.settings(collection={"interval": "1s"}))
    rig.run(2)
    asked: Counter[str] = Counter()
    for group in groups[:60]:
        del kafka.commits[group]["orders", 1]
        rig.run()
        asked += rig.counted()

    assert asked["Metadata"] + asked["Metadata living"] <= 8


def served(rig: Rig, cycles: int) -> list[int | None]:
    """What each cycle serves; None: nothing."""
    seen: list[int | None] = []
    for _ in range(cycles):
        rig.run()
        try:
            seen.append(rig.lag())
        except (NoMatch, ValueUnavailable):
            seen.append(None)
    return seen
