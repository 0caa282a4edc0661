"""Parses the query of a request.

The first of repeated parameters counts, as in kube-apiserver; but a repeated selector is an error, because ignoring one
would select more than intended. Unknown parameters are ignored."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs

from apiservice.api_group import ApiGroup
from apiservice.auth.caller import Scope
from apiservice.http.status import BadRequest, MethodNotAllowed

MOST_PARAMETERS = 100
LONGEST_QUERY = 8 * 1024  # bytes, for unauthenticated callers
LONGEST_ACCEPT = 1024
_INTEGER = re.compile("[+-]?0*([0-9]+)")
_LONGEST_INTEGER = len(str(2**63))
_FALSE = frozenset({"false", "0"})


class Selectors(NamedTuple):
    labels: str
    """`labelSelector`: of an external metric, over its labels; of custom metrics, over those of objects."""
    metric_labels: str
    """`metricLabelSelector`: of custom metrics, over the labels of the metric."""


def selectors_in(query: bytes, group: ApiGroup) -> Selectors:
    """Returns the selectors of a read; raises BadRequest or MethodNotAllowed."""
    parameters = parameters_of(query)
    for name in ("timeoutSeconds", "limit"):  # in kube-apiserver's order
        _check_integer(parameters.get(name, ["0"])[0])
    if any(parameters.get("fieldSelector", ())):
        raise BadRequest("fieldSelector is not supported: metrics are selected by their labels")
    selectors = Selectors(_selector(parameters, "labelSelector"), _selector(parameters, "metricLabelSelector"))
    if _is_true(parameters.get("watch", [None])[0]):
        raise MethodNotAllowed(f'watch is not supported on resources of kind "*.{group.name}"')
    return selectors


def is_watch(query: bytes) -> bool:
    return bool(query) and _is_true(parameters_of(query).get("watch", [None])[0])


def check_bounds(scope: Scope) -> None:
    """Limits the query and `Accept` of unauthenticated callers, because parsing them takes time."""
    if len(scope["query_string"]) > LONGEST_QUERY:
        raise BadRequest(f"without credentials, a query may have at most {LONGEST_QUERY} bytes")
    if sum(len(value) for name, value in scope["headers"] if name == b"accept") > LONGEST_ACCEPT:
        raise BadRequest(f"without credentials, Accept may have at most {LONGEST_ACCEPT} bytes")
    parameters_of(scope["query_string"])


def parameters_of(query: bytes) -> Mapping[str, Sequence[str]]:
    """Returns each parameter's values in order; raises BadRequest if there are too many or they are not UTF-8."""
    try:
        return parse_qs(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError as error:
        raise BadRequest("the query is not UTF-8") from error
    except ValueError as error:
        raise BadRequest(f"the query has more than {MOST_PARAMETERS} parameters") from error


def _selector(parameters: Mapping[str, Sequence[str]], name: str) -> str:
    selectors = parameters.get(name, [""])
    if len(selectors) > 1:
        raise BadRequest(f"{name} is given more than once: join the requirements with ',' instead")
    return selectors[0]


def _is_true(value: str | None) -> bool:
    """Kubernetes treats a query flag as true unless it is `false` or `0`."""
    return value is not None and value.lower() not in _FALSE


def _check_integer(text: str) -> None:
    """Refuses what kube-apiserver does, in its words; any integer of 64 bits is accepted and has no effect here."""
    number = _INTEGER.fullmatch(text)
    if number is None or len(number[1]) > _LONGEST_INTEGER or int(number[1]) >= 2**63:
        reason = "invalid syntax" if number is None else "value out of range"
        raise BadRequest(f"strconv.ParseInt: parsing {json.dumps(text)}: {reason}")
