import json
import logging
import resource
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapter.errors import AdapterError
from apiservice.http import server
from apiservice.http.protocol import KEEP_ALIVE_SECONDS
from apiservice.http.server import allow_open_files, listen, place_of
from tests.support.kubernetes.authorities import Authority, Issued, authentication
from tests.support.kubernetes.listeners import (
    CLIENTS,
    HOUR,
    PATIENT,
    PROXY,
    SECONDS,
    Running,
    get,
    raw,
    serving,
    wait_for_end,
)


def test_each_request_carries_its_peers_certificate(running: Running) -> None:
    for shown, lengths in ((PROXY, [len(PROXY.der)]), (None, [])):
        connection = running.connect(shown)
        for _ in range(2):
            assert get(connection) == (200, json.dumps(lengths).encode())
        connection.close()


@dataclass(frozen=True)
class Chained(Issued):
    """A certificate that is shown with intermediate ones."""

    between: str = ""

    @property
    def pem(self) -> str:
        return super().pem + self.between


def test_a_chain_of_many_certificates_is_not_examined(running: Running) -> None:
    """It would hold up the event loop, and anybody can make one."""
    authorities = [CLIENTS]
    for number in range(60):
        authorities.append(Authority(f"between-{number}", issuer=authorities[-1]))

    def shown(length: int) -> Chained:
        leaf, between = authorities[length].issue("alice"), reversed(authorities[1 : length + 1])
        return Chained(leaf.certificate, leaf.key, "".join(each.pem for each in between))

    assert get(running.connect(shown(3)))[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(running.connect(shown(60)))


def test_plain_http_carries_no_certificate(running: Running) -> None:
    assert get(running.connect_plain()) == (200, b"[]")


def test_a_removed_ca_is_refused_and_a_new_one_taken_without_restart(running: Running) -> None:
    renewed = Authority("front-proxy-ca")
    running.tls.trust(authentication(renewed, CLIENTS))

    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(running.connect(PROXY))
    assert get(running.connect(renewed.issue("front-proxy-client")))[0] == 200


def test_an_idle_connection_outlives_the_aggregators_own_patience() -> None:
    assert KEEP_ALIVE_SECONDS >= 95


def test_answers_name_no_server(running: Running) -> None:
    answer = raw(running.plain, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").lower()

    assert answer.startswith(b"http/1.1 200")
    assert b"\r\nserver:" not in answer


def test_peers_that_misbehave_leave_no_line_in_the_log(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    raw(running.plain, b"\x16\x03\x01 no HTTP at all\r\n\r\n")
    raw(running.secure, b"GET / HTTP/1.1\r\n\r\n")
    upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.plain), timeout=SECONDS) as connection:
        connection.sendall(upgrade)
        assert connection.recv(12) == b"HTTP/1.1 200"
    aborted = running.connect(PROXY)
    aborted.request("GET", "/slow")
    assert running.application.begun.wait(SECONDS)
    aborted.close()
    running.application.gate.set()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(running.connect(Authority("stranger").issue("stranger")))
    assert get(running.connect(PROXY))[0] == 200

    assert caplog.messages == []


def test_at_the_end_a_request_under_way_is_finished_and_its_connection_closed(running: Running) -> None:
    connection = running.connect(PROXY)
    connection.request("GET", "/slow")
    assert running.application.begun.wait(SECONDS)
    running.stop()
    assert not wait_for_end(running, 0.5)

    running.application.gate.set()

    response = connection.getresponse()
    assert (response.status, response.headers["connection"]) == (200, "close")
    assert wait_for_end(running)


def test_idle_connections_are_closed_at_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, PATIENT) as running:
        idle = [running.connect(PROXY), running.connect_plain()]
        for connection in idle:
            assert get(connection)[0] == 200
        running.stop()

        # These peers never read again, so none of them does its part of closing TLS.
        assert wait_for_end(running)


def test_callers_are_still_served_for_a_while_after_the_signal(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address stays in kube-apiserver's lists until the news of the pod's end has gone round."""
    monkeypatch.setattr(server, "GRACE_SECONDS", SECONDS)
    keeping = running.connect(PROXY)
    assert get(keeping)[0] == 200
    running.stop()

    late = running.connect(PROXY)
    late.request("GET", "/")
    response = late.getresponse()

    assert (response.status, response.headers["connection"]) == (200, "close")


def test_a_caller_that_connects_while_the_process_drains_is_served(tmp_path: Path) -> None:
    """kube-apiserver connects anew until it knows that this address is gone, and there may be no connection before."""
    with serving(tmp_path, PATIENT, drain_seconds=10.0) as running:
        running.stop()
        assert not wait_for_end(running, 0.1)

        assert get(running.connect(PROXY))[0] == 200
        assert wait_for_end(running)


def test_without_connections_there_is_nothing_to_wait_for(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", HOUR)
    running.stop()

    assert wait_for_end(running)


def test_a_low_soft_limit_of_open_files_is_raised() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limits[1]))
        allow_open_files(2048)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, limits[1])

        allow_open_files(1500)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(("has_ipv6", "listened_on"), [(True, "::"), (False, "0.0.0.0")])
def test_both_families_are_listened_on_or_ipv4_alone_where_there_is_no_ipv6(
    monkeypatch: pytest.MonkeyPatch, listened_on: str, *, has_ipv6: bool
) -> None:
    """Tests bind the loopback only, so the socket is not made."""
    made: list[tuple[str, socket.AddressFamily, bool]] = []

    def create_server(
        address: tuple[str, int], *, family: socket.AddressFamily, dualstack_ipv6: bool, backlog: int
    ) -> socket.socket:
        assert backlog > 1000
        made.append((address[0], family, dualstack_ipv6))
        return socket.socket()

    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: has_ipv6)
    monkeypatch.setattr(socket, "create_server", create_server)
    listen("::", 6443).close()

    assert made == [(listened_on, socket.AF_INET6 if has_ipv6 else socket.AF_INET, has_ipv6)]


@pytest.mark.parametrize(
    ("host", "place"), [("127.0.0.1", "127.0.0.1:80"), ("::", "[::]:80"), ("localhost", "localhost:80")]
)
def test_an_address_is_written_as_in_a_url(host: str, place: str) -> None:
    assert place_of(host, 80) == place


def test_an_occupied_port_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(AdapterError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)
