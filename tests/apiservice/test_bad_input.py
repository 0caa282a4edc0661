"""What cannot be meant, given to the real command: it ends at once, with status 2 and all that is wrong."""

import socket
import subprocess
import sys
from pathlib import Path

from tests.support.kubernetes.authorities import SERVER, Authority, version_4

SERVERS = Authority("serving-ca")
ON_ANY_PORT = (
    *("--bind-address", "127.0.0.1", "--secure-port", "0"),
    *("--metrics-bind-address", "127.0.0.1", "--metrics-port", "0"),
)
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
metrics:
  - {name: backlog, value: lag, group: billing}
  - {name: Backlog, value: lag, group: mail}
"""
NOT_CLOSED = "missing ), unterminated subpattern at position 0"


def ended(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [Path(sys.executable).with_name("kafka-lag-adapter"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_every_problem_of_flags_and_files_is_reported_with_its_place(tmp_path: Path) -> None:
    settings, certificate = tmp_path / "settings.yaml", tmp_path / "tls.crt"
    settings.write_text(SETTINGS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = ended(
            "serve",
            *("--config", settings, "--kubeconfig", tmp_path / "cluster"),
            *("--tls-cert-file", certificate, "--tls-private-key-file", tmp_path / "tls.key"),
            *("--bind-address", "127.0.0.1", "--secure-port", str(port)),
            *("--metrics-bind-address", "127.0.0.1", "--metrics-port", "0"),
        )

    assert (refused.returncode, refused.stdout) == (2, "")
    assert [line.removeprefix("kafka-lag-adapter: ") for line in refused.stderr.splitlines()] == [
        f"{settings}: clusters[0].bootstrapServers: must not be empty",
        f"{settings}: collection.interval: is 'soon'; must be a duration such as 10s, 1m30s or 30d",
        f"{settings}: collection.groups.include[0]: '(' is not a regular expression: {NOT_CLOSED}",
        f"{settings}: rules[0].offsetreset: is not a known key; did you mean 'offsetReset'?",
        f"{settings}: metrics[1].name: 'backlog' is also the name of metrics[0]",
        f"kubeconfig {tmp_path}/cluster does not exist",
        f"{certificate} cannot be read: No such file or directory",
        f"cannot listen on 127.0.0.1:{port}: Address already in use",
    ]


def test_an_unknown_flag_is_named() -> None:
    refused = ended("serve", "--boostrap-servers", "127.0.0.1:9092")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "kafka-lag-adapter: --boostrap-servers is not a known flag; did you mean '--bootstrap-servers'?\n"
    )


def test_a_certificate_that_cannot_be_served_ends_the_start_with_one_sentence(tmp_path: Path) -> None:
    pair = SERVERS.issue("localhost", usages=(SERVER,), dns_names=("localhost",)).write(tmp_path, "tls")
    certificate, key = pair
    flags = ("--tls-cert-file", certificate, "--tls-private-key-file", key)
    for content in (b"", b"nothing", version_4(certificate.read_text())):
        certificate.write_bytes(content)

        refused = ended("serve", "--bootstrap-servers", "127.0.0.1:1", *flags, *ON_ANY_PORT)

        reported = [line for line in refused.stderr.splitlines() if "tls.crt" in line]
        assert (refused.returncode, len(reported)) == (2, 1)
        assert reported[0].startswith(f"kafka-lag-adapter: {certificate} contains no readable certificate")
        assert "Traceback" not in refused.stderr
