"""Each value of the chart gets into the object that it is for: what must be there in renderings with many values."""

import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.manifests import rendered
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME, Manifest
from local.processes import RigError
from tests.end_to_end.cluster.test_chart import VALUES, by_name

POD = "spec/template/spec"
CONTAINER = f"{POD}/containers/0"
JOB = "spec/jobTemplate/spec/template/spec"
EXPIRATION = "kafka_lag_adapter_certificate_expiration_timestamp_seconds"
ALERTS = "spec/groups/0/rules"
DIGEST = yaml.safe_load(VALUES["usual"].read_text())["image"]["digest"]
SELECTED = {f"app.kubernetes.io/{label}": NAME for label in ("name", "instance")}
SELECTED["app.kubernetes.io/component"] = "adapter"

USUAL: dict[str, tuple[str, str, object]] = {
    "image.registry, image.digest": ("Deployment", f"{CONTAINER}/image", f"registry.example/{NAME}@{DIGEST}"),
    "image of the test": (f"Pod {NAME}-discovery", "spec/containers/0/image", f"registry.example/{NAME}@{DIGEST}"),
    "report.image": (f"CronJob {NAME}-report", f"{JOB}/containers/0/image", "other.example/kafka-lag-report:2"),
    "serviceAccount.name": ("ServiceAccount mine", "metadata/annotations", {"team": "platform"}),
    "account of the pods": ("Deployment", f"{POD}/serviceAccountName", "mine"),
    "account of the report": (f"CronJob {NAME}-report", f"{JOB}/serviceAccountName", "mine"),
    "account of a binding": (f"ClusterRoleBinding {NAME}-auth-delegator", "subjects/0/name", "mine"),
    "strategy": ("Deployment", "spec/strategy", {"type": "Recreate"}),
    "revisionHistoryLimit": ("Deployment", "spec/revisionHistoryLimit", 0),
    "podLabels": ("Deployment", "spec/template/metadata/labels/azure.workload.identity~use", "true"),
    "podLabels of the report": (
        f"CronJob {NAME}-report",
        "spec/jobTemplate/spec/template/metadata/labels/azure.workload.identity~use",
        "true",
    ),
    "podSecurityContext": ("Deployment", f"{POD}/securityContext/fsGroupChangePolicy", "OnRootMismatch"),
    "podSecurityContext keeps the rest": ("Deployment", f"{POD}/securityContext/runAsUser", 65532),
    "securityContext": ("Deployment", f"{CONTAINER}/securityContext/privileged", False),
    "securityContext of the report": (
        f"CronJob {NAME}-report",
        f"{JOB}/initContainers/0/securityContext/privileged",
        False,
    ),
    "port": (
        "Deployment",
        f"{CONTAINER}/ports",
        [
            {"name": "https", "protocol": "TCP", "containerPort": 8080},
            {"name": "metrics", "protocol": "TCP", "containerPort": 9090},
        ],
    ),
    "port of the flag": ("Deployment", f"{CONTAINER}/args/2", "--secure-port=8080"),
    "metricsPort of the flag": ("Deployment", f"{CONTAINER}/args/4", "--metrics-port=9090"),
    "port of the policy": ("NetworkPolicy", "spec/ingress/0/ports/0/port", 8080),
    "metricsPort of the policy": ("NetworkPolicy", "spec/ingress/1/ports/0/port", 9090),
    "metricsPort of the Service": (f"Service {NAME}-metrics", "spec/ports/0/port", 9090),
    "startupProbe": (
        "Deployment",
        f"{CONTAINER}/startupProbe",
        {
            "httpGet": {"scheme": "HTTPS", "path": "/livez", "port": "https"},
            "periodSeconds": 2,
            "failureThreshold": 90,
        },
    ),
    "livenessProbe": ("Deployment", f"{CONTAINER}/livenessProbe/timeoutSeconds", 9),
    "readinessProbe": ("Deployment", f"{CONTAINER}/readinessProbe/successThreshold", 2),
    "extraEnv beside bucket.env": (
        "Deployment",
        f"{CONTAINER}/env",
        [
            {"name": "AWS_REGION", "value": "eu-central-1"},
            {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"},
        ],
    ),
    "extraEnvFrom beside bucket.existingSecret": (
        "Deployment",
        f"{CONTAINER}/envFrom",
        [{"secretRef": {"name": f"{NAME}-bucket", "optional": True}}, {"secretRef": {"name": "proxy"}}],
    ),
    "extraVolumes": ("Deployment", f"{POD}/volumes/-1", {"name": "ca", "configMap": {"name": "company-ca"}}),
    "extraVolumeMounts": (
        "Deployment",
        f"{CONTAINER}/volumeMounts/-1",
        {"name": "ca", "mountPath": "/etc/ssl/company", "readOnly": True},
    ),
    "topologySpreadConstraints": (
        "Deployment",
        f"{POD}/topologySpreadConstraints",
        [
            {
                "topologyKey": "rack",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": SELECTED},
            }
        ],
    ),
    "podDisruptionBudget.minAvailable": ("PodDisruptionBudget", "spec/minAvailable", "50%"),
    "no maxUnavailable beside it": ("PodDisruptionBudget", "spec/maxUnavailable", None),
    "service.annotations": (f"Service {NAME}", "metadata/annotations/service.kubernetes.io~topology-mode", "Auto"),
    "metricsService.annotations": (f"Service {NAME}-metrics", "metadata/annotations/prometheus.io~scrape", "true"),
    "networkPolicy.extraIngress": ("NetworkPolicy", "spec/ingress/-1", {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),
    "networkPolicy.egress": ("NetworkPolicy", "spec/egress/0/ports/0/port", 9092),
    "policy of egress": ("NetworkPolicy", "spec/policyTypes", ["Ingress", "Egress"]),
    "serviceMonitor": (
        "ServiceMonitor",
        "spec/endpoints/0",
        {
            "port": "metrics",
            "interval": "15s",
            "scrapeTimeout": "5s",
            "relabelings": [{"action": "labeldrop", "regex": "pod"}],
            "metricRelabelings": [{"action": "drop", "regex": "python_.*", "sourceLabels": ["__name__"]}],
        },
    ),
    "serviceMonitor.labels": ("ServiceMonitor", "metadata/labels/release", "prometheus"),
    "prometheusRule.labels": ("PrometheusRule", "metadata/labels/release", "prometheus"),
    "imagePullSecrets": ("Deployment", f"{POD}/imagePullSecrets", [{"name": "registry"}]),
    "report.schedule": (f"CronJob {NAME}-report", "spec/schedule", "30 5 * * *"),
    "report.timeZone": (f"CronJob {NAME}-report", "spec/timeZone", "Europe/Berlin"),
    "history of the report": (
        f"CronJob {NAME}-report",
        f"{JOB}/initContainers/0/args",
        ["compact", "--history=s3://lag/history"],
    ),
    "report.output, report.extraArgs": (
        f"CronJob {NAME}-report",
        f"{JOB}/containers/0/args",
        ["report", "--history=s3://lag/history", "--output=s3://lag/reports", "--timezone=Europe/Berlin"],
    ),
    "prometheusRule.alerts, threshold": (
        "PrometheusRule",
        f"{ALERTS}/1/expr",
        "max by (namespace, cluster) (kafka_lag_adapter_age_seconds) > 30",
    ),
    "prometheusRule.alerts, for": ("PrometheusRule", f"{ALERTS}/1/for", "10m"),
    "prometheusRule.alerts, severity": ("PrometheusRule", f"{ALERTS}/1/labels/severity", "critical"),
    "prometheusRule.alerts, threshold in days": (
        "PrometheusRule",
        f"{ALERTS}/8/expr",
        f"min by (namespace, certificate) ({EXPIRATION}) < time() + 7 * 86400",
    ),
    "prometheusRule.alerts, enabled": ("PrometheusRule", f"{ALERTS}/-1/alert", "KafkaLagAdapterHistoryNotWritten"),
    "prometheusRule.runbookUrl": (
        "PrometheusRule",
        f"{ALERTS}/0/annotations/runbook_url",
        "https://wiki.example/alerts#kafkalagadapterabsent",
    ),
    "the chart's label": ("Deployment", "spec/template/metadata/labels/helm.sh~chart", f"{NAME}-0.1.0"),
}
"""Of values/usual.yaml: the object (its kind, and its name if there are several), the path and what must be there."""

OPENSHIFT: dict[str, tuple[str, str, object]] = {
    "no user and group": (
        "Deployment",
        f"{POD}/securityContext",
        {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    ),
    "no user and group of the report": (f"CronJob {NAME}-report", f"{JOB}/securityContext/runAsUser", None),
    "no user and group of the test": (f"Pod {NAME}-discovery", "spec/securityContext/runAsUser", None),
    "a container's key removed": ("Deployment", f"{CONTAINER}/securityContext/readOnlyRootFilesystem", None),
    "no probe": ("Deployment", f"{CONTAINER}/startupProbe", None),
    "the other probes": ("Deployment", f"{CONTAINER}/livenessProbe/periodSeconds", 10),
    "no constraints": ("Deployment", f"{POD}/topologySpreadConstraints", None),
    "no resources": ("Deployment", f"{CONTAINER}/resources", None),
    "an account of theirs": ("Deployment", f"{POD}/serviceAccountName", "theirs"),
    "podDisruptionBudget.maxUnavailable": ("PodDisruptionBudget", "spec/maxUnavailable", 0),
    "a claim that stays": (
        "PersistentVolumeClaim",
        "metadata/annotations",
        {"helm.sh/resource-policy": "keep"},
    ),
    "persistence": (
        "PersistentVolumeClaim",
        "spec",
        {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Ti"}},
        },
    ),
    "a CA in a Secret of theirs": (
        "Deployment",
        f"{POD}/volumes/-1/secret",
        {"secretName": "keda-ca", "defaultMode": 0o440},
    ),
}
"""The same of values/openshift.yaml."""

SCHEDULING: dict[str, tuple[str, str, object]] = {
    "replicas": ("Deployment", "spec/replicas", 3),
    "podAnnotations": ("Deployment", "spec/template/metadata/annotations/sidecar.istio.io~inject", "false"),
    "affinity": ("Deployment", f"{POD}/affinity", yaml.safe_load(VALUES["scheduling"].read_text())["affinity"]),
    "priorityClassName": ("Deployment", f"{POD}/priorityClassName", "system-cluster-critical"),
    "tolerations": ("Deployment", f"{POD}/tolerations/0/value", "platform"),
    "nodeSelector": ("Deployment", f"{POD}/nodeSelector", {"kubernetes.io/os": "linux"}),
    "extraArgs": ("Deployment", f"{CONTAINER}/args/-1", "--log-level=warning"),
}
"""The same of values/scheduling.yaml."""


@cache
def rendering(values: str) -> tuple[Manifest, ...]:
    return tuple(rendered.chart([VALUES[values]]))


def content(values: str, place: str, path: str) -> Any:  # noqa: ANN401 - JSON
    """Returns what is at that path of an object, with ~ for / in a key; None if nothing is."""
    kind, _, name = place.partition(" ")
    found: Any
    (found,) = [each for each in rendering(values) if each["kind"] == kind and name in {"", each["metadata"]["name"]}]
    for key in path.split("/"):
        found = found[int(key)] if isinstance(found, list) else (found or {}).get(key.replace("~", "/"))
    return found


@pytest.mark.parametrize(
    ("values", "place", "path", "expected"),
    [
        *(pytest.param("usual", *row, id=name) for name, row in USUAL.items()),
        *(pytest.param("openshift", *row, id=name) for name, row in OPENSHIFT.items()),
        *(pytest.param("scheduling", *row, id=name) for name, row in SCHEDULING.items()),
    ],
)
def test_a_value_is_in_the_object_that_it_is_for(values: str, place: str, path: str, expected: object) -> None:
    assert content(values, place, path) == expected


def test_accounts_and_rights_can_be_somebody_elses() -> None:
    kinds = {each["kind"] for each in rendering("openshift")}

    assert kinds.isdisjoint({"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})


def test_no_pod_waits_for_a_secret_that_upstream_does_not_name() -> None:
    volumes = content("openshift", "Deployment", f"{POD}/volumes")

    assert "upstream" not in {each["name"] for each in volumes}
    shipped = by_name(rendered.chart([VALUES["upstream"]]))["Deployment", NAME]["spec"]["template"]["spec"]["volumes"]
    assert [each["secret"]["optional"] for each in shipped if each["name"] == "upstream"] == [True]


def test_extra_objects_are_rendered_as_templates(tmp_path: Path) -> None:
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}},
        "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Namespace }}-extra'}\n",
    ]
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"extraObjects": objects}))

    found = by_name(rendered.chart([values], release="lag", namespace="team"))
    assert {("ConfigMap", "lag-extra"), ("Secret", "team-extra")} <= found.keys()


