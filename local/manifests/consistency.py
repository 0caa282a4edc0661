"""What must be consistent between the manifests, and between them and the code.

Each function is one rule and yields `file: what is wrong`."""

from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

import yaml

from adapter.errors import SettingsInvalid
from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from apiservice.api_group import API_GROUPS, CUSTOM, EXTERNAL
from apiservice.cluster_api.scale import SCALED_KINDS
from apiservice.tls.issuing import SECRET_NAME
from local.manifests.shipped import DEPLOYMENT, KUSTOMIZATION, NAME, Manifest, Rule, Shipped, at

EXAMPLE, EXAMPLE_OF_REPLICAS = "example-hpa.yaml", "example-hpa-replicas.yaml"
EXAMPLE_OF_PROMISE = "example-hpa-required.yaml"
EXAMPLES = {EXAMPLE, EXAMPLE_OF_REPLICAS, EXAMPLE_OF_PROMISE}
OVERLAY = "another-namespace/kustomization.yaml"
API_SERVICE = "api-service/api-service-external.yaml"
REGISTRATION = "base/cluster-role-registration.yaml"
READS_HPAS = "base/cluster-role-reads-hpas.yaml"
READS_PODS = "pods-metrics/cluster-role-reads-pods.yaml"
SERVING = "base/role-serving.yaml"
LEADER = "base/role-leader.yaml"
CHANGES_AUTOSCALERS = "autoscalers/cluster-role-changes-autoscalers.yaml"
POSTS_EVENTS = "events/cluster-role-posts-events.yaml"
IN_KUBE_SYSTEM = {"base/role-binding-auth-reader.yaml"}
GIVEN_ROLES = {"system:auth-delegator", "extension-apiserver-authentication-reader"}
GIVEN_ACCOUNTS = {("kube-system", "horizontal-pod-autoscaler")}


def labels_are_the_recommended_ones(shipped: Shipped) -> Iterator[str]:
    """On every object, and in every pod's template. `component` differs, and selectors contain it."""
    wanted = {
        "app.kubernetes.io/name": NAME,
        "app.kubernetes.io/instance": NAME,
        "app.kubernetes.io/version": shipped.version,
        "app.kubernetes.io/part-of": NAME,
        "app.kubernetes.io/managed-by": "kustomize",
    }
    for name, found in shipped.objects.items():
        for labels in [at(found, "metadata.labels") or {}, *_template_labels(found)]:
            if name not in EXAMPLES and not (
                wanted.items() <= labels.items() and "app.kubernetes.io/component" in labels
            ):
                yield f"{name}: labels must have app.kubernetes.io/component and {wanted}"


def _template_labels(found: object) -> list[dict[str, str]]:
    paths = ("spec.template.metadata", "spec.jobTemplate.spec.template.metadata")
    roles = ("spec.template.driver", "spec.template.executor")
    return [at(found, path).get("labels") or {} for path in (*paths, *roles) if at(found, path) is not None]


def namespaces_agree(shipped: Shipped) -> Iterator[str]:
    if shipped.names("Namespace") != {NAME}:
        yield f"namespace.yaml: must be named {NAME}"
    if next(iter(shipped.kustomization.get("resources", [])), "") != "namespace.yaml":
        yield "kustomization.yaml: namespace.yaml must come first"
    for name, found in shipped.objects.items():
        wanted = "kube-system" if name in IN_KUBE_SYSTEM else None
        if name not in EXAMPLES and at(found, "metadata.namespace") != wanted:
            yield f"{name}: metadata.namespace must be {wanted or 'absent'}, is {at(found, 'metadata.namespace')}"
    if shipped.kustomization.get("transformers") != _in_namespace(shipped.files.get(OVERLAY, {}), NAME):
        yield f"{OVERLAY}: its transformers must be those of {KUSTOMIZATION} but for the namespace"


def _in_namespace(overlay: dict[str, list[str]], namespace: str) -> list[str]:
    """Returns the overlay's transformers with another namespace in the place of its own."""
    return [
        text.replace("namespace: lag # this line", f"namespace: {namespace}")
        for text in overlay.get("transformers", [])
    ]


def accounts_and_roles_exist(shipped: Shipped) -> Iterator[str]:
    accounts = {(None, account) for account in shipped.names("ServiceAccount")}
    if (None, shipped.pod.get("serviceAccountName")) not in accounts:
        yield f"{DEPLOYMENT}: serviceAccountName {shipped.pod.get('serviceAccountName')} is not there"
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for name, binding in shipped.of_kind(kind):
            if at(binding, "roleRef.name") not in GIVEN_ROLES | shipped.names(at(binding, "roleRef.kind")):
                yield f"{name}: roleRef {at(binding, 'roleRef.name')} is not there"
            for subject in binding.get("subjects", []):
                if (subject.get("namespace"), subject.get("name")) not in accounts | GIVEN_ACCOUNTS:
                    yield f"{name}: subject {subject.get('namespace')}/{subject.get('name')} is not there"


