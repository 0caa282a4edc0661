"""The Kubernetes API server: reviews of tokens and permissions, and the ConfigMap that says whom to believe.

The only `import kubernetes`. Reviews use the client's own models. The ConfigMap stays plain JSON, as importing the
client's CoreV1Api takes 80 MB, and its watch is our own, as the client's does not end when it is stopped.
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
from kubernetes.client import (
    ApiClient,
    ApiException,
    AuthenticationV1Api,
    AuthorizationV1Api,
    Configuration,
    V1NonResourceAttributes,
    V1ResourceAttributes,
    V1SubjectAccessReview,
    V1SubjectAccessReviewSpec,
    V1TokenReview,
    V1TokenReviewSpec,
    V1TokenReviewStatus,
)
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME

from adapter.errors import AdapterError
from apiservice.auth.caller import Attributes, Caller, Lane
from apiservice.auth.cluster_settings import ClusterUnreachable, Data

Answer = TypeVar("Answer")
Status = TypeVar("Status")
Review = TypeVar("Review", V1TokenReview, V1SubjectAccessReview)
Json = dict[str, Any]
"""A Kubernetes object. Each kind has a different shape, hence `Any`."""

# The library has no annotations for these.
_load_kubeconfig: Callable[..., None] = config.load_kube_config
_load_service_account: Callable[..., None] = config.load_incluster_config

REVIEW_SECONDS = 3.0
LANE_THREADS = 4  # concurrent reviews per lane
WATCH_SECONDS = 240  # then the API server ends the watch and the ConfigMap is read again
_RESOURCE_ATTRIBUTES = ("verb", "namespace", "group", "version", "resource", "subresource", "name")
_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
# The Role we ship allows list and watch of this one name only.
_ONE_NAME = ("fieldSelector", "metadata.name=extension-apiserver-authentication")


class ClusterUnknown(AdapterError):
    """The API server's address or credentials are unknown; the message says what to do."""


