"""Secrets as Strimzi, KEDA and Confluent lay them out, mounted as the kubelet does, in the real process on a broker."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from local.adapter import Adapter, installed, own_kubeconfig, process
from local.certificates import Pair, new_authority
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.security import Security
from local.kafka.token_server import TokenServer, token_server
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real.groups_to_read import LAG, path
from tests.support.real.mounted import Mounted
from tests.support.real.repeated_reads import repeated, wait_for_more

WAIT_SECONDS = 120.0
GROUP, TOPIC = "folders", "folders-orders"
READ = path("default", LAG, f"group%3D{GROUP}")
Contents = Mapping[str, str | bytes]
UNTRUSTED = "has a certificate of an authority that is not trusted here"
REFUSED = "refuses the credentials: "


@dataclass(frozen=True, slots=True)
class Layout:
    """A cluster of the settings file: its Secrets, a change of them that is wrong, and one that is right."""

    servers: str
    secrets: Sequence[Contents]
    wrong: Sequence[Contents]
    reason: str
    """Why the wrong one is not used."""
    right: Sequence[Contents]


@pytest.fixture(scope="module")
def security(one_broker: Kafka) -> Security:
    assert one_broker.security is not None
    create_topic(one_broker, TOPIC)
    produce(one_broker, TOPIC, 10)
    commit(one_broker, GROUP, {(TOPIC, 0): 4})
    return one_broker.security


@pytest.fixture(scope="module")
def tokens(security: Security, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    home = tmp_path_factory.mktemp("tokens")
    (home / "secret").write_text("token-s3cret")
    with token_server(home, security.token_key, "lag", home / "secret") as running:
        yield running


@pytest.fixture(scope="module")
def layouts(
    one_broker: Kafka, security: Security, tokens: TokenServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Layout]:
    foreign = new_authority(tmp_path_factory.mktemp("foreign") / "ca", "clients-ca")
    brokers_ca, other_ca = (each.pair.certificate.read_text() for each in (security.authority, foreign))
    for name in ("strimzi-user", "keda-user"):
        set_password(one_broker, name, "first-s3cret")
    first, second, third = (security.authority.issue(f"folders-{number}") for number in range(3))
    cluster_ca = {"ca.crt": brokers_ca, "ca.p12": "unused", "ca.password": "unused"}
    # The ca.crt of a KafkaUser issues clients: that the brokers' own is in its place does not make it trusted.
    user = {"ca.crt": brokers_ca, **files_of(first), **bundle_of(first, "p12-s3cret")}
    keda = {"tls": "enable", "ca": brokers_ca}
    keda_login = {**keda, "sasl": "scram_sha512", "username": "keda-user"}
    plain = {"sasl": "plaintext", "username": security.login.username, "tls": "disable"}
    key = {"api-key": security.login.username}
    own = security.login.password
    oauth = {**keda, "sasl": "oauthbearer", "username": "lag", "scopes": "kafka"}
    return {
        "strimzi-tls": Layout(
            security.certificate_bootstrap_servers,
            [user, cluster_ca],
            [{}, {"ca.crt": other_ca}],
            UNTRUSTED,
            [
                {**files_of(second), **bundle_of(second, "p12-s3cret")},
                {"ca.crt": brokers_ca, "ca-2026-11-22T10-00-00Z.crt": other_ca},
            ],
        ),
        "strimzi-bundle": Layout(
            security.certificate_bootstrap_servers,
            [bundle_of(first, "p12-s3cret"), cluster_ca],
            [{"user.password": "guessed"}, {}],
            "wrong passphrase",
            [bundle_of(second, "p12-s3cret-2"), {}],
        ),
        "strimzi-scram": Layout(
            security.bootstrap_servers,
            [strimzi_login("first-s3cret"), cluster_ca],
            [strimzi_login("guessed"), {}],
            REFUSED,
            [strimzi_login("second-s3cret"), {}],
        ),
        "keda-tls": Layout(
            security.certificate_bootstrap_servers,
            [{**keda, "cert": first.certificate.read_text(), **encrypted_key(first, "key-s3cret")}],
            [{"cert": third.certificate.read_text()}],
            "is not the key of",
            [{"cert": third.certificate.read_text(), **encrypted_key(third, "key-s3cret-2")}],
        ),
        "keda-scram": Layout(
            security.bootstrap_servers,
            [{**keda_login, "password": "first-s3cret"}],
            [{"password": "guessed"}],
            REFUSED,
            [{"password": "second-s3cret"}],
        ),
        "keda-plaintext": Layout(
            security.plain_bootstrap_servers,
            [{**plain, "password": own}],
            [{"password": "guessed"}],
            REFUSED,
            [{"password": f"{own}\n"}],
        ),
        "keda-oauth": Layout(
            security.token_bootstrap_servers,
            [{**oauth, "password": "token-s3cret", "oauthTokenEndpointUri": tokens.endpoint}],
            [{"password": "guessed"}],
            "invalid_client",
            [{"password": "token-s3cret"}],
        ),
        "confluent": Layout(
            security.bootstrap_servers,
            [{**key, "api-secret": own}],
            [{"api-secret": "guessed"}],
            REFUSED,
            [{"api-secret": f"{own}\n"}],
        ),
    }


def set_password(cluster: Kafka, user: str, password: str) -> None:
    changed = UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, password)
    with admin(cluster.bootstrap_servers) as client:
        client.alter_user_scram_credentials([changed])


def strimzi_login(password: str) -> Contents:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "password": password,
        "sasl.jaas.config": f'{module} required username="strimzi-user" password="{password}";',
    }


def files_of(pair: Pair) -> Contents:
    return {"user.crt": pair.certificate.read_text(), "user.key": pair.key.read_text()}


def bundle_of(pair: Pair, password: str) -> Contents:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    encryption = serialization.BestAvailableEncryption(password.encode())
    bundle = pkcs12.serialize_key_and_certificates(b"user", key, certificate, None, encryption)
    return {"user.p12": bundle, "user.password": password}


def encrypted_key(pair: Pair, password: str) -> Contents:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(password.encode())
    form = serialization.PrivateFormat.PKCS8
    return {"key": key.private_bytes(serialization.Encoding.PEM, form, encryption), "keyPassword": password}


def test_mounted_secrets_of_every_layout_are_used_and_their_rotation_costs_no_read(
    control_plane: ControlPlane,
    one_broker: Kafka,
    security: Security,
    layouts: Mapping[str, Layout],
    administrator: Pair,
    tmp_path: Path,
) -> None:
    mounted = {
        name: [Mounted(tmp_path / name / str(number), held) for number, held in enumerate(layout.secrets)]
        for name, layout in layouts.items()
    }

    def replace(changes: Mapping[str, Sequence[Contents]]) -> None:
        for name, changed in changes.items():
            for secret, contents in zip(mounted[name], changed, strict=True):
                secret.replace(contents)

    clusters = [
        {
            "name": name,
            "bootstrapServers": [layout.servers],
            "security": {"secretFolders": [str(secret.folder) for secret in mounted[name]]},
        }
        for name, layout in layouts.items()
    ]
    settings = {"clusters": clusters, "collection": {"interval": "1s", "groups": {"include": [GROUP]}}}
    # An API key comes without an authority: Confluent's brokers have certificates of a public one.
    program = ["env", f"SSL_CERT_FILE={security.ca_file}", str(installed())]
    with process(tmp_path / "home", settings, own_kubeconfig(control_plane), program=program) as running:
        # Before it is ready it knows no authority for clients, and a client's certificate ends the handshake.
        wait_until(running.is_ready, "the adapter to be ready", WAIT_SECONDS, alive=[running.process])
        wait_until(lambda: running.get(READ, shown=administrator)[0] == 200, "every cluster to be read", WAIT_SECONDS)
        with repeated(lambda: read_all(running, administrator)) as replies:
            for user in ("strimzi-user", "keda-user"):
                set_password(one_broker, user, "second-s3cret")
            replace({name: layout.wrong for name, layout in layouts.items()})
            wait_until(lambda: not used(running), "every change to be refused", WAIT_SECONDS)
            # A busy broker may also be said not to answer.
            wait_until(lambda: not unexplained(running, layouts), "every refusal to be explained", WAIT_SECONDS)
            replace({name: layout.right for name, layout in layouts.items()})
            wait_until(lambda: used(running) == set(layouts), "every change to take effect", WAIT_SECONDS)
            wait_for_more(replies)
        log = running.process.log.read_text()
    assert set(replies) == {(200, *((name, "6") for name in sorted(layouts)))}
    assert "s3cret" not in log
    assert "guessed" not in log


def unexplained(adapter: Adapter, layouts: Mapping[str, Layout]) -> list[str]:
    """Returns the clusters whose refusals have not been logged with their reasons."""
    lines = adapter.process.log.read_text().splitlines()
    return [
        name
        for name, layout in layouts.items()
        if not any(f"credentials of cluster {name}: NotUsed: " in line and layout.reason in line for line in lines)
    ]


def read_all(adapter: Adapter, administrator: Pair) -> tuple[Any, ...]:
    """Returns the status, and (cluster, lag) of every cluster."""
    status, body = adapter.get(READ, shown=administrator)
    items = json.loads(body).get("items", [body])
    return (status, *sorted((item["metricLabels"]["cluster"], item["value"]) for item in items))


def used(adapter: Adapter) -> set[str]:
    """Returns the clusters whose newest credentials are used."""
    body = adapter.get_plain("/readyz?verbose")[1].decode()
    return set(re.findall(r"^info: credentials of cluster (\S+): ", body, re.MULTILINE))