def cluster_roles_only_read(shipped: Shipped) -> Iterator[str]:
    metrics = {"apiGroups": [EXTERNAL.name], "resources": ["*"], "verbs": ["get", "list"]}
    hpas = {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list", "watch"]}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    for name, role in shipped.of_kind("ClusterRole"):
        wanted = [{READS_HPAS: hpas, READS_PODS: pods}.get(name, metrics)]
        if name not in {REGISTRATION, CHANGES_AUTOSCALERS, POSTS_EVENTS} and role.get("rules") != wanted:
            yield f"{name}: rules must be {wanted}"


def rights_to_change_are_for_named_objects(shipped: Shipped) -> Iterator[str]:
    """The names are those that the code derives from the Service's."""
    wanted = {
        REGISTRATION: [EXTERNAL.api_service, f"{NAME}-registration"],
        SERVING: [f"{NAME}-serving"],
        LEADER: [f"{NAME}-leader"],
    }
    for name, expected in wanted.items():
        role = shipped.objects.get(name, {})
        names = (each for rule in role.get("rules") or [] for each in rule.get("resourceNames") or [])
        if list(dict.fromkeys(names)) != expected:
            yield f"{name}: resourceNames must be {expected}, as in the code"
    custom = shipped.added(f"custom-metrics/patch-{REGISTRATION.removeprefix('base/')}").get("resourceNames")
    if list(dict.fromkeys(custom or ())) != [group.api_service for group in CUSTOM]:
        yield f"custom-metrics: resourceNames must be {[group.api_service for group in CUSTOM]}, as in the code"
    if at(shipped.objects.get(REGISTRATION), "metadata.name") != f"{NAME}-registration":
        yield f"{REGISTRATION}: must be named {NAME}-registration, as in the code"
    if f"{NAME}-serving" not in shipped.names("Secret"):
        yield f"{SERVING}: there is no Secret {NAME}-serving"
    if shipped.names("Lease") != {f"{NAME}-leader"}:
        yield f"{LEADER}: there must be one Lease, {NAME}-leader"
    if shipped.flags.get("service") != NAME:
        yield f"{DEPLOYMENT}: --service must be {NAME}, the Service's name"


def rights_to_change_hpas_are_as_small_as_the_code_needs(shipped: Shipped) -> Iterator[str]:
    """In ClusterRoles of their own, which the base does not contain."""
    wanted = [
        {
            "apiGroups": ["apps"],
            "resources": [f"{resource}/scale" for resource in SCALED_KINDS.values()],
            "verbs": ["get", "update"],
        },
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]
    if shipped.objects.get(CHANGES_AUTOSCALERS, {}).get("rules") != wanted:
        yield f"{CHANGES_AUTOSCALERS}: rules must be {wanted}"
    events = [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]
    if shipped.objects.get(POSTS_EVENTS, {}).get("rules") != events:
        yield f"{POSTS_EVENTS}: rules must be {events}"


def last_commits_are_kept_in_the_shipped_config_map(shipped: Shipped) -> Iterator[str]:
    name = shipped.flags.get("last-commits-config-map")
    if name not in shipped.names("ConfigMap"):
        yield f"{DEPLOYMENT}: --last-commits-config-map {name} is no shipped ConfigMap"
    file = "base/role-last-commits.yaml"
    wanted = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get", "patch"]}]
    if shipped.objects.get(file, {}).get("rules") != wanted:
        yield f"{file}: rules must be {wanted}"


def api_service_points_to_the_service(shipped: Shipped) -> Iterator[str]:
    ports = {
        (at(found, "metadata.name"), port.get("port"))
        for _, found in shipped.of_kind("Service")
        for port in at(found, "spec.ports") or []
        if port.get("targetPort") == "https"
    }
    groups = {group.api_service: (group.name, group.version, group.priority) for group in API_GROUPS}
    if shipped.names("APIService") != groups.keys():
        yield f"api-service: there must be the APIServices {', '.join(sorted(groups))}, as in the code"
    for name, found in shipped.of_kind("APIService"):
        spec, wanted = found.get("spec") or {}, groups.get(at(found, "metadata.name"))
        if (spec.get("group"), spec.get("version"), spec.get("versionPriority")) != wanted:
            yield f"{name}: group, version and versionPriority must be {wanted}, as in the code"
        if (at(spec, "service.name"), at(spec, "service.port")) not in ports:
            yield f"{name}: spec.service is no port of a Service that leads to the port https"
        if spec.get("insecureSkipTLSVerify") is not False or "caBundle" in spec:
            yield f"{name}: insecureSkipTLSVerify must be false and caBundle absent"


def certificate_is_for_the_service(shipped: Shipped) -> Iterator[str]:
    file = "cert-manager/certificate-serving.yaml"
    certificate, api_service = (shipped.objects.get(name, {}) for name in (file, API_SERVICE))
    if at(certificate, "spec.secretName") != SECRET_NAME:
        yield f"{file}: secretName must be {SECRET_NAME}, as in the code"
    service = at(api_service, "spec.service") or {}
    if f"{service.get('name')}.NAMESPACE.svc" not in (at(certificate, "spec.dnsNames") or []):
        yield f"{file}: dnsNames must have the name that kube-apiserver verifies, SERVICE.NAMESPACE.svc"
    for name, found in shipped.of_kind("APIService"):
        annotation = (at(found, "metadata.annotations") or {}).get("cert-manager.io/inject-ca-from")
        if annotation != f"NAMESPACE/{at(certificate, 'metadata.name')}":
            yield f"{name}: inject-ca-from {annotation} is not the serving Certificate"
    for name, found in shipped.of_kind("Certificate"):
        if at(found, "spec.issuerRef.name") not in shipped.names("Issuer"):
            yield f"{name}: issuerRef {at(found, 'spec.issuerRef.name')} is not there"
    for name, found in shipped.of_kind("Issuer"):
        secret = at(found, "spec.ca.secretName")
        if secret and secret not in {at(other, "spec.secretName") for _, other in shipped.of_kind("Certificate")}:
            yield f"{name}: no Certificate writes the Secret {secret}"


def settings_can_be_read(shipped: Shipped) -> Iterator[str]:
    file = "base/config-map-settings.yaml"
    text = at(shipped.objects.get(file), "data") or {}
    if PurePosixPath(shipped.flags.get("config", "")).name not in text:
        yield f"{file}: data has no key named as the file in --config"
    for key, content in text.items():
        try:
            parse(yaml.safe_load(content), SERVED)
        except yaml.YAMLError as error:
            yield f"{file}: {key} is no YAML: {' '.join(str(error).split())}"
        except SettingsInvalid as invalid:
            yield from (f"{file}: {key}: {problem}" for problem in invalid.problems)


def examples_scale_as_they_should(shipped: Shipped) -> Iterator[str]:
    numbers = ((name, {"group"}, "1") for name in (EXAMPLE_OF_REPLICAS, EXAMPLE_OF_PROMISE))
    for file, labels, value in ((EXAMPLE, {"group", "topic"}, None), *numbers):
        found = shipped.objects.get(file, {})
        if at(found, "spec.minReplicas") != 0:
            yield f"{file}: minReplicas must be 0: that is what it is an example of"
        yield from (f"{file}: {problem}" for problem in hpa_problems(found, labels, value))


def hpa_problems(hpa: Manifest, labels: Collection[str], value: str | None) -> Iterator[str]:
    """Yields why an HPA would not scale. `labels`: what its selector must name; `value`: its `averageValue`, where only
    one is right."""
    spec = at(hpa, "spec") or {}
    for metric in spec.get("metrics") or [{}]:
        if at(metric, "external.metric.name") not in SERVED:
            yield f"{at(metric, 'external.metric.name')} is no metric that is served"
        if at(metric, "external.target.type") != "AverageValue":
            yield "target.type must be AverageValue: Value multiplies by the lag at every look"
        if value not in (None, at(metric, "external.target.averageValue")):
            yield f"averageValue must be {value}: the metric is a number of replicas"
        if not set(labels) <= (at(metric, "external.metric.selector.matchLabels") or {}).keys():
            yield f"the selector must name {' and '.join(sorted(labels))}"
    if "Pods" not in [policy.get("type") for policy in at(spec, "behavior.scaleUp.policies") or []]:
        yield "scaleUp needs a policy of type Pods, or it never leaves 0"


RULES: tuple[Rule, ...] = (
    labels_are_the_recommended_ones,
    namespaces_agree,
    accounts_and_roles_exist,
    cluster_roles_only_read,
    rights_to_change_are_for_named_objects,
    rights_to_change_hpas_are_as_small_as_the_code_needs,
    last_commits_are_kept_in_the_shipped_config_map,
    api_service_points_to_the_service,
    certificate_is_for_the_service,
    settings_can_be_read,
    examples_scale_as_they_should,
)
