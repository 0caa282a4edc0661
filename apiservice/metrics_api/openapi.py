"""Serves the description of the API in OpenAPI 2 and 3 (`schemas/`), for kube-apiserver and `kubectl explain`.

All types are inline, so that no name collides with kube-apiserver's definitions."""

import json
from pathlib import Path

from fastapi import Request, Response

from apiservice.api_group import GROUP, VERSION
from apiservice.http.negotiation import for_client, unless_known
from apiservice.http.replies import Endpoint, encoded, etag_of, json_reply

_SCHEMAS = Path(__file__).parent / "schemas"
_DOCUMENT = f"apis/{GROUP}/{VERSION}"


def routes(version: str) -> dict[str, Endpoint]:
    v3 = _document("openapi_v3.json", version)
    digest = etag_of(v3).strip('"')
    root = {"paths": {_DOCUMENT: {"serverRelativeURL": f"/openapi/v3/{_DOCUMENT}?hash={digest}"}}}
    return {
        "/openapi/v2": _served(_document("openapi_v2.json", version)),
        "/openapi/v3": _served(encoded(root)),
        f"/openapi/v3/{_DOCUMENT}": _served(v3),
    }


def _document(file: str, version: str) -> bytes:
    document = json.loads((_SCHEMAS / file).read_text(encoding="utf-8"))
    document["info"]["version"] = version
    return encoded(document)


def _served(body: bytes) -> Endpoint:
    response = json_reply(body, headers={"etag": etag_of(body), "vary": "Accept"})

    async def get(request: Request) -> Response:
        known = unless_known(response, request.scope)
        return known if known is not response else for_client(response, request.scope)

    return get
