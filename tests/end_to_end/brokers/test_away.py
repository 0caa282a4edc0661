"""Brokers that cannot be had: the adapter serves all the same, says what is wrong, and has numbers once it is right."""

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.adapter import Adapter, own_kubeconfig, process
from local.certificates import Pair
from local.forwarder import forwarder
from local.kafka.broker import Kafka
from local.kafka.security import MECHANISM, Security
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane
from local.processes import RigError, free_port, wait_until
from tests.support.real.groups_to_read import LAG, path

SOON = {"interval": "1s", "maxAge": "10s"}
WRONG_PASSWORD = "looking-glass"


@pytest.fixture(scope="module")
def away_group(one_broker: Kafka) -> str:
    """A group with a lag of 40."""
    create_topic(one_broker, "away-orders")
    produce(one_broker, "away-orders", 100)
    commit(one_broker, "away", {("away-orders", 0): 60})
    return "away"


@contextlib.contextmanager
def reading(plane: ControlPlane, home: Path, *clusters: dict[str, Any], named: str = "away") -> Iterator[Adapter]:
    settings = {"clusters": list(clusters), "collection": SOON, "rules": [{"group": named, "topics": ["away-orders"]}]}
    with process(home, settings, own_kubeconfig(plane)) as running:
        # Before it is ready it knows no authority for clients, and a client's certificate ends the handshake.
        wait_until(running.is_ready, "readiness, which does not hang on brokers", 180, alive=[running.process])
        yield running


def at(name: str, address: str, **security: object) -> dict[str, Any]:
    return {"name": name, "bootstrapServers": [address], "security": security}


def answer(running: Adapter, reader: Pair, cluster: str) -> tuple[int, str]:
    """Status of a read of the group in one cluster, with its value or its message."""
    status, body = running.get(path("default", LAG, f"group%3Daway,cluster%3D{cluster}"), shown=reader)
    document = json.loads(body)
    return status, str(document["items"][0]["value"] if status == 200 else document["message"])


def wait_for(running: Adapter, reader: Pair, cluster: str, status: int, text: str) -> None:
    def is_there() -> bool:
        found = answer(running, reader, cluster)
        return found[0] == status and text in found[1]

    try:
        wait_until(is_there, f"{status} with {text!r} for cluster {cluster}", 180, alive=[running.process])
    except RigError as error:
        raise AssertionError(f"the last answer was {answer(running, reader, cluster)}") from error


@pytest.mark.usefixtures("away_group")
def test_reads_say_why_there_is_no_broker_until_there_is_one(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    """A name that does not resolve, a closed port, and a server that never answers: one adapter for all three."""
    (broker,) = one_broker.brokers
    closed = free_port()
    with forwarder(broker.port) as silent:
        clusters = (
            at("nameless", "kafka.invalid:9092"),
            at("closed", f"127.0.0.1:{closed}"),
            at("silent", f"127.0.0.1:{silent.port}"),
        )
        with reading(control_plane, tmp_path, *clusters) as running:
            wait_for(running, administrator, "nameless", 503, "kafka.invalid:9092 cannot be found: the name")
            wait_for(running, administrator, "closed", 503, f"127.0.0.1:{closed} refuses the connection")
            wait_for(running, administrator, "silent", 503, f"127.0.0.1:{silent.port} does not answer")

            silent.release()
            with forwarder(broker.port, port=closed) as opened:
                opened.release()
                wait_for(running, administrator, "closed", 200, "40")
                wait_for(running, administrator, "silent", 200, "40")

            assert answer(running, administrator, "nameless")[0] == 503
            assert running.is_ready()
            assert "Traceback" not in running.process.log.read_text()


@pytest.mark.usefixtures("away_group")
def test_a_login_over_tls_of_a_private_authority_reads_and_a_wrong_password_is_said_but_not_shown(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    security = one_broker.security
    assert security is not None
    clusters = [
        at(name, security.bootstrap_servers, **_login(security, tmp_path / name, password))
        for name, password in (("right", security.login.password), ("wrong", WRONG_PASSWORD))
    ]
    with reading(control_plane, tmp_path, *clusters) as running:
        wait_for(running, administrator, "right", 200, "40")
        wait_for(running, administrator, "wrong", 503, "refuses the credentials")

        reported = answer(running, administrator, "wrong")[1] + running.process.log.read_text()
        assert WRONG_PASSWORD not in reported
        assert security.login.password not in reported


@pytest.mark.usefixtures("away_group")
def test_a_broker_of_an_unknown_authority_is_not_spoken_to(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    security = one_broker.security
    assert security is not None
    login = _login(security, tmp_path / "password", security.login.password)
    foreign = {**login, "caFile": str(control_plane.cluster_ca)}
    with reading(control_plane, tmp_path, at("foreign", security.bootstrap_servers, **foreign)) as running:
        wait_for(running, administrator, "foreign", 503, "has a certificate of an authority that is not trusted here")


def _login(security: Security, password_file: Path, password: str) -> dict[str, str]:
    password_file.write_text(password)
    return {
        "protocol": "SASL_SSL",
        "mechanism": MECHANISM,
        "username": security.login.username,
        "passwordFile": str(password_file),
        "caFile": str(security.ca_file),
    }


def test_a_kube_apiserver_that_never_answers_means_live_but_not_ready(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        text = own_kubeconfig(control_plane).read_text().replace(control_plane.url, f"https://127.0.0.1:{port}")
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(text)
        settings = {"clusters": [at("main", f"127.0.0.1:{free_port()}")]}
        with process(tmp_path, settings, kubeconfig) as running:
            assert running.is_live()
            assert not running.is_ready()
            status, body = running.get(path("default", LAG), headers={"Authorization": "Bearer any"})
            assert (status, json.loads(body)["kind"]) == (503, "Status")

            running.process.stop(grace_seconds=60)
            assert running.process.status == 0, running.process.log_tail()
