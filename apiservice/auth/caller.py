"""The caller of a request, what it wants, and the errors, as `callers` and `app` share them.

AdapterError
├── Unauthorized         the credentials are invalid: 401
├── Forbidden            the caller is known and may not do this: 403
└── ClusterUnreachable   the review failed (`cluster_settings`): 503, never "allowed"
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from adapter.errors import AdapterError

Scope = Mapping[str, Any]
"""An ASGI scope. Each key has a different type in the specification, hence `Any`."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
"""The group of requests without credentials."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user; hashable, so that reviews of it can be cached."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...]


ANONYMOUS = Caller(name="system:anonymous", uid="", groups=(UNAUTHENTICATED,), extra=())


@dataclass(frozen=True, slots=True)
class Attributes:
    """The requested action: on a resource if `group` is set, otherwise on `path`."""

    verb: str
    path: str = ""
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""


class Lane(Enum):
    """Reviews in different lanes do not wait for each other."""

    RENEWALS = "renewals"
    """The latest review of the same token or permission was positive."""
    KNOWN_CALLERS = "known-callers"
    """The first time an authenticated caller asks for this."""
    STRANGERS = "strangers"
    """Tokens never seen to be valid, and unauthenticated callers."""


class Unauthorized(AdapterError):
    """The credentials are invalid; the reason is logged but never returned."""


class Forbidden(AdapterError):
    """The caller may not do this. `reason` is the authorizer's explanation and may be empty."""

    def __init__(self, caller: Caller, attributes: Attributes, reason: str = "") -> None:
        super().__init__(_forbidden_text(caller, attributes) + (f": {reason}" if reason else ""))
        self.attributes = attributes


def authenticated(caller: Caller) -> Caller:
    """Adds the group of all authenticated users, on which permissions for discovery depend."""
    if caller.name == ANONYMOUS.name or AUTHENTICATED in caller.groups or UNAUTHENTICATED in caller.groups:
        return caller
    return Caller(name=caller.name, uid=caller.uid, groups=(*caller.groups, AUTHENTICATED), extra=caller.extra)


def _forbidden_text(caller: Caller, attributes: Attributes) -> str:
    """Uses kube-apiserver's wording, so that a web search finds the usual answers."""
    who = f'User "{caller.name}" cannot {attributes.verb}'
    if not attributes.group:
        return f'forbidden: {who} path "{attributes.path}"'
    kind = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    subject = f"{attributes.resource}.{attributes.group}" + (f' "{attributes.name}"' if attributes.name else "")
    place = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'{subject} is forbidden: {who} resource "{kind}" in API group "{attributes.group}" {place}'
