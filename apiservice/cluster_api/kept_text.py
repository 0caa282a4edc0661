"""A text in a ConfigMap that outlives the process and is shared by the replicas."""

from collections.abc import Callable

from adapter.errors import StateNotPersistable
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Client, content, json_object, send
from apiservice.cluster_api.objects import ClusterObjects

KEY = "last-commits.json"
ATTEMPTS = 3
"""If another replica writes between reading and writing."""


def exchange(client: Client, namespace: str, name: str, change: Callable[[str], str]) -> None:
    """Replaces the text by what `change` makes of it; raises StateNotPersistable or ClusterUnreachable."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    try:
        is_exchanged = any(_is_exchanged(client, path, change) for _ in range(ATTEMPTS))
    except ClusterUnreachable as error:
        if error.is_lasting:
            raise StateNotPersistable(str(error)) from error
        raise
    if not is_exchanged:
        raise ClusterUnreachable(f"others keep changing {path}")


def _is_exchanged(client: Client, path: str, change: Callable[[str], str]) -> bool:
    config_map = json_object(content(send(client, "GET", path)))
    text = (config_map.get("data") or {}).get(KEY, "")
    changed = change(text)
    version = {"resourceVersion": config_map["metadata"]["resourceVersion"]}
    return changed == text or ClusterObjects(client).merge(path, {"metadata": version, "data": {KEY: changed}})
