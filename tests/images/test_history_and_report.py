"""The image with a history and the report's, as the chart runs them: on a volume, and on a bucket."""

import json
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.images.built import Images
from local.images.container import OF_OPENSHIFT, Container, User, empty_volume, of_manifests, own_volume, running
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME
from local.processes import wait_until
from local.s3.object_store import OWNER, ObjectStore
from tests.end_to_end.cluster.test_walk import helm, wait_until_removed
from tests.end_to_end.history.test_history import counted, kept
from tests.support.history.written_history import sample, write
from tests.support.real import groups_to_read
from tests.support.real.applied import pod_of
from tests.support.real.in_image import in_image, writable

FINISH_SECONDS = 600.0
VOLUME, BUCKET = "/var/lib/kafka-lag-adapter", "lag"
HOUR = 3600


@dataclass(frozen=True, slots=True)
class Place:
    """Where the chart keeps history and reports, the same place on this machine, and the user who writes there."""

    user: User
    values: Mapping[str, Any]
    folder: Path
    claims: Mapping[str, Path]
    environment: Mapping[str, str]


@pytest.fixture(scope="module", params=["volume", "bucket"])
def place(request: pytest.FixtureRequest, s3_server: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A volume for a user as OpenShift chooses it, and a bucket for the user of the manifests."""
    if request.param == "volume":
        folder = empty_volume(tmp_path_factory.mktemp("claim") / "volume", OF_OPENSHIFT)
        return Place(OF_OPENSHIFT, _values(VOLUME), folder, {"history": folder}, {})
    return Place(
        of_manifests(), _values(f"s3://{BUCKET}"), s3_server.bucket(BUCKET), {}, OWNER.environment(s3_server.url)
    )


def _values(root: str) -> Mapping[str, Any]:
    return {
        "history": {"location": f"{root}/history"},
        "report": {"enabled": True, "output": f"{root}/reports"},
    }


@dataclass(frozen=True, slots=True)
class Deployed:
    plane: ControlPlane
    job: Mapping[str, Any]
    """The pod of the CronJob."""


@pytest.fixture(scope="module")
def deployed(place: Place, plane: ControlPlane, groups: Kafka, rig_home: Path) -> Iterator[Deployed]:
    """What the chart makes."""
    values = rig_home / "report-values.yaml"
    values.write_text(yaml.safe_dump({**groups_to_read.settings(groups), **place.values}))
    arguments = ("--namespace", NAME, "--create-namespace", "--values", str(values))
    helm(plane, "upgrade", "--install", NAME, str(MANIFESTS), *arguments)
    job = plane.get(f"/apis/batch/v1/namespaces/{NAME}/cronjobs/{NAME}-report")
    yield Deployed(plane, job["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    helm(plane, "uninstall", NAME, "--namespace", NAME)
    wait_until_removed(plane, NAME)


@pytest.fixture(scope="module")
def written(deployed: Deployed, place: Place, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history that the adapter's image leaves when it is ended."""
    run = in_image(images.history, place.user, place.claims, place.environment)
    with pod_of(deployed.plane, tmp_path_factory.mktemp("pod"), NAME, NAME, run) as adapter:
        # On a busy machine, the first cycle may not have found every group in time.
        groups_to_read.wait_until_read(deployed.plane)
        seen = counted(adapter, "buffered_rows")
        wait_until(lambda: counted(adapter, "buffered_rows") > seen, "a sample", 180, alive=[adapter.process])
        adapter.process.send(signal.SIGTERM)
        assert adapter.process.wait(120) == 0
    return place.folder / "history"


def test_the_adapter_leaves_its_samples(written: Path) -> None:
    assert {row["group"] for row in kept(written)} >= set(groups_to_read.COMMITS)


def test_the_cron_job_compacts_and_reports(
    written: Path, deployed: Deployed, place: Place, images: Images, tmp_path: Path
) -> None:
    write(written, [sample(seconds, 10 * seconds, 10 * seconds + 50) for seconds in range(0, HOUR, 10)])
    for folder in place.claims.values():
        own_volume(folder, place.user)
    statuses = {}
    for container in (*deployed.job["initContainers"], *deployed.job["containers"]):
        home = tmp_path / container["name"]
        volumes = writable(deployed.job, container, home, place.user, place.claims)
        job = Container(images.report, container, place.user, container["args"], volumes, place.environment)
        with running(job, home / "container") as process:
            wait_until(maps_the_archive, "the archive of classes to be used", FINISH_SECONDS, alive=[process])
            statuses[container["name"]] = process.wait(FINISH_SECONDS), process.log_tail()
    report = json.loads((place.folder / "reports" / "report.json").read_text())

    assert {name: status for name, (status, _) in statuses.items()} == {"compact": 0, "report": 0}, statuses
    # The adapter's own samples are compacted too, where an hour has ended since.
    assert "billing" in [group["group"] for group in report["groups"]]


def maps_the_archive() -> bool:
    """Whether a Java uses the archive that lies in the image."""
    return any("/opt/cds/" in _maps(process) for process in Path("/proc").glob("[0-9]*"))


def _maps(process: Path) -> str:
    try:
        return (process / "maps").read_text()
    except OSError:  # it has ended, or nobody may look
        return ""
