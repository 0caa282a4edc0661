"""Spark's own standalone cluster on 127.0.0.1: a master and workers of one core and one gigabyte each, as processes.

`python -m local.spark.cluster` runs one until Ctrl-C and says how to use it. A `SparkCluster` keeps logs and the
workers' files in a folder, and its workers can be killed."""

import contextlib
import importlib.util
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.processes import Process, RigError, exit_on_sigterm, free_port, scratch, start, wait_until
from local.spark.archive import CODE, PACKAGES, packages
from spark.engine.remote import write_code

START_TIMEOUT_SECONDS = 120.0
WORKERS = 2
HOSTS = ("127.0.0.1", "localhost")
"""Of the workers in turn, as Spark starts a speculative attempt only on a host with another name."""


@dataclass(frozen=True, slots=True)
class SparkCluster:
    home: Path
    port: int
    web_port: int
    workers: list[Process]
    parts: contextlib.ExitStack
    cores: int
    """Of each worker."""

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @property
    def code(self) -> Path:
        return self.home / CODE

    def arguments(self) -> list[str]:
        """Returns the arguments of spark-submit that pass code and packages to the executors."""
        return [
            *("--master", self.master),
            *("--py-files", str(self.code)),
            *("--archives", f"{packages()}#{PACKAGES}"),
            *("--conf", f"spark.executorEnv.PYTHONPATH={PACKAGES}"),
        ]

    def state(self) -> dict[str, Any]:
        """Returns what the master reports about its workers and applications; nothing while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/json/", timeout=5) as answer:
                return dict(json.load(answer))
        except (urllib.error.URLError, ValueError, OSError):
            return {}

    def start_worker(self, env: Mapping[str, str] | None = None) -> Process:
        """`env`: of its executors, beside this process's."""
        name = f"worker-{len(self.workers) + 1}"
        size = ["--cores", str(self.cores), "--memory", "1g", "--work-dir", str(self.home / name), "--webui-port", "0"]
        host = HOSTS[len(self.workers) % len(HOSTS)]
        worker = self.parts.enter_context(_part(self.home, name, "worker.Worker", host, [*size, self.master], env))
        self.workers.append(worker)
        return worker


def python() -> str:
    """Returns an interpreter of this minor version without this environment's packages, as executors have it."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RigError("PySpark is not installed in this environment.")
    return Path(spec.origin).parent


def environment() -> dict[str, str]:
    """Returns the environment of all Spark processes started here; executors have another Python than the driver."""
    return {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        # Short lives, as in local.kafka.java: compiling less starts sooner.
        "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": python(),
    }


@contextlib.contextmanager
def spark_cluster(home: Path, *, workers: int = WORKERS, cores: int = 1) -> Iterator[SparkCluster]:
    """Runs a cluster and ends it with the block. Raises RigError if it does not start; the logs are in `home`."""
    home.mkdir(parents=True, exist_ok=True)
    write_code(home / CODE)
    packages()
    port, web_port = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        ports = ["--port", str(port), "--webui-port", str(web_port)]
        master = stack.enter_context(_part(home, "master", "master.Master", HOSTS[0], ports))
        cluster = SparkCluster(home, port, web_port, [], stack, cores)
        running = [cluster.start_worker() for _ in range(workers)]
        wait_until(
            lambda: cluster.state().get("aliveworkers") == workers,
            f"{workers} workers to be known to the master",
            START_TIMEOUT_SECONDS,
            alive=[master, *running],
        )
        yield cluster


def _part(
    home: Path, name: str, main_class: str, host: str, arguments: list[str], env: Mapping[str, str] | None = None
) -> Process:
    command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{main_class}"]
    command += ["--host", host, *arguments]
    return start(f"Spark's {name}", command, log=home / f"{name}.log", env={**environment(), **(env or {})})


def main() -> int:
    try:
        with exit_on_sigterm(), scratch("spark-cluster") as home, spark_cluster(home) as cluster:
            variables = [f"{name}={value}" for name, value in environment().items() if name.startswith("PYSPARK")]
            submit = [*variables, str(spark_home() / "bin" / "spark-submit"), *cluster.arguments(), "spark/__main__.py"]
            print(f"a cluster of {WORKERS} workers, until Ctrl-C: {cluster.master}\n\n{' '.join(submit)} compact …")
            cluster.workers[0].wait()
    except RigError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
