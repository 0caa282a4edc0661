"""What doctor finds of groups and topics that the settings name, on a real broker."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from apiservice.doctor.check import Check, Outcome
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from tests.support.checks import broken, examined, of, outcomes
from tests.support.real.changes import member

TOPIC, OTHER, GROUP = "examined-orders", "examined-invoices", "examined"
PART_SECONDS = 30.0
"""In this time, a group whose lag cannot be known has been read."""


@pytest.fixture(scope="module")
def cluster(one_broker: Kafka) -> Kafka:
    for topic in (TOPIC, OTHER):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, GROUP, {(TOPIC, 0): 10})
    commit(one_broker, f"{GROUP}-waiting", {(TOPIC, 0): 4})
    commit(one_broker, f"{GROUP}-beyond", {(TOPIC, 0): 500})
    commit(one_broker, f"{GROUP}-moved", {(TOPIC, 0): 10, (OTHER, 0): 2})
    return one_broker


def found(cluster: Kafka, folder: Path, rule: Mapping[str, object], patience: float = 120.0) -> list[Check]:
    """Only the group of the rule is read: one that cannot be read keeps the others from being complete. The name of a
    group that is not there needs others beside it."""
    settings = {
        "clusters": [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}],
        "collection": {"groups": {"include": [rule["group"], GROUP]}},
        "rules": [rule],
    }
    return examined(folder, settings, patience=patience)


def test_a_group_without_a_fault_passes_every_check(cluster: Kafka, tmp_path: Path) -> None:
    checks = found(cluster, tmp_path, {"group": GROUP, "topics": [TOPIC]})

    assert outcomes(checks, Outcome.FAILED, Outcome.WARNING) == {}
    assert [check.outcome for check in of(checks, "KLA304")] == [Outcome.OK]


def test_a_group_that_does_not_exist_is_found(cluster: Kafka, tmp_path: Path) -> None:
    checks = found(cluster, tmp_path, {"group": "examinde"})

    assert list(broken(checks)) == ["KLA302"]
    assert f"{GROUP}" in broken(checks)["KLA302"], "nothing near is named"


def test_a_group_that_is_only_expected_is_a_warning(cluster: Kafka, tmp_path: Path) -> None:
    checks = found(cluster, tmp_path, {"group": f"{GROUP}-unborn", "topics": [TOPIC]})

    assert broken(checks) == {}
    assert "Kafka does not know the group yet" in outcomes(checks, Outcome.WARNING)["KLA302"]


def test_a_topic_that_does_not_exist_is_found(cluster: Kafka, tmp_path: Path) -> None:
    checks = found(cluster, tmp_path, {"group": GROUP, "topics": ["examined-ordres"]})

    assert list(broken(checks)) == ["KLA303"]
    assert "topic examined-ordres" in broken(checks)["KLA303"]


def test_a_lag_that_cannot_be_known_is_found(cluster: Kafka, tmp_path: Path) -> None:
    checks = found(cluster, tmp_path, {"group": f"{GROUP}-beyond", "topics": [TOPIC]}, patience=PART_SECONDS)

    assert list(broken(checks)) == ["KLA304"]
    assert "committed 500 is beyond the log end 10" in broken(checks)["KLA304"]


def test_a_topic_that_no_member_reads_any_more_is_a_warning(cluster: Kafka, tmp_path: Path) -> None:
    group = f"{GROUP}-moved"
    with member(cluster, group, TOPIC):
        checks = found(cluster, tmp_path, {"group": group})

    assert broken(checks) == {}
    assert outcomes(checks, Outcome.WARNING) == {
        "KLA305": f"no member reads {OTHER}, so the commits for it do not count"
    }


def test_messages_that_nobody_reads_are_a_warning(cluster: Kafka, tmp_path: Path) -> None:
    checks = found(cluster, tmp_path, {"group": f"{GROUP}-waiting", "topics": [TOPIC]})

    assert broken(checks) == {}
    assert outcomes(checks, Outcome.WARNING) == {"KLA306": "6 messages wait, and nobody reads them"}
