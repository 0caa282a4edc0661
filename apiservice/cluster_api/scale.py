"""Reads and writes the number of replicas of one object, by its subresource `scale`."""

from dataclasses import dataclass

from apiservice.cluster_api.connection import Json
from apiservice.cluster_api.objects import ClusterObjects

SCALED_KINDS = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
"""Of the API group apps -> their resource: what the shipped ClusterRole may scale."""
ATTEMPTS = 3
"""The status of a Deployment changes its version as well, while its pods start or end."""


@dataclass(frozen=True, slots=True)
class Scale:
    path: str
    document: Json

    @property
    def replicas(self) -> int:
        """The number that is wanted; kube-apiserver leaves out a 0."""
        return int((self.document.get("spec") or {}).get("replicas") or 0)


def scale_path(namespace: str, resource: str, name: str) -> str:
    """`resource`: one of the API group apps."""
    return f"/apis/apps/v1/namespaces/{namespace}/{resource}/{name}/scale"


def read_scale(objects: ClusterObjects, path: str) -> Scale | None:
    """Returns None if there is no such object; raises ClusterUnreachable."""
    document = objects.read(path)
    return None if document is None else Scale(path, document)


def write_replicas(objects: ClusterObjects, scale: Scale, replicas: int) -> bool:
    """Returns False, and writes nothing, if others have changed the number since it was read, or the object again and
    again. Raises ClusterUnreachable."""
    current: Scale | None = scale
    for _ in range(ATTEMPTS):
        if current is None or current.replicas != scale.replicas:
            return False
        spec = {**(current.document.get("spec") or {}), "replicas": replicas}
        if objects.replace(scale.path, {**current.document, "spec": spec}):
            return True
        current = read_scale(objects, scale.path)
    return False
