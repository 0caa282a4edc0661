"""Which groups are described, and in what order."""

from collections.abc import Collection

from adapter.cluster.groups import Directory, GroupStatus, Kind, Phase
from adapter.collector.members import GROUPS_PER_REQUEST, Members
from adapter.kafka.liveness import Liveness
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.fake_cluster import Kafka
from tests.support.samples import SteppedClock

INTERVAL = 10.0
NODES = (1, 2, 3)
MINUTE = int(60 / INTERVAL)
"""In cycles."""


class Descriptions:
    """Members over a fake cluster; `run` is what a cycle does."""

    def __init__(self, **kinds: Kind) -> None:
        self.kafka = Kafka(
            members={"billing": {"orders"}, "audit": {"trail"}},
            member_counts={"billing": 4},
            kinds=kinds,
            coordinators={"billing": 2, "audit": 3},
        )
        self.clock = SteppedClock()
        self.brokers = FakeBrokers(self.kafka, self.clock)
        self.liveness = Liveness(self.brokers.probe, self.clock.monotonic)
        self.members = Members(self.brokers, self.liveness, self.clock.monotonic, INTERVAL)
        self.lists("billing", "audit")

    def lists(
        self, *groups: str, phase: Phase = Phase.STABLE, moving: Collection[str] = (), also_known: Collection[str] = ()
    ) -> None:
        """What the newest listing says, of these groups alone."""
        statuses = {
            group: GroupStatus(self.kafka.kinds.get(group, Kind.CLASSIC), Phase.MOVING if group in moving else phase)
            for group in groups
        }
        self.directory = Directory(
            frozenset({*groups, *also_known}), self.kafka.coordinators, listed=frozenset(groups), statuses=statuses
        )

    def is_empty(self, group: str) -> None:
        """In two listings, 30 s apart; the other groups are not listed in these."""
        for _ in range(2):
            self.lists(group, phase=Phase.EMPTY, also_known=["billing", "audit"])
            self.run(3)

    def run(self, cycles: int = 1) -> list[tuple[str, object]]:
        """The newest cycle's descriptions: (kind, node -> groups)."""
        for _ in range(cycles):
            self.brokers.asked_for.clear()
            self.members.describe_if_due(self.directory, NODES)
            self.clock.seconds += INTERVAL
        return list(self.brokers.asked_for)


def test_members_are_asked_for_once_a_minute() -> None:
    descriptions = Descriptions()

    assert [len(descriptions.run()) for _ in range(8)] == [1, 0, 0, 0, 0, 0, 1, 0]


def test_where_a_broker_coordinates_several_kinds_they_take_turns() -> None:
    descriptions = Descriptions(audit=Kind.SHARE)
    descriptions.kafka.coordinators["audit"] = 2
    asked = [one for _ in range(4 * MINUTE) for one in descriptions.run()]

    classic, share = ("Describe classic", {2: ("billing",)}), ("Describe share", {2: ("audit",)})
    assert asked == [classic, share] * 2
    assert descriptions.members.topics_read == {"billing": {"orders"}, "audit": {"trail"}}


def test_a_kind_with_new_groups_every_minute_does_not_starve_the_others() -> None:
    descriptions = Descriptions(audit=Kind.SHARE)
    descriptions.kafka.coordinators["audit"] = 2
    kinds = []
    for minute in range(9):
        new = f"run-{minute}"
        descriptions.kafka.coordinators[new] = 2
        descriptions.lists("billing", "audit", new)
        kinds += [kind for kind, _ in descriptions.run()]
        descriptions.run(MINUTE - 1)

    assert kinds.count("Describe share") == 3


def test_more_groups_than_fit_a_request_are_described_in_the_next_one() -> None:
    descriptions = Descriptions()
    names = [f"group-{number}" for number in range(GROUPS_PER_REQUEST + 2)]
    descriptions.kafka.coordinators |= dict.fromkeys(names, 1)
    descriptions.lists(*names)
    descriptions.run(MINUTE)

    ((_, asked),) = descriptions.run()
    assert asked == {1: tuple(names[-2:] + names[: GROUPS_PER_REQUEST - 2])}


def test_a_group_that_has_been_empty_is_not_known_by_its_former_members() -> None:
    descriptions = Descriptions()
    descriptions.run()
    descriptions.is_empty("billing")
    descriptions.kafka.undescribed = {"billing"}
    descriptions.lists("billing", "audit")
    descriptions.run(MINUTE)
    assert descriptions.members.counts == {"audit": 1}

    descriptions.kafka.undescribed.clear()
    descriptions.run(MINUTE)
    assert descriptions.members.counts == {"billing": 4, "audit": 1}


def test_groups_that_may_read_something_else_are_described_first() -> None:
    descriptions = Descriptions()
    names = [f"group-{number}" for number in range(3 * GROUPS_PER_REQUEST)]
    descriptions.kafka.coordinators |= dict.fromkeys(names, 1)
    descriptions.kafka.members |= {name: {"orders"} for name in names}
    descriptions.lists(*names)
    descriptions.run(2 * MINUTE)
    descriptions.lists(*names, moving=names[:1])
    ((_, asked),) = descriptions.run()

    assert isinstance(asked, dict)
    assert names[0] not in asked[1]
    descriptions.run(MINUTE - 1)
    ((_, asked),) = descriptions.run()
    assert isinstance(asked, dict)
    assert asked[1][0] == names[0]
