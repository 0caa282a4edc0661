"""A Spark Connect server on 127.0.0.1, from the same wheel as the client: one process, with Spark's UI."""

import contextlib
import json
import socket
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.processes import Process, free_port, start, wait_until
from local.spark.cluster import START_TIMEOUT_SECONDS, environment, spark_home

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True, slots=True)
class ConnectServer:
    port: int
    ui_port: int
    process: Process

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def asked(self, path: str) -> Any:  # noqa: ANN401 -- whatever JSON it is
        """What Spark's UI answers to `/api/v1/applications/ID` and the path."""
        root = f"http://127.0.0.1:{self.ui_port}/api/v1/applications"
        with urllib.request.urlopen(root, timeout=30) as answer:
            (application,) = json.load(answer)
        with urllib.request.urlopen(f"{root}/{application['id']}/{path}", timeout=30) as answer:  # noqa: S310 -- http
            return json.load(answer)


@contextlib.contextmanager
def connect_server(
    home: Path, settings: Mapping[str, str] | None = None, executors: Mapping[str, str] | None = None
) -> Iterator[ConnectServer]:
    """Runs a server and ends it with the block. Raises RigError if it does not start; the log is in `home`.
    `executors`: variables of their environment, beside this interpreter as their Python."""
    home.mkdir(parents=True, exist_ok=True)
    port, ui_port = free_port(), free_port()
    conf = {
        "spark.master": "local[2,3]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.ui.port": str(ui_port),
        **(settings or {}),
    }
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = [str(spark_home() / "bin" / "spark-submit"), "--class", SERVER, *options, "spark-internal"]
    # Spark takes the server for a daemon, and its memory from this variable.
    env = environment() | {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "1g"} | dict(executors or {})
    with start("Spark Connect server", command, log=home / "log", env=env) as process:
        wait_until(lambda: _is_listening(port), "the server to listen", START_TIMEOUT_SECONDS, alive=[process])
        yield ConnectServer(port, ui_port, process)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
