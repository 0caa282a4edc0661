"""Every breach of what has to hold for the manifests is seen, and named with its file."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from local.manifests.check import MANIFESTS, RULES, gather, judge, main, object_files, problems, read
from local.manifests.shipped import Shipped

DEPLOYMENT = "base/deployment.yaml"
NAMESPACE = "namespace.yaml"
API_SERVICE = "api-service/api-service-external.yaml"
SETTINGS = "base/config-map-settings.yaml"
HPA = "example-hpa.yaml"
JOB, BUCKET_JOB = "report/cron-job-report.yaml", "report-bucket/cron-job-report.yaml"
COMPACT, REPORT = (f"spark-operator/scheduled-spark-application-{name}.yaml" for name in ("compact", "report"))
TLS_SECRET = "tls-secret/patch-deployment.yaml"
SERVING = "cert-manager/certificate-serving.yaml"
PRODUCT_LABEL = "app.kubernetes.io/name: kafka-lag-adapter"


class Breach(NamedTuple):
    """`old` in `file` becomes `new`; then one problem of `blamed` (default: the same file) must contain `said`."""

    file: str
    old: str
    new: str
    said: str
    blamed: str = ""


UNREADABLE = {
    "an object without kind": Breach(NAMESPACE, "kind: Namespace", "", "kind is missing"),
    "an object without name": Breach(NAMESPACE, "name: kafka-lag-adapter\n", "", "metadata.name is missing"),
    "an object without apiVersion": Breach(NAMESPACE, "apiVersion: v1", "", "apiVersion is missing"),
    "an object without metadata": Breach(NAMESPACE, "metadata:", "meta:", "metadata.name is missing"),
    "two objects in a file": Breach(NAMESPACE, "kind: Namespace", "kind: Namespace\n---\na: b", "must hold one object"),
    "a file that is no YAML": Breach(NAMESPACE, "kind: Namespace", "kind: [", "is no YAML"),
    "a list instead of an object": Breach(
        "cert-manager/kustomization.yaml", "apiVersion", "- a\n---\napiVersion", "must hold one object"
    ),
}

BREACHES = {
    "an object without the product's label": Breach(
        "base/service-account.yaml", PRODUCT_LABEL, "app: x", "labels must have"
    ),
    "an overlay that moves other objects": Breach(
        "another-namespace/kustomization.yaml", "unsetOnly: true", "unsetOnly: false", "must be those of"
    ),
    "another image than this version": Breach(DEPLOYMENT, "adapter:0.1.0", "adapter:latest", "as in pyproject.toml"),
    "a container that gains rights": Breach(
        DEPLOYMENT,
        "allowPrivilegeEscalation: false",
        "allowPrivilegeEscalation: true",
        "allowPrivilegeEscalation must be",
    ),
    "a container that writes its image": Breach(
        DEPLOYMENT, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnlyRootFilesystem must be"
    ),
    "a pod that mounts the node": Breach(DEPLOYMENT, "emptyDir:", "hostPath:", "restricted pods may not have"),
    "a policy of other pods": Breach(
        "base/network-policy.yaml",
        f"matchLabels:\n      {PRODUCT_LABEL}",
        "matchLabels:\n      app: x",
        "does not choose",
    ),
    "a metrics flag for another port": Breach(
        DEPLOYMENT, "--metrics-port=8080", "--metrics-port=9090", "--metrics-port is"
    ),
    "a grace period that is over before the pod has drained": Breach(
        DEPLOYMENT, "--shutdown-delay-duration=10s", "--shutdown-delay-duration=20s", "must be the shutdown delay 20s"
    ),
    "a mount of nothing": Breach(
        DEPLOYMENT, "- name: tmp\n          emptyDir", "- name: t\n          emptyDir", "differ"
    ),
    "a right to change any APIService": Breach(
        "base/cluster-role-registration.yaml",
        "    resourceNames: [v1beta1.external.metrics.k8s.io]\n",
        "",
        "resourceNames must be",
    ),
    "a key outside the mounts": Breach(
        TLS_SECRET,
        "file=/etc/kafka-lag-adapter/tls/tls.key",
        "file=/tls/tls.key",
        "certificate and key must lie in its mount",
    ),
    "a binding to a missing role": Breach(
        "base/cluster-role-binding-hpa-reads-metrics.yaml",
        "kind: ClusterRole\n  name: kafka-lag-adapter-hpa-reads-metrics",
        "kind: ClusterRole\n  name: x",
        "roleRef x is not there",
    ),
    "a role for every ConfigMap": Breach(
        "base/role-last-commits.yaml", "    resourceNames: [kafka-lag-adapter-last-commits]\n", "", "rules must be"
    ),
    "a right to change HPAs": Breach(
        "base/cluster-role-reads-hpas.yaml", "[list, watch]", "[list, watch, patch]", "rules must be"
    ),
    "an APIService that trusts anyone": Breach(
        API_SERVICE,
        "insecureSkipTLSVerify: false",
        "insecureSkipTLSVerify: true",
        "insecureSkipTLSVerify must be false and caBundle absent",
    ),
    "a certificate for another name": Breach(
        SERVING, "- kafka-lag-adapter.NAMESPACE.svc", "- localhost", "SERVICE.NAMESPACE.svc"
    ),
    "settings that are refused": Breach(
        SETTINGS, "interval: 10s", "intervall: 10s", "collection.intervall: is not a known key"
    ),
    "an example that runs away": Breach(HPA, "type: AverageValue", "type: Value", "target.type must be AverageValue"),
    "an application of another version": Breach(COMPACT, "cluster:0.1.0", "cluster:latest", "image must be"),
    "a driver that is root": Breach(REPORT, "runAsUser: 185", "runAsUser: 0", "runAsUser must be"),
    "applications of two histories": Breach(COMPACT, "s3://your-bucket", "s3://another", "must be the same"),
    "a driver that a Service chooses": Breach(
        REPORT, "component: report # not", "component: adapter # not", "would be chosen by base/service.yaml"
    ),
    "a claim that nobody makes": Breach(REPORT, "claimName: kafka-lag-reports", "claimName: x", "claim x is not there"),
    "a report that is root": Breach(JOB, "runAsUser: 65532", "runAsUser: 0", "runAsUser must be"),
    "a report that a Service takes for an adapter": Breach(
        JOB, "component: report # not", "component: adapter # not", "would be chosen by base/service.yaml"
    ),
    "a report of a bucket that is of another version": Breach(
        BUCKET_JOB, "report:0.1.0", "report:latest", "as in pyproject.toml"
    ),
    "an adapter in another region than its report": Breach(
        "report-bucket/patch-deployment.yaml",
        "value: eu-central-1",
        "value: x",
        "must be what the adapter gets",
        blamed=BUCKET_JOB,
    ),
    "a report on another volume": Breach(
        JOB, "claimName: kafka-lag-adapter-history", "claimName: x", "no volume is of"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the manifests, to be broken."""
    return Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))


