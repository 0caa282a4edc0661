"""The Kubernetes API server: reviews of tokens and permissions, and the ConfigMap that says whom to believe.

The only `import kubernetes`. Its client carries connections and credentials; requests and replies stay plain JSON,
because the client's models for the three kinds used here would cost memory and say no more.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, ApiException, Configuration
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME

from adapter.errors import AdapterError
from apiservice.access import Attributes, Caller, Lane
from apiservice.authentication import ClusterUnreachable, Data

Answer = TypeVar("Answer")
Json = dict[str, Any]
"""A Kubernetes object. `Any`, because each kind has another shape and every field is read with a default."""

# The library does not annotate them.
_load_kubeconfig: Callable[..., None] = config.load_kube_config
_load_service_account: Callable[..., None] = config.load_incluster_config

REVIEW_SECONDS = 3.0
LANE_THREADS = 4  # as many reviews of one lane are under way at once
WATCH_SECONDS = 240  # then the API server ends the watch and everything is read anew, whatever was missed
_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
# The Role that is shipped for this allows list and watch of this one name only.
_ONE_NAME = ("fieldSelector", "metadata.name=extension-apiserver-authentication")


class ClusterUnknown(AdapterError):
    """Where the API server is, or how to log in there, is not known; the message says what to do."""


class Cluster:
    """One Kubernetes cluster, through its API server."""

    def __init__(self, configuration: Configuration) -> None:
        # A second attempt by the library would outlast the deadline; the one that is worth it is made in `_send`.
        configuration.retries = False
        configuration.keep_alive = True
        configuration.connection_pool_maxsize = len(Lane) * LANE_THREADS + 1  # one for the watch
        self._client = ApiClient(configuration)
        self._client.user_agent = "kafka-lag-adapter"
        # Started with the first review of their lane.
        self._threads = {lane: ThreadPoolExecutor(LANE_THREADS, f"review-{lane.value}") for lane in Lane}
        self._watch: urllib3.BaseHTTPResponse | None = None
        self._is_interrupted = False

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        """Whom a bearer token belongs to; None: it is not good. ClusterUnreachable."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        return _caller_of(await self._review(lane, "/apis/authentication.k8s.io/v1/tokenreviews", review))

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        """Whether this caller may do this, and the authorizer's reason, perhaps empty. ClusterUnreachable."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": _subject(caller) | _action(attributes),
        }
        status = await self._review(lane, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        is_allowed = status.get("allowed") is True and status.get("denied") is not True
        return is_allowed, str(status.get("reason") or "")

    def read_authentication(self) -> tuple[Data | None, str]:
        """See `AuthenticationSource`."""
        reply = _object(self._send("GET", _CONFIG_MAPS, query=[_ONE_NAME]))
        items = reply.get("items") or []
        version = str((reply.get("metadata") or {}).get("resourceVersion") or "")
        return (_data(items[0]) if items else None), version

    def follow_authentication(self, version: str) -> Iterator[Data]:
        """See `AuthenticationSource`."""
        query = [_ONE_NAME, ("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", str(WATCH_SECONDS))]
        self._watch = self._send("GET", _CONFIG_MAPS, query=query, timeout_seconds=WATCH_SECONDS + 10)
        try:
            for line in _lines(self._watch) if not self._is_interrupted else ():
                event = _json(line)
                if event.get("type") == "ERROR":
                    return  # most often: the version is too old; what is read next has a newer one
                if event.get("type") in {"ADDED", "MODIFIED"}:
                    yield _data(event.get("object") or {})
        finally:
            self._watch.close()
            self._watch = None

    def interrupt(self) -> None:
        """See `AuthenticationSource`."""
        self._is_interrupted = True  # before looking: a watch that begins now sees it
        watch = self._watch
        if watch is not None:
            with contextlib.suppress(ClusterUnreachable):  # it ended by itself at this moment
                _calling(watch.shutdown)

    def close(self) -> None:
        """Drop reviews that have not begun; those under way end at their deadline."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    async def _review(self, lane: Lane, path: str, review: Json) -> Json:
        """The status of a review, within the deadline, also while all threads of its lane wait for the API server."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(REVIEW_SECONDS):
                return await loop.run_in_executor(self._threads[lane], self._status_of, path, review)
        except TimeoutError as error:
            raise ClusterUnreachable(f"the Kubernetes API server did not answer within {REVIEW_SECONDS} s") from error

    def _status_of(self, path: str, review: Json) -> Json:
        status = _object(self._send("POST", path, body=review)).get("status")
        if not isinstance(status, dict):
            raise ClusterUnreachable(f"the Kubernetes API server answered {path} without a status")
        return status

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Json | None = None,
        timeout_seconds: float = REVIEW_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        """A reply whose status is 2xx, its body still to be read."""

        def send() -> urllib3.BaseHTTPResponse:
            request = self._client.param_serialize(
                method,
                path,
                query_params=query,
                header_params={"Accept": "application/json", "Content-Type": "application/json"},
                body=body,
                auth_settings=["BearerToken"],
            )
            timeouts = (REVIEW_SECONDS, timeout_seconds)
            response: urllib3.BaseHTTPResponse = self._client.call_api(*request, _request_timeout=timeouts).response
            return response

        response = _calling(send, repeat=1)
        if not 200 <= response.status < 300:
            raise ClusterUnreachable(f"the Kubernetes API server answered {path} with {_refusal(response)}")
        return response


def connect(kubeconfig: Path | None) -> Cluster:
    """The cluster of the kubeconfig file, else the one that this process runs in; ClusterUnknown. Asks nothing yet."""
    if kubeconfig is None and SERVICE_HOST_ENV_NAME not in os.environ:
        raise ClusterUnknown("not running in a Kubernetes cluster: name one with --kubeconfig FILE")
    configuration = Configuration()
    try:
        if kubeconfig is None:
            _load_service_account(configuration)
        else:
            _load_kubeconfig(str(kubeconfig), client_configuration=configuration, persist_config=False)
    # The library reads the file as it is: whatever is wrong in it surfaces as whatever Python raises there.
    except Exception as error:
        place = f"kubeconfig {kubeconfig}" if kubeconfig else "the service account of this pod"
        raise ClusterUnknown(f"{place} cannot be used: {_one_line(error)}") from error
    return Cluster(configuration)


def _subject(caller: Caller) -> Json:
    subject: Json = {"user": caller.name, "groups": list(caller.groups)}
    if caller.uid:
        subject["uid"] = caller.uid
    if caller.extra:
        subject["extra"] = {key: list(values) for key, values in caller.extra}
    return subject


def _action(attributes: Attributes) -> Json:
    if not attributes.group:
        return {"nonResourceAttributes": {"path": attributes.path, "verb": attributes.verb}}
    names = ("verb", "namespace", "group", "version", "resource", "subresource", "name")
    return {"resourceAttributes": {name: value for name in names if (value := getattr(attributes, name))}}


def _caller_of(status: Json) -> Caller | None:
    user = status.get("user") or {}
    if status.get("authenticated") is not True or not user.get("username"):
        return None
    extra = tuple((str(key), tuple(values)) for key, values in sorted((user.get("extra") or {}).items()))
    groups = tuple(user.get("groups") or ())
    return Caller(name=str(user["username"]), uid=str(user.get("uid") or ""), groups=groups, extra=extra)


def _calling(call: Callable[[], Answer], repeat: int = 0) -> Answer:
    """What the call gives; ClusterUnreachable. Repeated if a kept connection turns out to have been closed."""
    try:
        return call()
    except urllib3.exceptions.ProtocolError as error:
        if repeat:
            return _calling(call, repeat - 1)
        raise ClusterUnreachable(_unreachable(error)) from error
    # ConfigException: the token's file has gone; ValueError: a connection that another thread shut down.
    except (urllib3.exceptions.HTTPError, ApiException, config.ConfigException, OSError, ValueError) as error:
        raise ClusterUnreachable(_unreachable(error)) from error


def _unreachable(error: Exception) -> str:
    return f"the Kubernetes API server cannot be reached: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _object(response: urllib3.BaseHTTPResponse) -> Json:
    return _json(_calling(lambda: response.data))


def _json(text: bytes) -> Json:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ClusterUnreachable("the Kubernetes API server answered what is not JSON") from error
    if not isinstance(value, dict):
        raise ClusterUnreachable("the Kubernetes API server answered what is not an object")
    return value


def _data(config_map: Mapping[str, Any]) -> Data:
    return dict(config_map.get("data") or {})


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The lines of a reply as they arrive."""
    rest = b""
    chunks = response.stream(amt=None)
    while (chunk := _calling(lambda: next(chunks, None))) is not None:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())


def _refusal(response: urllib3.BaseHTTPResponse) -> str:
    """The status and, if the body is a Kubernetes `Status`, its message."""
    try:
        message = _object(response).get("message")
    except ClusterUnreachable:
        message = None
    return f"{response.status}: {message}" if message else str(response.status)
