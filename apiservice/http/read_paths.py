"""Which metric of what a path reads."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from apiservice.api_group import ApiGroup

AS_PAGE = b"output=html"
"""A query with which the path of a metric is no read of it: the framework has a page there, or nothing."""
ALL = "*"
"""In place of an object's name: all objects that `labelSelector` selects."""
NAMESPACES, PODS = "namespaces", "pods"
Kind = tuple[str, str]
"""Kind and version."""
KINDS: Mapping[str, Kind] = {
    "deployments.apps": ("Deployment", "apps/v1"),
    NAMESPACES: ("Namespace", "v1"),
    "nodes": ("Node", "v1"),
    PODS: ("Pod", "v1"),
    "services": ("Service", "v1"),
    "statefulsets.apps": ("StatefulSet", "apps/v1"),
}
"""Of frequent resources; the cluster is asked for those of others."""


class Handle(NamedTuple):
    """The object that a custom metric describes. It need not exist."""

    resource: str
    """As in the path, such as `services` or `kafkatopics.kafka.strimzi.io`."""
    namespace: str
    """Empty: the object belongs to none."""
    name: str

    def document(self, known: Kind | None, name: str = "") -> dict[str, str]:
        """Returns an ObjectReference, without a kind if it is not known; `name` replaces ours."""
        kind, version = known or ("", "")
        fields = {"kind": kind, "namespace": self.namespace, "name": name or self.name, "apiVersion": version}
        return {key: text for key, text in fields.items() if text}


class Read(NamedTuple):
    namespace: str
    """Who reads: of the HPA. Empty for an object that belongs to no namespace."""
    metric: str
    handle: Handle | None = None
    """None for an external metric."""


def reads_of(group: ApiGroup) -> Callable[[str], Read | None]:
    """Returns what finds the read of a path; None for a path that reads no metric of the group."""
    if group.describes_objects:
        return partial(_of_object, f"{group.path}/")
    return partial(_of_namespace, f"{group.path}/namespaces/")


def _of_namespace(prefix: str, path: str) -> Read | None:
    if not path.startswith(prefix):
        return None
    namespace, _, metric = path.removeprefix(prefix).removesuffix("/").partition("/")
    return Read(namespace, metric) if namespace and metric and "/" not in metric else None


def _of_object(prefix: str, path: str) -> Read | None:
    parts = path.removeprefix(prefix).removesuffix("/").split("/") if path.startswith(prefix) else []
    if not all(parts):
        return None
    match parts:
        case ["namespaces", namespace, "metrics", metric]:
            return Read(namespace, metric, Handle(NAMESPACES, "", namespace))
        case ["namespaces", namespace, resource, name, metric]:
            return Read(namespace, metric, Handle(resource.lower(), namespace, name))
        case [resource, name, metric] if resource != "namespaces":
            return Read("", metric, Handle(resource.lower(), "", name))
    return None
