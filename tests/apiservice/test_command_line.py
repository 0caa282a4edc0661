import contextlib
import functools
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
import yaml

from apiservice.__main__ import main
from tests.support.kubernetes.authorities import SERVER, Authority, Issued, client_context, config_map_data
from tests.support.kubernetes.fake_cluster import FakeCluster, kubeconfig_text

# kafka-python reads its message descriptions in a way that Python 3.11 and 3.12 call deprecated, and 3.13 no longer.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

SERVERS, PROXIES, CLIENTS = Authority("serving-ca"), Authority("front-proxy-ca"), Authority("kubernetes")
PROXY, IMPOSTOR = PROXIES.issue("front-proxy-client"), CLIENTS.issue("front-proxy-client")
AS_AUTOSCALER = {"X-Remote-User": "autoscaler", "X-Remote-Group": "system:authenticated"}
WATCHED = ("authentication-settings", "autoscalers")
GROUP = "/apis/external.metrics.k8s.io/v1beta1"
Given = TypeVar("Given")
COMMAND = (sys.executable, "-m", "apiservice")
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
# Port 1 of the loopback: nobody listens there, and nothing of Kafka is needed here.
ANYWHERE = ("--bootstrap-servers", "127.0.0.1:1", "--bind-address", "127.0.0.1", "--metrics-bind-address", "127.0.0.1")
ANY_PORTS = ("--secure-port", "0", "--metrics-port", "0")
SETTINGS = """
clusters:
  - name: main
    bootstrapServers: []
collection:
  interval: soon
  groups:
    include: ['(']
rules:
  - group: billing
    topics: [orders]
    offsetreset: earliest
"""
NOT_CLOSED = "missing ), unterminated subpattern at position 0"


@dataclass
class Serving:
    """A running `serve`, its ports and what it has logged."""

    process: subprocess.Popen[str]
    secure: int
    plain: int
    log: Path
    folder: Path
    cluster: FakeCluster

    def get(self, path: str, shown: Issued | None = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
        """Status and body over TLS."""
        context = client_context(self.folder, shown)
        connection = http.client.HTTPSConnection("127.0.0.1", self.secure, timeout=60, context=context)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def get_plain(self, path: str) -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.plain, timeout=60)) as connection:
            connection.request("GET", path)
            return connection.getresponse().status


@contextlib.contextmanager
def serving(folder: Path, cluster: FakeCluster, command: tuple[str, ...] = COMMAND) -> Iterator[Serving]:
    certificate, key = SERVERS.issue("x", usages=(SERVER,), dns_names=("localhost",)).write(folder, "tls")
    (folder / "cluster").write_text(kubeconfig_text(cluster.port))
    files = ("--kubeconfig", folder / "cluster", "--tls-cert-file", certificate, "--tls-private-key-file", key)
    log = folder / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen((*command, "serve", *ANYWHERE, *ANY_PORTS, *files), stderr=stderr, text=True)
    try:
        secure, plain = wait_for_ports(process, log)
        yield Serving(process, secure, plain, log, folder, cluster)
    finally:
        process.kill()
        process.wait(60)


def wait_for_ports(process: "subprocess.Popen[str]", log: Path) -> tuple[int, int]:
    def ports() -> "re.Match[str] | None":
        assert process.poll() is None, log.read_text()
        return re.search(r"serving on 127\.0\.0\.1:(\d+), metrics on 127\.0\.0\.1:(\d+)", log.read_text())

    found = until(ports)
    assert found
    return int(found[1]), int(found[2])


def until(condition: Callable[[], Given], seconds: float = 60) -> Given:
    """What the condition gives as soon as that is something."""
    end = time.monotonic() + seconds
    while not (given := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return given


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeCluster]:
    data = config_map_data(PROXIES, CLIENTS)
    with FakeCluster(data, tokens={"good": "prometheus"}, allowed={"autoscaler", "prometheus"}) as fake:
        yield fake


