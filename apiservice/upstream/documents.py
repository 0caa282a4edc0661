"""What the upstream may answer: values and failures, which pass as they are, and a list of metrics."""

from urllib.parse import quote

from fastapi import Response

from adapter.https import object_in
from adapter.settings.types import DNS_LABEL
from apiservice.api_group import ApiGroup
from apiservice.http.query_parameters import selectors_in
from apiservice.http.read_paths import NAMESPACES, Handle, Read
from apiservice.http.replies import json_reply
from apiservice.http.status import PathUnknown
from apiservice.upstream.client import MOST_BYTES, Reply

_LONGEST_NAME = 253
_DOTS = {".", ".."}
"""What would be another path."""
_PATHS = {*_DOTS, "status", "finalize"}
"""That, or one of Kubernetes' own below a namespace."""


def path_of(group: ApiGroup, read: Read, query: bytes) -> str:
    """Returns the path of the same read; of the query, only the selectors are passed on. Raises what our reads raise.

    Names are as in the access review: an external metric's in lower case."""
    handle, metric = read.handle, read.metric if read.handle else read.metric.lower()
    parts = [*(("namespaces", read.namespace) if read.namespace else ()), *_object_in(handle), metric]
    reserved = _PATHS if handle is None else _DOTS
    if (read.namespace and not DNS_LABEL.fullmatch(read.namespace)) or not reserved.isdisjoint(map(str.lower, parts)):
        raise PathUnknown
    selectors = selectors_in(query, group)
    given = {"labelSelector": selectors.labels}
    if handle is not None:
        given["metricLabelSelector"] = selectors.metric_labels
    passed_on = "&".join(f"{name}={quote(text, safe='')}" for name, text in given.items() if text)
    path = "/".join([group.path, *(quote(part, safe="") for part in parts)])
    return f"{path}?{passed_on}" if passed_on else path


def _object_in(handle: Handle | None) -> tuple[str, ...]:
    if handle is None:
        return ()
    return ("metrics",) if handle.resource == NAMESPACES else (handle.resource, handle.name)


def response_of(group: ApiGroup, reply: Reply) -> Response | str:
    """Returns the reply for our client, or why there is none, as the end of a sentence about the upstream."""
    if len(reply.body) > MOST_BYTES:
        return f"sent more than {MOST_BYTES // 1024} KiB"
    if reply.code == 401:
        # It would blame the credentials of the caller, which are valid.
        return "does not accept the token of this adapter's ServiceAccount"
    document = object_in(reply.body)
    if 200 <= reply.code < 300:
        items = document.get("items") or []  # Go writes null for none
        is_valid = document.get("kind") == group.list_kind and isinstance(items, list)
        is_valid = is_valid and all(isinstance(item, dict) and "value" in item for item in items)
    else:
        is_valid = document.get("kind") == "Status" and 400 <= reply.code < 600
    return json_reply(reply.body, reply.code) if is_valid else f"sent no reply of the metrics API (status {reply.code})"


def names_in(group: ApiGroup, reply: Reply) -> tuple[str, ...] | str:
    """Returns the metrics of an APIResourceList, sorted, or what is wrong as in `response_of`."""
    document = object_in(reply.body)
    if reply.code != 200:
        message = str(document.get("message") or "no reason")
        return f"does not list its metrics: status {reply.code}, {message[:200]}"
    resources = document.get("resources")
    if document.get("kind") != "APIResourceList" or not isinstance(resources, list):
        return "does not list its metrics: it sent no APIResourceList"
    names = {each["name"] for each in resources if isinstance(each, dict) and isinstance(each.get("name"), str)}
    slashes = 1 if group.describes_objects else 0
    return tuple(sorted(name for name in names if _is_name(name) and name.count("/") == slashes))


def merged(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """Returns each name once, in whatever case; ours win."""
    names = {name.lower(): name for name in reversed(theirs)}
    for name in ours:
        names.pop(name.lower(), None)
    return (*ours, *sorted(names.values()))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and " " not in name
