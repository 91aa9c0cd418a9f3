"""The OpenAPI 3.1 description of the HTTP API, made from its table of operations."""

from __future__ import annotations

import json
from typing import Any

from mindex.datatypes.option import Option
from mindex.web.api import JSON_TYPES, OPERATIONS, PREFIX, Operation

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message"],
            "properties": {
                "kind": {"type": "string"},
                "message": {"type": "string", "description": "what happened"},
                "hint": {"type": "string", "description": "what to do next"},
            },
        },
    },
}


def description() -> str:
    """Return the file that the server reads; it puts its own version and address in."""
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "mindex",
            "version": "",
            "description": "The commands of mindex over HTTP; results are the JSON that the command line prints.",
        },
        "servers": [],
        "security": [{"token": []}],
        "paths": {f"{PREFIX}/{one.name}": {one.method.lower(): _operation(one)} for one in OPERATIONS},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }
    return json.dumps(described, ensure_ascii=False, indent=1) + "\n"


def _operation(one: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {
            "200": _response("Done", {"type": "object"}),
            "default": _response("Refused; nothing was changed", {"$ref": "#/components/schemas/Error"}),
        },
    }
    if one.method == "GET":
        described["parameters"] = [
            {
                "name": option.parameter,
                "in": "query",
                "required": option.parameter == one.required,
                "description": option.help,
                "schema": _schema(option),
            }
            for option in one.options
        ]
        return described
    schema = {
        "type": "object",
        "properties": {option.parameter: _schema(option) | {"description": option.help} for option in one.options},
        "additionalProperties": False,
        **({"required": [one.required]} if one.required else {}),
    }
    described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _response(description: str, schema: dict[str, str]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _schema(option: Option) -> dict[str, Any]:
    several = option.value == "texts"
    one: dict[str, Any] = {"type": "string" if several else JSON_TYPES[option.value][0]}
    if option.choices:
        one["enum"] = list(option.choices)
    return {"type": "array", "items": one} if several else one
