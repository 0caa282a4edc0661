"""Credentials that change while an adapter runs, and those that are wrong: a real broker decides what it accepts."""

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from local.certificates import Key, Pair, new_authority
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.security import MECHANISM, Security
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_kafka, needs_scram, needs_scram_requests, needs_tokens

LOGIN: Mapping[str, Any] = {"protocol": "SASL_SSL", "mechanism": MECHANISM}


@pytest.fixture(scope="module")
def security(one_broker: Kafka) -> Security:
    assert one_broker.security is not None
    create_topic(one_broker, "rotated-orders")
    produce(one_broker, "rotated-orders", 10)
    commit(one_broker, "rotated", {("rotated-orders", 0): 4})
    return one_broker.security


def reading(cluster: Kafka, servers: str, **security: Any) -> Any:  # noqa: ANN401 - as in the settings file
    main = {"name": "main", "bootstrapServers": [servers], "security": security}
    collection = {"groups": {"include": ["rotated"]}}
    return in_process(cluster, clusters=[main], collection=collection)


def failure(cluster: Kafka, servers: str, **security: Any) -> str:  # noqa: ANN401 - as above
    with reading(cluster, servers, **security) as running:
        return str(running.run_once().failures[0].text)


def replaced(path: Path, content: str | bytes) -> None:
    """As kubelet does it: all at once."""
    new = path.with_suffix(".new")
    new.write_bytes(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def set_password(cluster: Kafka, user: str, password: str) -> None:
    with admin(cluster.bootstrap_servers) as client:
        client.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, password)]
        )


def read_all_along_until(running: InProcess, done: Callable[[], bool], what: str) -> None:
    """Every cycle on the way reads everything."""

    def is_done_after_a_cycle() -> bool:
        outcome = running.run_once()
        assert outcome.completeness == "complete", outcome
        assert running.lag("rotated") == 6
        return done()

    wait_until(is_done_after_a_cycle, what, 180)


def is_reported(running: InProcess, words: str) -> Callable[[], bool]:
    return lambda: words in running.brokers.credentials_problem


def is_taken_over(running: InProcess) -> Callable[[], bool]:
    return lambda: running.brokers.credentials_problem == ""


