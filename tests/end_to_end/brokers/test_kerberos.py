"""GSSAPI on a real broker with tickets of a real KDC. `make test-kerberos` brings what it needs from PyPI."""

import importlib.util
import itertools
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.kafka.logins import KerberosLogin
from local.kafka.broker import Kafka, kafka
from local.kafka.kdc import REALM, Kdc, is_installed, kdc
from local.kafka.security import Login, Security
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.in_process import InProcess, in_process

pytestmark = [
    pytest.mark.skipif(not is_installed(), reason="no KDC on this machine (Debian: krb5-kdc, krb5-admin-server)"),
    pytest.mark.skipif(importlib.util.find_spec("gssapi") is None, reason="no package gssapi (`make test-kerberos`)"),
]
TICKET_SECONDS = 8
SESSION_MS = "2000"
"""After this time, a connection has to show a ticket again."""


@pytest.fixture(scope="module")
def realm(rig_home: Path) -> Iterator[Kdc]:
    with kdc(rig_home / "kdc") as running:
        yield running


@pytest.fixture(scope="module")
def cluster(rig_home: Path, realm: Kdc) -> Iterator[Kafka]:
    keytab = realm.keytab("kafka/127.0.0.1")
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    listener = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "gssapi.sasl.jaas.config": f'{module} keyTab="{keytab}" principal="kafka/127.0.0.1@{REALM}";',
        "gssapi.connections.max.reauth.ms": SESSION_MS,
    }
    properties = {
        f"listener.name.{name}.{key}": value for name in ("login", "secure") for key, value in listener.items()
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.configuration}")
        running = kafka(
            rig_home / "kerberos",
            security=Login("alice", "wonderland"),
            properties={**properties, "sasl.kerberos.service.name": "kafka"},
        )
        with running as brokers:
            create_topic(brokers, "guarded-orders")
            produce(brokers, "guarded-orders", 10)
            commit(brokers, "guarded", {("guarded-orders", 0): 4})
            yield brokers


@pytest.fixture(autouse=True)
def environment(realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a ticket."""
    monkeypatch.setenv("KRB5_CONFIG", str(realm.configuration))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "absent.keytab"))


@pytest.fixture(scope="module")
def keytab(realm: Kdc) -> Path:
    return realm.keytab("lag", ticket_seconds=TICKET_SECONDS)


def security(cluster: Kafka) -> Security:
    assert cluster.security is not None
    return cluster.security


def reading(cluster: Kafka, servers: str, **more: Any) -> Any:  # noqa: ANN401 - as in the settings file
    login = {"protocol": "SASL_PLAINTEXT", "mechanism": "GSSAPI", **more}
    return in_process(
        cluster, clusters=[{"name": "main", "bootstrapServers": [servers], "security": login}], call_seconds=5.0
    )


def read_all_along_until(running: InProcess, done: Callable[[], bool], what: str) -> None:
    def is_done_after_a_cycle() -> bool:
        outcome = running.run_once()
        assert outcome.completeness == "complete", outcome
        assert running.lag("guarded", "guarded-orders") == 6
        return done()

    wait_until(is_done_after_a_cycle, what, 180)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_tickets_of_a_keytab_are_renewed_before_they_expire_and_every_cycle_reads_all(
    cluster: Kafka, realm: Kdc, keytab: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
    own = security(cluster)
    over_tls = (own.bootstrap_servers, {"protocol": protocol, "caFile": str(own.ca_file)})
    servers, more = over_tls if protocol == "SASL_SSL" else (own.plain_bootstrap_servers, {})
    with reading(cluster, servers, **more) as running:
        read_all_along_until(running, lambda: True, "the first cycle")
        logins, services, expired = realm.issued("AS_REQ"), realm.issued("TGS_REQ"), time.time() + TICKET_SECONDS
        read_all_along_until(
            running,
            lambda: time.time() > expired + float(SESSION_MS) / 1000,
            "the first ticket to expire, and the next ones to be shown",
        )
    assert realm.issued("AS_REQ") > logins
    assert realm.issued("TGS_REQ") > services


def test_a_silent_kdc_costs_nothing_while_the_ticket_is_valid(
    cluster: Kafka, realm: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection shows its ticket again meanwhile."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.keytab("patient")))
    logins = itertools.count()
    make, last = KerberosLogin.__init__, [0]

    def counted(login: KerberosLogin, **config: Any) -> None:  # noqa: ANN401 - the library has no types
        make(login, **config)
        last[0] = next(logins)

    monkeypatch.setattr(KerberosLogin, "__init__", counted)
    with reading(cluster, security(cluster).plain_bootstrap_servers) as running:
        read_all_along_until(running, lambda: True, "the first cycle")
        realm.process.send(signal.SIGSTOP)
        try:
            until = last[0] + 3
            read_all_along_until(running, lambda: last[0] >= until, "further logins")
        finally:
            realm.process.send(signal.SIGCONT)


def test_why_there_is_no_ticket_is_said_of_the_broker(
    cluster: Kafka, realm: Kdc, keytab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = security(cluster).plain_bootstrap_servers
    port = servers.rpartition(":")[2]

    def said(address: str = servers) -> str:
        with reading(cluster, address) as running:
            (failure,) = running.run_once().failures
        assert failure.cause == "authentication"
        start = f"bootstrap server {address} was not given a Kerberos ticket: "
        assert failure.text.startswith(start)
        return str(failure.text.removeprefix(start))

    assert said() == f"No Kerberos credentials available (default cache: FILE:{tmp_path / 'tickets'})"

    gone = realm.keytab("gone")
    realm.administer("delprinc -force gone")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(gone))
    assert said() == f"Client 'gone@{REALM}' not found in Kerberos database"

    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
    realm.process.send(signal.SIGSTOP)
    try:
        assert said() == "no KDC answers"
    finally:
        realm.process.send(signal.SIGCONT)

    assert said(f"localhost:{port}") == f"Server kafka/localhost@{REALM} not found in Kerberos database"

    elsewhere = tmp_path / "krb5.conf"
    elsewhere.write_text(re.sub("kdc = .*", "kdc = 127.0.0.1:1", realm.configuration.read_text()))
    monkeypatch.setenv("KRB5_CONFIG", str(elsewhere))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'none'}")
    assert said() == f"Cannot contact any KDC for realm '{REALM}'"
