"""Which certificates of servers the adapter accepts, and what it says of others: real handshakes of every client."""

import datetime
import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from adapter.errors import AdapterError
from adapter.kafka.failures import failure_of
from adapter.kafka.tokens import TokenUnavailable, fetched
from adapter.settings.client_certificate import trusting
from adapter.settings.credentials import Login, TokenRequest, credentials_of
from adapter.settings.models import UpstreamSettings
from adapter.settings.secret_files import read, read_file
from adapter.settings.security import Security
from apiservice.cluster_api.connection import connect, send
from apiservice.upstream.client import UpstreamClient
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.beside import resolve_here
from tests.support.kubernetes.fake_cluster import kubeconfig_text
from tests.support.kubernetes.other_server import HOST, NAMESPACE, SERVICE, Answer, OtherServer

HOUR = datetime.timedelta(hours=1)
OLD, CREATED_AGAIN = (Authority("kubernetes", has_key_identifiers=False) for _ in range(2))
BETWEEN = Authority("between", issuer=Authority("root"))
UNKNOWN = "has a certificate of an authority that is not trusted here ("


class Shown(NamedTuple):
    """A server's certificate, and the end of the sentence about it; empty: it is accepted."""

    authority: Authority
    trusted: Authority
    words: str = ""
    host: str = HOST
    valid_for: datetime.timedelta = HOUR


SHOWN = {
    "a CA without key identifiers": Shown(OLD, OLD),
    "an intermediate CA whose root is unknown": Shown(BETWEEN, BETWEEN),
    "expired": Shown(OLD, OLD, "has a certificate that has expired", valid_for=-HOUR),
    "for another name": Shown(OLD, OLD, f"has a certificate that does not cover the host name {HOST}", host="wrong"),
    "an unknown CA": Shown(BETWEEN, OLD, UNKNOWN),
    "an unknown CA of the same name": Shown(CREATED_AGAIN, OLD, UNKNOWN),
}


def kubeconfig(port: int, **cluster: object) -> str:
    document = json.loads(kubeconfig_text(port))
    document["clusters"][0]["cluster"] = {"server": f"https://{HOST}:{port}", **cluster}
    return json.dumps(document)


def kube_apiserver(port: int, ca: Path) -> str:
    file = ca.with_name("kubeconfig.yaml")
    file.write_text(kubeconfig(port, **{"certificate-authority": str(ca)}))
    try:
        send(connect(file), "GET", "/version").close()
    except AdapterError as error:
        return str(error)
    return ""


def token_endpoint(port: int, ca: Path) -> str:
    request = TokenRequest(f"https://{HOST}:{port}/", None, {}, trusting([read_file("tokenEndpointCaFile", ca)]))
    try:
        fetched(Login(), request)
    except TokenUnavailable as error:
        return str(error.args[0])
    return ""


def upstream(port: int, ca: Path) -> str:
    place = {"service": SERVICE, "namespace": NAMESPACE, "port": port, "caFile": str(ca)}
    try:
        UpstreamClient(UpstreamSettings.model_validate(place), lambda: "Bearer of-the-adapter").get("/")
    except AdapterError as error:
        return str(error)
    return ""


def broker(port: int, ca: Path) -> str:
    security = Security.model_validate({"protocol": "SSL", "caFile": str(ca)})
    context = credentials_of(security, read(security)).tls
    assert context is not None
    with socket.create_connection(("127.0.0.1", port)) as plain:
        try:
            context.wrap_socket(plain, server_hostname=HOST).close()
        except OSError as error:
            return failure_of(error, "broker 1").text
    return ""


CLIENTS: Mapping[str, Callable[[int, Path], str]] = {
    "kube-apiserver": kube_apiserver,
    "token endpoint": token_endpoint,
    "upstream": upstream,
    "broker": broker,
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", SHOWN)
def test_certificates_are_verified_by_the_same_rules_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, client: str
) -> None:
    resolve_here(monkeypatch)
    shown, ca = SHOWN[case], tmp_path / "ca.crt"
    ca.write_text(shown.trusted.pem)
    with OtherServer(tmp_path, shown.authority, shown.host, shown.valid_for) as server:
        server.answer = Answer(body=b'{"access_token": "token"}')
        said = CLIENTS[client](server.port, ca)

    assert shown.words in said
    assert bool(shown.words) == bool(said)


def test_a_ca_that_kubernetes_replaced_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_here(monkeypatch)
    ca, file = tmp_path / "ca.crt", tmp_path / "kubeconfig.yaml"
    ca.write_text(OLD.pem)
    with OtherServer(tmp_path, BETWEEN) as server:
        file.write_text(kubeconfig(server.port, **{"certificate-authority": str(ca)}))
        client = connect(file)
        with pytest.raises(AdapterError, match="not trusted here"):
            send(client, "GET", "/version")
        ca.write_text(BETWEEN.pem)

        assert send(client, "GET", "/version").status == 200


def test_a_kubeconfig_that_skips_the_verification_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig.yaml"
    file.write_text(kubeconfig(1, **{"insecure-skip-tls-verify": True}))

    with pytest.raises(AdapterError, match=r"kubeconfig\.yaml has insecure-skip-tls-verify"):
        connect(file)
