"""Content negotiation: JSON, aggregated discovery on request, indented for people."""

import re
from collections.abc import Iterable
from functools import lru_cache

from fastapi import Response

from apiservice.auth.caller import Scope
from apiservice.http.query_parameters import parameters_of, wants_pretty
from apiservice.http.replies import pretty
from apiservice.http.status import BadRequest, MethodNotAllowed, NotAcceptable

LONGEST_QUERY = 8 * 1024  # bytes, for unauthenticated callers
LONGEST_ACCEPT = 1024
_PEOPLES_AGENTS = (b"curl", b"Wget", b"Mozilla/5.0")
_JSON_RANGES = frozenset({"application/json", "application/*", "*/*"})
_QUALITY = re.compile(r"[01](?:\.[0-9]{0,3})?")
AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}


def for_client(response: Response, scope: Scope) -> Response:
    """Returns the JSON reply, indented for people; raises NotAcceptable if the client accepts no JSON."""
    agent = check_read(scope)
    return pretty(response) if is_for_people(scope["query_string"], agent) else response


def check_read(scope: Scope) -> bytes:
    """Returns the `User-Agent`; raises MethodNotAllowed or NotAcceptable if this is no read of JSON."""
    if scope["method"] != "GET":
        raise MethodNotAllowed
    accept, agent = accept_and_agent(scope)
    if not accepts_json(accept):
        raise NotAcceptable
    return agent


def unless_known(response: Response, scope: Scope) -> Response:
    """Returns 304 if the client already has this reply, which must carry an ETag."""
    etag = response.headers["etag"]
    asked = [value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match"]
    known = {text.strip().removeprefix("W/") for text in ",".join(asked).split(",")}
    if not known & {etag, "*"}:
        return response
    unchanged = Response(status_code=304)
    unchanged.raw_headers = [
        pair for pair in response.raw_headers if pair[0] not in (b"content-length", b"content-type")
    ]
    return unchanged


def check_bounds(scope: Scope) -> None:
    """Limits the query and `Accept` of unauthenticated callers, because parsing them takes time."""
    if len(scope["query_string"]) > LONGEST_QUERY:
        raise BadRequest(
            f"the query is longer than the {LONGEST_QUERY} bytes that a caller without credentials may send"
        )
    if len(accept_and_agent(scope)[0]) > LONGEST_ACCEPT:
        raise BadRequest(f"Accept is longer than the {LONGEST_ACCEPT} bytes that a caller without credentials may send")
    parameters_of(scope["query_string"])


def accept_and_agent(scope: Scope) -> tuple[bytes, bytes]:
    """Returns the `Accept` headers joined as one list, and the `User-Agent`."""
    accept = agent = b""
    for name, value in scope["headers"]:
        if name == b"accept":
            accept = accept + b"," + value if accept else value
        elif name == b"user-agent":
            agent = value
    return accept, agent


def is_for_people(query: bytes, agent: bytes) -> bool:
    """Decides by `pretty`, or by the user agent if it is absent or the query very long."""
    asked = wants_pretty(query) if len(query) <= LONGEST_QUERY else None
    return agent.startswith(_PEOPLES_AGENTS) if asked is None else asked


@lru_cache(maxsize=256)
def accepts_json(accept: bytes) -> bool:
    """Whether the client accepts plain JSON; a table (`as=Table`) is a different format."""
    return not accept.strip() or any(_is_json(clause) for clause in _clauses(accept))


@lru_cache(maxsize=256)
def prefers_aggregated(accept: bytes) -> bool:
    for clause in _clauses(accept):
        media_range, parameters = clause
        if media_range in _JSON_RANGES and all(parameters.get(key) == text for key, text in AGGREGATED.items()):
            return True
        if _is_json(clause):
            return False
    return False


_Clause = tuple[str, dict[str, str]]


def _is_json(clause: _Clause) -> bool:
    media_range, parameters = clause
    return media_range in _JSON_RANGES and not parameters.get("as")


def _clauses(accept: bytes) -> Iterable[_Clause]:
    """Returns media ranges with parameters, most preferred first, without those refused by q=0."""
    ranked = []
    for text in accept.decode("latin-1").split(","):
        media_range, *pairs = (part.strip() for part in text.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs)}
        asked = parameters.pop("q", "1")
        quality = float(asked) if _QUALITY.fullmatch(asked) else 1.0
        if quality > 0:
            ranked.append((quality, (media_range.lower(), parameters)))
    return [clause for _, clause in sorted(ranked, key=lambda entry: -entry[0])]
