"""What an adapter serves whose user may not describe everything: Kafka's own authorizer decides."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.metrics.problems import ValueUnavailable
from apiservice.doctor.check import Outcome
from local.kafka.broker import Kafka, joining_broker
from local.kafka.tools import commit, create_topic, produce
from local.processes import free_port
from tests.support.checks import examined, of
from tests.support.real.guarded import ALICE, DOCUMENTED_PASSWORD, secured
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_kafka, needs_scram, needs_scram_requests

RULES = [
    {"group": "secret", "topics": ["seen"]},
    {"group": "half-seen", "topics": ["seen", "unseen"]},
    {"group": "misspelt", "topics": ["sene"]},
]

PART_SECONDS = 30.0
"""In this time, an adapter that may read only a part has read it."""


@pytest.fixture(scope="module")
def as_alice(guarded: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """After some cycles as alice, when the broker goes by all of her permissions."""
    password = tmp_path_factory.mktemp("alice") / "password"
    password.write_text(ALICE.password)
    with in_process(guarded, clusters=[secured(guarded, ALICE.username, password)], rules=RULES) as running:
        running.wait_for(lambda: running.lag("open", "seen") == 6, "what alice may describe")
        running.wait_for(lambda: running.is_unknown(group="misspelt"), "the last of her permissions to count")
        for _ in range(5):
            running.run_full_cycle()
        yield running


@pytest.fixture
def rig(as_alice: InProcess) -> InProcess:
    """It has just read everything: since the test before, more time than `maxAge` may have passed."""
    as_alice.run_full_cycle()
    return as_alice


@pytest.fixture(scope="module")
def password(documented: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the users lag and few, who may describe what the page lets them."""
    create_topic(documented, "orders-eu")
    produce(documented, "orders-eu", 10)
    commit(documented, "billing-eu", {("orders-eu", 0): 4})
    file = tmp_path_factory.mktemp("documented") / "password"
    file.write_text(DOCUMENTED_PASSWORD)
    return file


def refusal(rig: InProcess, group: str) -> str:
    error = rig.refusal("lag", group=group)
    assert isinstance(error, ValueUnavailable), error
    return str(error)


def test_what_may_be_described_is_served(rig: InProcess) -> None:
    assert rig.lag("open", "seen") == 6


def test_a_group_that_may_not_be_described_is_refused_with_the_missing_right(rig: InProcess) -> None:
    """It is asked for because a rule names it: no broker lists it to alice."""
    assert "the adapter may not describe group secret (ACL Describe on the group is missing)" in refusal(rig, "secret")


def test_a_group_with_a_topic_that_may_not_be_described_is_refused_with_the_missing_right(rig: InProcess) -> None:
    """Its commits for the topic are silently left out: the lag of the others alone would be too low."""
    assert "the adapter may not describe topic unseen (ACL Describe on the topic is missing)" in refusal(
        rig, "half-seen"
    )


def test_the_other_topics_of_a_group_are_served_where_one_may_not_be_described(rig: InProcess) -> None:
    assert rig.lag("half-seen", "seen") == 6


def test_a_topic_that_does_not_exist_is_still_told_as_such(rig: InProcess) -> None:
    error = rig.refusal("lag", group="misspelt")

    assert error is not None
    assert not isinstance(error, ValueUnavailable)
    assert "sene" in str(error)


@needs_scram
@needs_scram_requests
def test_the_least_acls_of_the_page_let_everything_be_read(documented: Kafka, password: Path) -> None:
    with in_process(documented, clusters=[secured(documented, "lag", password)], rules=RULES[:2]) as running:
        assert running.run_once().completeness == "complete"
        assert [running.lag(group, "seen") for group in ("open", "half-seen", "secret")] == [6, 6, 6]
        assert running.lag("billing-eu", "orders-eu") == 6


@needs_scram
@needs_scram_requests
def test_the_acls_by_prefix_let_these_groups_be_read_and_no_other(documented: Kafka, password: Path) -> None:
    rules = [{"group": "secret", "topics": ["orders-eu"]}]
    with in_process(documented, clusters=[secured(documented, "few", password)], rules=rules) as running:
        running.run_once()
        assert running.lag("billing-eu") == 6
        assert "may not describe group secret" in refusal(running, "secret")


@needs_kafka(2, 8, "listeners that advertise the same port")
def test_without_the_offsets_topic_in_sight_a_silent_broker_matters_to_every_unknown_group(
    guarded: Kafka, rig_home: Path, tmp_path: Path
) -> None:
    """Alice may not describe it, so nobody can say which groups the second broker may know."""
    password = tmp_path / "password"
    password.write_text(ALICE.password)
    with joining_broker(rig_home / "guarded-broker", 2, free_port()) as second:
        guarded.brokers[0].wait_until_ready({1, 2})
        with in_process(guarded, clusters=[secured(guarded, ALICE.username, password)], rules=RULES) as running:
            running.wait_for_lag(6, "open", "seen")
            for asked in ({"group": "nobody"}, {"topic": "seen"}):
                refused = running.refusal("lag", **asked)
                assert isinstance(refused, ValueUnavailable)
                assert "broker 2 at 127.0.0.1" in str(refused)
            assert running.lag("half-seen", "seen") == 6
        second.stop()  # in order, so that no later test's topic is placed on it


def test_doctor_finds_the_rights_that_are_missing(guarded: Kafka, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(ALICE.password)
    settings = {"clusters": [secured(guarded, ALICE.username, password)], "rules": RULES[:2]}
    found = examined(tmp_path, settings, patience=PART_SECONDS)

    assert {check.subject: check.detail for check in of(found, "KLA301") if check.outcome is Outcome.FAILED} == {
        "group secret, rules[0]": "the adapter may not describe group secret (ACL Describe on the group is missing)",
        "group half-seen, rules[1]": "the adapter may not describe topic unseen (ACL Describe on the topic is missing)",
    }
