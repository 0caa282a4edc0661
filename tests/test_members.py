"""Who reads what: asked once a minute, of Stable groups, at their coordinators."""

from adapter.directory import Directory, Kind
from adapter.liveness import Liveness
from adapter.members import Members
from tests.fake_brokers import FakeBrokers, Kafka
from tests.samples import SteppedClock

INTERVAL = 10.0
NODES = (1, 2, 3)


class Descriptions:
    """Members over a fake cluster; `run` is what a cycle does."""

    def __init__(self, *new_kind: str) -> None:
        self.kafka = Kafka(
            members={"billing": {"orders"}, "audit": {"trail"}},
            kip_848=set(new_kind),
            coordinators={"billing": 2, "audit": 3},
        )
        self.clock = SteppedClock()
        self.brokers = FakeBrokers(self.kafka, self.clock)
        self.liveness = Liveness(self.brokers.probe, self.clock.monotonic)
        self.members = Members(self.brokers, self.liveness, self.clock.monotonic, INTERVAL)
        self.knows("billing", "audit")

    def knows(self, *stable: str) -> None:
        """The groups that the newest listing calls Stable."""
        kinds = {group: Kind.CONSUMER if group in self.kafka.kip_848 else Kind.CLASSIC for group in stable}
        self.directory = Directory(frozenset(kinds), self.kafka.coordinators, stable=kinds)

    def run(self) -> list[tuple[str, object]]:
        """One cycle's descriptions: (kind, node -> groups)."""
        self.brokers.asked_for.clear()
        self.members.describe_if_due(self.directory, NODES)
        self.clock.seconds += INTERVAL
        return list(self.brokers.asked_for)


def test_every_coordinator_is_asked_once_for_its_stable_groups() -> None:
    descriptions = Descriptions()

    assert descriptions.run() == [("Describe classic", {2: ("billing",), 3: ("audit",)})]
    assert descriptions.members.topics_read == {"billing": {"orders"}, "audit": {"trail"}}


def test_members_are_asked_for_once_a_minute() -> None:
    descriptions = Descriptions()

    assert [len(descriptions.run()) for _ in range(8)] == [1, 0, 0, 0, 0, 0, 1, 0]


def test_where_there_are_groups_of_both_kinds_they_take_turns() -> None:
    descriptions = Descriptions("audit")
    asked = [one for _ in range(13) for one in descriptions.run()]

    classic, consumer = ("Describe classic", {2: ("billing",)}), ("Describe consumer", {3: ("audit",)})
    assert asked == [classic, consumer, classic]
    assert descriptions.members.topics_read == {"billing": {"orders"}, "audit": {"trail"}}


def test_groups_of_the_new_kind_alone_are_asked_for_every_minute() -> None:
    descriptions = Descriptions("audit", "billing")

    assert [kind for _ in range(7) for kind, _ in descriptions.run()] == ["Describe consumer"] * 2


def test_without_stable_groups_nobody_is_asked() -> None:
    descriptions = Descriptions()
    descriptions.knows()

    assert descriptions.run() == []


def test_a_group_that_is_not_stable_any_more_reads_nothing_that_is_known() -> None:
    descriptions = Descriptions()
    descriptions.run()
    descriptions.knows("audit")
    descriptions.run()

    assert descriptions.members.topics_read == {"audit": {"trail"}}


def test_a_group_that_its_coordinator_no_longer_describes_reads_nothing_that_is_known() -> None:
    descriptions = Descriptions()
    descriptions.run()
    del descriptions.kafka.members["billing"]
    for _ in range(6):
        descriptions.run()

    assert descriptions.members.topics_read == {"audit": {"trail"}}


def test_a_silent_coordinator_leaves_what_was_known_of_its_groups() -> None:
    descriptions = Descriptions()
    descriptions.run()
    descriptions.kafka.silent = {2}
    descriptions.kafka.members["audit"] = {"other"}
    for _ in range(6):
        descriptions.run()

    assert descriptions.members.topics_read == {"billing": {"orders"}, "audit": {"other"}}
    assert descriptions.liveness.failure(2) is not None
    descriptions.clock.seconds += 60
    assert descriptions.run() == [("Describe classic", {3: ("audit",)})]


def test_what_members_read_is_the_same_object_while_nothing_was_asked() -> None:
    descriptions = Descriptions()
    descriptions.run()
    known = descriptions.members.topics_read
    descriptions.run()

    assert descriptions.members.topics_read is known
