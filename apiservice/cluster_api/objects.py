"""Reads and writes single objects as plain JSON: the client library's models of them take 80 MB."""

import json

import urllib3

from apiservice.cluster_api.connection import Client, Json, calling, content, json_object, send

MANAGER = "kafka-lag-adapter"
"""The field manager: the API server records which fields this program has written."""


class ClusterObjects:
    """Every method raises ClusterUnreachable."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, path: str) -> Json | None:
        """Returns the object, or None if it does not exist."""
        response = send(self._client, "GET", path)
        return None if response.status == 404 else json_object(content(response))

    def replace(self, path: str, document: Json) -> bool:
        """Returns False and writes nothing if the object has changed since the document was read."""
        query = [("fieldManager", MANAGER)]
        response = send(self._client, "PUT", path, query=query, body=document)
        return _is_written(response)

    def merge(self, path: str, change: Json) -> bool:
        """Changes the fields that are named. Returns False and writes nothing if another resource version is there."""
        kind, query = "application/merge-patch+json", [("fieldManager", MANAGER)]
        return _is_written(send(self._client, "PATCH", path, query=query, body=change, content_type=kind))

    def apply(self, path: str, document: Json, *, force: bool) -> bool:
        """Applies on the server. Returns False and writes nothing if another resource version is there or, without
        `force`, if another manager has set one of the fields to another value."""
        query = [("fieldManager", MANAGER), ("force", str(force).lower())]
        kind = "application/apply-patch+yaml"  # the client library encodes only what is named JSON
        response = send(self._client, "PATCH", path, query=query, body=json.dumps(document), content_type=kind)
        return _is_written(response)


def _is_written(response: urllib3.BaseHTTPResponse) -> bool:
    if response.status == 409:
        calling(lambda: response.data)  # frees the connection
        return False
    content(response)
    return True