@pytest.fixture(scope="module")
def whole() -> Shipped:
    return gather()


@pytest.mark.parametrize("breach", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_without_one_object_is_named(breach: Breach, folder: Path) -> None:
    (folder / breach.file).write_text(_broken_text(breach))

    assert any(problem.startswith(f"{breach.file}: {breach.said}") for problem in problems(folder))


@pytest.mark.parametrize("breach", BREACHES.values(), ids=BREACHES.keys())
def test_a_breach_is_named_with_its_file(breach: Breach, whole: Shipped) -> None:
    found = judge(_broken(whole, breach))

    assert [said for said in found if said.startswith(breach.blamed or breach.file) and breach.said in said], found


def test_every_rule_is_broken_by_some_breach(whole: Shipped) -> None:
    """A rule that no row of the table breaks could be one that never speaks."""
    broken = [_broken(whole, breach) for breach in BREACHES.values()]

    assert [rule.__name__ for rule in RULES if not any([*rule(shipped)] for shipped in broken)] == []


def test_missing_parts_are_problems_and_no_exceptions(folder: Path) -> None:
    """Every object shrunk to its kind and name: each rule must still answer in words."""
    for path in object_files(folder):
        if path.name != "kustomization.yaml":
            found = read(path)
            path.write_text(f"{{apiVersion: v1, kind: {found['kind']}, metadata: {{name: x}}}}")

    assert len(problems(folder)) > 30


def test_the_check_names_each_problem_and_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "service.yaml").write_text("a: b")

    assert main(folder) == 1
    assert "manifests/service.yaml: kind is missing\n" in capsys.readouterr().err


def _broken_text(breach: Breach) -> str:
    text = (MANIFESTS / breach.file).read_text()
    assert breach.old in text
    return text.replace(breach.old, breach.new, 1)


def _broken(whole: Shipped, breach: Breach) -> Shipped:
    return replace(whole, files={**whole.files, breach.file: yaml.safe_load(_broken_text(breach))})
