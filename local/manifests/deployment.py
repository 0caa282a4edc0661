"""What must be true of the Deployment, and of what selects, opens or mounts into its pods.

Each function is one rule and yields `file: what is wrong`."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from adapter.settings.types import seconds_of
from apiservice.tls.issuing import SECRET_NAME
from local.manifests.shipped import DEPLOYMENT, NAME, Manifest, Rule, Shipped, at

HARMLESS_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
"""The volumes that Pod Security's `restricted` allows."""
FINISH_SECONDS = 20
"""It ends within 10 s after the delay; a busy node may take longer."""
TLS_SECRET = "tls-secret/patch-deployment.yaml"  # noqa: S105 - a file


def image_has_the_packages_version(shipped: Shipped) -> Iterator[str]:
    if shipped.container.get("image") != f"{NAME}:{shipped.version}":
        yield f"{DEPLOYMENT}: image must be {NAME}:{shipped.version}, as in pyproject.toml"
    images = {image.get("name"): image.get("newTag") for image in shipped.kustomization.get("images", [])}
    if images != {NAME: shipped.version}:
        yield f"kustomization.yaml: images must give {NAME} the newTag {shipped.version}, as in pyproject.toml"


def pods_are_restricted(shipped: Shipped) -> Iterator[str]:
    """Pod Security's `restricted`, and a read-only root in addition."""
    namespace = at(shipped.objects.get("namespace.yaml"), "metadata.labels") or {}
    if namespace.get("pod-security.kubernetes.io/enforce") != "restricted":
        yield "namespace.yaml: pod-security.kubernetes.io/enforce must be restricted"
    for file, pod in shipped.pods.items():
        yield from (f"{file}: {problem}" for problem in _not_restricted(pod))


def _not_restricted(pod: Manifest) -> Iterator[str]:
    wanted = {"securityContext.runAsNonRoot": True, "securityContext.seccompProfile.type": "RuntimeDefault"}
    yield from (f"{path} must be {value}" for path, value in wanted.items() if at(pod, path) != value)
    wanted_of_container = {
        "securityContext.allowPrivilegeEscalation": False,
        "securityContext.readOnlyRootFilesystem": True,
        "securityContext.capabilities": {"drop": ["ALL"]},
    }
    for container in [*pod.get("initContainers", []), *(pod.get("containers") or [{}])]:
        yield from (f"{path} must be {v}" for path, v in wanted_of_container.items() if at(container, path) != v)
    if not at(pod, "securityContext.runAsUser"):
        yield "securityContext.runAsUser must be a number other than 0"
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"{key} must be absent"
    for volume in pod.get("volumes", []):
        if not volume.keys() - {"name"} <= HARMLESS_VOLUMES:
            yield f"volume {volume.get('name')} is of a kind that restricted pods may not have"


def selectors_choose_the_pods(shipped: Shipped) -> Iterator[str]:
    paths = {
        "Deployment": "spec.selector.matchLabels",
        "Service": "spec.selector",
        "PodDisruptionBudget": "spec.selector.matchLabels",
        "NetworkPolicy": "spec.podSelector.matchLabels",
    }
    for kind, path in paths.items():
        for name, found in shipped.of_kind(kind):
            chosen = at(found, path) or {}
            if not chosen or not chosen.items() <= shipped.pod_labels.items():
                yield f"{name}: {path} {chosen} does not choose the Deployment's pods"


def ports_agree(shipped: Shipped) -> Iterator[str]:
    for flag, port in {"secure-port": "https", "metrics-port": "metrics"}.items():
        if shipped.flags.get(flag) != str(shipped.ports.get(port)):
            yield f"{DEPLOYMENT}: --{flag} is {shipped.flags.get(flag)}, the port {port} {shipped.ports.get(port)}"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = at(shipped.container, f"{probe}.httpGet") or {}
        path = "/readyz" if probe == "readinessProbe" else "/livez"
        if get != {"scheme": "HTTPS", "path": path, "port": "https"}:
            yield f"{DEPLOYMENT}: {probe} must get {path} over HTTPS from the port https"
    for name, service in shipped.of_kind("Service"):
        for port in at(service, "spec.ports") or []:
            if port.get("targetPort") not in shipped.ports:
                yield f"{name}: targetPort {port.get('targetPort')} is none of {sorted(shipped.ports)}"
    for name, policy in shipped.of_kind("NetworkPolicy"):
        opened = [port.get("port") for rule in at(policy, "spec.ingress") or [] for port in rule.get("ports", [])]
        if sorted(opened) != sorted(shipped.ports.values()):
            yield f"{name}: opens {sorted(opened)}, the container listens on {sorted(shipped.ports.values())}"


def the_kubelet_waits_for_the_end(shipped: Shipped) -> Iterator[str]:
    delay, grace = shipped.flags.get("shutdown-delay-duration", "0s"), at(shipped.pod, "terminationGracePeriodSeconds")
    if (grace or 0) < seconds_of(delay) + FINISH_SECONDS:
        yield f"{DEPLOYMENT}: terminationGracePeriodSeconds {grace} must be the shutdown delay {delay} and 20 s more"


def mounts_have_volumes(shipped: Shipped) -> Iterator[str]:
    volumes = {volume.get("name"): volume for volume in shipped.pod.get("volumes", [])}
    mounts = {mount.get("name"): mount.get("mountPath", "") for mount in shipped.container.get("volumeMounts", [])}
    if volumes.keys() != mounts.keys():
        yield f"{DEPLOYMENT}: volumes {sorted(volumes)} and volumeMounts {sorted(mounts)} differ"
    for name, volume in volumes.items():
        if "configMap" in volume and at(volume, "configMap.name") not in shipped.names("ConfigMap"):
            yield f"{DEPLOYMENT}: volume {name} is of ConfigMap {at(volume, 'configMap.name')}, which is not there"
    path = PurePosixPath(shipped.flags.get("config", ""))
    if not any(path.is_relative_to(mount) for mount in mounts.values()):
        yield f"{DEPLOYMENT}: --config {path} lies in no mount"


def tls_secret_is_mounted_where_the_flags_look(shipped: Shipped) -> Iterator[str]:
    added = shipped.added(TLS_SECRET)
    flags = [PurePosixPath(each.partition("=")[2]) for each in added.get("args", [])]
    mounts = {at(each, "mountPath") for each in added.get("volumeMounts", [])}
    if len(flags) != 2 or any(flag.parent.as_posix() not in mounts for flag in flags):
        yield f"{TLS_SECRET}: certificate and key must lie in its mount, {mounts}"
    if SECRET_NAME not in [at(each, "secret.secretName") for each in added.get("volumes", [])]:
        yield f"{TLS_SECRET}: no volume is of the Secret {SECRET_NAME}, which the code prints"


RULES: tuple[Rule, ...] = (
    image_has_the_packages_version,
    pods_are_restricted,
    selectors_choose_the_pods,
    ports_agree,
    the_kubelet_waits_for_the_end,
    mounts_have_volumes,
    tls_secret_is_mounted_where_the_flags_look,
)
