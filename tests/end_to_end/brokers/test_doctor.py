"""What doctor finds on the listeners of a real broker: every fault of TLS and logins by its own code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apiservice.doctor.check import Category, Check, Outcome
from local.certificates import new_authority
from local.kafka.broker import Kafka
from local.kafka.security import Security
from local.processes import free_port
from tests.support.checks import broken, examined, of, outcomes
from tests.support.real.versions import needs_tokens


@pytest.fixture
def security(one_broker: Kafka) -> Security:
    assert one_broker.security is not None
    return one_broker.security


def found(folder: Path, servers: str, **security: object) -> list[Check]:
    cluster = {"name": "main", "bootstrapServers": servers.split(","), "security": security}
    return examined(folder, {"clusters": [cluster]}, Category.SETTINGS, Category.KAFKA)


def login(folder: Path, security: Security, password: str = "", **others: object) -> dict[str, Any]:
    file = folder / "password"
    file.write_text(password or security.login.password)
    return {
        "protocol": "SASL_SSL",
        "mechanism": "PLAIN",
        "username": security.login.username,
        "passwordFile": str(file),
        "caFile": str(security.ca_file),
        **others,
    }


def test_a_broker_with_the_right_login_passes_every_check(security: Security, tmp_path: Path) -> None:
    checks = found(tmp_path, security.bootstrap_servers, **login(tmp_path, security))

    assert broken(checks) == {}
    assert [check.outcome for code in ("KLA203", "KLA204", "KLA207") for check in of(checks, code)] == [Outcome.OK] * 3


def test_a_name_that_does_not_resolve_and_a_port_that_refuses_are_found_beside_a_broker(
    one_broker: Kafka, tmp_path: Path
) -> None:
    refusing = f"127.0.0.1:{free_port()}"
    checks = found(tmp_path, ",".join([one_broker.bootstrap_servers, "nowhere.invalid:9092", refusing]))

    assert broken(checks) == {
        "KLA201": "bootstrap server nowhere.invalid:9092 cannot be found: the name does not resolve",
        "KLA202": f"bootstrap server {refusing} refuses the connection",
    }


def test_settings_with_a_file_that_is_missing_are_found_and_the_broker_is_not_asked(
    security: Security, tmp_path: Path
) -> None:
    checks = found(tmp_path, security.bootstrap_servers, protocol="SSL", caFile=str(tmp_path / "absent.crt"))

    assert list(broken(checks)) == ["KLA101"]
    assert {*outcomes(checks, Outcome.SKIPPED).values()} == {"KLA101 failed"}


def test_a_wrong_password_is_found_and_not_shown(security: Security, tmp_path: Path) -> None:
    checks = found(tmp_path, security.bootstrap_servers, **login(tmp_path, security, "looking-glass"))

    assert list(broken(checks)) == ["KLA204"]
    assert "refuses the credentials" in broken(checks)["KLA204"]
    assert "looking-glass" not in str(checks)
    assert [check.outcome for check in of(checks, "KLA203")] == [Outcome.OK]


@needs_tokens
def test_a_mechanism_that_is_not_offered_is_found(security: Security, tmp_path: Path) -> None:
    checks = found(tmp_path, security.token_bootstrap_servers, **login(tmp_path, security))

    assert list(broken(checks)) == ["KLA204"]
    assert "does not offer PLAIN, only OAUTHBEARER" in broken(checks)["KLA204"]


def test_a_wrong_ca_is_found_and_the_login_is_not_tried(security: Security, tmp_path: Path) -> None:
    other = new_authority(tmp_path / "other", "another authority").pair.certificate
    checks = found(tmp_path, security.bootstrap_servers, **login(tmp_path, security, caFile=str(other)))

    assert list(broken(checks)) == ["KLA203"]
    assert "has a certificate of an authority that is not trusted here (caFile)" in broken(checks)["KLA203"]
    assert outcomes(checks, Outcome.SKIPPED)["KLA204"] == "KLA203 failed"


def test_a_client_certificate_that_is_missing_is_found(security: Security, tmp_path: Path) -> None:
    checks = found(tmp_path, security.certificate_bootstrap_servers, protocol="SSL", caFile=str(security.ca_file))

    assert list(broken(checks)) == ["KLA203"]
    assert "requires a client certificate" in broken(checks)["KLA203"]


@pytest.mark.parametrize(("protocol", "code"), [("PLAINTEXT", "KLA205"), ("SSL", "KLA203")])
def test_a_protocol_that_is_not_the_listeners_is_found(
    one_broker: Kafka, security: Security, tmp_path: Path, protocol: str, code: str
) -> None:
    """Without TLS on a port with it, and the other way round."""
    trust: Mapping[str, str] = {"caFile": str(security.ca_file)} if protocol == "SSL" else {}
    servers = one_broker.bootstrap_servers if protocol == "SSL" else security.bootstrap_servers

    assert list(broken(found(tmp_path, servers, protocol=protocol, **trust))) == [code]
