"""A real kube-apiserver knows every field of the optional components: the Spark operator's, by the operator's own
definitions of its kinds, and what the report's makes of the adapter's Deployment.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local.downloads import spark_operator_definitions
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.check import MANIFESTS, load, read
from local.manifests.shipped import NAME
from local.processes import wait_until

STRICT = "dryRun=All&fieldValidation=Strict"
OPERATOR = MANIFESTS / "spark-operator"
COMPACT, REPORT = (OPERATOR / f"scheduled-spark-application-{name}.yaml" for name in ("compact", "report"))
REPORT_PATCH = MANIFESTS / "report" / "patch-deployment.yaml"
KINDS = "/apis/sparkoperator.k8s.io/v1beta2"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a definition is 800 kB


@pytest.fixture(scope="module", autouse=True)
def operators_kinds(control_plane: ControlPlane) -> Iterator[None]:
    """kube-apiserver serves the Spark operator's kinds while these tests run; the operator itself is not there."""
    definitions = [yaml.load(file.read_text(), LOADER) for file in spark_operator_definitions()]  # noqa: S506 - both are safe
    wanted = {each["spec"]["names"]["kind"] for each in definitions}
    control_plane.apply(definitions)
    wait_until(lambda: wanted <= served_kinds(control_plane), "the Spark operator's kinds", 180)
    yield
    control_plane.delete(definitions)
    wait_until(lambda: not served_kinds(control_plane), "the Spark operator's kinds to be gone", 180)


@pytest.fixture
def shipped_namespace(control_plane: ControlPlane, namespace: str) -> str:
    """A namespace of this test that is as restricted as the shipped one."""
    shipped = read(MANIFESTS / "namespace.yaml")
    control_plane.apply([{**shipped, "metadata": {**shipped["metadata"], "name": namespace}}])
    return namespace


def served_kinds(plane: ControlPlane) -> set[str]:
    status, body = plane.raw(KINDS)
    return {resource["kind"] for resource in json.loads(body)["resources"]} if status == 200 else set()


def refusal(plane: ControlPlane, document: Manifest, namespace: str) -> str:
    """What kube-apiserver says against the object, in that namespace; empty: it takes it. Nothing is kept."""
    placed = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    collection = plane.path_of(placed).rpartition("/")[0]
    status, body = plane.request("POST", f"{collection}?{STRICT}", placed)
    return "" if status == 201 else str(json.loads(body)["message"])


def patched(plane: ControlPlane, text: str, namespace: str) -> tuple[int, Manifest]:
    """Status and answer to a JSON patch, which is what kustomize does with the text as well; nothing is kept."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}?{STRICT}"
    patch = yaml.safe_load(text)
    status, body = plane.request("PATCH", path, patch, content_type="application/json-patch+json")
    return status, json.loads(body)


@pytest.fixture
def deployment(control_plane: ControlPlane, shipped_namespace: str) -> Manifest:
    """The adapter's, without pods."""
    (shipped,) = (document for document in load() if document["kind"] == "Deployment")
    metadata = {**shipped["metadata"], "namespace": shipped_namespace}
    placed = {**shipped, "metadata": metadata, "spec": {**shipped["spec"], "replicas": 0}}
    control_plane.apply([placed])
    return placed


def test_kube_apiserver_takes_the_spark_operators_component(control_plane: ControlPlane, namespace: str) -> None:
    documents = load(OPERATOR)

    assert [document["kind"] for document in documents] == [
        "PersistentVolumeClaim",
        *2 * ["ScheduledSparkApplication"],
    ]
    assert [refusal(control_plane, document, namespace) for document in documents] == ["", "", ""]


@pytest.mark.parametrize("file", [COMPACT, REPORT], ids=["compact", "report"])
def test_kube_apiserver_takes_the_application_that_the_operator_makes_of_the_template(
    control_plane: ControlPlane, namespace: str, file: Path
) -> None:
    scheduled = read(file)
    made = {**scheduled, "kind": "SparkApplication", "spec": scheduled["spec"]["template"]}

    assert refusal(control_plane, made, namespace) == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("concurrencyPolicy:", "concurencyPolicy:", 'unknown field "spec.concurencyPolicy"'),
        ("mainApplicationFile:", "mainAplicationFile:", 'unknown field "spec.template.mainAplicationFile"'),
        ("serviceAccount:", "serviceAcount:", 'unknown field "spec.template.driver.serviceAcount"'),
        ("runAsNonRoot:", "runAsNonroot:", 'driver.podSecurityContext.runAsNonroot"'),
        ("mountPath:", "mountpath:", "volumeMounts[0].mountpath"),
        ("instances: 2", "instances: two", "spec.template.executor.instances in body must be of type integer"),
        ("type: Python", "type: python", "spec.template.type: Unsupported value"),
        ("'4'", "4", "spark.sql.shuffle.partitions in body must be of type string"),
        ("schedule:", "# schedule:", "spec.schedule: Required value"),
    ],
)
def test_kube_apiserver_refuses_an_application_with_a_wrong_field(
    control_plane: ControlPlane, namespace: str, old: str, new: str, said: str
) -> None:
    text = COMPACT.read_text()
    assert old in text

    assert said in refusal(control_plane, yaml.safe_load(text.replace(old, new)), namespace)


def test_kube_apiserver_takes_what_the_reports_component_makes_of_the_deployment(
    control_plane: ControlPlane, shipped_namespace: str, deployment: Manifest
) -> None:
    status, answer = patched(control_plane, REPORT_PATCH.read_text(), shipped_namespace)
    assert status == 200, answer

    (before,) = deployment["spec"]["template"]["spec"]["containers"]
    pod = answer["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == before["image"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        *(mount["name"] for mount in before["volumeMounts"]),
        "history",
    }
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": pod["spec"]}
    assert refusal(control_plane, bare, shipped_namespace) == ""


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
@pytest.mark.parametrize("report", ["report", "report-bucket"])
def test_kube_apiserver_takes_what_kustomize_makes_of_both_components(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, report: str
) -> None:
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    with (folder / "kustomization.yaml").open("a") as kustomization:
        kustomization.write(f"components: [{report}, spark-operator]\n")
    ended = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr

    made = [each for each in yaml.safe_load_all(ended.stdout) if each["metadata"].get("namespace") == NAME]
    claims = {each["metadata"]["name"] for each in made if each["kind"] == "PersistentVolumeClaim"}
    assert {"Deployment", "CronJob", "ScheduledSparkApplication"} <= {each["kind"] for each in made}
    assert ("kafka-lag-adapter-history" in claims) == (report == "report")
    refusals = {(each["kind"], each["metadata"]["name"]): refusal(control_plane, each, namespace) for each in made}
    assert len(refusals) == len(made)
    assert {what: said for what, said in refusals.items() if said} == {}


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("claimName:", "claimname:", "unknown field"),
        ("volumeMounts/-", "volumeMount/-", "the server rejected our request"),
        ("value: 512Mi", "value: 512MB", "quantities must match"),
        ("    name: history\n    persistent", "    name: x\n    persistent", "volumeMounts"),
    ],
)
def test_kube_apiserver_refuses_a_wrong_patch_of_the_deployment(
    control_plane: ControlPlane, shipped_namespace: str, old: str, new: str, said: str
) -> None:
    text = REPORT_PATCH.read_text()
    assert old in text

    status, answer = patched(control_plane, text.replace(old, new, 1), shipped_namespace)
    assert status in {400, 422}
    assert said in answer["message"]
