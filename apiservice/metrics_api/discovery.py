"""Discovery, identical on all replicas. It changes only with the named metrics in the settings, and with the list of an
upstream."""

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Response

from apiservice.api_group import ApiGroup
from apiservice.http.replies import HEADERS, digest_of, json_reply, with_headers
from apiservice.http.status import PathUnknown
from apiservice.metrics_api.documents import (
    APIGroup,
    APIGroupDiscovery,
    APIGroupDiscoveryList,
    APIGroupList,
    APIResource,
    APIResourceDiscovery,
    APIResourceList,
    APIVersionDiscovery,
    GroupVersion,
    GroupVersionKind,
)

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

NamesNow = Callable[[], tuple[str, ...]]


def routes(groups: Mapping[ApiGroup, NamesNow]) -> APIRouter:
    """`groups`: returns the names of each group's resources."""
    router = APIRouter(dependencies=[Depends(with_headers)])

    @router.get("/apis/", response_model=APIGroupList | APIGroupDiscoveryList)
    @router.get("/apis", response_model=APIGroupList | APIGroupDiscoveryList)
    async def all_groups(
        response: Response, accept: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
    ) -> APIGroupList | Response:
        vary = {"vary": "Accept"}
        if not _is_aggregated(accept):
            response.headers.update(vary)
            return APIGroupList(groups=[_group(group) for group in groups])
        items = [_aggregated(group, names()) for group, names in groups.items()]
        body = APIGroupDiscoveryList(items=items).model_dump_json(by_alias=True).encode()
        tag = f'"{digest_of(body)}"'
        # kube-apiserver takes a 304 for any other document as a failure.
        if tag in if_none_match:
            return Response(status_code=304, headers={**HEADERS, **vary, "etag": tag})
        return json_reply(body, headers={"content-type": AGGREGATED, **vary, "etag": tag})

    @router.get("/apis/{name}/")
    @router.get("/apis/{name}")
    async def one_group(name: str) -> APIGroup:
        for group in groups:
            if group.name == name:
                return _group(group)
        raise PathUnknown

    @router.get("/apis/{name}/{version}/")
    @router.get("/apis/{name}/{version}")
    async def resources(name: str, version: str) -> APIResourceList:
        for group, names in groups.items():
            if (group.name, group.version) == (name, version):
                listed = [APIResource(name=each, kind=group.list_kind) for each in names()]
                return APIResourceList(group_version=group.group_version, resources=listed)
        raise PathUnknown

    return router


def _is_aggregated(accept: str) -> bool:
    """Whether the client takes all groups in one document, of this form; otherwise it asks for each."""
    wanted = set(AGGREGATED.split(";"))
    return any(wanted <= {part.strip() for part in clause.split(";")} for clause in accept.split(","))


def _group(group: ApiGroup) -> APIGroup:
    version = GroupVersion(group_version=group.group_version, version=group.version)
    return APIGroup(name=group.name, versions=[version], preferred_version=version)


def _aggregated(group: ApiGroup, names: tuple[str, ...]) -> APIGroupDiscovery:
    kind = GroupVersionKind(kind=group.list_kind)
    resources = [APIResourceDiscovery(resource=name, response_kind=kind) for name in names]
    versions = [APIVersionDiscovery(version=group.version, resources=resources)]
    return APIGroupDiscovery(metadata={"name": group.name}, versions=versions)
