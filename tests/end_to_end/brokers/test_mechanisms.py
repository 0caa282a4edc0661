"""Every way to log in to a broker, on the listeners of one real broker."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kafka.net.manager import KafkaConnectionManager

from local.adapter import EXTERNAL_METRICS, Adapter, process
from local.kafka.broker import Kafka
from local.kafka.security import SCRAM_MECHANISMS, Security
from local.kafka.token_server import TokenServer, token_server
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.kubernetes.authorities import Authority, config_map_data
from tests.support.kubernetes.fake_cluster import FakeCluster, kubeconfig_text
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_scram, needs_tokens

LOGIN_MECHANISMS = ("PLAIN", *(pytest.param(f"SCRAM-SHA-{bits}", marks=needs_scram) for bits in (256, 512)))
TOKEN_SECONDS = 40.0
"""A connection shows the next one after 0.85 of this time, so a busy machine has 6 s for it."""


@pytest.fixture(scope="module")
def security(one_broker: Kafka) -> Security:
    assert one_broker.security is not None
    create_topic(one_broker, "guarded-orders")
    produce(one_broker, "guarded-orders", 10)
    commit(one_broker, "guarded", {("guarded-orders", 0): 4})
    return one_broker.security


@pytest.fixture(scope="module")
def client_secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("client") / "secret"
    path.write_text("s:cr%t")
    return path


@pytest.fixture(scope="module")
def tokens(security: Security, client_secret: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    home = tmp_path_factory.mktemp("tokens")
    with token_server(home, security.token_key, "lag reader", client_secret, TOKEN_SECONDS) as running:
        yield running


def reads(one_broker: Kafka, servers: str, **security: Any) -> Any:  # noqa: ANN401 - as in the settings file
    cluster = {"name": "main", "bootstrapServers": [servers], "security": security}
    collection = {"groups": {"include": ["guarded"]}}
    return in_process(one_broker, clusters=[cluster], collection=collection)


def tls(security: Security) -> dict[str, str]:
    return {"caFile": str(security.ca_file)}


def with_tokens(security: Security, tokens: TokenServer, secret: Path) -> dict[str, Any]:
    login = {"username": "lag reader", "passwordFile": str(secret), "tokenEndpoint": tokens.endpoint, "scope": "kafka"}
    return {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", **login, **tls(security)}


def read_at_once(running: InProcess) -> None:
    running.run_once()
    assert running.lag("guarded", "guarded-orders") == 6


@pytest.mark.parametrize("mechanism", LOGIN_MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_a_password_reads_over_tls_and_plain(
    one_broker: Kafka, security: Security, tmp_path: Path, mechanism: str, protocol: str
) -> None:
    """The user's name comes from a file here, as Secrets have it."""
    for name, content in (("username", security.login.username), ("password", security.login.password)):
        (tmp_path / name).write_text(f"{content}\n")
    files = {"usernameFile": str(tmp_path / "username"), "passwordFile": str(tmp_path / "password")}
    encrypts = protocol == "SASL_SSL"
    servers = security.bootstrap_servers if encrypts else security.plain_bootstrap_servers
    trust = tls(security) if encrypts else {}
    with reads(one_broker, servers, protocol=protocol, mechanism=mechanism, **files, **trust) as running:
        read_at_once(running)


def test_a_client_certificate_reads(one_broker: Kafka, security: Security) -> None:
    pair = {"certFile": str(security.client.certificate), "keyFile": str(security.client.key)}
    servers = security.certificate_bootstrap_servers
    with reads(one_broker, servers, protocol="SSL", **pair, **tls(security)) as running:
        read_at_once(running)


@needs_tokens
def test_a_token_reads_and_is_replaced_before_it_expires(
    one_broker: Kafka, security: Security, tokens: TokenServer, client_secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker ends connections whose token has expired, so a read without a new one would fail."""
    connected: list[object] = []
    connect = KafkaConnectionManager._connect

    async def counted(manager: Any, node: Any, conn: Any, **options: Any) -> None:  # noqa: ANN401
        connected.append(node)
        await connect(manager, node, conn, **options)

    monkeypatch.setattr(KafkaConnectionManager, "_connect", counted)
    servers = security.token_bootstrap_servers
    with reads(one_broker, servers, **with_tokens(security, tokens, client_secret)) as running:
        read_at_once(running)
        before, connections = tokens.issued, len(connected)
        running.wait_for(lambda: tokens.issued >= before + 2, "two more tokens")
        assert not running.run_once().failures
        read_at_once(running)

    assert len(connected) == connections, "a connection ended and was made again"


@needs_tokens
def test_without_a_token_the_endpoint_says_why(
    one_broker: Kafka, security: Security, tokens: TokenServer, tmp_path: Path
) -> None:
    wrong = tmp_path / "secret"
    wrong.write_text("guessed")
    with reads(one_broker, security.token_bootstrap_servers, **with_tokens(security, tokens, wrong)) as running:
        (failure,) = running.run_once().failures

    assert failure.cause == "authentication"
    assert failure.text.endswith(
        f"was not given a token: token endpoint {tokens.endpoint} answers with status 401: "
        "invalid_client, unknown client or wrong secret"
    )


def has_read(running: Adapter, cluster: str) -> bool:
    """Whether anything has been read: other tests leave groups on the broker of which a part cannot be."""
    text = running.get_plain("/metrics")[1].decode()
    return any(f'cycles_total{{cluster="{cluster}",outcome="{each}"}}' in text for each in ("complete", "partial"))


@needs_tokens
def test_no_login_is_logged_at_any_level(
    security: Security, tokens: TokenServer, client_secret: Path, tmp_path: Path
) -> None:
    """Neither of Kafka, with every mechanism, nor of a token endpoint, kube-apiserver or a caller."""
    password = tmp_path / "password"
    password.write_text(security.login.password)
    login = {"protocol": "SASL_SSL", "username": security.login.username, "passwordFile": str(password)}
    servers = dict.fromkeys(("PLAIN", *SCRAM_MECHANISMS), security.bootstrap_servers)
    logins = {each: {**login, "mechanism": each, **tls(security)} for each in servers}
    logins["OAUTHBEARER"] = with_tokens(security, tokens, client_secret)
    servers["OAUTHBEARER"] = security.token_bootstrap_servers
    clusters = [
        {"name": name.lower(), "bootstrapServers": [servers[name]], "security": how} for name, how in logins.items()
    ]
    authorities, kubeconfig = (Authority("front-proxy-ca"), Authority("kubernetes")), tmp_path / "kubeconfig"
    with FakeCluster(config_map_data(*authorities), tokens={}, allowed=set()) as cluster:
        kubeconfig.write_text(kubeconfig_text(cluster.port).replace('"adapter"', '"of-kubernetes"'))
        with process(tmp_path, {"clusters": clusters}, kubeconfig, more_flags={"log-level": "debug"}) as running:
            for name in logins:
                wait_until(partial(has_read, running, name.lower()), f"a cycle of {name}", 180)
            # A request that comes before the adapter is ready is answered with 503.
            wait_until(running.is_ready, "the adapter to be ready", 180)
            assert running.get(EXTERNAL_METRICS, headers={"Authorization": "Bearer of-a-caller"})[0] == 401
        log = (tmp_path / "adapter.log").read_text()

    assert "credentials refused" in log, "the level is not debug"
    secrets = (security.login.password, "s:cr%t", "s%3Acr%25t", "of-kubernetes", "of-a-caller")
    parts_of_frames = ("eyJ", "auth_bytes", "Bearer", "n,,")
    assert [each for each in (*secrets, *parts_of_frames) if each in log] == []
