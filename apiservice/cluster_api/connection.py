"""Connects to the Kubernetes API server and translates its errors. Only this package imports kubernetes."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import urllib3
import yaml
from kubernetes import config
from kubernetes.client import ApiClient, ApiException, Configuration
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME

from adapter.errors import AdapterError, one_line
from adapter.https import object_in, reason_of
from adapter.tls import certificate_fault, client_context
from apiservice.auth.caller import Lane
from apiservice.auth.cluster_settings import ClusterUnreachable

Answer = TypeVar("Answer")
Client = ApiClient
Json = dict[str, Any]
"""A Kubernetes object. Each kind has a different shape, hence `Any`."""

# The library has no annotations for these.
_load_kubeconfig: Callable[..., None] = config.load_kube_config
_load_service_account: Callable[..., None] = config.load_incluster_config

CALL_SECONDS = 3.0
LANE_THREADS = 4  # concurrent reviews per lane


class _Connection(urllib3.connection.HTTPSConnection):
    """Loads the CA and the client certificate into a context of ours anew, because their files rotate."""

    def connect(self) -> None:
        self.ssl_context = client_context()
        if not self.ca_certs and not self.ca_cert_data:
            self.ssl_context.load_default_certs()
        super().connect()


class _Pool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Connection


def connect(kubeconfig: Path | None) -> Client:
    """Returns a client for the kubeconfig file, or for the cluster this process runs in; raises AdapterError."""
    if kubeconfig is None and SERVICE_HOST_ENV_NAME not in os.environ:
        raise AdapterError("not running in a Kubernetes cluster, so --kubeconfig FILE is required")
    if kubeconfig is not None and not kubeconfig.exists():
        raise AdapterError(f"kubeconfig {kubeconfig} does not exist")
    configuration = Configuration()
    place = f"kubeconfig {kubeconfig}" if kubeconfig else "the service account of this pod"
    try:
        if kubeconfig is None:
            _load_service_account(configuration)
        else:
            _load_kubeconfig(str(kubeconfig), client_configuration=configuration, persist_config=False)
    # The library does not validate the file, so any exception can surface here.
    except Exception as error:
        is_clear = isinstance(error, config.ConfigException | OSError | yaml.YAMLError)
        why = (getattr(error, "strerror", None) or reason_of(error)) if is_clear else "it does not have the right form"
        raise AdapterError(f"{place} cannot be used: {one_line(why)}") from error
    if not configuration.verify_ssl:
        raise AdapterError(f"{place} has insecure-skip-tls-verify, but callers' tokens are sent there; use its CA")
    # A retry by the library would exceed the deadline; `calling` makes the one that is useful.
    configuration.retries = False
    configuration.keep_alive = True
    # Two watches, the registration, the last commits, the Lease, changes of HPAs, Events and discovery.
    configuration.connection_pool_maxsize = len(Lane) * LANE_THREADS + 8
    client = ApiClient(configuration)
    client.rest_client.pool_manager.pool_classes_by_scheme = {"http": urllib3.HTTPConnectionPool, "https": _Pool}
    client.user_agent = "kafka-lag-adapter"
    return client


def authorization_of(client: Client) -> str:
    """Returns the header `Authorization` with the token as its file has it now (within a minute of a rotation)."""
    try:
        header = client.configuration.auth_settings().get("BearerToken", {}).get("value")
    except (config.ConfigException, OSError) as error:
        raise AdapterError(f"the token of this adapter cannot be read: {one_line(reason_of(error))}") from error
    if not header:
        raise AdapterError("this adapter has no token: its kubeconfig authenticates in another way")
    return str(header).strip()


def calling(call: Callable[[], Answer], repeat: int = 0) -> Answer:
    """Calls and translates errors to ClusterUnreachable. Repeats the call if a pooled connection had been closed."""
    try:
        return call()
    # ConfigException: the token's file is gone; ValueError: an unexpected answer.
    except (urllib3.exceptions.HTTPError, ApiException, config.ConfigException, OSError, ValueError) as error:
        if repeat and isinstance(error, urllib3.exceptions.ProtocolError):
            return calling(call, repeat - 1)
        # ApiException: only for a failed TLS handshake, because responses are checked by their status.
        why = error.reason if isinstance(error, ApiException) else error
        fault = certificate_fault(why, "the CA in its kubeconfig or service account")
        said = f"it {fault}" if fault else one_line(reason_of(why))
        raise ClusterUnreachable(f"the Kubernetes API server cannot be reached: {said}") from error


def send(
    client: Client,
    method: str,
    path: str,
    *,
    query: Sequence[tuple[str, str]] = (),
    body: object = None,
    content_type: str = "application/json",
    timeout_seconds: float = CALL_SECONDS,
) -> urllib3.BaseHTTPResponse:
    """Returns the response, whatever its status, with its body unread."""

    def request() -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        serialized = client.param_serialize(
            method, path, query_params=[*query], header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        timeouts = (CALL_SECONDS, timeout_seconds)
        response: urllib3.BaseHTTPResponse = client.call_api(*serialized, _request_timeout=timeouts).response
        return response

    return calling(request, repeat=1)


def content(response: urllib3.BaseHTTPResponse, most_bytes: int | None = None) -> bytes:
    """Returns the body of a 2xx response, or its beginning; raises ClusterUnreachable for any other."""
    body = calling(lambda: response.read(most_bytes))
    if 200 <= response.status < 300:
        return body
    raise refusal(response, body)


def refusal(response: urllib3.BaseHTTPResponse, body: bytes) -> ClusterUnreachable:
    """Returns the error of a response that is not 2xx."""
    text = f"the Kubernetes API server answered {response.status}: {object_in(body).get('message') or response.reason}"
    return ClusterUnreachable(text, response.status)


def json_object(text: bytes) -> Json:
    if not (value := object_in(text)):
        raise ClusterUnreachable("the Kubernetes API server returned no JSON object")
    return value
