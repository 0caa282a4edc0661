"""Discovery, identical on all replicas. It changes only with the named metrics in the settings, and with the list of an
upstream."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Response

from apiservice.api_group import ApiGroup
from apiservice.http.replies import HEADERS, digest_of, encoded, json_reply, with_headers
from apiservice.http.status import PathUnknown

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["get"]
"""Only "get", although access reviews call a read "list": clients that list or watch everything would try it here."""

Document = dict[str, Any]
NamesNow = Callable[[], tuple[str, ...]]


def routes(groups: Mapping[ApiGroup, NamesNow]) -> APIRouter:
    """`groups`: returns the names of each group's resources."""
    router = APIRouter(dependencies=[Depends(with_headers)])

    @router.get("/apis/", response_model=Document)
    @router.get("/apis", response_model=Document)
    async def all_groups(
        response: Response, accept: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
    ) -> Document | Response:
        vary = {"vary": "Accept"}
        if not _is_aggregated(accept):
            response.headers.update(vary)
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}
        kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        body = encoded({**kind, "items": [_aggregated(group, names()) for group, names in groups.items()]})
        tag = f'"{digest_of(body)}"'
        # kube-apiserver takes a 304 for any other document as a failure.
        if tag in if_none_match:
            return Response(status_code=304, headers={**HEADERS, **vary, "etag": tag})
        return json_reply(body, headers={"content-type": AGGREGATED, **vary, "etag": tag})

    @router.get("/apis/{name}/")
    @router.get("/apis/{name}")
    async def one_group(name: str) -> Document:
        for group in groups:
            if group.name == name:
                return _group(group)
        raise PathUnknown

    @router.get("/apis/{name}/{version}/")
    @router.get("/apis/{name}/{version}")
    async def resources(name: str, version: str) -> Document:
        for group, names in groups.items():
            if (group.name, group.version) == (name, version):
                kind = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group.group_version}
                return {**kind, "resources": [_resource(group, each) for each in names()]}
        raise PathUnknown

    return router


def _is_aggregated(accept: str) -> bool:
    """Whether the client takes all groups in one document, of this form; otherwise it asks for each."""
    wanted = set(AGGREGATED.split(";"))
    return any(wanted <= {part.strip() for part in clause.split(";")} for clause in accept.split(","))


def _group(group: ApiGroup) -> Document:
    version = {"groupVersion": group.group_version, "version": group.version}
    kind = {"kind": "APIGroup", "apiVersion": "v1"}
    return {**kind, "name": group.name, "versions": [version], "preferredVersion": version}


def _resource(group: ApiGroup, name: str) -> Document:
    return {"name": name, "singularName": "", "namespaced": True, "kind": group.list_kind, "verbs": VERBS}


def _aggregated(group: ApiGroup, names: tuple[str, ...]) -> Document:
    kind = {"group": "", "version": "", "kind": group.list_kind}
    shape = {"responseKind": kind, "scope": "Namespaced", "singularResource": "", "verbs": VERBS}
    version = {"version": group.version, "resources": [{"resource": name, **shape} for name in names]}
    return {"metadata": {"name": group.name}, "versions": [{**version, "freshness": "Current"}]}