@pytest.mark.parametrize(("series", "paths"), [({"by": "topic"}, [None, "/metrics/groups"]), (None, [None])])
def test_series_are_in_the_settings_and_are_scraped_where_they_are_asked_for(
    series: object, paths: list[str | None], tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"series": series, "serviceMonitor": {"enabled": True, "interval": "15s"}}))
    found = by_name(rendered.chart([values]))

    endpoints = found["ServiceMonitor", NAME]["spec"]["endpoints"]
    assert [(each.get("path"), each["port"], each["interval"]) for each in endpoints] == [
        (path, "metrics", "15s") for path in paths
    ]
    # Without it, `up` of both paths would be one series.
    names = [[each["targetLabel"] for each in endpoint.get("relabelings", ())] for endpoint in endpoints]
    assert names == [[], ["metrics_path"]][: len(paths)]
    settings = yaml.safe_load(found["ConfigMap", f"{NAME}-settings"]["data"]["settings.yaml"])
    assert settings.get("series") == series


def test_the_settings_of_the_page_are_values_of_the_chart() -> None:
    page = MANIFESTS.parent / "docs/settings.yaml"
    given = yaml.safe_load(page.read_text())

    found = by_name(rendered.chart([page]))["ConfigMap", f"{NAME}-settings"]

    settings = yaml.safe_load(found["data"]["settings.yaml"])
    assert {key: settings[key] for key in ("rules", "metrics", "collection")} == {
        key: given[key] for key in ("rules", "metrics", "collection")
    }


