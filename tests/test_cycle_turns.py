"""The slow rate: groups that nobody asks for wait for their turn, and everybody else does not."""

import pytest

from adapter.errors import NothingChosen
from adapter.interest import INTEREST_SECONDS
from adapter.settings import Settings
from adapter.snapshot import State
from adapter.turns import SMALL_ROWS
from tests import samples
from tests.fake_brokers import Kafka, Rig
from tests.samples import EPOCH

GROUPS = [f"group-{number}" for number in range(12)]
TURNS = 3
"""Every 30 s, at an interval of 10 s and a maxAge of 60 s."""


def kafka() -> Kafka:
    return Kafka(
        topics={"orders": [1, 2, 3]},
        commits={group: {("orders", 0): 1, ("orders", 1): 2} for group in GROUPS},
        coordinators={group: 1 + number % 3 for number, group in enumerate(GROUPS)},
        ends={("orders", 0): 10, ("orders", 1): 20},
    )


def slow(settings: Settings | None = None, cluster: Kafka | None = None) -> Rig:
    """A cluster that counts as large, after its first cycle."""
    rig = Rig(cluster or kafka(), settings, small_rows=0)
    rig.run()
    return rig


def asked(rig: Rig) -> set[str]:
    """The groups whose commits the newest cycle asked for."""
    return {group for plan in rig.asked("OffsetFetch") for groups in plan.values() for group in groups}  # type: ignore[attr-defined]


def cycles(rig: Rig, count: int) -> list[set[str]]:
    found = []
    for _ in range(count):
        rig.run()
        found.append(asked(rig))
    return found


def test_groups_that_nobody_asks_for_take_turns_and_all_come_within_half_of_max_age() -> None:
    rig = slow()
    assert asked(rig) == set(GROUPS)
    first, second, third, again = cycles(rig, TURNS + 1)

    assert first | second | third == set(GROUPS)
    assert len(first) + len(second) + len(third) == len(GROUPS)
    assert again == first


def test_in_a_small_cluster_everybody_is_read_in_every_cycle() -> None:
    rig = Rig(kafka(), small_rows=SMALL_ROWS)
    rig.run()

    assert cycles(rig, 3) == [set(GROUPS)] * 3


def test_a_group_that_was_asked_for_is_read_in_every_cycle_from_the_next_on() -> None:
    rig = slow()
    rig.run(9)
    assert rig.lag("group-5") == 9 + 18
    assert all("group-5" in groups for groups in cycles(rig, 9))

    rig.clock.seconds += INTEREST_SECONDS
    assert sum("group-5" in groups for groups in cycles(rig, 9)) == 3


def test_a_question_that_ends_in_an_error_counts_as_asking() -> None:
    cluster = kafka()
    cluster.ends["orders", 0] = 0
    rig = slow(cluster=cluster)
    with pytest.raises(NothingChosen):
        rig.read("lag", samples.wants(group="group-5", topic="payments"))

    assert all("group-5" in groups for groups in cycles(rig, 6))


def test_a_listing_asks_for_nobody() -> None:
    rig = slow()
    assert len(rig.read("lag").values) == len(GROUPS)
    rig.run()

    assert asked(rig) < set(GROUPS)


@pytest.mark.parametrize(
    "parts",
    [
        {"rules": [{"group": "group-5", "topics": ["orders"]}]},
        {"metrics": [{"name": "mine", "value": "lag", "group": "group-5"}]},
    ],
    ids=["rule", "metric"],
)
def test_a_group_given_by_name_is_read_in_every_cycle(parts: dict[str, object]) -> None:
    rig = slow(samples.settings(**parts))

    assert all("group-5" in groups for groups in cycles(rig, 6))


def test_a_new_group_is_read_as_soon_as_it_is_listed() -> None:
    rig = slow()
    rig.kafka.commits["new"] = {("orders", 0): 1}
    rig.run(2)
    assert "new" not in asked(rig)
    rig.run()

    assert "new" in asked(rig)
    assert {item.labels["group"] for item in rig.read("lag").values} == {*GROUPS, "new"}


def test_rows_that_are_not_due_stand_as_they_were_with_their_own_age() -> None:
    rig = slow()
    rig.kafka.ends["orders", 0] = 11
    rig.run()
    ages = {item.labels["group"]: (item.value, item.measured_at) for item in rig.read("lag").values}

    assert {ages[group] for group in asked(rig)} == {(10 + 18, EPOCH + 10)}
    assert {ages[group] for group in set(GROUPS) - asked(rig)} == {(9 + 18, EPOCH)}


def test_a_group_that_could_not_be_read_does_not_wait_for_its_next_turn() -> None:
    rig = slow()
    rig.kafka.commit_errors = dict.fromkeys(GROUPS, 14)
    rig.run()
    failed = asked(rig)
    rig.kafka.commit_errors = {}
    rig.run()

    assert failed < asked(rig)
    assert (rig.view.snapshot.state[rig.view.snapshot.cause != 0] == State.OK).sum() == 0


def test_what_is_wrong_with_a_row_is_told_until_its_next_turn() -> None:
    rig = slow()
    rig.kafka.commit_errors = dict.fromkeys(GROUPS, 30)
    rig.run(TURNS)
    told = {rig.view.snapshot.cause_of(row).text for row in range(len(rig.view.layout))}

    assert len(told) == len(GROUPS)
    assert all("may not describe group" in text for text in told)


def test_a_turn_costs_no_more_requests_than_a_whole_cycle() -> None:
    rig = slow()
    for _ in range(6):
        rig.run()
        assert rig.counted()["OffsetFetch"] <= 3
        assert rig.counted()["ListOffsets read_uncommitted"] <= 3


def test_the_outcome_counts_the_rows_that_were_due() -> None:
    rig = slow()
    outcome = rig.run()

    assert (outcome.word, outcome.read, outcome.rows) == ("complete", 3 * len(asked(rig)), 3 * len(asked(rig)))


def test_a_sample_has_the_rows_that_were_due_and_how_often_that_is() -> None:
    rig = slow()
    rig.lag("group-5")
    rig.run()
    (sample,) = rig.samples
    groups = [sample.layout.groups[code] for code in sample.layout.group]

    assert {group for group, is_due in zip(groups, sample.is_due, strict=True) if is_due} == asked(rig)
    intervals = dict(zip(groups, sample.interval_seconds.tolist(), strict=True))
    assert intervals == {**dict.fromkeys(GROUPS, 30.0), "group-5": 10.0}
