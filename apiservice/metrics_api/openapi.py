"""Serves the description of the API in OpenAPI 2 and 3 (`schemas/`), for kube-apiserver and `kubectl explain`.

All types are inline, so that no name collides with kube-apiserver's definitions."""

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from string import Template
from typing import Any

from fastapi import Request, Response

from apiservice.api_group import ApiGroup
from apiservice.http.negotiation import for_client, unless_known
from apiservice.http.replies import Endpoint, encoded, etag_of, json_reply

_SCHEMAS = Path(__file__).parent / "schemas"


def routes(groups: Iterable[ApiGroup], version: str) -> dict[str, Endpoint]:
    v3 = {group.path: encoded(_document("openapi_v3.json", group, version)) for group in groups}
    hashes = {path: etag_of(body).strip('"') for path, body in v3.items()}
    addresses = {path[1:]: {"serverRelativeURL": f"/openapi/v3{path}?hash={hashes[path]}"} for path in v3}
    documents = {"/openapi/v3": encoded({"paths": addresses})} | {f"/openapi/v3{path}": v3[path] for path in v3}
    documents["/openapi/v2"] = encoded(
        reduce(_merged, (_document("openapi_v2.json", each, version) for each in groups))
    )
    return {path: _served(body) for path, body in documents.items()}


def _document(file: str, group: ApiGroup, version: str) -> dict[str, Any]:
    package = "_".join(group.name.split(".")[:2])
    text = Template((_SCHEMAS / file).read_text(encoding="utf-8")).safe_substitute(
        product=version,
        group=group.name,
        version=group.version,
        kind=group.list_kind,
        package=package,
        operation=f"{package}_{group.version}".title().replace("_", ""),
    )
    document: dict[str, Any] = json.loads(text)
    return document


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**one, **{key: {**one[key], **other[key]} for key in ("paths", "definitions")}}


def _served(body: bytes) -> Endpoint:
    response = json_reply(body, headers={"etag": etag_of(body), "vary": "Accept"})

    async def get(request: Request) -> Response:
        known = unless_known(response, request.scope)
        return known if known is not response else for_client(response, request.scope)

    return get