def test_a_value_without_content_is_as_good_as_its_empty_default(tmp_path: Path) -> None:
    """As `podLabels:` is in a file of values, with everything below it commented out."""

    def emptied(values: dict[str, Any]) -> dict[str, Any]:
        groups = {key: emptied(value) for key, value in values.items() if isinstance(value, dict)}
        empty = {key: None for key, value in values.items() if value in ("", [], {})}
        return {key: value for key, value in groups.items() if value} | empty

    empty = emptied(yaml.safe_load((MANIFESTS / "values.yaml").read_text()))
    shown: dict[str, Any] = {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}
    shown |= {"history": {"location": "s3://lag/history"}, "report": {"enabled": True, "output": "s3://lag/reports"}}
    files = [tmp_path / "empty.yaml", tmp_path / "shown.yaml"]
    for file, values in zip(files, (empty, shown), strict=True):
        file.write_text(yaml.safe_dump(values))

    assert empty["podLabels"] is None
    assert rendered.chart(files) == rendered.chart(files[1:])


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("port=null", "missing property 'port'"),
        ("networkPolicy=null", "missing property 'networkPolicy'"),
        ("extraEnv[0].value=x", "missing property 'name'"),
        ("podSecurityContex.runAsUser=1", "additional properties 'podSecurityContex' not allowed"),
        ("image.digest=latest", "digest"),
        ("port=8080", "port, metricsPort: must differ"),
        ("serviceAccount.create=false", "serviceAccount.name: is needed"),
        ("podDisruptionBudget.minAvailable=1,podDisruptionBudget.maxUnavailable=1", "cannot be used together"),
        ("podDisruptionBudget.minAvailable=some", "minAvailable"),
        ("strategy.type=Rolling", "strategy"),
        ("prometheusRule.enabled=true,prometheusRule.alerts.Absent.for=1m", "there is no alert Absent"),
        (
            "prometheusRule.enabled=true,prometheusRule.alerts.KafkaLagAdapterAbsent.threshold=1",
            "KafkaLagAdapterAbsent has no threshold",
        ),
    ],
)
def test_a_value_that_cannot_work_is_refused(setting: str, said: str) -> None:
    with pytest.raises(RigError) as refused:
        rendered.chart(settings=[setting])

    assert said in str(refused.value)


def test_the_package_has_the_chart_and_nothing_of_kustomize(tmp_path: Path) -> None:
    rendered.run("helm", "package", str(MANIFESTS), f"--destination={tmp_path}")
    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        files = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
        kustomizations = {name for name in files if "kustomization" in name.lower()}

    assert kustomizations == set()
    assert {name.partition("/")[0] for name in files if "/" in name} == {
        *("api-service", "api-service-custom", "autoscalers", "base", "cert-manager", "custom-metrics", "dashboards"),
        *("events", "monitoring", "no-registration", "pods-metrics", "report"),
        *("report-bucket", "templates", "test", "tls-secret", "upstream"),
    }
    assert {name for name in files if "/" not in name} == {
        *(".helmignore", "Chart.yaml", "README.md", "values.schema.json", "values.yaml"),
    }
    by_package = rendered.run("helm", "template", NAME, str(package), f"--values={VALUES['usual']}")
    assert by_package == rendered.run("helm", "template", NAME, str(MANIFESTS), f"--values={VALUES['usual']}")
