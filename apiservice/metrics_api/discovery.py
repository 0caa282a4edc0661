"""Discovery, identical on all replicas. It changes only with the named metrics in the settings, and with the list of an
upstream."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Response

from apiservice.api_group import ApiGroup
from apiservice.http.read_paths import NAMESPACES, PODS
from apiservice.http.replies import HEADERS, digest_of, json_reply, with_headers
from apiservice.http.status import BadRequest, PathUnknown
from apiservice.metrics_api.documents import (
    APIGroup,
    APIGroupDiscovery,
    APIGroupDiscoveryList,
    APIGroupList,
    APIResource,
    APIResourceDiscovery,
    APIResourceList,
    APISubresourceDiscovery,
    APIVersionDiscovery,
    GroupVersion,
    GroupVersionKind,
)

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

NamesNow = Callable[[], tuple[str, ...]]
LISTED = ("deployments.apps", NAMESPACES, PODS, "services")
"""Any other resource can be read as well, but a list must end."""


def resources_of(metrics: Sequence[str], of_pods: Sequence[str]) -> tuple[str, ...]:
    """Returns the resources of a group whose metrics are subresources of objects, such as `services/lag`."""
    return tuple(f"{resource}/{name}" for resource in LISTED for name in (of_pods if resource == PODS else metrics))


def routes(groups: Mapping[ApiGroup, NamesNow]) -> APIRouter:
    """`groups`: returns the names of each group's resources, of one group's versions the preferred one first."""
    versions = {name: [group for group in groups if group.name == name] for name in (each.name for each in groups)}
    router = APIRouter(dependencies=[Depends(with_headers)])

    @router.get("/apis/", response_model=APIGroupList | APIGroupDiscoveryList)
    @router.get("/apis", response_model=APIGroupList | APIGroupDiscoveryList)
    async def all_groups(
        response: Response, accept: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
    ) -> APIGroupList | Response:
        vary = {"vary": "Accept"}
        if not _is_aggregated(accept):
            response.headers.update(vary)
            return APIGroupList(groups=list(map(_group, versions.values())))
        items = [_aggregated({group: groups[group]() for group in each}) for each in versions.values()]
        body = APIGroupDiscoveryList(items=items).model_dump_json(by_alias=True, exclude_none=True).encode()
        tag = f'"{digest_of(body)}"'
        # kube-apiserver takes a 304 for any other document as a failure.
        if tag in if_none_match:
            return Response(status_code=304, headers={**HEADERS, **vary, "etag": tag})
        return json_reply(body, headers={"content-type": AGGREGATED, **vary, "etag": tag})

    @router.get("/apis/{name}/")
    @router.get("/apis/{name}")
    async def one_group(name: str) -> APIGroup:
        if name not in versions:
            raise PathUnknown
        return _group(versions[name])

    @router.get("/apis/{name}/{version}/")
    @router.get("/apis/{name}/{version}")
    async def resources(name: str, version: str) -> APIResourceList:
        for group, names in groups.items():
            if (group.name, group.version) == (name, version):
                listed = [
                    APIResource(name=each, kind=group.list_kind, namespaced=_is_namespaced(each)) for each in names()
                ]
                return APIResourceList(group_version=group.group_version, resources=listed)
        raise PathUnknown

    return router


def routes_without_metric(groups: Iterable[ApiGroup]) -> APIRouter:
    """Refuses the path of a namespace's metrics that names none, with the reply of other servers of custom metrics."""
    router = APIRouter()

    async def refuse() -> None:
        raise BadRequest("invalid request path")

    for path in (f"{group.path}/namespaces/{{namespace}}/metrics" for group in groups if group.describes_objects):
        router.get(path)(refuse)
        router.get(f"{path}/")(refuse)
    return router


def _is_aggregated(accept: str) -> bool:
    """Whether the client takes all groups in one document, of this form; otherwise it asks for each."""
    wanted = set(AGGREGATED.split(";"))
    return any(wanted <= {part.strip() for part in clause.split(";")} for clause in accept.split(","))


def _group(versions: Sequence[ApiGroup]) -> APIGroup:
    listed = [GroupVersion(group_version=each.group_version, version=each.version) for each in versions]
    return APIGroup(name=versions[0].name, versions=listed, preferred_version=listed[0])


def _aggregated(versions: Mapping[ApiGroup, tuple[str, ...]]) -> APIGroupDiscovery:
    listed = [
        APIVersionDiscovery(version=group.version, resources=_resources(group, names))
        for group, names in versions.items()
    ]
    return APIGroupDiscovery(metadata={"name": next(iter(versions)).name}, versions=listed)


def _resources(group: ApiGroup, names: Iterable[str]) -> list[APIResourceDiscovery]:
    """What has only subresources cannot be read itself, and has no verbs."""
    kind = GroupVersionKind(kind=group.list_kind)
    found: dict[str, APIResourceDiscovery] = {}
    for resource, slash, subresource in (name.partition("/") for name in names):
        scope = "Namespaced" if _is_namespaced(resource) else "Cluster"
        if not slash:
            found[resource] = APIResourceDiscovery(resource=resource, response_kind=kind, scope=scope)
            continue
        if resource not in found:
            found[resource] = APIResourceDiscovery(
                resource=resource, response_kind=kind, scope=scope, verbs=(), subresources=[]
            )
        of_resource = found[resource].subresources
        if of_resource is not None:
            of_resource.append(APISubresourceDiscovery(subresource=subresource, response_kind=kind))
    return list(found.values())


def _is_namespaced(resource: str) -> bool:
    return resource.partition("/")[0] != NAMESPACES
