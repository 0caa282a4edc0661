"""The image for Spark's executors, with the pod that the manifests for the Spark operator describe."""

import json
from pathlib import Path
from typing import Any

from local.images.built import Images
from local.images.container import Container, User, empty_volume, own_volume, running
from local.manifests.check import MANIFESTS, read
from local.processes import free_port
from tests.support.history.written_history import sample, write
from tests.support.real.in_image import writable

APPLICATION = "spark-operator/scheduled-spark-application-{}.yaml"
HISTORY = "/var/lib/history"
HOUR = 3600
FINISH_SECONDS = 600.0
# Its second compiler pays for itself after minutes only.
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
SPARK = "org.apache.spark.deploy"
# Without Kubernetes nothing starts pods for executors, so a worker of Spark's own cluster does it beside the driver.
SUBMIT = f"""
port=$1; shift; cd /opt/spark/bin
./spark-class {SPARK}.master.Master --host 127.0.0.1 --port "$port" --webui-port 0 &
./spark-class {SPARK}.worker.Worker --cores 1 --memory 1g --webui-port 0 --work-dir /tmp "spark://127.0.0.1:$port" &
exec ./spark-submit --master "spark://127.0.0.1:$port" "$@"
"""


def test_a_driver_and_an_executor_compact_and_report(images: Images, tmp_path: Path) -> None:
    specs = {name: read(MANIFESTS / APPLICATION.format(name))["spec"]["template"] for name in ("compact", "report")}
    ids = specs["compact"]["driver"]["podSecurityContext"]
    user = User(ids["runAsUser"], ids["runAsGroup"], ids["fsGroup"])
    folder = empty_volume(tmp_path / "history", user)
    write(folder / "history", [sample(seconds, 10 * seconds, 10 * seconds + 50) for seconds in range(0, HOUR, 10)])
    own_volume(folder, user)
    for name, spec in specs.items():
        assert run(images, spec, user, folder, tmp_path / name) == 0
    report = json.loads((folder / "reports/report.json").read_text())

    assert [group["group"] for group in report["groups"]] == ["billing"]


def run(images: Images, spec: dict[str, Any], user: User, folder: Path, home: Path) -> int:
    driver = {**spec["driver"], "resources": {"limits": {"memory": "3Gi"}}}
    volumes = {**writable({"volumes": spec["volumes"]}, driver, home, user, {}), HISTORY: folder}
    arguments = [placed(argument) for argument in spec["arguments"]]
    command = ["sh", "-c", SUBMIT, "sh", str(free_port()), spec["mainApplicationFile"], *arguments]
    container = Container(images.executors, driver, user, command, volumes, ENVIRONMENT)
    with running(container, home / "container") as process:
        return process.wait(FINISH_SECONDS)


def placed(argument: str) -> str:
    """Returns the manifest's argument with the history and the output on the volume."""
    option, _, place = argument.partition("=")
    return f"{option}={HISTORY}/{place.rpartition('/')[2]}" if place else argument
