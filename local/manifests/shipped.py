"""All shipped manifests as one value that the rules read, and their common terms.

A missing key is None, never an exception; the rules report it as a problem of its file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NAME = "kafka-lag-adapter"
"""The name of the product: of the namespace, the Service, the image and the label."""

KUSTOMIZATION = "kustomization.yaml"
DEPLOYMENT = "base/deployment.yaml"
CLUSTER_SCOPED = {"Namespace", "ClusterRole", "ClusterRoleBinding", "APIService"}

Manifest = dict[str, Any]
"""One Kubernetes object, as parsed from YAML."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """`files` has the content of each file by its name below the folder; a patch is a list.

    `version` is the package's."""

    files: Mapping[str, Any]
    version: str

    @property
    def objects(self) -> dict[str, Manifest]:
        """Returns the objects for the cluster, without kustomizations and patches."""
        return {
            name: found
            for name, found in self.files.items()
            if not name.endswith(KUSTOMIZATION) and isinstance(found, dict)
        }

    def added(self, patch: str) -> dict[str, list[Any]]:
        """Returns what a patch adds to lists, by the list's key, such as `volumes`."""
        found: dict[str, list[Any]] = {}
        for operation in self.files.get(patch, []):
            value = operation.get("value")
            key = operation.get("path", "").removesuffix("/-").rpartition("/")[2]
            found.setdefault(key, []).extend(value if isinstance(value, list) else [value])
        return found

    @property
    def kustomization(self) -> Manifest:
        found: Manifest = self.files.get(KUSTOMIZATION, {})
        return found

    def of_kind(self, kind: str) -> Iterator[tuple[str, Manifest]]:
        return ((name, found) for name, found in self.objects.items() if found["kind"] == kind)

    def names(self, kind: str) -> set[str]:
        return {at(found, "metadata.name") for _, found in self.of_kind(kind)}

    @property
    def deployment(self) -> Manifest:
        return self.objects.get(DEPLOYMENT, {})

    @property
    def pod(self) -> Manifest:
        return at(self.deployment, "spec.template.spec") or {}

    @property
    def pods(self) -> dict[str, Manifest]:
        """Returns the pods' specs by the file that makes them: the Deployment's, CronJobs', the Spark operator's."""
        jobs = self.of_kind("CronJob")
        return {
            DEPLOYMENT: self.pod,
            **{name: at(job, "spec.jobTemplate.spec.template.spec") or {} for name, job in jobs},
            **{
                f"{name}, {role}": _operators_pod(at(found, "spec.template") or {}, role)
                for name, found in self.of_kind("ScheduledSparkApplication")
                for role in ("driver", "executor")
            },
        }

    @property
    def container(self) -> Manifest:
        return next(iter(self.pod.get("containers", [])), {})

    @property
    def pod_labels(self) -> Mapping[str, str]:
        return at(self.deployment, "spec.template.metadata.labels") or {}

    @property
    def ports(self) -> dict[str, int]:
        """Returns the container's ports by name."""
        return {port.get("name", ""): port.get("containerPort", 0) for port in self.container.get("ports", [])}

    @property
    def flags(self) -> dict[str, str]:
        """Returns the container's `--flag=value` arguments."""
        return dict(flag.removeprefix("--").split("=", 1) for flag in self.container.get("args", []) if "=" in flag)


Rule = Callable[[Shipped], Iterator[str]]


def placed(document: Manifest, namespace: str) -> Manifest:
    """Returns the object in that namespace, as the kustomization's NamespaceTransformer does: set namespaces stay."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    changed: Manifest = {}
    if document["kind"] not in CLUSTER_SCOPED:
        changed["metadata"] = {"namespace": namespace, **metadata}
    if document["kind"] in {"RoleBinding", "ClusterRoleBinding"}:
        changed["subjects"] = [{"namespace": namespace, **subject} for subject in document["subjects"]]
    if document["kind"] == "APIService":
        changed["spec"] = {**spec, "service": {"namespace": namespace, **spec["service"]}}
    return {**document, **changed}


def _operators_pod(template: Manifest, role: str) -> Manifest:
    """Returns what the Spark operator makes of a SparkApplication's template, as far as it concerns the pod."""
    container = template.get(role) or {}
    return {
        "containers": [container],
        "securityContext": container.get("podSecurityContext") or {},
        "volumes": template.get("volumes") or [],
    }


def at(found: object, path: str) -> Any:  # noqa: ANN401 - a YAML file can contain anything
    """Returns `at(object, "spec.ports")`; None if there is no such path."""
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
