"""Discovery documents, identical on all replicas. They change only with the named metrics in the settings, and with the
list of an upstream."""

import platform
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from fastapi import Request, Response

from apiservice.api_group import ApiGroup
from apiservice.http.negotiation import (
    AGGREGATED,
    accept_and_agent,
    for_client,
    is_for_people,
    prefers_aggregated,
    unless_known,
)
from apiservice.http.replies import Endpoint, encoded, etag_of, json_reply, pretty

_VERBS = ["get"]
"""Only "get", although access reviews call a read "list": clients that list or watch everything would try it here."""

Names = tuple[str, ...]
NamesNow = Callable[[], Names]


def routes(groups: Mapping[ApiGroup, NamesNow], version: str) -> dict[str, Endpoint]:
    """`groups`: returns the names of each group's resources."""
    with_slash_too = {"/apis": _all_groups(groups), "/version": _document(_version_info(version))}
    for group, names in groups.items():
        with_slash_too[f"/apis/{group.name}"] = _document({"kind": "APIGroup", "apiVersion": "v1", **_group(group)})
        with_slash_too[group.path] = _served(partial(_resources, group, names))
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


def _all_groups(groups: Mapping[ApiGroup, NamesNow]) -> Endpoint:
    listed = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}
    plain = json_reply(encoded(listed), headers={"vary": "Accept"})

    async def all_groups(request: Request) -> Response:
        accept, agent = accept_and_agent(request.scope)
        if not prefers_aggregated(accept):
            return for_client(plain, request.scope)
        aggregated = _aggregated(tuple((group, names()) for group, names in groups.items()))
        # Only this document may be answered with 304: kube-apiserver treats it as a failure elsewhere.
        response = unless_known(aggregated, request.scope)
        is_indented = response is aggregated and is_for_people(request.scope["query_string"], agent)
        return pretty(response) if is_indented else response

    return all_groups


def _group(group: ApiGroup) -> dict[str, Any]:
    version = {"groupVersion": group.group_version, "version": group.version}
    return {"name": group.name, "versions": [version], "preferredVersion": version}


def _resources(group: ApiGroup, names: NamesNow) -> Response:
    return _resource_list(group, names())


@lru_cache(maxsize=4)
def _resource_list(group: ApiGroup, names: Names) -> Response:
    rest = {"singularName": "", "namespaced": True, "kind": group.list_kind, "verbs": _VERBS}
    kind = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group.group_version}
    return json_reply(encoded({**kind, "resources": [{"name": name, **rest} for name in names]}))


@lru_cache(maxsize=1)
def _aggregated(groups: tuple[tuple[ApiGroup, Names], ...]) -> Response:
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    body = encoded({**kind, "metadata": {}, "items": [_aggregated_group(group, names) for group, names in groups]})
    content_type = ";".join(["application/json", *(f"{name}={value}" for name, value in AGGREGATED.items())])
    return json_reply(body, headers={"content-type": content_type, "vary": "Accept", "etag": etag_of(body)})


def _aggregated_group(group: ApiGroup, names: Names) -> dict[str, Any]:
    kind = {"group": "", "version": "", "kind": group.list_kind}
    rest = {"responseKind": kind, "scope": "Namespaced", "singularResource": "", "verbs": _VERBS}
    resources = [{"resource": name, **rest} for name in names]
    version = {"version": group.version, "resources": resources, "freshness": "Current"}
    return {"metadata": {"name": group.name, "creationTimestamp": None}, "versions": [version]}


def _version_info(version: str) -> dict[str, str]:
    """Returns the keys of Kubernetes' version document; those specific to Go or git are empty."""
    major, minor, *_ = [*version.split("."), "", ""]
    known = {"major": major, "minor": minor, "gitVersion": f"v{version}"}
    empty = dict.fromkeys(("gitCommit", "gitTreeState", "buildDate", "goVersion"), "")
    compiler = f"{platform.python_implementation()} {platform.python_version()}"
    return {**known, **empty, "compiler": compiler, "platform": f"{platform.system().lower()}/{platform.machine()}"}
