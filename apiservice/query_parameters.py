"""The raw query of a request: what it asks for, and whether everything in it that Kubernetes defines can be read.

Of a parameter given several times the first counts, as in kube-apiserver; only `labelSelector` may not be repeated,
since dropping one would answer for more than was asked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from apiservice.label_syntax import int64
from apiservice.status import BadRequest

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"false", "0"})
_FIELDS = ("metadata.name", "metadata.namespace")
_FIELD_TERM = re.compile(r"((?:[^\\!=]|\\.|!(?!=))*)(?:!=|==|=)", re.DOTALL)
_TERM_SEPARATOR = re.compile(r"((?:[^\\,]|\\.|\\\Z)*)(?:,|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What is used of the `ListOptions` of a read; the rest is checked and has no meaning for metrics."""

    label_selector: str
    is_watch: bool


def list_options(query: bytes) -> ListOptions:
    """What a read asks for; BadRequest names the first parameter that cannot be read."""
    parameters = parameters_of(query)
    for name in ("limit", "timeoutSeconds"):
        _check_integer(parameters.get(name, [])[:1])
    for text in parameters.get("fieldSelector", [])[:1]:
        _check_field_selector(text)
    selectors = parameters.get("labelSelector", [""])
    if len(selectors) > 1:
        raise BadRequest("labelSelector is given more than once: join the requirements with ',' instead")
    return ListOptions(selectors[0], _is_true(parameters.get("watch", [None])[0]))


def is_watch(query: bytes) -> bool:
    """Whether the query asks for a watch; one that cannot be read does not, and is refused later."""
    return bool(query) and _is_true(_first(query, "watch"))


def wants_pretty(query: bytes) -> bool | None:
    """What `pretty` says; None if it says nothing, or if the query cannot be read."""
    if b"pretty" not in query:
        return None
    value = _first(query, "pretty")
    return value in _TRUE if value else None


def parameters_of(query: bytes) -> Mapping[str, Sequence[str]]:
    """Every parameter with its values in order; BadRequest for bytes that are no text."""
    bad = _BAD_ESCAPE.search(query)
    if bad:
        raise BadRequest(f'invalid URL escape "{bad[0].decode("latin-1")}"')
    found: dict[str, list[str]] = {}
    for pair in query.replace(b"+", b" ").split(b"&"):
        name, _, value = pair.partition(b"=")
        if pair:
            found.setdefault(_text(name), []).append(_text(value))
    return found


def _text(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError as error:
        raise BadRequest("the query is not UTF-8") from error


def _first(query: bytes, name: str) -> str | None:
    try:
        return parameters_of(query).get(name, [None])[0]
    except BadRequest:
        return None


def _is_true(value: str | None) -> bool:
    """A flag as Kubernetes reads it in a query: there, and neither `false` nor `0`."""
    return value is not None and value.lower() not in _FALSE


def _check_integer(values: Sequence[str]) -> None:
    for text in values:
        if int64(text) is None:
            problem = "value out of range" if re.fullmatch("[+-]?[0-9]+", text) else "invalid syntax"
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": {problem}')


def _check_field_selector(selector: str) -> None:
    for separated in _TERM_SEPARATOR.finditer(selector):
        term = separated[1]
        field = _FIELD_TERM.match(term)
        if term and field is None:
            raise BadRequest(f"invalid selector: '{selector}'; can't understand '{term}'")
        if field and field[1] not in _FIELDS:
            known = ", ".join(f'"{name}"' for name in _FIELDS)
            raise BadRequest(f'"{field[1]}" is not a known field selector: only {known}')
