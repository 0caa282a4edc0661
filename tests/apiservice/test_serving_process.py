"""`serve` as a process: who may ask it, what it takes up while it runs, and how it ends."""

import contextlib
import functools
import http.client
import json
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.processes import wait_until
from tests.support.kubernetes.authorities import SERVER, Authority, Issued, client_context, config_map_data
from tests.support.kubernetes.fake_cluster import FakeCluster, kubeconfig_text
from tests.support.kubernetes.serving_process import ANY_PORTS, ANYWHERE, SERVERS, WAIT_SECONDS, Serving, serving

PROXIES, CLIENTS = Authority("front-proxy-ca"), Authority("kubernetes")
PROXY, IMPOSTOR = PROXIES.issue("front-proxy-client"), CLIENTS.issue("front-proxy-client")
AS_AUTOSCALER = {"X-Remote-User": "autoscaler", "X-Remote-Group": "system:authenticated"}
WATCHED = ("authentication-settings", "autoscalers")
GROUP = "/apis/external.metrics.k8s.io/v1beta1"
PATIENT = (
    *(sys.executable, "-c"),
    "from apiservice.http import server; server.GRACE_SECONDS = 15.0; from apiservice.__main__ import main; main()",
)
"""The command, which after a signal waits longer for callers that are still connected."""
SIGNALLED = (
    *(sys.executable, "-c"),
    """
import os, signal
from apiservice import serving
from apiservice.__main__ import main
prepare = serving._prepare
def signalled(*given):
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)
    return prepare(*given)
serving._prepare = signalled
main()
""",
)
"""The command, which gets signals before it serves."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeCluster]:
    data = config_map_data(PROXIES, CLIENTS)
    with FakeCluster(data, tokens={"good": "prometheus"}, allowed={"autoscaler", "prometheus"}) as fake:
        yield fake


@pytest.fixture(scope="module")
def running(cluster: FakeCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One process for several tests, because starting it takes longest."""
    with serving(tmp_path_factory.mktemp("running"), cluster) as server:
        server.wait_until_ready()
        yield server


def test_callers_are_distinguished(running: Serving) -> None:
    code, body = running.get(GROUP, PROXY, AS_AUTOSCALER)
    assert (code, json.loads(body)["kind"]) == (200, "APIResourceList")

    code, body = running.get(GROUP, IMPOSTOR, AS_AUTOSCALER)
    assert (code, 'User "front-proxy-client" cannot get path' in json.loads(body)["message"]) == (403, True)

    code, body = running.get(GROUP, None, AS_AUTOSCALER)
    assert (code, 'User "system:anonymous" cannot get path' in json.loads(body)["message"]) == (403, True)

    assert running.get(GROUP, PROXY, AS_AUTOSCALER | {"X-Remote-User": "nobody"})[0] == 403
    assert running.get(GROUP, None, {"Authorization": "Bearer good"})[0] == 200
    assert running.get(GROUP, None, {"Authorization": "Bearer bad"})[0] == 401
    assert running.get("/livez")[0] == running.get_plain("/metrics") == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        running.get(GROUP, Authority("stranger").issue("front-proxy-client"), AS_AUTOSCALER)


def test_a_rotated_front_proxy_ca_needs_no_restart(running: Serving) -> None:
    renewed = Authority("front-proxy-ca")
    new = renewed.issue("front-proxy-client")
    for authority, believed, removed in ((renewed, new, PROXY), (PROXIES, PROXY, new)):
        running.cluster.replace(config_map_data(authority, CLIENTS))

        wait_until(functools.partial(is_believed, running, believed), "the new CA to be believed", WAIT_SECONDS)
        assert not is_believed(running, removed)


def is_believed(server: Serving, proxy: Issued) -> bool:
    try:
        return server.get(GROUP, proxy, AS_AUTOSCALER)[0] == 200
    except (ssl.SSLError, ConnectionError):
        return False


def test_a_renewed_serving_certificate_needs_no_restart(running: Serving) -> None:
    before = ssl.get_server_certificate(("127.0.0.1", running.secure))

    SERVERS.issue("renewed", usages=(SERVER,)).write(running.folder, "tls")

    wait_until(
        lambda: ssl.get_server_certificate(("127.0.0.1", running.secure)) != before, "the new certificate", WAIT_SECONDS
    )


def test_sigterm_ends_with_status_0_in_time(tmp_path: Path, cluster: FakeCluster) -> None:
    with serving(tmp_path, cluster, PATIENT) as server:
        server.wait_until_ready()
        kept = http.client.HTTPSConnection("127.0.0.1", server.secure, timeout=60, context=client_context(tmp_path))
        with contextlib.closing(kept):
            kept.request("GET", "/readyz")
            assert kept.getresponse().read() == b"ok"
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            # It is logged a moment before readiness shows it.
            wait_until(lambda: server.get_plain("/readyz") == 500, "it to be unready", WAIT_SECONDS)
            assert "stopping: unready" in server.log.read_text()

            kept.request("GET", "/readyz")

            assert kept.getresponse().status == 500
            assert server.process.wait(60) == 0
            # When the kubelet would kill it, and what a busy machine may add.
            assert time.monotonic() - begun < 20 + 30
        lines = server.log.read_text().splitlines()
    assert len(lines) > 3
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING) \S+: ", line), line


def test_sigterm_before_it_serves_ends_it_as_any_other_does_and_sighup_does_not(tmp_path: Path) -> None:
    """As the number 1 of a container, it would not even notice a signal that it does not handle."""
    (tmp_path / "cluster").write_text(kubeconfig_text(1))
    files = ("--kubeconfig", tmp_path / "cluster", "--cert-dir", tmp_path)
    command = (*SIGNALLED, "serve", *ANYWHERE, *ANY_PORTS, *files)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[-1].endswith(": stopped")


def test_a_silent_api_server_means_live_but_not_ready(tmp_path: Path) -> None:
    cluster = FakeCluster(config_map_data(PROXIES, CLIENTS), tokens={}, allowed={"autoscaler"})
    cluster.failing_with = 503
    with cluster, serving(tmp_path, cluster) as server:
        log = server.log
        assert server.get_plain("/livez") == 200
        assert server.get_plain("/readyz") == 500
        assert server.get(GROUP, None, {"Authorization": "Bearer good"})[0] == 503
        wait_until(lambda: all(f"{name}: NotRead" in log.read_text() for name in WATCHED), "both lines", WAIT_SECONDS)

        cluster.failing_with = None

        server.wait_until_ready()
        assert server.get(GROUP, PROXY, AS_AUTOSCALER)[0] == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        said = log.read_text()
    assert "Traceback" not in said
    for name in WATCHED:
        assert said.count(f"{name}: NotRead: they cannot be read") == 1
