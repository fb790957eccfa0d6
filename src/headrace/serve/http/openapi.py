"""What a front end says of itself to programs: OpenAPI 3.1, with the columns of its streams and queries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.plan.arrow import arrow_type
from headrace.plan.schema import Schema
from headrace.serve.deployment import Deployment
from headrace.serve.http.answers import makes_several
from headrace.serve.http.options import Limits

ERROR = {"type": "object", "properties": {"error": {"type": "string"}, "hint": {"type": "string"}}, "required": ["error"]}
STATUSES = {
    "400": "The request is no JSON, or its id is no id.",
    "401": "No token, or none that opens.",
    "403": "The token lacks the scope.",
    "404": "There is no such stream.",
    "408": "The body did not come in time.",
    "413": "The body, or the batch, is larger than is taken.",
    "415": "The body is neither application/json nor application/x-ndjson.",
    "429": "Too many at once, or too fast: see Retry-After.",
    "503": "The front end ends, or cannot take more: see Retry-After.",
}


def openapi(deployment: Deployment, limits: Limits) -> dict[str, Any]:
    paths: dict[str, Any] = {
        f"/streams/{s.name}/events": {"post": _post(deployment, n, limits)} for n, s in enumerate(deployment.streams)
    }
    for path, text in (
        ("/health", "Whether it lives."),
        ("/ready", "Whether all units are there."),
        ("/metrics", "For Prometheus."),
    ):
        paths[path] = {"get": {"summary": text, "responses": {"200": {"description": "Yes."}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": deployment.name, "version": "1"},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": {"Error": ERROR}},
    }


def _post(deployment: Deployment, stream: int, limits: Limits) -> dict[str, Any]:
    spec = deployment.streams[stream]
    event, reply = row_of(spec.schema), {"oneOf": [_answered(deployment, stream), LATE, PROMISED]}
    one = {"description": "The reply, with all metrics of all entities.", "content": {"application/json": {"schema": reply}}}
    errors = {status: _failed(text, {"$ref": "#/components/schemas/Error"}) for status, text in STATUSES.items()}
    return {
        "summary": f"Post an event of {spec.name}, or up to {limits.batch} of them.",
        "parameters": [
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}, "description": "The event's own id."},
            {"name": "id", "in": "query", "schema": {"type": "string"}, "description": "The same."},
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"oneOf": [event, {"type": "array", "items": event}]}},
                "application/x-ndjson": {"schema": event},
            },
        },
        "responses": {"200": one, "422": _failed("The event does not fit its stream.", REJECTED),
                      "504": _failed("The event was accepted, and is not answered yet.", UNANSWERED), **errors},
    }  # fmt: skip


def _failed(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _answered(deployment: Deployment, stream: int) -> dict[str, Any]:
    queries = [f.query for f in deployment.finishes()]
    rows = {q.name: row_of(q.node.schema) for q in queries}
    shapes = {
        q.name: {"type": "array", "items": rows[q.name]} if makes_several(q.node) else _or_null(rows[q.name]) for q in queries
    }
    change = {"query": TEXT, "op": {"enum": ["+", "-"]}, "place": TEXT, "time": TEXT, "row": {"type": "object"}}
    return _object({"place": TEXT, "answers": {"type": "object", "properties": shapes},
                    "earlier": {"type": "array", "items": _object(change)}})  # fmt: skip


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [schema, {"type": "null"}]}


TEXT = {"type": "string"}
_LATENESS = _object({"time": TEXT, "complete_before": TEXT, "by_seconds": {"type": "number"}, "message": TEXT})
LATE = _object({"place": TEXT, "late": _LATENESS})
PROMISED = _object({"place": TEXT, "promised": TEXT})
UNANSWERED = _object({"place": TEXT, "accepted": {"const": True}, "error": TEXT, "hint": TEXT})
REJECTED = _object({"rejected": _object({"reason": TEXT})})


def row_of(schema: Schema) -> dict[str, Any]:
    """Rows of these columns, as JSON has them."""
    return {"type": "object", "properties": {f.name: _or_null(_type(arrow_type(f.type))) for f in schema.fields}}


def _type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "integer"}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind):
        return {"type": "number"}
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_date(kind):
        return {"type": "string", "format": "date"}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _or_null(_type(kind.value_type))}
    if pa.types.is_struct(kind):
        return {"type": "object", "properties": {part.name: _or_null(_type(part.type)) for part in kind}}
    return {"type": "object"} if pa.types.is_map(kind) else {"type": "string"}
