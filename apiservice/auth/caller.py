"""Who asks and for what, and how asking can fail: the words that `callers` (who answers) and `app` (who asks) share.

AdapterError
├── Unauthorized         a credential was shown and is not good: 401
├── Forbidden            the caller is known and may not do this: 403
└── ReviewUnavailable    nobody can say who the caller is or what it may do: 503, never "allowed"
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from adapter.errors import AdapterError

Scope = Mapping[str, Any]
"""An ASGI scope. `Any`, because the ASGI specification gives each key another type."""

UNAUTHENTICATED = "system:unauthenticated"
"""The group of whoever showed no credential."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who proved who they are; hashable, so that answers about them can be kept."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a caller wants to do: a resource request when `group` is set, else a request for the plain `path`."""

    verb: str
    path: str = ""
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""


class Lane(Enum):
    """Reviews of one lane wait for each other only."""

    RENEWALS = "renewals"
    """What the newest review of the same token or permission allowed."""
    KNOWN_CALLERS = "known-callers"
    """What a caller who proved who they are asks for the first time."""
    STRANGERS = "strangers"
    """Tokens that were never seen good, and what nobody's credentials ask for."""


class Unauthorized(AdapterError):
    """The credentials are not good; why goes to the log, never into the reply."""


class Forbidden(AdapterError):
    """This caller may not do this. `reason` is the authorizer's own explanation, perhaps empty."""

    def __init__(self, caller: Caller, attributes: Attributes, reason: str = "") -> None:
        super().__init__(_forbidden_text(caller, attributes) + (f": {reason}" if reason else ""))
        self.caller = caller
        self.attributes = attributes
        self.reason = reason


class ReviewUnavailable(AdapterError):
    """The Kubernetes API server did not answer who the caller is or what it may do."""


class Callers(Protocol):
    """Who a request comes from, and whether it is allowed.

    `recall` and `recall_permission` look into memory only and may say None: then their slower sisters must be asked.
    """

    def recall(self, scope: Scope) -> Caller | None:
        """The caller of this request, if it is known without asking anybody."""

    async def identify(self, scope: Scope) -> Caller:
        """The caller of this request (`system:anonymous` without credentials); Unauthorized, ReviewUnavailable."""

    def recall_permission(self, caller: Caller, attributes: Attributes) -> bool | None:
        """Whether it is allowed, if that was answered a short time ago."""

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Return if it is allowed; else Forbidden, ReviewUnavailable."""


def _forbidden_text(caller: Caller, attributes: Attributes) -> str:
    """Word it as kube-apiserver does, so that what people search for finds the usual answers."""
    who = f'User "{caller.name}" cannot {attributes.verb}'
    if not attributes.group:
        return f'forbidden: {who} path "{attributes.path}"'
    kind = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    subject = f"{attributes.resource}.{attributes.group}" + (f' "{attributes.name}"' if attributes.name else "")
    place = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'{subject} is forbidden: {who} resource "{kind}" in API group "{attributes.group}" {place}'
