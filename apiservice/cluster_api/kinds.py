"""The kind and version of a resource, as the API server's discovery has them, for references to objects."""

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from cachetools import TTLCache

from adapter import clock
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import Client, Json, content, json_object, send
from apiservice.single_flight import SingleFlight

DEADLINE_SECONDS = 1.0
"""A reply waits no longer for the kind, which no HPA needs."""
KEPT_SECONDS, MISSING_KEPT_SECONDS = 600.0, 30.0
"""A CustomResourceDefinition may be created later; and a server that does not answer is not asked for each read."""
MOST_AT_ONCE = 4
"""Groups that are read at the same time: kube-apiserver passes the request on to another server, which may hang."""
MOST_KEPT = 256
MOST_VERSIONS = 5
MOST_BYTES = 1024 * 1024

_NAME = re.compile(r"[a-z0-9][-a-z0-9]{0,62}(?:\.[a-z0-9][-a-z0-9.]{0,252})?")

Kinds = Mapping[str, tuple[str, str]]
"""Resource without its group -> kind and version, such as `KafkaTopic` and `kafka.strimzi.io/v1beta2`."""


class ClusterKinds:
    """For one event loop."""

    def __init__(self, client: Client, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._client = client
        self._found: TTLCache[str, Kinds] = TTLCache(MOST_KEPT, KEPT_SECONDS, monotonic)
        self._missing: TTLCache[str, None] = TTLCache(MOST_KEPT, MISSING_KEPT_SECONDS, monotonic)
        self._reads: SingleFlight[str, Kinds] = SingleFlight()
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="kinds")

    async def of(self, resource: str) -> tuple[str, str] | None:
        """Returns kind and version; None if discovery lacks the resource, or does not answer in time."""
        plural, _, group = resource.partition(".")
        kinds = self._found.get(group) or {}
        if plural not in kinds and resource not in self._missing and _NAME.fullmatch(resource):
            kinds = self._found[group] = {**kinds, **await self._read(group)}
            if plural not in kinds:
                self._missing[resource] = None
        return kinds.get(plural)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _read(self, group: str) -> Kinds:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await self._reads.result(group, lambda: self._in_thread(group))
        # Any server may serve the group, and send anything.
        except (TimeoutError, ClusterUnreachable, AttributeError, KeyError, TypeError):
            return {}

    async def _in_thread(self, group: str) -> Kinds:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._kinds_of, group)

    def _kinds_of(self, group: str) -> Kinds:
        """Of several versions that have a resource, the preferred one counts."""
        if not group:
            return _kinds_in(self._document("/api/v1"))
        document = self._document(f"/apis/{group}")
        named = [document.get("preferredVersion") or {}, *(document.get("versions") or ())]
        versions = dict.fromkeys(each["groupVersion"] for each in named if "groupVersion" in each)
        found: dict[str, tuple[str, str]] = {}
        for version in [*versions][:MOST_VERSIONS]:
            found = {**_kinds_in(self._document(f"/apis/{version}")), **found}
        return found

    def _document(self, path: str) -> Json:
        return json_object(content(send(self._client, "GET", path, timeout_seconds=DEADLINE_SECONDS), MOST_BYTES))


def _kinds_in(resources: Json) -> Kinds:
    """`resources`: an APIResourceList."""
    version = resources.get("groupVersion", "")
    return {each["name"]: (each["kind"], version) for each in resources.get("resources") or ()}
