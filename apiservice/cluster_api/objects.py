"""Reads and writes single objects as plain JSON: the client library's models of them take 80 MB."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import urllib3

from apiservice.cluster_api.connection import Client, Json, content, json_object, send

MANAGER = "kafka-lag-adapter"
"""The field manager: the API server records which fields this program has written."""


class ClusterObjects:
    """Every method raises ClusterUnreachable."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.answered_at = datetime.now(UTC)
        """When the latest read was answered, by the API server's clock: it also checks our certificates."""

    def read(self, path: str) -> Json | None:
        """Returns the object, or None if it does not exist."""
        response = send(self._client, "GET", path)
        self.answered_at = _date_of(response)
        if response.status == 404:
            response.drain_conn()
            return None
        return json_object(content(response))

    def create(self, path: str, document: Json) -> bool:
        """`path` is that of the kind in its namespace. Returns False and writes nothing if there is one of its name."""
        return self._is_written("POST", path, document)

    def replace(self, path: str, document: Json) -> bool:
        """Returns False and writes nothing if the object has changed since the document was read."""
        return self._is_written("PUT", path, document)

    def merge(self, path: str, change: Json) -> bool:
        """Changes the fields that are named. Returns False and writes nothing if another resource version is there."""
        return self.merged(path, change) is not None

    def merged(self, path: str, change: Json) -> Json | None:
        """Like `merge`; returns the object as it is then, or None. Without a field, it only needs the right to patch
        in order to read."""
        written = self._written("PATCH", path, change, "application/merge-patch+json")
        return None if written is None else json_object(written)

    def apply(self, path: str, document: Json, *, force: bool, manager: str = MANAGER) -> bool:
        """Applies on the server as this field manager. Returns False and writes nothing if another resource version is
        there or, without `force`, if another manager has set one of the fields to another value."""
        body = json.dumps(document)  # the client library encodes only what is named JSON
        return self._is_written(
            "PATCH", path, body, "application/apply-patch+yaml", force=str(force).lower(), fieldManager=manager
        )

    def _is_written(self, method: str, path: str, body: object, kind: str = "application/json", **options: str) -> bool:
        return self._written(method, path, body, kind, **options) is not None

    def _written(self, method: str, path: str, body: object, kind: str, **options: str) -> bytes | None:
        """Returns the reply; None after a conflict."""
        query = [*{"fieldManager": MANAGER, **options}.items()]
        response = send(self._client, method, path, query=query, body=body, content_type=kind)
        if response.status == 409:
            response.drain_conn()
            return None
        return content(response)


def _date_of(response: urllib3.BaseHTTPResponse) -> datetime:
    """Returns this machine's time if the response has none."""
    try:
        return parsedate_to_datetime(response.headers["Date"]).astimezone(UTC)
    except (KeyError, ValueError):
        return datetime.now(UTC)
