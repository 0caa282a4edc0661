"""What a group's commits look like on a real broker, and what is served for each."""

import pytest

from local.broker import Kafka
from local.kafka_tools import Described, commit, create_topic, described, produce
from tests.end_to_end.in_process import in_process


@pytest.mark.parametrize(("policy", "expected"), [("latest", 6), ("earliest", 6 + 40)])
def test_a_partition_without_commit_counts_by_its_rule(one_broker: Kafka, policy: str, expected: int) -> None:
    topic, group = f"no-commit-{policy}", f"no-commit-{policy}"
    create_topic(one_broker, topic, partitions=3)
    produce(one_broker, topic, 10, partition=0)
    produce(one_broker, topic, 40, partition=1)
    commit(one_broker, group, {(topic, 0): 4})

    with in_process(one_broker, rules=[{"group": group, "offsetReset": policy}]) as rig:
        rig.run_once()

        assert rig.lag(group) == expected
        assert rig.uncommitted(group) == 2
    assert described(one_broker, group)[topic, 0] == Described(4, 10, 6)
