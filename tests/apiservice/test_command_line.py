"""What the command says of flags and files that cannot be meant, and what its short commands print."""

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from apiservice.__main__ import main
from tests.support.kubernetes.fake_cluster import kubeconfig_text
from tests.support.kubernetes.serving_process import ANY_PORTS, ANYWHERE, COMMAND

# kafka-python reads its message descriptions in a way that Python 3.11 and 3.12 call deprecated, and 3.13 no longer.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

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
