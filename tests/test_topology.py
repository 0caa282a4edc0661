"""When a topic that Metadata no longer has is believed to be deleted."""

from dataclasses import replace

from adapter.topology import Topology, updated, wants_another_look
from tests import samples

BOTH = samples.topology({"orders": [1, 2], "refunds": [1]})
ORDERS = samples.topology({"orders": [1, 2]})
NOTHING_EXPECTED: frozenset[str] = frozenset()


def seen(*answers: Topology, expected: frozenset[str] = NOTHING_EXPECTED) -> Topology:
    known = Topology()
    for answer in answers:
        known = updated(known, answer, expected)
    return known


def test_a_topic_is_kept_until_three_answers_running_lack_it() -> None:
    kept = seen(BOTH, ORDERS, ORDERS)

    assert kept.topics.keys() == {"orders", "refunds"}
    assert not kept.is_deleted("refunds")
    assert seen(BOTH, ORDERS, ORDERS, ORDERS).topics.keys() == {"orders"}
    assert seen(BOTH, ORDERS, ORDERS, ORDERS).is_deleted("refunds")


def test_one_answer_that_has_the_topic_begins_the_count_anew() -> None:
    assert "refunds" in seen(BOTH, ORDERS, ORDERS, BOTH, ORDERS, ORDERS).topics
    assert seen(BOTH, ORDERS, BOTH).missing == {}


def test_a_topic_in_doubt_wants_another_look_and_a_deleted_one_does_not() -> None:
    assert wants_another_look(seen(BOTH, ORDERS))
    assert wants_another_look(seen(BOTH, ORDERS, ORDERS))
    assert not wants_another_look(seen(BOTH, ORDERS, ORDERS, ORDERS))
    assert not wants_another_look(BOTH)


def test_an_expected_topic_that_never_existed_is_deleted_after_three_answers_and_stays_so() -> None:
    expected = frozenset({"payments"})

    assert not seen(ORDERS, ORDERS, expected=expected).is_deleted("payments")
    assert seen(*[ORDERS] * 3, expected=expected).is_deleted("payments")
    assert seen(*[ORDERS] * 9, expected=expected).is_deleted("payments")


def test_a_deleted_topic_that_nobody_expects_is_forgotten() -> None:
    assert seen(BOTH, *[ORDERS] * 4).missing == {}


def test_a_topic_that_was_made_again_exists() -> None:
    again = seen(BOTH, *[ORDERS] * 3, BOTH)

    assert again.topics.keys() == {"orders", "refunds"}
    assert not again.is_deleted("refunds")


def test_the_newest_answer_says_which_brokers_and_leaders_there_are() -> None:
    moved = samples.topology({"orders": [3, 2]})

    assert seen(ORDERS, moved).brokers == {2: "kafka-2:9092", 3: "kafka-3:9092"}
    assert seen(ORDERS, moved).topics["orders"].leaders.tolist() == [3, 2]


def test_a_topic_that_we_may_not_describe_is_not_deleted() -> None:
    hidden = replace(ORDERS, hidden=frozenset({"refunds"}))
    expected = frozenset({"refunds"})

    assert seen(BOTH, *[hidden] * 9, expected=expected).hidden == {"refunds"}
    assert not seen(BOTH, *[hidden] * 9, expected=expected).is_deleted("refunds")
    assert seen(hidden, *[ORDERS] * 3, expected=expected).is_deleted("refunds")
    assert seen(hidden, BOTH, expected=expected).topics.keys() == {"orders", "refunds"}
