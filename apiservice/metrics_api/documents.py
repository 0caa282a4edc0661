"""The documents of discovery, named as in Kubernetes' API."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

VERBS = ("get",)
"""Only "get", although access reviews call a read "list": clients that list or watch everything would try it here."""


class Document(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class GroupVersion(Document):
    group_version: str
    version: str


class APIGroup(Document):
    kind: str = "APIGroup"
    api_version: str = "v1"
    name: str
    versions: list[GroupVersion]
    preferred_version: GroupVersion


class APIGroupList(Document):
    kind: str = "APIGroupList"
    api_version: str = "v1"
    groups: list[APIGroup]


class APIResource(Document):
    name: str
    singular_name: str = ""
    namespaced: bool = True
    kind: str
    verbs: tuple[str, ...] = VERBS


class APIResourceList(Document):
    kind: str = "APIResourceList"
    api_version: str = "v1"
    group_version: str
    resources: list[APIResource]


class GroupVersionKind(Document):
    group: str = ""
    version: str = ""
    kind: str


class APISubresourceDiscovery(Document):
    subresource: str
    response_kind: GroupVersionKind
    verbs: tuple[str, ...] = VERBS


class APIResourceDiscovery(Document):
    resource: str
    response_kind: GroupVersionKind
    scope: str = "Namespaced"
    singular_resource: str = ""
    verbs: tuple[str, ...] = VERBS
    subresources: list[APISubresourceDiscovery] | None = None


class APIVersionDiscovery(Document):
    version: str
    resources: list[APIResourceDiscovery]
    freshness: str = "Current"


class APIGroupDiscovery(Document):
    metadata: dict[str, str]
    versions: list[APIVersionDiscovery]


class APIGroupDiscoveryList(Document):
    kind: str = "APIGroupDiscoveryList"
    api_version: str = "apidiscovery.k8s.io/v2"
    metadata: dict[str, str] = {}
    items: list[APIGroupDiscovery]
