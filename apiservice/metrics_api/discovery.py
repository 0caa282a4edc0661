"""Discovery documents, identical on all replicas. They change only with the named metrics in the settings, and with the
list of an upstream."""

import platform
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from fastapi import Request, Response

from apiservice.api_group import GROUP, VERSION
from apiservice.http.negotiation import (
    AGGREGATED,
    accept_and_agent,
    for_client,
    is_for_people,
    prefers_aggregated,
    unless_known,
)
from apiservice.http.replies import Endpoint, encoded, etag_of, json_reply, pretty

_KIND = "ExternalMetricValueList"
_VERBS = ["get"]
"""Only "get", although access reviews call a read "list": clients that list or watch everything would try it here."""

Names = tuple[str, ...]


def routes(names: Callable[[], Names], version: str) -> dict[str, Endpoint]:
    with_slash_too = {
        "/apis": _all_groups(names),
        f"/apis/{GROUP}": _document({"kind": "APIGroup", "apiVersion": "v1", **_group()}),
        f"/apis/{GROUP}/{VERSION}": _served(lambda: _resource_list(names())),
        "/version": _document(_version_info(version)),
    }
    return with_slash_too | {f"{path}/": endpoint for path, endpoint in with_slash_too.items()}


def root(endpoints: Iterable[str]) -> dict[str, Endpoint]:
    """Lists each document's path once; a single health check has no entry of its own."""
    return {"/": _document({"paths": sorted(path for path in endpoints if not path.endswith(("/", "}")))})}


def _document(document: Mapping[str, Any]) -> Endpoint:
    response = json_reply(encoded(document))
    return _served(lambda: response)


def _served(response: Callable[[], Response]) -> Endpoint:
    async def get(request: Request) -> Response:
        return for_client(response(), request.scope)

    return get


def _all_groups(names: Callable[[], Names]) -> Endpoint:
    groups = encoded({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]})
    plain = json_reply(groups, headers={"vary": "Accept"})

    async def all_groups(request: Request) -> Response:
        accept, agent = accept_and_agent(request.scope)
        if not prefers_aggregated(accept):
            return for_client(plain, request.scope)
        aggregated = _aggregated(names())
        # Only this document may be answered with 304: kube-apiserver treats it as a failure elsewhere.
        response = unless_known(aggregated, request.scope)
        is_indented = response is aggregated and is_for_people(request.scope["query_string"], agent)
        return pretty(response) if is_indented else response

    return all_groups


def _group() -> dict[str, Any]:
    version = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
    return {"name": GROUP, "versions": [version], "preferredVersion": version}


@lru_cache(maxsize=1)
def _resource_list(names: Names) -> Response:
    resources = [
        {"name": name, "singularName": "", "namespaced": True, "kind": _KIND, "verbs": _VERBS} for name in names
    ]
    kind = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
    return json_reply(encoded({**kind, "resources": resources}))


@lru_cache(maxsize=1)
def _aggregated(names: Names) -> Response:
    resources = [
        {
            "resource": name,
            "responseKind": {"group": "", "version": "", "kind": _KIND},
            "scope": "Namespaced",
            "singularResource": "",
            "verbs": _VERBS,
        }
        for name in names
    ]
    version = {"version": VERSION, "resources": resources, "freshness": "Current"}
    group = {"metadata": {"name": GROUP, "creationTimestamp": None}, "versions": [version]}
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    body = encoded({**kind, "metadata": {}, "items": [group]})
    content_type = ";".join(["application/json", *(f"{name}={value}" for name, value in AGGREGATED.items())])
    return json_reply(body, headers={"content-type": content_type, "vary": "Accept", "etag": etag_of(body)})


def _version_info(version: str) -> dict[str, str]:
    """Returns the keys of Kubernetes' version document; those specific to Go or git are empty."""
    major, minor, *_ = [*version.split("."), "", ""]
    known = {"major": major, "minor": minor, "gitVersion": f"v{version}"}
    empty = dict.fromkeys(("gitCommit", "gitTreeState", "buildDate", "goVersion"), "")
    compiler = f"{platform.python_implementation()} {platform.python_version()}"
    return {**known, **empty, "compiler": compiler, "platform": f"{platform.system().lower()}/{platform.machine()}"}
