"""The real command as a process beside a kube-apiserver that is not there: its ports, its log, and requests to it."""

import contextlib
import http.client
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local.processes import wait_until
from tests.support.kubernetes.authorities import SERVER, Authority, Issued, client_context
from tests.support.kubernetes.fake_cluster import FakeCluster, kubeconfig_text

SERVERS = Authority("serving-ca")
COMMAND = (sys.executable, "-m", "apiservice")
# Port 1 of the loopback: nobody listens there, and nothing of Kafka is needed here.
ANYWHERE = ("--bootstrap-servers", "127.0.0.1:1", "--bind-address", "127.0.0.1", "--metrics-bind-address", "127.0.0.1")
ANY_PORTS = ("--secure-port", "0", "--metrics-port", "0")
PORTS = re.compile(r"serving on 127\.0\.0\.1:(\d+), metrics on 127\.0\.0\.1:(\d+)")
WAIT_SECONDS = 180.0


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

    def wait_until_ready(self) -> None:
        wait_until(lambda: self.get_plain("/readyz") == 200, "it to be ready", WAIT_SECONDS)


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
    def is_over() -> bool:
        return process.poll() is not None or PORTS.search(log.read_text()) is not None

    wait_until(is_over, "the ports of the process", WAIT_SECONDS)
    found = PORTS.search(log.read_text())
    assert found, log.read_text()
    return int(found[1]), int(found[2])