@pytest.fixture(scope="module")
def running(cluster: FakeCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One process for several tests, because starting it takes longest."""
    with serving(tmp_path_factory.mktemp("running"), cluster) as server:
        until(lambda: server.get_plain("/readyz") == 200)
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

        until(functools.partial(is_believed, running, believed))
        assert not is_believed(running, removed)


def is_believed(server: Serving, proxy: Issued) -> bool:
    try:
        return server.get(GROUP, proxy, AS_AUTOSCALER)[0] == 200
    except (ssl.SSLError, ConnectionError):
        return False


def test_a_renewed_serving_certificate_needs_no_restart(running: Serving) -> None:
    before = ssl.get_server_certificate(("127.0.0.1", running.secure))

    SERVERS.issue("renewed", usages=(SERVER,)).write(running.folder, "tls")

    assert until(lambda: ssl.get_server_certificate(("127.0.0.1", running.secure)) != before)


def test_sigterm_ends_with_status_0_in_time(tmp_path: Path, cluster: FakeCluster) -> None:
    with serving(tmp_path, cluster, PATIENT) as server:
        until(lambda: server.get_plain("/readyz") == 200)
        kept = http.client.HTTPSConnection("127.0.0.1", server.secure, timeout=60, context=client_context(tmp_path))
        with contextlib.closing(kept):
            kept.request("GET", "/readyz")
            assert kept.getresponse().read() == b"ok"
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            # It is logged a moment before readiness shows it.
            until(lambda: server.get_plain("/readyz") == 500)
            assert "stopping: unready" in server.log.read_text()

            kept.request("GET", "/readyz")

            assert kept.getresponse().status == 500
            assert server.process.wait(60) == 0
            assert time.monotonic() - begun < 20  # when the kubelet would kill it
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
        assert server.get_plain("/livez") == 200
        assert server.get_plain("/readyz") == 500
        assert server.get(GROUP, None, {"Authorization": "Bearer good"})[0] == 503
        until(lambda: all(f"{name}: NotRead" in server.log.read_text() for name in WATCHED))

        cluster.failing_with = None

        until(lambda: server.get_plain("/readyz") == 200)
        assert server.get(GROUP, PROXY, AS_AUTOSCALER)[0] == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        log = server.log.read_text()
    assert "Traceback" not in log
    for name in WATCHED:
        assert log.count(f"{name}: NotRead: they cannot be read") == 1


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a call that cannot be meant says; it must end with status 2 and print nothing else."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    # In this process the log and the signals belong to pytest.
    monkeypatch.setattr("apiservice.logs.log_to_stderr", lambda _level, _format: None)
    monkeypatch.setattr("logging.disable", lambda: None)
    monkeypatch.setattr("apiservice.signals.noted", threading.Event)

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed, message = capsys.readouterr()
        assert (ended.value.code, printed) == (2, "")
        return message

    return call


def test_an_unreadable_certificate_is_named(tmp_path: Path, refused: Callable[..., str]) -> None:
    (tmp_path / "cluster").write_text(kubeconfig_text(port=1))
    (tmp_path / "tls.crt").write_text("no certificate")
    (tmp_path / "tls.key").write_text("no key")
    files = ("--tls-cert-file", str(tmp_path / "tls.crt"), "--tls-private-key-file", str(tmp_path / "tls.key"))

    message = refused("serve", *ANYWHERE, *ANY_PORTS, "--kubeconfig", str(tmp_path / "cluster"), *files)

    assert message.startswith(f"kafka-lag-adapter: {tmp_path}/tls.crt contains no readable certificate")
    assert message.count("\n") == 1


def test_outside_a_cluster_one_sentence_says_what_is_missing(refused: Callable[..., str]) -> None:
    message = refused("serve", *ANYWHERE, *ANY_PORTS)

    assert message == "kafka-lag-adapter: not running in a Kubernetes cluster, so --kubeconfig FILE is required\n"


def test_every_problem_of_flags_and_files_is_reported_with_its_place(tmp_path: Path) -> None:
    settings, certificate = tmp_path / "settings.yaml", tmp_path / "tls.crt"
    settings.write_text(SETTINGS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = (
            *(*COMMAND, "serve", "--config", settings, "--kubeconfig", tmp_path / "cluster"),
            *("--tls-cert-file", certificate, "--tls-private-key-file", tmp_path / "tls.key"),
            *(*ANYWHERE[2:], "--secure-port", str(port), "--metrics-port", "0"),
        )
        refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert [line.removeprefix("kafka-lag-adapter: ") for line in refused.stderr.splitlines()] == [
        f"{settings}: clusters[0].bootstrapServers: must not be empty",
        f"{settings}: collection.interval: is 'soon'; must be a duration such as 10s, 1m30s or 30d",
        f"{settings}: collection.groups.include[0]: '(' is not a regular expression: {NOT_CLOSED}",
        f"{settings}: rules[0].offsetreset: is not a known key; did you mean 'offsetReset'?",
        f"kubeconfig {tmp_path}/cluster does not exist",
        f"{certificate} cannot be read: No such file or directory",
        f"cannot listen on 127.0.0.1:{port}: Address already in use",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serve", *ANYWHERE[2:], *ANY_PORTS), "--config FILE or --bootstrap-servers HOST:PORT is required"),
        (
            ("serve", *ANYWHERE, *ANY_PORTS, "--tls-cert-file", "x"),
            "--tls-cert-file and --tls-private-key-file must be used together",
        ),
        (("serve", "--config", "x", *ANYWHERE), "--config and --bootstrap-servers cannot be used together"),
        (("doctor", "--config", "x", *ANYWHERE[:2]), "--config and --bootstrap-servers cannot be used together"),
        (("doctor", "--hpa", "a/b"), "--hpa: 'a/b' is not a valid name of a Kubernetes object"),
        (("doctor", "--hpa", ""), "--hpa: '' is not a valid name of a Kubernetes object"),
        (("doctor", "-n", "A"), "--namespace: 'A' is not a valid name of a Kubernetes object"),
        (("doctor", "--service", "A"), "--service: 'A' is not [NAMESPACE/]NAME[:PORT]"),
        (("serve", "--confg", "x"), "No such option: --confg (Possible options: --config, --kubeconfig)\n"),
        (("serv",), "No such command 'serv'. Did you mean 'serve'?\n"),
        (("serve", "x"), "Got unexpected extra argument(s) (x)\n"),
        (
            ("serve", *ANYWHERE[:2], "--bind-address", "192.0.2.1", *ANY_PORTS),
            "cannot listen on 192.0.2.1:0: Cannot assign requested address\n",
        ),
        (("serve", "--config"), "Option '--config' requires an argument"),
        (("serve", "--secure-port", "65536"), "--secure-port: is '65536'; must be a whole number from 0 to 65535"),
        (("serve", "--metrics-port", "x"), "--metrics-port: is 'x'; must be a whole number from 0 to 65535"),
        (
            ("serve", "--log-level", "loud"),
            "--log-level: 'loud' is not one of 'debug', 'info', 'warning', 'error'\n",
        ),
        (
            ("serve", *ANYWHERE, "--secure-port", "7443", "--metrics-port", "7443"),
            "--secure-port and --metrics-port are both 7443; they must differ",
        ),
        (("validate",), "Missing option '--config'\n"),
        (("validate", "--config", "/none/x.yaml"), "/none/x.yaml: No such file or directory"),
        (("serve", "--bootstrap-servers", ","), "--bootstrap-servers: does not name a server"),
        (("certificates",), "Missing option '--namespace'\n"),
        (("certificates", "--namespace", "Not_A_Name"), "--namespace: 'Not_A_Name' is not a valid name"),
        (("certificates", "--namespace", "x\n"), "--namespace: 'x\\n' is not a valid name"),
        (("certificates", "--namespace", "x", "--days", "0"), "--days: is '0'; must be a whole number from 1 to 36500"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(
    arguments: tuple[str, ...], message: str, refused: Callable[..., str]
) -> None:
    said = refused(*arguments)

    assert f"kafka-lag-adapter: {message}" in said
    assert not re.search("Value error|unicode string|Input should", said)


def test_a_settings_file_is_validated_without_a_cluster_and_without_the_files_that_it_names(tmp_path: Path) -> None:
    security = "{protocol: SSL, caFile: /none/ca.crt, certFile: /none/tls.crt, keyFile: /none/tls.key}"
    path = tmp_path / "settings.yaml"
    path.write_text(f"clusters: [{{name: main, bootstrapServers: ['kafka:9092'], security: {security}}}]\n")
    command = (*COMMAND, "validate", "--config", str(path))

    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{path}: valid\n", "")
    path.write_text(path.read_text() + "colection: {}\nrules: [{group: a, offsetReset: newest}]\n")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        f"kafka-lag-adapter: {path}: rules[0].offsetReset: is 'newest'; must be 'latest' or 'earliest'",
        f"kafka-lag-adapter: {path}: colection: is not a known key; did you mean 'collection'?",
    ]


@pytest.mark.parametrize(("flags", "services"), [((), 1), (("--custom-metrics",), 3)])
def test_certificates_are_printed_for_kubectl(flags: tuple[str, ...], services: int) -> None:
    printed = subprocess.run(
        (*COMMAND, "certificates", "--namespace", "lag", *flags), capture_output=True, text=True, check=True
    )

    kinds = [item["kind"] for item in yaml.safe_load_all(printed.stdout)]
    assert kinds == ["Secret", *services * ["APIService"]]


def test_help_loads_neither_numpy_nor_the_clients() -> None:
    code = (
        "import sys, apiservice.__main__; sys.exit(any(name in sys.modules for name in ('numpy', 'kafka', 'fastapi')))"
    )

    assert subprocess.run((sys.executable, "-c", code), check=False).returncode == 0


def test_a_history_without_pyarrow_is_refused_with_the_image_that_has_it(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        f"clusters: [{{name: main, bootstrapServers: ['127.0.0.1:1']}}]\nhistory: {{location: {tmp_path}}}\n"
    )
    serve = f"from apiservice.__main__ import main; main(['serve', '--config', {str(settings)!r}])"
    code = f"import sys; sys.modules['pyarrow'] = None; {serve}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert "history.location: a history needs pyarrow, which is not installed; use the image" in ended.stderr
    assert "Traceback" not in ended.stderr
