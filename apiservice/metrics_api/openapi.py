"""Serves the description of the API in OpenAPI 2 and 3 (`schemas/`), for kube-apiserver and `kubectl explain`.

All types are inline, so that no name collides with kube-apiserver's definitions."""

import json
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from string import Template
from typing import Any

from fastapi import APIRouter, Depends

from apiservice.api_group import ApiGroup
from apiservice.http.replies import digest_of, encoded, with_headers
from apiservice.http.status import PathUnknown

_SCHEMAS = Path(__file__).parent / "schemas"
_SELECTOR = '"selector": {"type": "object", "description": "The metricLabelSelector of the request."}'
_NAMINGS = {
    "metric": f'"metric": {{"type": "object", "properties": {{"name": {{"type": "string"}}, {_SELECTOR}}}}}',
    "metricName": f'"metricName": {{"type": "string"}}, {_SELECTOR}',
}
"""The field that has the metric's name -> the fields of a value that name the metric."""

Document = dict[str, Any]


def routes(groups: Iterable[ApiGroup], version: str) -> APIRouter:
    router = APIRouter(prefix="/openapi", dependencies=[Depends(with_headers)])
    merged = reduce(_merged, (_document("openapi_v2.json", each, version) for each in groups))
    described = {group.path[1:]: _document("openapi_v3.json", group, version) for group in groups}
    addresses = {path: {"serverRelativeURL": _address(path, document)} for path, document in described.items()}

    @router.get("/v2")
    async def v2() -> Document:
        return merged

    @router.get("/v3")
    async def v3() -> Document:
        return {"paths": addresses}

    @router.get("/v3/{path:path}")
    async def v3_of_a_group(path: str) -> Document:
        if path not in described:
            raise PathUnknown
        return described[path]

    return router


def _address(path: str, document: Document) -> str:
    """Kubernetes' clients keep what they got for the same hash."""
    return f"/openapi/v3/{path}?hash={digest_of(encoded(document))}"


def _document(file: str, group: ApiGroup, version: str) -> Document:
    package = "_".join(group.name.split(".")[:2])
    named_by = "metric" if group.has_metric_field else "metricName"
    file = f"custom_{file}" if group.describes_objects else file
    text = Template((_SCHEMAS / file).read_text(encoding="utf-8")).safe_substitute(
        product=version,
        group=group.name,
        version=group.version,
        kind=group.list_kind,
        package=package,
        named_by=named_by,
        naming=_NAMINGS[named_by],
        operation=f"{package}_{group.version}".title().replace("_", ""),
    )
    document: Document = json.loads(text)
    return document


def _merged(one: Document, other: Document) -> Document:
    return {**one, **{key: {**one[key], **other[key]} for key in ("paths", "definitions")}}
