"""What brokers refuse in a round of commits, and what a group without a coordinator counts as."""

import pytest

from adapter.collector.commits import CommitRound, Commits
from adapter.kafka.answers import Failure
from adapter.kafka.liveness import Liveness
from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.fake_cluster import NOBODY, Kafka
from tests.support.samples import SteppedClock

ORDERS_0, ORDERS_1 = ("orders", 0), ("orders", 1)
NODES = (1, 2, 3)


def kafka() -> Kafka:
    return Kafka(
        topics={"orders": [1, 2]},
        commits={"billing": {ORDERS_0: 7, ORDERS_1: 10}, "audit": {ORDERS_0: 1}},
        coordinators={"billing": 2},
    )


class Rounds:
    """Commits over a fake cluster."""

    def __init__(self, cluster: Kafka | None = None, settings: Settings | None = None) -> None:
        self.kafka = cluster or kafka()
        self.clock = SteppedClock()
        self.brokers = FakeBrokers(self.kafka, self.clock)
        self.liveness = Liveness(self.brokers.probe, self.clock.monotonic)
        self.commits = Commits(self.brokers, self.liveness, samples.watching(settings))

    def list_groups(self) -> None:
        self.commits.list_groups(NODES, NODES)

    def read(self, *, has_offsets_topic: bool = True) -> CommitRound:
        self.brokers.asked_for.clear()
        self.clock.seconds += 10
        self.liveness.begin_cycle()
        reading = self.commits.ask(NODES)
        while self.brokers.wait(reading.calls, together=0.0):
            self.commits.take(reading, 0)
        self.commits.finish(reading, has_offsets_topic=has_offsets_topic)
        return reading

    @property
    def plan(self) -> object:
        """Node -> groups of the newest round."""
        return dict(self.brokers.asked_for)["OffsetFetch"]


def listed(cluster: Kafka | None = None, settings: Settings | None = None) -> Rounds:
    rounds = Rounds(cluster, settings)
    rounds.list_groups()
    return rounds


@pytest.mark.parametrize("error", [14, 30])
def test_who_says_what_is_wrong_with_a_group_is_its_coordinator(error: int) -> None:
    rounds = listed(settings=named())
    rounds.kafka.commit_errors["wanted"] = error
    rounds.read()
    rounds.read()

    assert rounds.plan == {1: ("audit", "wanted"), 2: ("billing",)}


def test_an_unknown_error_is_reported_by_its_number() -> None:
    rounds = listed()
    rounds.kafka.commit_errors["billing"] = 77

    assert rounds.read().problems["billing"].text == "broker 2 returned error 77 for group billing"


def named() -> Settings:
    return samples.settings(rules=[{"group": "wanted", "topics": ["orders"]}])


def test_if_other_groups_are_coordinated_a_group_without_coordinator_is_not_known() -> None:
    cluster = kafka()
    cluster.coordinators["wanted"] = NOBODY
    rounds = listed(cluster, named())

    assert ["wanted" in rounds.read(has_offsets_topic=False).problems for _ in range(9)] == [True] * 9


def test_a_listed_group_without_coordinator_never_counts_as_one_without_commits() -> None:
    rounds = listed(settings=samples.settings(rules=[{"group": "billing", "topics": ["orders"]}]))
    rounds.kafka.coordinators["billing"] = NOBODY

    assert ["billing" in rounds.read().without_coordinator for _ in range(9)] == [False] * 9


def test_a_listing_that_a_broker_refused_is_no_complete_round() -> None:
    rounds = listed()
    rounds.read()
    del rounds.kafka.commits["billing"]
    rounds.kafka.refusing = {3}
    for _ in range(9):
        rounds.read()
        rounds.list_groups()

    assert "billing" in rounds.commits.groups
    assert Failure("refused", "broker 3 at kafka-3:9092 refuses the connection") in rounds.liveness.failures
