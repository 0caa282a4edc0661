"""The real command as a process beside a kube-apiserver that is not there: its ports, its log, and requests to it."""

import contextlib
import http.client
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.support.kubernetes.authorities import SERVER, Authority, Issued, client_context
from tests.support.kubernetes.fake_cluster import FakeCluster, kubeconfig_text

SERVERS = Authority("serving-ca")
COMMAND = (sys.executable, "-m", "apiservice")
# Port 1 of the loopback: nobody listens there, and nothing of Kafka is needed here.
ANYWHERE = ("--bootstrap-servers", "127.0.0.1:1", "--bind-address", "127.0.0.1", "--metrics-bind-address", "127.0.0.1")
ANY_PORTS = ("--secure-port", "0", "--metrics-port", "0")
Given = TypeVar("Given")


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