@needs_scram
@needs_scram_requests
def test_a_changed_password_takes_over_and_a_wrong_one_does_not(
    one_broker: Kafka, security: Security, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("first")
    set_password(one_broker, "rotator", "first")
    login = {**LOGIN, "username": "rotator", "passwordFile": str(password), "caFile": str(security.ca_file)}
    with reading(one_broker, security.bootstrap_servers, **login) as running:
        running.wait_for_lag(6, "rotated")
        set_password(one_broker, "rotator", "second")
        replaced(password, "guessed")
        read_all_along_until(running, is_reported(running, "refuses the credentials"), "the refusal")
        assert "guessed" not in running.brokers.credentials_problem
        password.unlink()
        read_all_along_until(running, is_reported(running, "password cannot be read: No such file"), "the absence")
        replaced(password, "second")
        read_all_along_until(running, is_taken_over(running), "the second password")

        running.brokers.close()
        assert running.run_once().completeness == "complete"


def test_a_changed_client_certificate_takes_over_with_its_key(
    one_broker: Kafka, security: Security, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "user.crt", tmp_path / "user.key"
    first, second = security.client, security.authority.issue("second")
    for path, content in ((certificate, first.certificate), (key, first.key)):
        replaced(path, content.read_bytes())
    pair = {"certFile": str(certificate), "keyFile": str(key), "caFile": str(security.ca_file)}
    with reading(one_broker, security.certificate_bootstrap_servers, protocol="SSL", **pair) as running:
        running.wait_for_lag(6, "rotated")
        replaced(certificate, second.certificate.read_bytes())
        read_all_along_until(running, is_reported(running, f"keyFile {key} is not the key of certFile"), "the mismatch")
        replaced(key, second.key.read_bytes())
        read_all_along_until(running, is_taken_over(running), "the second pair")


def test_a_changed_authority_takes_over_and_a_foreign_one_does_not(
    one_broker: Kafka, security: Security, tmp_path: Path
) -> None:
    own, foreign = security.ca_file.read_text(), new_authority(tmp_path / "foreign", "foreign").pair.certificate
    ca, password = tmp_path / "ca.crt", tmp_path / "password"
    ca.write_text(own)
    password.write_text(security.login.password)
    login = {**LOGIN, "username": security.login.username, "passwordFile": str(password), "caFile": str(ca)}
    with reading(one_broker, security.bootstrap_servers, **login) as running:
        running.wait_for_lag(6, "rotated")
        replaced(ca, foreign.read_bytes())
        read_all_along_until(running, is_reported(running, "an authority that is not trusted here"), "the refusal")
        replaced(ca, foreign.read_text() + own)
        read_all_along_until(running, is_taken_over(running), "both authorities")


@pytest.mark.parametrize("kind", ["RSA", "EC", "Ed25519", "PKCS#12"])
def test_the_broker_takes_certificates_of_every_kind(
    one_broker: Kafka, security: Security, tmp_path: Path, kind: str
) -> None:
    """Other tests show which forms of keys can be read; this one, that the broker knows them."""
    keys: Mapping[str, Key] = {
        "RSA": rsa.generate_private_key(65537, 2048),
        "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    }
    key = keys.get(kind, ec.generate_private_key(ec.SECP256R1()))
    issued = security.authority.issue(f"user-{kind}", key=key)
    files = {"certFile": str(issued.certificate), "keyFile": str(issued.key)}
    if kind == "PKCS#12":
        (tmp_path / "password").write_text("secret")
        certificate = x509.load_pem_x509_certificate(issued.certificate.read_bytes())
        encryption = serialization.BestAvailableEncryption(b"secret")
        held = pkcs12.serialize_key_and_certificates(b"user", key, certificate, None, encryption)
        (tmp_path / "user.p12").write_bytes(held)
        files = {"certFile": str(tmp_path / "user.p12"), "keyPasswordFile": str(tmp_path / "password")}
    servers = security.certificate_bootstrap_servers
    with reading(one_broker, servers, protocol="SSL", caFile=str(security.ca_file), **files) as running:
        assert running.run_once().completeness == "complete"


def test_what_is_wrong_with_a_brokers_certificate_is_said_of_it(
    one_broker: Kafka, security: Security, tmp_path: Path
) -> None:
    port = security.certificate_bootstrap_servers.rpartition(":")[2]
    foreign = new_authority(tmp_path / "foreign", "foreign")

    def said(address: str, authority: Path) -> str:
        return failure(one_broker, address, protocol="SSL", caFile=str(authority))

    assert said(f"127.1:{port}", security.ca_file) == (
        f"bootstrap server 127.1:{port} has a certificate that does not cover the host name 127.1"
    )
    assert said(security.certificate_bootstrap_servers, foreign.pair.certificate).endswith(
        "has a certificate of an authority that is not trusted here (caFile)"
    )
    assert "closed the connection during the TLS handshake, as a port without TLS does" in said(
        security.plain_bootstrap_servers, security.ca_file
    )


@needs_kafka(3, 3, "brokers that send their TLS alerts readably")
def test_what_is_wrong_with_a_client_certificate_is_said_of_the_broker(
    one_broker: Kafka, security: Security, tmp_path: Path
) -> None:
    servers = security.certificate_bootstrap_servers
    stranger = new_authority(tmp_path / "foreign", "foreign").issue("client")
    expired = security.authority.issue("expired", valid_for=-datetime.timedelta(minutes=30))

    def said(pair: Pair | None) -> str:
        shown = {} if pair is None else {"certFile": str(pair.certificate), "keyFile": str(pair.key)}
        return failure(one_broker, servers, protocol="SSL", caFile=str(security.ca_file), **shown)

    assert "requires a client certificate" in said(None)
    assert "refuses the client certificate" in said(stranger)
    assert f"(certFile {expired.certificate} expired on " in said(expired)


def test_a_refused_login_is_said_of_the_broker(one_broker: Kafka, security: Security, tmp_path: Path) -> None:
    login = a_guess(security, tmp_path)

    assert "refuses the credentials: " in failure(one_broker, security.bootstrap_servers, **login)


@needs_tokens
def test_a_mechanism_that_a_listener_lacks_is_said_of_the_broker(
    one_broker: Kafka, security: Security, tmp_path: Path
) -> None:
    login = a_guess(security, tmp_path)

    assert failure(one_broker, security.token_bootstrap_servers, **login).endswith(
        f"does not offer {MECHANISM}, only OAUTHBEARER"
    )


def a_guess(security: Security, home: Path) -> dict[str, Any]:
    """Returns a login whose password is wrong."""
    password = home / "password"
    password.write_text("guessed")
    return {**LOGIN, "username": "alice", "passwordFile": str(password), "caFile": str(security.ca_file)}
