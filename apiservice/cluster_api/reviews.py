"""Reviews of tokens and permissions by the Kubernetes API server, in the client library's own models.

They are sent without the library's classes of methods, whose checks of arguments take about 2 MB."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from kubernetes import client as api

from apiservice.auth.caller import Attributes, Caller, Lane
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import CALL_SECONDS, LANE_THREADS, Client, calling, content, send

Status = TypeVar("Status")
Review = TypeVar("Review", api.V1TokenReview, api.V1SubjectAccessReview)

_RESOURCE_ATTRIBUTES = ("verb", "namespace", "group", "version", "resource", "subresource", "name")


class ClusterReviews:
    """Implements `Reviews`."""

    def __init__(self, client: Client) -> None:
        # Threads start with the first review of their lane.
        self._threads = {lane: ThreadPoolExecutor(LANE_THREADS, f"review-{lane.value}") for lane in Lane}
        self._client = client

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        spec = api.V1TokenReviewSpec(token=token)
        review = api.V1TokenReview(api_version="authentication.k8s.io/v1", kind="TokenReview", spec=spec)
        answer = await self._asked(lane, "tokenreviews", review)
        return _caller_of(_given(answer.status))

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        spec = _wish(caller, attributes)
        review = api.V1SubjectAccessReview(api_version="authorization.k8s.io/v1", kind="SubjectAccessReview", spec=spec)
        answer = await self._asked(lane, "subjectaccessreviews", review)
        status = _given(answer.status)
        return bool(status.allowed and not status.denied), status.reason or ""

    def close(self) -> None:
        """Drops reviews that have not begun; those in progress end at their deadline."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    async def _asked(self, lane: Lane, resource: str, review: Review) -> Review:
        """Returns the review with its status, within the deadline even if all threads of the lane are busy."""

        def ask() -> Review:
            body = content(send(self._client, "POST", f"/apis/{review.api_version}/{resource}", body=review)).decode()
            kind = type(review).__name__
            return cast("Review", calling(lambda: self._client.deserialize(body, kind, "application/json")))

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await loop.run_in_executor(self._threads[lane], ask)
        except TimeoutError as error:
            raise ClusterUnreachable(f"the Kubernetes API server did not answer within {CALL_SECONDS} s") from error


def _wish(caller: Caller, attributes: Attributes) -> api.V1SubjectAccessReviewSpec:
    named = {name: getattr(attributes, name) or None for name in _RESOURCE_ATTRIBUTES}
    path = api.V1NonResourceAttributes(path=attributes.path, verb=attributes.verb)
    return api.V1SubjectAccessReviewSpec(
        user=caller.name,
        uid=caller.uid or None,
        groups=list(caller.groups),
        extra={key: list(values) for key, values in caller.extra} or None,
        resource_attributes=api.V1ResourceAttributes(**named) if attributes.group else None,
        non_resource_attributes=None if attributes.group else path,
    )


def _given(status: Status | None) -> Status:
    if status is None:
        raise ClusterUnreachable("the Kubernetes API server answered a review without a status")
    return status


def _caller_of(status: api.V1TokenReviewStatus) -> Caller | None:
    user = status.user
    if not status.authenticated or user is None or not user.username:
        return None
    extra = tuple((key, tuple(values)) for key, values in sorted((user.extra or {}).items()))
    return Caller(name=user.username, uid=user.uid or "", groups=tuple(user.groups or ()), extra=extra)
