"""A text in a ConfigMap that outlives the process and is shared by the replicas."""

from collections.abc import Callable

from kubernetes.client import ApiException

from adapter.errors import NotKept
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import CALL_SECONDS, Client, Json, calling, json_object, refusal

KEY = "last-commits.json"
ATTEMPTS = 3
"""If another replica writes between reading and writing."""
_CONFLICT = 409
_LASTING = {403, 404}
"""A permission or the ConfigMap is missing."""


class KeptText:
    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    def exchange(self, change: Callable[[str], str]) -> None:
        """Replaces the text by what `change` makes of it; raises NotKept or ClusterUnreachable."""
        for _ in range(ATTEMPTS):
            found = self._send("GET")
            text = (found.get("data") or {}).get(KEY, "")
            changed = change(text)
            if changed == text:
                return
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            if self._send("PATCH", {"metadata": version, "data": {KEY: changed}}):
                return
        raise ClusterUnreachable(f"others keep changing {self._path}")

    def _send(self, method: str, body: Json | None = None) -> Json:
        """Returns the ConfigMap; nothing if another version than that of `body` exists."""

        def send() -> tuple[int, bytes]:
            request = self._client.param_serialize(
                method,
                self._path,
                header_params={"Accept": "application/json", "Content-Type": "application/merge-patch+json"},
                body=body,
                auth_settings=["BearerToken"],
            )
            response = self._client.call_api(*request, _request_timeout=(CALL_SECONDS, CALL_SECONDS)).response
            return response.status, response.data

        status, content = calling(send, repeat=1)
        if status == _CONFLICT:
            return {}
        if not 200 <= status < 300:
            error = ApiException(status, body=content.decode("utf-8", "replace"))
            raise (NotKept if status in _LASTING else ClusterUnreachable)(refusal(error))
        return json_object(content)
