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
    "a file name that tells another kind": Breach(
        "base/service.yaml", "kind: Service", "kind: Secret", "must begin with secret"
    ),
    "a file that nobody lists": Breach(
        "base/kustomization.yaml", "  - service.yaml\n", "", "no kustomization lists", "base/service.yaml"
    ),
    "a line that names no file": Breach(
        "base/kustomization.yaml", "- service.yaml", "- servce.yaml", "which is not there", "kustomization.yaml"
    ),
    "the example in the list": Breach(
        "kustomization.yaml", "  - base\n", f"  - base\n  - {HPA}\n", "it belongs to the user's consumer"
    ),
    "a namespace that comes too late": Breach(
        "kustomization.yaml", "  - namespace.yaml\n  - base", "  - base\n  - namespace.yaml", "must come first"
    ),
    "an object without the product's label": Breach(
        "base/service-account.yaml", PRODUCT_LABEL, "app: x", "labels must have"
    ),
    "pods without the product's label": Breach(
        DEPLOYMENT,
        f"    metadata:\n      labels:\n        {PRODUCT_LABEL}",
        "    metadata:\n      labels:",
        "labels must have",
    ),
    "another namespace's name": Breach(NAMESPACE, "  name: kafka-lag-adapter", "  name: lag", "must be named"),
    "an object in another namespace": Breach(
        "base/service.yaml", "metadata:", "metadata:\n  namespace: default", "must be absent, is default"
    ),
    "an overlay that moves other objects": Breach(
        "another-namespace/kustomization.yaml", "unsetOnly: true", "unsetOnly: false", "must be those of"
    ),
    "the reader's binding away from kube-system": Breach(
        "base/role-binding-auth-reader.yaml",
        "namespace: kube-system",
        "namespace: kafka-lag-adapter",
        "must be kube-system",
    ),
    "a cluster-wide object in a namespace": Breach(
        API_SERVICE, "metadata:", "metadata:\n  namespace: kafka-lag-adapter", "metadata.namespace must be absent"
    ),
    "another image than this version": Breach(DEPLOYMENT, "adapter:0.1.0", "adapter:latest", "as in pyproject.toml"),
    "another tag than this version": Breach(
        "kustomization.yaml", "newTag: 0.1.0", "newTag: 0.0.9", "as in pyproject.toml"
    ),
    "a namespace that admits any pod": Breach(NAMESPACE, "enforce: restricted", "enforce: baseline", "enforce must be"),
    "a pod that may be root": Breach(DEPLOYMENT, "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot must be"),
    "a pod that is root": Breach(DEPLOYMENT, "runAsUser: 65532", "runAsUser: 0", "runAsUser must be"),
    "a pod without seccomp": Breach(DEPLOYMENT, "RuntimeDefault", "Unconfined", "seccompProfile.type must be"),
    "a container that gains rights": Breach(
        DEPLOYMENT,
        "allowPrivilegeEscalation: false",
        "allowPrivilegeEscalation: true",
        "allowPrivilegeEscalation must be",
    ),
    "a container with capabilities": Breach(DEPLOYMENT, "drop: [ALL]", "add: [NET_ADMIN]", "capabilities must be"),
    "a container that writes its image": Breach(
        DEPLOYMENT, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnlyRootFilesystem must be"
    ),
    "a pod in the node's network": Breach(
        DEPLOYMENT, "      containers:", "      hostNetwork: true\n      containers:", "hostNetwork must be absent"
    ),
    "a pod that mounts the node": Breach(DEPLOYMENT, "emptyDir:", "hostPath:", "restricted pods may not have"),
    "a Service of other pods": Breach(
        "base/service.yaml", f"selector:\n    {PRODUCT_LABEL}", "selector:\n    app: x", "does not choose"
    ),
    "a Service of no pods": Breach(
        "base/service.yaml", f"selector:\n    {PRODUCT_LABEL}", "unselector:\n    app: x", "does not choose"
    ),
    "a budget of other pods": Breach(
        "base/pod-disruption-budget.yaml",
        f"matchLabels:\n      {PRODUCT_LABEL}",
        "matchLabels:\n      app: x",
        "does not choose",
    ),
    "a policy of other pods": Breach(
        "base/network-policy.yaml",
        f"matchLabels:\n      {PRODUCT_LABEL}",
        "matchLabels:\n      app: x",
        "does not choose",
    ),
    "a Deployment of other pods": Breach(
        DEPLOYMENT, f"matchLabels:\n      {PRODUCT_LABEL}", "matchLabels:\n      app: x", "does not choose"
    ),
    "a flag for another port": Breach(DEPLOYMENT, "--secure-port=6443", "--secure-port=8443", "--secure-port is 8443"),
    "a metrics flag for another port": Breach(
        DEPLOYMENT, "--metrics-port=8080", "--metrics-port=9090", "--metrics-port is"
    ),
    "a Service to no port": Breach(
        "base/service.yaml", "targetPort: https", "targetPort: web", "targetPort web is none of"
    ),
    "a policy for other ports": Breach(
        "base/network-policy.yaml", "port: 6443", "port: 443", "the container listens on"
    ),
    "a grace period that is over before the pod has drained": Breach(
        DEPLOYMENT, "--shutdown-delay-duration=10s", "--shutdown-delay-duration=20s", "must be the shutdown delay 20s"
    ),
    "readiness that asks for life": Breach(
        DEPLOYMENT, "path: /readyz", "path: /livez", "readinessProbe must get /readyz"
    ),
    "life that asks for readiness": Breach(
        DEPLOYMENT,
        "livenessProbe:\n            httpGet: {scheme: HTTPS, path: /livez",
        "livenessProbe:\n            httpGet: {scheme: HTTPS, path: /readyz",
        "livenessProbe must get /livez",
    ),
    "a mount of nothing": Breach(
        DEPLOYMENT, "- name: tmp\n          emptyDir", "- name: t\n          emptyDir", "differ"
    ),
    "a volume of a missing ConfigMap": Breach(
        DEPLOYMENT, "name: kafka-lag-adapter-settings", "name: settings", "ConfigMap settings, which is not there"
    ),
    "a serving Secret that nobody writes": Breach(
        TLS_SECRET, "secretName: kafka-lag-adapter-tls", "secretName: tls", "no volume is of the Secret"
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
    "an account that is not there": Breach(
        DEPLOYMENT,
        "serviceAccountName: kafka-lag-adapter",
        "serviceAccountName: x",
        "serviceAccountName x is not there",
    ),
    "a binding to a missing role": Breach(
        "base/cluster-role-binding-hpa-reads-metrics.yaml",
        "kind: ClusterRole\n  name: kafka-lag-adapter-hpa-reads-metrics",
        "kind: ClusterRole\n  name: x",
        "roleRef x is not there",
    ),
    "a binding for a missing account": Breach(
        "base/cluster-role-binding-auth-delegator.yaml",
        "ServiceAccount\n    name: kafka-lag-adapter",
        "ServiceAccount\n    name: x",
        "subject None/x is not there",
    ),
    "a flag for another ConfigMap": Breach(
        DEPLOYMENT, "config-map=kafka-lag-adapter-last", "config-map=x-last", "x-last-commits is no shipped ConfigMap"
    ),
    "a role for every ConfigMap": Breach(
        "base/role-last-commits.yaml", "    resourceNames: [kafka-lag-adapter-last-commits]\n", "", "rules must be"
    ),
    "a role for another group": Breach(
        "base/cluster-role-metrics-reader.yaml", "external.metrics", "custom.metrics", "rules must be"
    ),
    "a right to change HPAs": Breach(
        "base/cluster-role-reads-hpas.yaml", "[list, watch]", "[list, watch, patch]", "rules must be"
    ),
    "an APIService of another version": Breach(API_SERVICE, "version: v1beta1", "version: v1", "as in the code"),
    "an APIService to another Service": Breach(
        API_SERVICE, "    name: kafka-lag-adapter", "    name: adapter", "spec.service is no port"
    ),
    "an APIService to the metrics Service": Breach(
        API_SERVICE, "    name: kafka-lag-adapter\n", "    name: kafka-lag-adapter-metrics\n", "spec.service is no port"
    ),
    "an APIService that trusts anyone": Breach(
        API_SERVICE,
        "insecureSkipTLSVerify: false",
        "insecureSkipTLSVerify: true",
        "insecureSkipTLSVerify must be false and caBundle absent",
    ),
    "a certificate that is not mounted": Breach(
        SERVING, "secretName: kafka-lag-adapter-tls", "secretName: tls", "secretName must be kafka-lag-adapter-tls"
    ),
    "a certificate for another name": Breach(
        SERVING, "- kafka-lag-adapter.NAMESPACE.svc", "- localhost", "SERVICE.NAMESPACE.svc"
    ),
    "an injection from another certificate": Breach(
        API_SERVICE, "-adapter-serving", "-adapter-authority", "is not the serving Certificate"
    ),
    "a certificate of a missing issuer": Breach(
        SERVING, "name: kafka-lag-adapter-authority", "name: x", "issuerRef x is not there"
    ),
    "an authority that nobody writes": Breach(
        "cert-manager/issuer-authority.yaml",
        "secretName: kafka-lag-adapter-authority",
        "secretName: x",
        "no Certificate",
    ),
    "settings under another name": Breach(
        SETTINGS, "  settings.yaml: |", "  config.yaml: |", "named as the file in --config"
    ),
    "settings that are refused": Breach(
        SETTINGS, "interval: 10s", "intervall: 10s", "collection.intervall: is not a known key"
    ),
    "settings that are no YAML": Breach(SETTINGS, "include: ['.*']", "include: ['.*'", "settings.yaml is no YAML"),
    "an example that keeps one replica": Breach(HPA, "minReplicas: 0", "minReplicas: 1", "minReplicas must be 0"),
    "an example of no metric": Breach(
        HPA, "name: kafka_consumergroup_lag", "name: kafka_lag", "is no metric that is served"
    ),
    "an example that runs away": Breach(HPA, "type: AverageValue", "type: Value", "target.type must be AverageValue"),
    "an example that adds up all groups": Breach(
        HPA, "group: billing", "team: billing", "selector must name group and topic"
    ),
    "an application of another version": Breach(COMPACT, "cluster:0.1.0", "cluster:latest", "image must be"),
    "an application that starts something else": Breach(COMPACT, "spark/__main__.py", "main.py", "mainApplicationFile"),
    "an application that runs twice at once": Breach(COMPACT, "Forbid", "Allow", "concurrencyPolicy must be"),
    "a driver that is root": Breach(REPORT, "runAsUser: 185", "runAsUser: 0", "runAsUser must be"),
    "applications of two histories": Breach(COMPACT, "s3://your-bucket", "s3://another", "must be the same"),
    "a driver that a Service chooses": Breach(
        REPORT, "component: report # not", "component: adapter # not", "would be chosen by base/service.yaml"
    ),
    "a claim that nobody makes": Breach(REPORT, "claimName: kafka-lag-reports", "claimName: x", "claim x is not there"),
    "a mount of no volume": Breach(
        REPORT, "- name: reports\n          mountPath", "- name: x\n          mountPath", "which is no volume"
    ),
    "a report that is root": Breach(JOB, "runAsUser: 65532", "runAsUser: 0", "runAsUser must be"),
    "a report that gains rights": Breach(
        JOB, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation must be"
    ),
    "a report of another version": Breach(JOB, "report:0.1.0", "report:latest", "as in pyproject.toml"),
    "a report's tag of another version": Breach(
        "report/kustomization.yaml", "newTag: 0.1.0", "newTag: 0.2.0", "as in pyproject.toml"
    ),
    "a report that a Service takes for an adapter": Breach(
        JOB, "component: report # not", "component: adapter # not", "would be chosen by base/service.yaml"
    ),
    "a report of a bucket that is of another version": Breach(
        BUCKET_JOB, "report:0.1.0", "report:latest", "as in pyproject.toml"
    ),
    "a report of a bucket whose tag is of another version": Breach(
        "report-bucket/kustomization.yaml", "newTag: 0.1.0", "newTag: 0.2.0", "as in pyproject.toml"
    ),
    "a report that the bucket's provider takes for somebody else": Breach(
        BUCKET_JOB, "serviceAccountName: kafka-lag-adapter", "serviceAccountName: default", "as the adapter's"
    ),
    "a report without the adapter's keys": Breach(
        BUCKET_JOB, "name: kafka-lag-adapter-bucket", "name: x", "must be what the adapter gets"
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
    "an adapter without the volume": Breach(
        "report/patch-deployment.yaml", "claimName: kafka-lag-adapter-history", "claimName: x", "no volume is of"
    ),
    "a report from outside the volume": Breach(
        JOB, "--output=/var/lib/kafka-lag-adapter", "--output=/reports", "does not lie where the adapter has the volume"
    ),
    "a report that mounts the volume elsewhere": Breach(
        JOB, "mountPath: /var/lib/kafka-lag-adapter", "mountPath: /history", "must mount the history at"
    ),
    "an example that never wakes up": Breach(HPA, "- type: Pods", "- type: Percent", "it never leaves 0"),
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
