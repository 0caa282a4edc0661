"""Reads and watches the ConfigMap with the cluster's settings for authentication.

The ConfigMap stays plain JSON, because importing the client's CoreV1Api takes 80 MB. The watch is our own, because the
client's does not end when it is stopped."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from apiservice.auth.cluster_settings import ClusterUnreachable, Data
from apiservice.cluster_api.connection import CALL_SECONDS, Client, calling, content, json_object, send

WATCH_SECONDS = 240  # then the API server ends the watch and the ConfigMap is read again
_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
# The Role we ship allows list and watch of this one name only.
_ONE_NAME = ("fieldSelector", "metadata.name=extension-apiserver-authentication")


class AuthenticationConfig:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._watch: urllib3.BaseHTTPResponse | None = None
        self._is_interrupted = False

    def read_authentication(self) -> tuple[Data | None, str]:
        reply = json_object(content(self._send([_ONE_NAME], CALL_SECONDS)))
        items = reply.get("items") or []
        version = str((reply.get("metadata") or {}).get("resourceVersion") or "")
        return (_data(items[0]) if items else None), version

    def follow_authentication(self, version: str) -> Iterator[Data]:
        query = [_ONE_NAME, ("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", str(WATCH_SECONDS))]
        self._watch = self._send(query, WATCH_SECONDS + 10)
        try:
            if self._watch.status != 200:
                content(self._watch)
            for line in _lines(self._watch) if not self._is_interrupted else ():
                event = json_object(line)
                if event.get("type") == "ERROR":
                    return  # usually: the version is too old; the next read returns a newer one
                if event.get("type") in {"ADDED", "MODIFIED"}:
                    yield _data(event.get("object") or {})
        finally:
            self._watch.close()
            self._watch = None

    def interrupt(self) -> None:
        self._is_interrupted = True  # set first, so that a watch that begins now sees it
        watch = self._watch
        if watch is not None:
            with contextlib.suppress(ClusterUnreachable):  # it has just ended by itself
                calling(watch.shutdown)

    def _send(self, query: list[tuple[str, str]], timeout_seconds: float) -> urllib3.BaseHTTPResponse:
        return send(self._client, "GET", _CONFIG_MAPS, query=query, timeout_seconds=timeout_seconds)


def _data(config_map: Mapping[str, Any]) -> Data:
    return dict(config_map.get("data") or {})


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    chunks = response.stream(amt=None)
    while (chunk := calling(lambda: next(chunks, None))) is not None:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())
