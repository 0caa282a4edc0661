"""Reviews of tokens and permissions by the Kubernetes API server, as plain JSON like all other objects."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from apiservice.auth.caller import Attributes, Caller, Lane
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import CALL_SECONDS, LANE_THREADS, Client, Json, content, json_object, send

_RESOURCE_ATTRIBUTES = ("verb", "namespace", "group", "version", "resource", "subresource", "name")


class ClusterReviews:
    """Implements `Reviews`."""

    def __init__(self, client: Client) -> None:
        # Threads start with the first review of their lane.
        self._threads = {lane: ThreadPoolExecutor(LANE_THREADS, f"review-{lane.value}") for lane in Lane}
        # A review waits here for a thread: in a thread pool it would stay although nobody waits for it any more.
        self._free = {lane: asyncio.Semaphore(LANE_THREADS) for lane in Lane}
        self._client = client

    async def review_token(self, token: str, lane: Lane) -> Caller | None:
        status = await self._status(lane, "authentication.k8s.io/v1", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            return None
        extra = tuple((key, tuple(values)) for key, values in sorted((user.get("extra") or {}).items()))
        return Caller(user["username"], user.get("uid") or "", tuple(user.get("groups") or ()), extra)

    async def review_access(self, caller: Caller, attributes: Attributes, lane: Lane) -> tuple[bool, str]:
        spec = _wish(caller, attributes)
        status = await self._status(lane, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return status.get("allowed") is True and not status.get("denied"), status.get("reason") or ""

    def close(self) -> None:
        """Drops reviews that have not begun; those in progress end at their deadline."""
        for threads in self._threads.values():
            threads.shutdown(wait=False, cancel_futures=True)

    async def _status(self, lane: Lane, version: str, kind: str, spec: Json) -> Json:
        """Returns the review's status, within the deadline even if all threads of the lane are busy."""

        def ask() -> Json:
            review = {"apiVersion": version, "kind": kind, "spec": spec}
            answer = json_object(content(send(self._client, "POST", f"/apis/{version}/{kind.lower()}s", body=review)))
            if not isinstance(answer.get("status"), dict):
                raise ClusterUnreachable("the Kubernetes API server answered a review without a status")
            return dict(answer["status"])

        def end(call: asyncio.Future[Json]) -> None:
            self._free[lane].release()
            call.exception()  # retrieve it, or asyncio complains if nobody waits any more

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._free[lane].acquire()
                calls = [loop.run_in_executor(self._threads[lane], ask)]
                calls[0].add_done_callback(end)
                await asyncio.wait(calls)
                return calls.pop().result()  # an error of a local variable's would refer back to it
        except TimeoutError as error:
            raise ClusterUnreachable(f"the Kubernetes API server did not answer within {CALL_SECONDS} s") from error


def _wish(caller: Caller, attributes: Attributes) -> Json:
    """Returns the spec of a SubjectAccessReview."""
    extra = {key: list(values) for key, values in caller.extra}
    user = {"user": caller.name, "uid": caller.uid, "groups": list(caller.groups), "extra": extra}
    if not attributes.group:
        return {**user, "nonResourceAttributes": {"path": attributes.path, "verb": attributes.verb}}
    named = {name: getattr(attributes, name) for name in _RESOURCE_ATTRIBUTES}
    return {**user, "resourceAttributes": {name: text for name, text in named.items() if text}}
