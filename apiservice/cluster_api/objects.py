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


def _date_of(response: urllib3.BaseHTTPResponse) -> datetime:
    """Returns this machine's time if the response has none."""
    try:
        return parsedate_to_datetime(response.headers["Date"]).astimezone(UTC)
    except (KeyError, ValueError):
        return datetime.now(UTC)


def _is_written(response: urllib3.BaseHTTPResponse) -> bool:
    if response.status == 409:
        response.drain_conn()
        return False
    content(response)
    return True
