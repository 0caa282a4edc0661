"""Every error as Kubernetes' `Status` document, and the one place where the HTTP codes of our errors are chosen.

AdapterError (adapter.errors, apiservice.auth)
├── BadRequest          the query is invalid: 400
├── PathUnknown         nothing is served there: 404
├── MethodNotAllowed    only GET is served: 405
├── TooManyReaders      others read something large at the moment: 503
└── UpstreamUnavailable another server of metrics has no usable answer: 503

There is never a `Retry-After`: client-go would sleep and repeat inside one sync of the autoscaler."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.errors import AdapterError, MetricUnknown
from adapter.metrics.problems import NoMatch, Problem, Refused, ValueUnavailable
from apiservice.auth.caller import Forbidden, Unauthorized
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.http.replies import encoded


class BadRequest(AdapterError):
    """A parameter or path is invalid; the message says which and why."""


class PathUnknown(AdapterError):
    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource")


class MethodNotAllowed(AdapterError):
    def __init__(self, message: str = "the server does not allow this method on the requested resource") -> None:
        super().__init__(message)


class TooManyReaders(AdapterError):
    """Others read something large at the moment; the message says what."""


class UpstreamUnavailable(AdapterError):
    """Another server of metrics has no usable answer; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Status:
    """A failure: the non-empty fields of `metav1.Status`."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] | None = None

    def body(self) -> bytes:
        document: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        document |= {"message": self.message, "reason": self.reason}
        if self.details is not None:
            document["details"] = self.details
        return encoded({**document, "code": self.code})


_LONGEST_MESSAGE = 4096
_LONGEST_CAUSE = 256
_MOST_CAUSES = 10

_CODES: tuple[tuple[type[AdapterError], int, str], ...] = (
    (BadRequest, 400, "BadRequest"),
    (Unauthorized, 401, "Unauthorized"),
    (Forbidden, 403, "Forbidden"),
    (PathUnknown, 404, "NotFound"),
    (MetricUnknown, 404, "NotFound"),
    (NoMatch, 404, "NotFound"),
    (MethodNotAllowed, 405, "MethodNotAllowed"),
    (ClusterUnreachable, 503, "ServiceUnavailable"),
    (ValueUnavailable, 503, "ServiceUnavailable"),
    (TooManyReaders, 503, "ServiceUnavailable"),
    (UpstreamUnavailable, 503, "ServiceUnavailable"),
)


def status_of(error: Exception) -> Status:
    """Returns the Status for an error. Unexpected ones show only their class: their text may hold a secret."""
    for kind, code, reason in _CODES:
        if isinstance(error, kind):
            # The reason is only logged: clients that guess tokens learn nothing.
            message = "Unauthorized" if kind is Unauthorized else _cut(str(error))
            return Status(code, reason, message, _details_of(error))
    cause = type(error).__name__
    message = f"Internal error occurred: {cause}; the adapter's log has the details"
    return Status(500, "InternalError", message, {"causes": [{"message": cause}]})


def _cut(message: str, longest: int = _LONGEST_MESSAGE) -> str:
    """Shortens the middle: group ids can be long, an HPA stores the message, and the reason is at the end."""
    half = longest // 2
    return message if len(message) <= longest else f"{message[:half]} … {message[-half:]}"


def _details_of(error: Exception) -> Mapping[str, Any] | None:
    match error:
        case Forbidden():
            wanted = error.attributes
            named = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
            return {key: text for key, text in named.items() if text}
        case Refused() if error.problems:
            left_out = len(error.problems) - _MOST_CAUSES
            others = [{"message": f"and {left_out:,} more"}] if left_out > 0 else []
            return {"causes": [*map(_cause, error.problems[:_MOST_CAUSES]), *others]}
        case PathUnknown() | MethodNotAllowed():
            return {}
        case _:
            return None


def _cause(problem: Problem) -> Mapping[str, str]:
    cause = {"reason": problem.reason.value, "message": _cut(problem.text, _LONGEST_CAUSE)}
    return cause | ({"field": _cut(problem.place, _LONGEST_CAUSE)} if problem.place else {})
