"""The Helm chart renders what kustomize renders, under any name and in any namespace, and refuses unknown values."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from adapter.settings.models import Settings
from local.manifests import rendered
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME, Manifest, at
from local.processes import RigError

VALUES = {file.stem: file for file in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
LABELS = {f"app.kubernetes.io/{name}" for name in ("name", "instance", "component", "version", "part-of", "managed-by")}
ALIKE = {
    "nothing": ([], []),
    "cert-manager": (["cert-manager", "api-service"], ["cert-manager"]),
    "monitoring": (["monitoring"], ["monitoring"]),
    "dashboards": (["dashboards"], ["dashboards"]),
    "upstream": (["upstream"], ["upstream"]),
    "custom metrics": (["custom-metrics", "upstream"], ["custom-metrics"]),
    "custom metrics, with a certificate of cert-manager": (
        ["cert-manager", "api-service", "api-service-custom", "custom-metrics", "upstream"],
        ["cert-manager", "custom-metrics"],
    ),
    "autoscalers": (["autoscalers"], ["autoscalers"]),
    "events": (["events"], ["events"]),
    "autoscalers and events": (["autoscalers", "events"], ["autoscalers", "events"]),
    "metrics of pods": (["custom-metrics", "pods-metrics"], ["pods-metrics"]),
    "volume": (["report"], ["volume"]),
    "bucket": (["report-bucket"], ["bucket"]),
    "no registration": (["no-registration"], ["no-registration"]),
    "several clusters": (["several-clusters"], ["secret-for-each-cluster"]),
    "everything": (
        ["cert-manager", "api-service", "monitoring", "report"],
        ["cert-manager", "monitoring", "volume"],
    ),
}
"""Components of the kustomization, and the values with which the chart must render the same."""


def by_name(documents: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    found = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(found) == len(documents)
    return found


def comparable(documents: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    """Returns the objects without what is meant to differ.

    These are the Namespace, the Pod of `helm test`, the labels and annotations for Helm, the checksum that restarts
    the pods and the labels for Prometheus. The settings become a value without history, upstream, custom metrics and
    autoscalers, which users of kustomize add themselves.
    """
    found = by_name([document for document in documents if document["kind"] not in {"Namespace", "Pod"}])
    for document in found.values():
        for metadata in (document["metadata"], *template_metadata(document)):
            metadata["labels"].pop("app.kubernetes.io/managed-by")
            metadata["labels"].pop("release", None)
            metadata["labels"].pop("helm.sh/chart", None)
            for annotation in ("checksum/history", "helm.sh/resource-policy"):
                metadata.get("annotations", {}).pop(annotation, None)
            if not metadata.get("annotations", {"any": ""}):
                del metadata["annotations"]
        if document["kind"] == "ConfigMap" and "settings.yaml" in document.get("data", {}):
            settings = yaml.safe_load(document["data"]["settings.yaml"])
            settings |= {"history": {}, "upstream": None, "customMetrics": {}, "autoscalers": {}}
            document["data"] = parse(settings, SERVED, opens_files=False)
    return found


def template_metadata(document: Manifest) -> list[dict[str, Any]]:
    paths = ("spec.template.metadata", "spec.jobTemplate.spec.template.metadata")
    return [found for path in paths if (found := at(document, path))]


def kustomized(folder: Path, components: list[str]) -> list[Manifest]:
    """What the shipped kustomization renders with these components, edited in that folder as their comments say."""
    copy = Path(shutil.copytree(MANIFESTS, folder / "manifests"))
    root = copy / "kustomization.yaml"
    text = f"{root.read_text()}components: [{', '.join(components)}]\n"
    keeps_history = not {"report", "report-bucket"}.isdisjoint(components)
    root.write_text(re.sub("(newTag: .+)", r"\1-history", text) if keeps_history else text)
    return rendered.kustomization(copy)


@pytest.mark.parametrize(("components", "values"), ALIKE.values(), ids=ALIKE.keys())
def test_helm_and_kustomize_render_the_same(components: list[str], values: list[str], tmp_path: Path) -> None:
    by_helm = comparable(rendered.chart([VALUES[name] for name in values]))
    by_kustomize = comparable(kustomized(tmp_path, components))

    assert by_helm == by_kustomize
    assert len(by_helm) >= 12


@pytest.mark.parametrize(
    "first",
    [
        ("no-registration",),
        ("tls-secret",),
        ("cert-manager",),
        ("no-registration", "tls-secret"),
        ("no-registration", "cert-manager"),
    ],
    ids=" and ".join,
)
def test_components_apply_in_any_order(first: tuple[str, ...], tmp_path: Path) -> None:
    """Patches that append to the same list leave its entries in another order, which means nothing."""
    components = [*first, "custom-metrics", "upstream", "pods-metrics", "autoscalers", "monitoring", "report"]
    rendered_both = [
        {name: in_order(each) for name, each in by_name(kustomized(tmp_path / order, chosen)).items()}
        for order, chosen in (("given", components), ("reversed", components[::-1]))
    ]

    assert rendered_both[0] == rendered_both[1]
    rules = rendered_both[0]["ClusterRole", f"{NAME}-registration"]["rules"]
    of_services = [rule for rule in rules if rule["resources"] == ["apiservices"]]
    assert all("v1beta2.custom.metrics.k8s.io" in rule["resourceNames"] for rule in of_services)
    verbs = {verb for rule in of_services for verb in rule["verbs"]}
    assert verbs == ({"get", "patch", "delete"} if first == ("no-registration",) else {"get"})


def in_order(value: Any) -> Any:  # noqa: ANN401 - any part of an object
    if isinstance(value, dict):
        return {key: in_order(each) for key, each in value.items()}
    return sorted(map(in_order, value), key=str) if isinstance(value, list) else value


def test_the_overlay_puts_everything_but_one_role_binding_into_its_namespace(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    with (copy / "another-namespace" / "kustomization.yaml").open("a") as file:
        file.write("components: [../cert-manager, ../api-service]\n")
    documents = rendered.kustomization(copy / "another-namespace")

    found = by_name(documents)
    elsewhere = {name: at(each, "metadata.namespace") for (_, name), each in found.items()}
    assert elsewhere.pop("kafka-lag-adapter-auth-reader") == "kube-system"
    assert set(elsewhere.values()) == {None, "lag"}
    assert found["Certificate", "kafka-lag-adapter-serving"]["spec"]["dnsNames"] == ["kafka-lag-adapter.lag.svc"]
    service = found["APIService", "v1beta1.external.metrics.k8s.io"]
    assert service["spec"]["service"]["namespace"] == "lag"
    assert service["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "lag/kafka-lag-adapter-serving"}
    subjects = [subject for each in documents for subject in each.get("subjects", [])]
    assert {(each["name"], each["namespace"]) for each in subjects} == {
        (NAME, "lag"),
        ("horizontal-pod-autoscaler", "kube-system"),
    }
    assert comparable(documents) == comparable(rendered.chart([VALUES["cert-manager"]], namespace="lag"))


def test_neither_base_nor_chart_has_the_api_service_by_default() -> None:
    for documents in (rendered.kustomization(MANIFESTS), rendered.chart()):
        assert "APIService" not in {document["kind"] for document in documents}


@pytest.mark.parametrize("file", VALUES.values(), ids=VALUES.keys())
def test_the_chart_lints_and_every_object_has_every_label(file: Path) -> None:
    rendered.run("helm", "lint", "--strict", str(MANIFESTS), f"--values={file}")

    for document in rendered.chart([file], release="lag", namespace="team"):
        for metadata in (document["metadata"], *template_metadata(document)):
            assert metadata["labels"].keys() >= LABELS, document
            assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
            assert metadata["labels"]["app.kubernetes.io/instance"] == "lag"


def test_the_chart_lints_with_its_default_values_alone() -> None:
    assert "0 chart(s) failed" in rendered.run("helm", "lint", "--strict", str(MANIFESTS))


def test_two_releases_share_no_object() -> None:
    values = [VALUES[name] for name in ("monitoring", "volume")]
    first, second = (by_name(rendered.chart(values, release=name, namespace=name)) for name in ("lag", "other"))

    assert first.keys().isdisjoint(second)
    assert ("Deployment", "lag-kafka-lag-adapter") in first
    pod = first["Deployment", "lag-kafka-lag-adapter"]["spec"]["template"]
    assert pod["spec"]["serviceAccountName"] == "lag-kafka-lag-adapter"
    assert "--last-commits-config-map=lag-kafka-lag-adapter-last-commits" in pod["spec"]["containers"][0]["args"]
    chosen = first["Service", "lag-kafka-lag-adapter"]["spec"]["selector"]
    assert chosen.items() <= pod["metadata"]["labels"].items()
    other = second["Deployment", "other-kafka-lag-adapter"]["spec"]["template"]["metadata"]["labels"]
    assert not chosen.items() <= other.items()


def test_the_settings_keys_are_values_and_reach_the_settings_file() -> None:
    settings = by_name(rendered.chart([VALUES["several-clusters"]]))["ConfigMap", "kafka-lag-adapter-settings"]

    given = yaml.safe_load(VALUES["several-clusters"].read_text())
    found = yaml.safe_load(settings["data"]["settings.yaml"])
    keys = {field.alias or name for name, field in Settings.model_fields.items()}
    assert {key: found[key] for key in keys & given.keys()} == {key: given[key] for key in keys & given.keys()}
    assert found.keys() == keys - {"history", "upstream", "autoscalers", "series"}


def test_a_secret_of_yours_replaces_the_certificate_that_the_adapter_manages() -> None:
    def container(*settings: str) -> tuple[list[str], set[str]]:
        pod = by_name(rendered.chart(settings=settings, release="lag"))["Deployment", "lag-kafka-lag-adapter"]
        (found,) = pod["spec"]["template"]["spec"]["containers"]
        return found["args"], {each["mountPath"] for each in found["volumeMounts"]}

    managed, mounted = container()
    assert "--service=lag-kafka-lag-adapter" in managed
    assert not any(each.startswith("--tls") for each in managed)
    assert "/etc/kafka-lag-adapter/tls" not in mounted
    given, mounted = container("tls.existingSecret=mine")
    assert "--tls-cert-file=/etc/kafka-lag-adapter/tls/tls.crt" in given
    assert "/etc/kafka-lag-adapter/tls" in mounted
    assert "--no-register" in container("apiService.register=false")[0]


def test_the_rights_to_change_objects_name_those_of_the_release() -> None:
    found = by_name(rendered.chart(release="lag"))

    registration = found["ClusterRole", "lag-kafka-lag-adapter-registration"]
    assert [rule["resourceNames"] for rule in registration["rules"]] == [
        ["v1beta1.external.metrics.k8s.io"],
        ["v1beta1.external.metrics.k8s.io"],
        ["lag-kafka-lag-adapter-registration"],
    ]
    (rule,) = found["Role", "lag-kafka-lag-adapter-serving"]["rules"]
    assert rule["resourceNames"] == ["lag-kafka-lag-adapter-serving"]
    assert ("Secret", "lag-kafka-lag-adapter-serving") in found


@pytest.mark.parametrize(
    ("settings", "verbs"),
    [
        ([], {"get", "create", "patch", "delete"}),
        (["apiService.register=false"], {"get", "patch", "delete"}),
        (["tls.existingSecret=mine"], {"get"}),
        (["tls.certManager.enabled=true"], {"get"}),
    ],
)
def test_no_right_and_no_secret_is_left_of_a_certificate_that_the_adapter_does_not_manage(
    settings: list[str], verbs: set[str]
) -> None:
    found = by_name(rendered.chart(settings=settings))

    rules = found["ClusterRole", f"{NAME}-registration"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == verbs
    kept = {
        ("Secret", f"{NAME}-serving"),
        ("Role", f"{NAME}-serving"),
        ("RoleBinding", f"{NAME}-serving"),
    } & found.keys()
    assert len(kept) == (0 if verbs == {"get"} else 3)


def test_every_cluster_can_have_secrets_of_its_own() -> None:
    documents = by_name(rendered.chart([VALUES["several-clusters"]]))
    pod = documents["Deployment", NAME]["spec"]["template"]["spec"]

    secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    mounted = {each["mountPath"]: secrets.get(each["name"]) for each in pod["containers"][0]["volumeMounts"]}
    assert mounted["/etc/kafka-lag-adapter/kafka"] == "main-user"
    assert mounted["/etc/kafka-lag-adapter/secrets/archive-user"] == "archive-user"
    assert mounted["/etc/kafka-lag-adapter/secrets/archive-cluster-ca-cert"] == "archive-cluster-ca-cert"


def test_another_port_is_changed_everywhere() -> None:
    text = yaml.safe_dump_all(rendered.chart([VALUES["host-network"]]))

    assert "6443" not in text
    assert "8080" not in text
    assert "--secure-port=4443" in text
    assert "--metrics-port=4480" in text
    assert "hostNetwork: true" in text


def test_the_kubelet_waits_longer_for_a_pod_that_serves_longer() -> None:
    deployment = by_name(rendered.chart(settings=["shutdownDelaySeconds=45"]))["Deployment", NAME]

    pod = deployment["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 65
    delays = [flag for flag in pod["containers"][0]["args"] if "delay" in flag]
    assert delays == ["--shutdown-delay-duration=45s"]


def test_where_pods_run_is_for_the_adapter_and_the_report() -> None:
    documents = by_name(rendered.chart([VALUES["scheduling"], VALUES["volume"]]))

    for template in (
        documents["Deployment", NAME]["spec"]["template"],
        documents["CronJob", f"{NAME}-report"]["spec"]["jobTemplate"]["spec"]["template"],
    ):
        assert template["spec"]["priorityClassName"] == "system-cluster-critical"
        assert template["spec"]["tolerations"][0]["value"] == "platform"
        assert template["metadata"]["labels"]["team"] == "platform"
    assert all(each["metadata"]["labels"]["team"] == "platform" for each in documents.values())


def test_a_history_leads_to_a_volume_or_a_bucket_by_its_location() -> None:
    def pod_with(values: str) -> Manifest:
        found = by_name(rendered.chart([VALUES[values]]))["Deployment", NAME]["spec"]["template"]["spec"]
        assert isinstance(found, dict)
        return found

    claims = {
        name: [at(volume, "persistentVolumeClaim.claimName") for volume in pod_with(name)["volumes"]]
        for name in ("volume", "existing-claim", "bucket")
    }
    assert f"{NAME}-history" in claims["volume"]
    assert "shared" in claims["existing-claim"]
    assert set(claims["bucket"]) == {None}
    assert pod_with("bucket")["containers"][0]["env"] == [{"name": "AWS_REGION", "value": "eu-central-1"}]
    assert pod_with("volume")["containers"][0]["resources"]["limits"]["memory"] == "512Mi"
    assert pod_with("bucket-by-account")["containers"][0]["resources"]["limits"]["memory"] == "1Gi"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("replicaCount=2", "replicaCount"),
        ("collection.intervall=10s", "intervall"),
        ("collection.interval=10", "interval"),
        ("rules[0].offsetReset=newest", "offsetReset"),
        ("clusters=null", "clusters"),
        ("port=99999", "port"),
        ("history.location=/data", "must be below /var/lib/kafka-lag-adapter/"),
        ("report.enabled=true", "no history.location"),
        ("apiService.create=true", "the adapter registers itself"),
        ("apiService.create=true,tls.existingSecret=mine", "apiService.caBundle"),
    ],
)
def test_values_that_cannot_work_are_refused(setting: str, said: str) -> None:
    with pytest.raises(RigError) as refused:
        rendered.chart(settings=[setting])

    assert said in str(refused.value)
