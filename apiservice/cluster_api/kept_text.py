"""A text in a ConfigMap that outlives the process and is shared by the replicas."""

from collections.abc import Callable

from adapter.errors import NotKept
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Client, content, json_object, send
from apiservice.cluster_api.objects import ClusterObjects

KEY = "last-commits.json"
ATTEMPTS = 3
"""If another replica writes between reading and writing."""
_LASTING = {403, 404}
"""A permission or the ConfigMap is missing."""


class KeptText:
    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    def exchange(self, change: Callable[[str], str]) -> None:
        """Replaces the text by what `change` makes of it; raises NotKept or ClusterUnreachable."""
        try:
            self._exchange(change)
        except ClusterUnreachable as error:
            if error.status in _LASTING:
                raise NotKept(str(error)) from error
            raise

    def _exchange(self, change: Callable[[str], str]) -> None:
        for _ in range(ATTEMPTS):
            found = json_object(content(send(self._client, "GET", self._path)))
            text = (found.get("data") or {}).get(KEY, "")
            changed = change(text)
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            news = {"metadata": version, "data": {KEY: changed}}
            if changed == text or ClusterObjects(self._client).merge(self._path, news):
                return
        raise ClusterUnreachable(f"others keep changing {self._path}")
