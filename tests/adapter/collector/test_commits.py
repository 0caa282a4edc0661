"""Which groups there are and what they have committed, round by round."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from adapter.cluster.groups import Directory
from adapter.collector.commits import CommitRound, Commits
from adapter.kafka.answers import Failure
from adapter.kafka.liveness import Liveness
from adapter.lag.snapshot import State
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


@dataclass
class Reported:
    """What a round believes of a group."""

    received: float
    is_doubtful: bool = False
    topics: dict[str, dict[int, int]] = field(default_factory=dict)


def reported(outcome: CommitRound) -> dict[str, Reported]:
    """Group -> what it has committed; groups without an answer are not in it."""
    found = {group: Reported(at) for group, at in outcome.without_coordinator.items()}
    for part in outcome.parts:
        shape = part.columns.shape
        for place in np.flatnonzero(part.is_accepted):
            found[shape.groups[place]] = Reported(part.received, bool(part.is_doubtful[place]))
        block = np.repeat(np.arange(len(shape.topics)), shape.sizes)
        for row, number in enumerate(block):
            if part.is_accepted[shape.group[number]]:
                rows = found[shape.groups[shape.group[number]]].topics.setdefault(shape.topics[number], {})
                rows[int(shape.partition[row])] = int(part.columns.offset[row])
    return found


def committed(outcome: CommitRound, group: str) -> dict[int, int]:
    return reported(outcome)[group].topics["orders"]


def test_every_group_is_asked_for_at_the_broker_that_listed_it() -> None:
    rounds = listed()
    outcome = rounds.read()

    assert rounds.plan == {1: ("audit",), 2: ("billing",)}
    assert committed(outcome, "billing") == {0: 7, 1: 10}
    assert reported(outcome)["billing"].received == rounds.clock.seconds
    assert outcome.problems == {}


def test_a_silent_coordinator_leaves_only_its_groups_unknown() -> None:
    rounds = listed()
    rounds.kafka.silent = {2}
    outcome = rounds.read()

    assert reported(outcome).keys() == {"audit"}
    assert outcome.problems["billing"].state is State.UNKNOWN
    assert outcome.problems["billing"].text == "broker 2 at kafka-2:9092 does not answer"


def test_a_broker_that_is_absent_is_not_asked_and_its_silence_stays_the_reason() -> None:
    rounds = listed()
    rounds.kafka.silent = {2}
    rounds.read()
    outcome = rounds.read()

    assert rounds.plan == {1: ("audit",)}
    assert outcome.problems["billing"].text == "broker 2 at kafka-2:9092 does not answer"


def test_a_group_that_moved_is_asked_for_everywhere_in_the_next_round_and_then_at_its_new_coordinator() -> None:
    rounds = listed()
    rounds.kafka.coordinators["billing"] = 3
    assert rounds.read().problems["billing"].text == "no broker coordinates group billing"
    assert committed(rounds.read(), "billing") == {0: 7, 1: 10}
    rounds.read()

    assert rounds.plan == {1: ("audit",), 3: ("billing",)}


def test_a_loading_coordinator_keeps_its_groups() -> None:
    rounds = listed()
    rounds.kafka.loading = {2}
    outcome = rounds.read()
    rounds.list_groups()
    rounds.kafka.loading.clear()

    assert outcome.problems["billing"].text == "broker 2 is still loading its groups"
    assert committed(rounds.read(), "billing") == {0: 7, 1: 10}
    assert rounds.plan == {1: ("audit",), 2: ("billing",)}


def test_a_group_that_may_not_be_described_is_an_error_and_stays_where_it_is() -> None:
    rounds = listed()
    rounds.kafka.commit_errors["billing"] = 30
    assert rounds.read().problems["billing"].state is State.ERROR
    rounds.read()

    assert rounds.plan == {1: ("audit",), 2: ("billing",)}


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


def test_of_two_that_answer_for_a_group_the_one_that_was_not_silent_is_believed() -> None:
    rounds = listed()
    rounds.kafka.silent = {1}
    rounds.read()
    rounds.kafka.silent.clear()
    # While it was away its groups went to another broker; it still knows the old commits.
    rounds.kafka.coordinators["audit"] = 3
    rounds.kafka.stale_commits = {1: {"audit": {ORDERS_0: 0}}}
    rounds.commits.directory = Directory(rounds.commits.directory.groups)
    outcome = rounds.read()

    assert committed(outcome, "audit") == {0: 1}
    assert not reported(outcome)["audit"].is_doubtful
    rounds.read()
    assert rounds.plan == {2: ("billing",), 3: ("audit",)}


def test_an_answer_of_a_broker_that_was_silent_is_doubtful_and_drops_no_topic() -> None:
    rounds = listed()
    rounds.read()
    rounds.kafka.silent = {2}
    rounds.read()
    rounds.kafka.silent.clear()
    rounds.kafka.stale_commits = {2: {"billing": {}}}

    assert reported(rounds.read())["billing"].is_doubtful
    assert rounds.commits.topics["billing"] == {"orders": 0}


def test_topics_without_commits_are_dropped_after_three_answers_of_a_listed_group() -> None:
    rounds = listed()
    rounds.read()
    rounds.kafka.commits["billing"].clear()
    known = []
    for _ in range(3):
        rounds.read()
        known.append(dict(rounds.commits.topics["billing"]))

    assert known == [{"orders": 1}, {"orders": 2}, {}]


def test_a_group_that_is_not_listed_any_more_loses_no_topic() -> None:
    rounds = listed()
    rounds.read()
    del rounds.kafka.commits["billing"]
    rounds.list_groups()
    for _ in range(9):
        rounds.read()

    assert rounds.commits.topics["billing"] == {"orders": 1}


def test_a_group_is_gone_after_three_complete_listings_without_it_and_without_offsets() -> None:
    rounds = listed()
    rounds.read()
    del rounds.kafka.commits["billing"]
    for _ in range(3):
        assert "billing" in rounds.commits.groups
        rounds.read()
        rounds.list_groups()

    assert rounds.commits.groups == ("audit",)
    assert rounds.commits.topics.keys() == {"audit"}


def test_an_unlisted_group_with_offsets_stays() -> None:
    rounds = listed()
    rounds.kafka.unlisted = {"billing"}
    for _ in range(9):
        rounds.read()
        rounds.list_groups()

    assert "billing" in rounds.commits.groups


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


def named() -> Settings:
    return samples.settings(rules=[{"group": "wanted", "topics": ["orders"]}])


def test_a_group_given_by_name_is_asked_for_before_anybody_lists_it() -> None:
    rounds = listed(settings=named())
    outcome = rounds.read()

    assert rounds.plan == {1: ("audit", "wanted"), 2: ("billing", "wanted"), 3: ("wanted",)}
    assert reported(outcome)["wanted"].topics == {}


def test_a_named_group_without_coordinator_counts_as_one_without_commits_after_three_rounds() -> None:
    rounds = listed(Kafka(coordinators={"wanted": NOBODY}), named())

    assert ["wanted" in reported(rounds.read(has_offsets_topic=False)) for _ in range(4)] == [False, False, True, True]


def test_with_an_offsets_topic_a_group_without_coordinator_is_not_known() -> None:
    rounds = listed(Kafka(coordinators={"wanted": NOBODY}), named())

    assert ["wanted" in rounds.read(has_offsets_topic=True).problems for _ in range(9)] == [True] * 9


def test_if_other_groups_are_coordinated_a_group_without_coordinator_is_not_known() -> None:
    cluster = kafka()
    cluster.coordinators["wanted"] = NOBODY
    rounds = listed(cluster, named())

    assert ["wanted" in rounds.read(has_offsets_topic=False).problems for _ in range(9)] == [True] * 9


def test_a_listed_group_without_coordinator_never_counts_as_one_without_commits() -> None:
    rounds = listed(settings=samples.settings(rules=[{"group": "billing", "topics": ["orders"]}]))
    rounds.kafka.coordinators["billing"] = NOBODY

    assert ["billing" in reported(rounds.read()) for _ in range(9)] == [False] * 9


def test_a_listed_group_given_by_name_is_known_although_it_is_excluded() -> None:
    excluded = {"groups": {"exclude": ["bill.*"]}}
    rounds = listed(settings=samples.settings(collection=excluded, rules=[{"group": "billing", "topics": ["orders"]}]))
    rounds.read()

    assert rounds.plan == {1: ("audit",), 2: ("billing",)}


def test_groups_that_are_not_watched_are_not_asked_for() -> None:
    rounds = listed(settings=samples.settings(collection={"groups": {"include": ["bill.*"]}}))
    rounds.read()

    assert rounds.plan == {2: ("billing",)}


def test_topics_that_are_not_watched_are_not_remembered_unless_given() -> None:
    rule = {"group": "billing", "topics": ["payments"]}
    settings = samples.settings(collection={"topics": {"include": ["orders"]}}, rules=[rule])
    rounds = listed(settings=settings)
    rounds.kafka.commits["billing"].update({("payments", 0): 1, ("refunds", 0): 1})
    rounds.read()

    assert rounds.commits.topics["billing"] == {"orders": 0, "payments": 0}
