"""Which member owns what: described in every cycle for the groups that are asked for, and for no others."""

import pytest

from adapter.cluster.groups import Assignment, Client, Kind, Owned
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig

ORDERS = ("orders", 0), ("orders", 1)
FIRST, SECOND = (Client(name, "", f"client-{name}", "/10.0.0.1") for name in ("first", "second"))
OWNED = (Owned("first", "orders", (0, 1)),)
MINUTE = 6
"""In cycles."""


def rig_of(kind: Kind = Kind.CLASSIC, *asked: str) -> Rig:
    rig = Rig(
        Kafka(
            topics={"orders": [1, 2]},
            commits={"billing": dict.fromkeys(ORDERS, 5), "mail": {ORDERS[0]: 5}},
            ends=dict.fromkeys(ORDERS, 10),
            members={"billing": {"orders"}, "mail": {"orders"}},
            owned={"billing": OWNED},
            clients={"billing": (FIRST, SECOND)},
            kinds={"billing": kind},
        )
    )
    rig.cycle.members_asked = frozenset(asked or {"billing"})
    rig.run()
    return rig


def assignment(rig: Rig) -> Assignment | None:
    return rig.view.assignments.get("billing")


@pytest.mark.parametrize("kind", [Kind.CLASSIC, Kind.CONSUMER, Kind.STREAMS])
def test_a_group_that_is_asked_for_is_described_with_its_clients_in_every_cycle(kind: Kind) -> None:
    rig = rig_of(kind)
    described = []
    for _ in range(MINUTE):
        rig.run()
        described += rig.asked(f"Describe {kind} with clients")

    found = assignment(rig)
    assert [list(plan.values()) for plan in described if isinstance(plan, dict)] == [[("billing",)]] * MINUTE
    assert found is not None
    assert (found.clients, found.owned) == ((FIRST, SECOND), OWNED)


def test_without_being_asked_for_no_request_is_added() -> None:
    asked, plain = rig_of(), rig_of(Kind.CLASSIC, "nobodys")
    counts = []
    for rig in (asked, plain):
        rig.run(MINUTE)
        counts.append([rig.counted() if rig.run() else None for _ in range(MINUTE)])

    with_clients = [one for one in asked.brokers.asked_for if one[0].endswith("with clients")]
    assert len(with_clients) == 1
    assert assignment(plain) is None
    assert sum(sum(one.values()) for one in counts[0] if one) - sum(sum(o.values()) for o in counts[1] if o) == MINUTE


def test_a_rebalance_ends_what_is_known_at_once_and_the_next_description_brings_it_back() -> None:
    rig = rig_of()
    assert assignment(rig) is not None
    rig.kafka.moving = {"billing"}
    rig.run()
    assert assignment(rig) is None

    rig.kafka.moving = set()
    rig.run()
    assert assignment(rig) is not None


def test_a_group_without_members_is_known_to_have_none() -> None:
    rig = rig_of()
    rig.kafka.member_counts["billing"] = 0
    rig.kafka.moving = {"billing"}  # it is not described as Stable
    rig.run()

    found = assignment(rig)
    assert found is not None
    assert (found.clients, found.owned) == ((), ())


def test_what_was_known_stays_with_its_age_while_the_group_cannot_be_described() -> None:
    rig = rig_of()
    before = assignment(rig)
    rig.kafka.undescribed = {"billing"}
    rig.run(3)
    assert assignment(rig) == before

    rig.kafka.undescribed = set()
    rig.run()
    found = assignment(rig)
    assert before is not None
    assert found is not None
    assert found.described_at > before.described_at


def test_what_is_not_asked_for_any_more_is_forgotten() -> None:
    rig = rig_of()
    rig.cycle.members_asked = frozenset()
    rig.run()

    assert rig.view.assignments == {}


def test_members_of_a_share_group_own_nothing() -> None:
    rig = rig_of(Kind.SHARE)

    assert assignment(rig) is None
    assert rig.asked("Describe share with clients") == []
