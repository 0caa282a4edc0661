"""Describes the API in OpenAPI 2 and 3, for kube-apiserver and `kubectl explain`.

All types are inline, so that no name collides with kube-apiserver's definitions."""

from typing import Any

from fastapi import Request, Response

from apiservice.api_group import GROUP, VERSION
from apiservice.http.negotiation import for_client, unless_known
from apiservice.http.replies import Endpoint, encoded, etag_of, json_reply

_NAME = "io.k8s.metrics.pkg.apis.external_metrics.v1beta1.ExternalMetricValueList"
_KIND = {"group": GROUP, "version": VERSION, "kind": "ExternalMetricValueList"}
_TEXT = {"type": "string"}
_DOCUMENT = f"apis/{GROUP}/{VERSION}"


def routes(version: str) -> dict[str, Endpoint]:
    v3 = encoded(_version_3(version))
    digest = etag_of(v3).strip('"')
    root = {"paths": {_DOCUMENT: {"serverRelativeURL": f"/openapi/v3/{_DOCUMENT}?hash={digest}"}}}
    return {
        "/openapi/v2": _served(encoded(_version_2(version))),
        "/openapi/v3": _served(encoded(root)),
        f"/openapi/v3/{_DOCUMENT}": _served(v3),
    }


def _served(body: bytes) -> Endpoint:
    response = json_reply(body, headers={"etag": etag_of(body), "vary": "Accept"})

    async def get(request: Request) -> Response:
        known = unless_known(response, request.scope)
        return known if known is not response else for_client(response, request.scope)

    return get


def _version_2(version: str) -> dict[str, Any]:
    answer = {"description": "OK", "schema": {"$ref": f"#/definitions/{_NAME}"}}
    parameters = [{"name": name, "in": place, **rest, **_TEXT} for name, place, rest in _parameters()]
    return {
        "swagger": "2.0",
        "info": _info(version),
        "paths": _paths({"produces": ["application/json"], "schemes": ["https"]}, parameters, answer),
        "definitions": {_NAME: _values_schema()},
    }


def _version_3(version: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{_NAME}"}
    answer = {"description": "OK", "content": {"application/json": {"schema": schema}}}
    parameters = [{"name": name, "in": place, **rest, "schema": _TEXT} for name, place, rest in _parameters()]
    return {
        "openapi": "3.0.0",
        "info": _info(version),
        "paths": _paths({}, parameters, answer),
        "components": {"schemas": {_NAME: _values_schema()}},
    }


def _info(version: str) -> dict[str, str]:
    return {"title": "kafka-lag-adapter", "version": version}


def _parameters() -> list[tuple[str, str, dict[str, Any]]]:
    """Returns each parameter's name, place and other fields."""
    selector = "Selects by the labels of the metric, such as group=billing,topic=orders."
    return [
        ("namespace", "path", {"required": True, "description": "Any namespace: all of them see the same values."}),
        ("metric", "path", {"required": True, "description": "A name that discovery lists, in any case."}),
        ("labelSelector", "query", {"description": selector}),
    ]


def _paths(details: dict[str, Any], parameters: list[dict[str, Any]], answer: dict[str, Any]) -> dict[str, Any]:
    read = {
        "description": "Read the current values of an external metric",
        "operationId": "listExternalMetricsV1beta1NamespacedMetric",
        "tags": ["externalMetrics_v1beta1"],
        **details,
        "parameters": parameters,
        "responses": {"200": answer, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": "list",
        "x-kubernetes-group-version-kind": _KIND,
    }
    return {f"/{_DOCUMENT}/namespaces/{{namespace}}/{{metric}}": {"get": read}}


def _values_schema() -> dict[str, Any]:
    value = {
        "type": "object",
        "description": "One value of a metric; the autoscaler adds all values of a reply.",
        "required": ["metricName", "metricLabels", "timestamp", "value"],
        "properties": {
            "metricName": _TEXT,
            "metricLabels": {"type": "object", "additionalProperties": _TEXT},
            "timestamp": {**_TEXT, "format": "date-time", "description": "When the oldest part was measured."},
            "value": {**_TEXT, "description": "A quantity, such as 42."},
        },
    }
    return {
        "type": "object",
        "description": "The values of one external metric.",
        "required": ["items"],
        "properties": {
            "kind": _TEXT,
            "apiVersion": _TEXT,
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": value},
        },
        "x-kubernetes-group-version-kind": [_KIND],
    }