class Cluster:
    def __init__(self, configuration: Configuration) -> None:
        # A retry by the library would exceed the deadline; `_calling` makes the one that is useful.
        configuration.retries = False
        configuration.keep_alive = True
        configuration.connection_pool_maxsize = len(Lane) * LANE_THREADS + 1  # one for the watch
        self._client = ApiClient(configuration)
        self._client.user_agent = "kafka-lag-adapter"
        # Threads start with the first review of their lane.
        self._threads = {lane: ThreadPoolExecutor(LANE_THREADS, f"review-{lane.value}") for lane in Lane}
        self._authentication = AuthenticationV1Api(self._client)
        self._authorization = AuthorizationV1Api(self._client)
        self._watch: urllib3.BaseHTTPResponse | None = None
        self._is_interrupted = False

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        """Returns the token's owner, or None if the token is invalid. Raises ClusterUnreachable."""
        review = V1TokenReview(
            api_version="authentication.k8s.io/v1", kind="TokenReview", spec=V1TokenReviewSpec(token=token)
        )
        answer = await self._asked(lane, self._authentication.create_token_review, review)
        return _caller_of(_given(answer.status))

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        """Returns whether the caller is allowed, and the authorizer's reason, which may be empty. Raises
        ClusterUnreachable.
        """
        review = V1SubjectAccessReview(
            api_version="authorization.k8s.io/v1", kind="SubjectAccessReview", spec=_wish(caller, attributes)
        )
        answer = await self._asked(lane, self._authorization.create_subject_access_review, review)
        status = _given(answer.status)
        return bool(status.allowed and not status.denied), status.reason or ""

    def read_authentication(self) -> tuple[Data | None, str]:
        """See `AuthenticationSource`."""
        reply = _object(self._send([_ONE_NAME], REVIEW_SECONDS))
        items = reply.get("items") or []
        version = str((reply.get("metadata") or {}).get("resourceVersion") or "")
        return (_data(items[0]) if items else None), version

    def follow_authentication(self, version: str) -> Iterator[Data]:
        """See `AuthenticationSource`."""
        query = [_ONE_NAME, ("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", str(WATCH_SECONDS))]
        self._watch = self._send(query, WATCH_SECONDS + 10)
        try:
            for line in _lines(self._watch) if not self._is_interrupted else ():
                event = _json(line)
                if event.get("type") == "ERROR":
                    return  # usually: the version is too old; the next read returns a newer one
                if event.get("type") in {"ADDED", "MODIFIED"}:
                    yield _data(event.get("object") or {})
        finally:
            self._watch.close()
            self._watch = None

    def interrupt(self) -> None:
        """See `AuthenticationSource`."""
        self._is_interrupted = True  # set first, so that a watch that begins now sees it
        watch = self._watch
        if watch is not None:
            with contextlib.suppress(ClusterUnreachable):  # it has just ended by itself
                _calling(watch.shutdown)

    def close(self) -> None:
        """Drops reviews that have not begun; those in progress end at their deadline."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    async def _asked(self, lane: Lane, create: Callable[..., Review], review: Review) -> Review:
        """Returns the review with its status, within the deadline even if all threads of the lane are busy."""

        def ask() -> Review:
            return _calling(lambda: create(review, _request_timeout=(REVIEW_SECONDS, REVIEW_SECONDS)), repeat=1)

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(REVIEW_SECONDS):
                return await loop.run_in_executor(self._threads[lane], ask)
        except TimeoutError as error:
            raise ClusterUnreachable(f"the Kubernetes API server did not answer within {REVIEW_SECONDS} s") from error

    def _send(self, query: list[tuple[str, str]], timeout_seconds: float) -> urllib3.BaseHTTPResponse:
        """Requests ConfigMaps and returns the 2xx response with its body unread."""

        def send() -> urllib3.BaseHTTPResponse:
            request = self._client.param_serialize(
                "GET",
                _CONFIG_MAPS,
                query_params=query,
                header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
            )
            timeouts = (REVIEW_SECONDS, timeout_seconds)
            response: urllib3.BaseHTTPResponse = self._client.call_api(*request, _request_timeout=timeouts).response
            return response

        response = _calling(send, repeat=1)
        if not 200 <= response.status < 300:
            body = _calling(lambda: response.data).decode("utf-8", "replace")
            raise ClusterUnreachable(_refusal(ApiException(response.status, response.reason, body=body)))
        return response


def connect(kubeconfig: Path | None) -> Cluster:
    """Returns the cluster of the kubeconfig file, or the one this process runs in; raises ClusterUnknown."""
    if kubeconfig is None and SERVICE_HOST_ENV_NAME not in os.environ:
        raise ClusterUnknown("not running in a Kubernetes cluster: name one with --kubeconfig FILE")
    configuration = Configuration()
    try:
        if kubeconfig is None:
            _load_service_account(configuration)
        else:
            _load_kubeconfig(str(kubeconfig), client_configuration=configuration, persist_config=False)
    # The library does not validate the file, so any exception can surface here.
    except Exception as error:
        place = f"kubeconfig {kubeconfig}" if kubeconfig else "the service account of this pod"
        raise ClusterUnknown(f"{place} cannot be used: {_one_line(error)}") from error
    return Cluster(configuration)


def _wish(caller: Caller, attributes: Attributes) -> V1SubjectAccessReviewSpec:
    named = {name: getattr(attributes, name) or None for name in _RESOURCE_ATTRIBUTES}
    path = V1NonResourceAttributes(path=attributes.path, verb=attributes.verb)
    return V1SubjectAccessReviewSpec(
        user=caller.name,
        uid=caller.uid or None,
        groups=list(caller.groups),
        extra={key: list(values) for key, values in caller.extra} or None,
        resource_attributes=V1ResourceAttributes(**named) if attributes.group else None,
        non_resource_attributes=None if attributes.group else path,
    )


def _given(status: Status | None) -> Status:
    if status is None:
        raise ClusterUnreachable("the Kubernetes API server answered a review without a status")
    return status


def _caller_of(status: V1TokenReviewStatus) -> Caller | None:
    user = status.user
    if not status.authenticated or user is None or not user.username:
        return None
    extra = tuple((key, tuple(values)) for key, values in sorted((user.extra or {}).items()))
    return Caller(name=user.username, uid=user.uid or "", groups=tuple(user.groups or ()), extra=extra)


def _calling(call: Callable[[], Answer], repeat: int = 0) -> Answer:
    """Calls and translates errors to ClusterUnreachable. Repeats the call if a pooled connection had been closed."""
    try:
        return call()
    except urllib3.exceptions.ProtocolError as error:
        if repeat:
            return _calling(call, repeat - 1)
        raise ClusterUnreachable(_unreachable(error)) from error
    except ApiException as error:
        raise ClusterUnreachable(_refusal(error)) from error
    # ConfigException: the token's file is gone; ValueError: an unexpected answer.
    except (urllib3.exceptions.HTTPError, config.ConfigException, OSError, ValueError) as error:
        raise ClusterUnreachable(_unreachable(error)) from error


def _unreachable(error: Exception) -> str:
    return f"the Kubernetes API server cannot be reached: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _object(response: urllib3.BaseHTTPResponse) -> Json:
    return _json(_calling(lambda: response.data))


def _json(text: bytes | str) -> Json:
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
    rest = b""
    chunks = response.stream(amt=None)
    while (chunk := _calling(lambda: next(chunks, None))) is not None:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())


def _refusal(error: ApiException) -> str:
    """Returns the status code with the message of the Kubernetes `Status`, if there is one."""
    try:
        message = _json(error.body or b"").get("message")
    except ClusterUnreachable:
        message = None
    return f"the Kubernetes API server answered {error.status}: {message or error.reason}"
