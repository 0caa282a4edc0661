"""Answers that can be read and make no sense: an error for that part, never a number. The brokers are a fake."""

import pytest

from tests.support.kafka.spoilt_cluster import ORDERS_1, fake, nothing_unforeseen, one_of, reading, starting
from tests.support.kafka.wire_fake import LIST_GROUPS, OFFSET_FETCH, Spoilt, WireFake
from tests.support.kubernetes.served import Served, Watcher
from tests.support.samples import wants

__all__ = ["fake", "nothing_unforeseen"]

ABSURD = [2**63 - 1, 2**53 + 1, -2, -5, -(2**63)]
NEVER_SEEN = [12_345, 32_767, -1, -32_768]
NAMES = [
    "g" * 10_000,
    "a\x00b\x1f\x7f",
    "new\nline\ttab",
    "\"quoted\" and 'quoted' and {0} %s \\",
    "a/b/../c?d=e&f#g,h=i",
    "zwölf Größen",
    "消費者グループ",
    "🐘🐘",
    "\u202eright to left\u2066",
    "\ufeff",
    " ",
    "é is not e\u0301",
]


def refused(running: Served, words: str, group: str = "billing", **labels: str) -> None:
    """Wait until that is so, and see that the other group and the other partitions have their numbers."""
    running.wait_for_refusal(words, group, 60.0, **labels)
    running.wait_for_lag(19, "mail")


@pytest.mark.parametrize("error", NEVER_SEEN)
def test_a_group_with_an_error_never_seen_before_is_refused_alone(fake: WireFake, error: int) -> None:
    with reading(fake, max_age=1.0) as running, Watcher(running, ["mail"], one_of(mail=[19])) as watcher:
        fake.kafka.commit_errors["billing"] = error
        refused(running, f"error {error} for group billing")
        fake.kafka.commit_errors.clear()
        running.wait_for_lag(13, "billing")
    watcher.check()


@pytest.mark.parametrize("error", NEVER_SEEN)
def test_a_partition_whose_end_has_an_error_never_seen_before_is_refused_alone(fake: WireFake, error: int) -> None:
    with reading(fake, max_age=1.0) as running:
        fake.kafka.end_errors[ORDERS_1] = error
        refused(running, "orders/1")
        refused(running, "orders/1", partition="1")

        running.wait_for_lag(3, "billing", partition="0")
        running.wait_for_lag(0, "billing", partition="2")
        fake.kafka.end_errors.clear()
        running.wait_for_lag(13, "billing")


def test_a_leader_that_has_not_caught_up_after_an_election_is_said_to_be_so(fake: WireFake) -> None:
    with reading(fake, max_age=1.0) as running:
        fake.kafka.end_errors[ORDERS_1] = 78
        refused(running, "limit 1 s: its leader has not caught up yet after an election")


@pytest.mark.parametrize("error", NEVER_SEEN)
def test_a_commit_with_an_error_never_seen_before_is_refused_alone(fake: WireFake, error: int) -> None:
    with reading(fake, max_age=1.0) as running:
        fake.row_errors["billing", "orders", 1] = error
        refused(running, "limit 1 s: its commit cannot be read")

        running.wait_for_lag(3, "billing", partition="0")
        fake.row_errors.clear()
        running.wait_for_lag(13, "billing")


@pytest.mark.parametrize("offset", ABSURD)
def test_an_absurd_log_end_is_no_number(fake: WireFake, offset: int) -> None:
    with reading(fake, max_age=1.0) as running, Watcher(running, ["billing"], one_of(billing=[13])) as watcher:
        fake.kafka.ends[ORDERS_1] = offset
        refused(running, "orders/1")
        running.wait_for_lag(3, "billing", partition="0")
        fake.kafka.ends[ORDERS_1] = 20
        running.wait_for_lag(13, "billing")
    watcher.check()


@pytest.mark.parametrize("offset", ABSURD)
def test_an_absurd_commit_is_no_number(fake: WireFake, offset: int) -> None:
    with reading(fake, max_age=1.0) as running, Watcher(running, ["billing"], one_of(billing=[13])) as watcher:
        fake.kafka.commits["billing"][ORDERS_1] = offset
        refused(running, "orders/1")
        running.wait_for_lag(3, "billing", partition="0")
        fake.kafka.commits["billing"][ORDERS_1] = 10
        running.wait_for_lag(13, "billing")
    watcher.check()


def test_an_absurd_log_start_yields_no_number_that_needs_it(fake: WireFake) -> None:
    absurd = [*ABSURD, -1]
    with reading(fake, max_age=1.0) as running:
        fake.kafka.topics["late"] = [2] * len(absurd)
        for partition, offset in enumerate(absurd):
            fake.kafka.starts["late", partition] = offset
            fake.kafka.ends["late", partition] = 100
            fake.kafka.commits["billing"]["late", partition] = 90
        for partition in range(len(absurd)):
            running.wait_for_refusal("log start", "billing", topic="late", partition=str(partition))

        for partition in range(len(absurd)):
            fake.kafka.starts["late", partition] = 5
        running.wait_for_lag(10 * len(absurd), "billing", topic="late")
        leads = running.metrics.read("kafka_consumergroup_lead_min", wants(group="billing", topic="late")).values
        assert [item.milli // 1000 for item in leads] == [85]


def test_names_of_any_characters_have_their_own_number_or_sentence(fake: WireFake) -> None:
    for number, name in enumerate(NAMES):
        fake.kafka.commits[name] = {("letters", 0): number}
    named = [{"name": f"named-{number}", "value": "lag", "group": name} for number, name in enumerate(NAMES) if number]
    with reading(fake, metrics=named) as running:
        for number, name in enumerate(NAMES):
            running.wait_for_lag(20 - number, name)
        for number in range(1, len(NAMES)):  # a name in the settings has at most 8,191 characters
            (item,) = running.metrics.read(f"named-{number}", ()).values
            assert item.milli // 1000 == 20 - number

        fake.kafka.silent.add(1)
        running.wait_for(lambda: all("broker 1 at" in "".join(running.causes(name)) for name in NAMES))


@pytest.mark.parametrize("key", [LIST_GROUPS, OFFSET_FETCH])
def test_a_name_that_is_no_text_harms_no_group_of_another_broker(fake: WireFake, key: int) -> None:
    """No Kafka sends one: what is not UTF-8 became a replacement character when it was received."""
    fake.kafka.commits["strange-name"] = {("orders", 1): 1}
    fake.kafka.coordinators["strange-name"] = 2
    fake.faults[2, key] = lambda frame: Spoilt(frame.replace(b"strange-name", b"\xff\xfe\x80\xc0range-name"))
    with starting(fake) as running:
        running.wait_for_cycles(5)
        running.wait_for_refusal("broker 2 at", "billing")
        fake.faults.clear()
        running.wait_for_lag(19, "strange-name")
        running.wait_for_lag(13, "billing")
