"""What doctor finds on the way to brokers: real sockets and names, and brokers of other releases that are fake."""

import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.cluster.coordinators import Placement
from adapter.kafka.answers import Failure, FailureCause
from adapter.kafka.passport import Meeting, Met, meet
from adapter.settings.models import Cluster
from apiservice.doctor import kafka
from apiservice.doctor.check import Category, Check, Outcome
from tests.support.checks import broken, examined, of, outcomes
from tests.support.kafka.small_cluster import kafka as small_kafka
from tests.support.kafka.wire_fake import METADATA, OFFSET_FETCH, VERSIONS, WireFake, wire_fake

PATIENT = 30.0
"""Seconds that a call may take where all answer."""


@pytest.fixture
def brokers() -> Iterator[WireFake]:
    with wire_fake(small_kafka()) as running:
        yield running


def met(brokers: WireFake) -> list[Check]:
    return [*kafka.checks_of(meet(Cluster.model_validate(brokers.cluster()), PATIENT))]


def at(folder: Path, server: str, **security: object) -> list[Check]:
    cluster = {"name": "main", "bootstrapServers": [server], **({"security": security} if security else {})}
    return examined(folder, {"clusters": [cluster]}, Category.SETTINGS, Category.KAFKA)


def test_a_name_that_does_not_resolve_is_found(tmp_path: Path) -> None:
    found = at(tmp_path, "nowhere.invalid:9092")

    assert broken(found) == {
        "KLA201": "bootstrap server nowhere.invalid:9092 cannot be found: the name does not resolve"
    }


def test_a_port_that_refuses_is_found_and_what_follows_is_skipped(tmp_path: Path) -> None:
    found = at(tmp_path, "127.0.0.1:1")

    assert broken(found) == {"KLA202": "bootstrap server 127.0.0.1:1 refuses the connection"}
    (name,) = of(found, "KLA201")
    assert name.outcome is Outcome.OK
    skipped = outcomes(found, Outcome.SKIPPED)
    assert skipped["KLA203"] == "protocol PLAINTEXT has none"
    assert skipped["KLA205"] == "KLA202 failed"
    assert skipped["KLA207"] == "no server has named the brokers"


def test_a_server_that_is_silent_proves_neither_tls_nor_a_login() -> None:
    server = Met("127.0.0.1:9092", Failure(FailureCause.TIMED_OUT, "bootstrap server 127.0.0.1:9092 does not answer"))
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "lag", "passwordFile": "password"}
    cluster = {"name": "main", "bootstrapServers": [server.address], "security": security}
    found = [*kafka.checks_of(Meeting(Cluster.model_validate(cluster), (server,), ()))]

    assert list(broken(found)) == ["KLA205"]
    skipped = outcomes(found, Outcome.SKIPPED)
    assert (skipped["KLA203"], skipped["KLA204"]) == ("KLA205 failed", "KLA205 failed")
    assert [check.outcome for check in of(found, "KLA202")] == [Outcome.OK]


def test_settings_that_are_refused_are_found_and_nothing_is_asked(tmp_path: Path) -> None:
    found = at(tmp_path, "127.0.0.1")

    assert list(broken(found)) == ["KLA101"]
    assert "clusters[0].bootstrapServers[0]" in broken(found)["KLA101"]
    assert set(outcomes(found, Outcome.SKIPPED).values()) == {"KLA101 failed"}


@pytest.mark.parametrize("category", [Category.SETTINGS, Category.KUBERNETES])
def test_brokers_are_asked_only_for_categories_that_need_them(tmp_path: Path, category: Category) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        settings = {"clusters": [{"name": "main", "bootstrapServers": [f"127.0.0.1:{broker.getsockname()[1]}"]}]}
        found = examined(tmp_path, settings, category, kubeconfig=tmp_path / "absent")
        connected, _, _ = select.select([broker], [], [], 0)

    assert {check.code.category for check in found} == {category}
    assert not connected


def test_a_file_with_credentials_that_is_missing_is_found(tmp_path: Path) -> None:
    found = at(tmp_path, "127.0.0.1:1", protocol="SSL", caFile=str(tmp_path / "ca.crt"))

    assert f"caFile {tmp_path / 'ca.crt'} cannot be read" in broken(found)["KLA101"]


def test_brokers_without_a_fault_pass_every_check(brokers: WireFake) -> None:
    found = met(brokers)

    assert outcomes(found, Outcome.FAILED, Outcome.WARNING) == {}
    assert [check.subject for check in of(found, "KLA206")] == [
        f"broker {node} at {brokers.address(node)}" for node in (1, 2, 3)
    ]
    assert of(found, "KLA206")[0].detail == "Metadata 11, ListOffsets 7, OffsetFetch 8"


def test_a_broker_that_lacks_a_request_is_found(brokers: WireFake) -> None:
    brokers.versions_of[2] = {**VERSIONS, OFFSET_FETCH: (0, 4)}

    assert broken(met(brokers)) == {"KLA206": "offers OffsetFetch up to 4; 5 or newer is needed"}


def test_a_bootstrap_server_that_lacks_metadata_is_found(brokers: WireFake) -> None:
    brokers.versions = {**VERSIONS, METADATA: (0, 4)}

    assert list(broken(met(brokers))) == ["KLA206"]
    assert "offers Metadata up to 4; 5 or newer is needed" in broken(met(brokers))["KLA206"]


def test_the_limits_of_an_older_broker_are_a_warning(brokers: WireFake) -> None:
    brokers.versions_of[3] = {**VERSIONS, METADATA: (0, 8), OFFSET_FETCH: (0, 6)}

    found = met(brokers)

    assert broken(found) == {}
    (quirks,) = (check for check in of(found, "KLA208") if check.outcome is Outcome.WARNING)
    assert quirks.subject == f"broker 3 at {brokers.address(3)}"
    assert "topic ids" in quirks.detail
    assert "one group per OffsetFetch" in quirks.detail


@pytest.mark.parametrize(
    ("placement", "outcome"),
    [
        (Placement.PROVEN, Outcome.OK),
        (Placement.UNKNOWN, Outcome.SKIPPED),
        (Placement.REFUTED, Outcome.WARNING),
    ],
)
def test_another_placement_than_kafkas_is_a_warning(placement: Placement, outcome: Outcome) -> None:
    assert kafka.placement_check("main", placement).outcome is outcome


def test_a_broker_that_advertises_a_name_that_does_not_resolve_is_found(brokers: WireFake) -> None:
    brokers.hosts[3] = "nowhere.invalid"

    found = met(brokers)

    assert list(broken(found)) == ["KLA207"]
    assert "cannot be found: the name does not resolve" in broken(found)["KLA207"]
