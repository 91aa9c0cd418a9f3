"""The HTTP API below `/api/v1`: the commands of the command line for programs, with the same JSON.

One table names the operations and what they take: it checks requests, and the OpenAPI description is made of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mindex import __version__
from mindex.datatypes.option import Option, OptionValue
from mindex.entries.options import MEMORY_OPTIONS
from mindex.errors import MindexError, UsageError
from mindex.http_access.current_principal import require_write
from mindex.present.error_json import error_json
from mindex.present.history import change_json
from mindex.present.records_view import view_records
from mindex.present.to_json import Json, to_json
from mindex.search.options import SEARCH_OPTIONS
from mindex.search_view import search_view
from mindex.web.site import HEADERS, Site, status_of

PREFIX = "/api/v1"
DESCRIPTION = f"{PREFIX}/openapi.json"

logger = logging.getLogger(__name__)

JsonType: TypeAlias = Literal["string", "integer", "number", "boolean", "array"]
_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list,
}  # fmt: skip
_JSON_TYPES: Mapping[OptionValue, JsonType] = {
    "text": "string", "texts": "array", "integer": "integer", "number": "number", "flag": "boolean",
}  # fmt: skip
_YES_NO = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Parameter:
    """What an operation takes: a parameter of the address, or a field of the JSON body. An array is one of texts."""

    name: str
    type: JsonType
    meaning: str
    required: bool = False
    option: str = ""  # its name in `Memory`, where that is another one
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Json]:
        one: dict[str, Json] = {"type": "string" if self.type == "array" else self.type}
        if self.choices:
            one["enum"] = list(self.choices)
        return {"type": "array", "items": one} if self.type == "array" else one

    def parsed(self, texts: list[str]) -> object:
        """The value of the texts in an address. Raises UsageError."""
        if self.type == "array":
            return [self._checked(text) for text in texts]
        text = texts[-1]
        try:
            if self.type == "boolean":
                return _YES_NO[text.lower()]
            if self.type in ("integer", "number"):
                return int(text) if self.type == "integer" else float(text)
        except (ValueError, KeyError):
            raise self._wrong(text) from None
        return self._checked(text)

    def checked(self, value: object) -> object:
        """A value of a JSON body. Raises UsageError for another type."""
        is_number_as_flag = isinstance(value, bool) and self.type != "boolean"
        if not isinstance(value, _PYTHON[self.type]) or is_number_as_flag:
            raise self._wrong(value)
        if isinstance(value, list):
            if not all(isinstance(one, str) for one in value):
                raise self._wrong(value)
            return [self._checked(one) for one in value]
        return self._checked(value)

    def _checked(self, value: object) -> object:
        if self.choices and value not in self.choices:
            raise UsageError(f"unknown {self.name} '{value}'", f"use one of {', '.join(self.choices)}")
        return value

    def _wrong(self, value: object) -> UsageError:
        expected = "a list of texts" if self.type == "array" else f"a value of the type {self.type}"
        return UsageError(f"{self.name} is {json.dumps(value, default=str)[:60]}", f"send {expected}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `run` takes the site and the values by the names of `Memory`, and returns JSON and a status."""

    name: str
    method: Literal["GET", "POST"]
    summary: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Site, dict[str, Any]], tuple[dict[str, Json], int]]


def api_routes(site: Site) -> list[Route]:
    made = [
        Route(f"{PREFIX}/{one.name}", _endpoint(site, one), methods=[one.method], name=f"api-{one.name}")
        for one in OPERATIONS
    ]
    return [*made, Route(DESCRIPTION, _describe, methods=["GET"])]


async def _describe(request: Request) -> Response:
    return JSONResponse(openapi(str(request.base_url).rstrip("/")), headers=HEADERS)


def _endpoint(site: Site, operation: Operation) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            values = await _values(request, operation)
            body, status = await run_sync(operation.run, site, values)
        except MindexError as error:
            body, status = error_json(site.shown_error(error)), status_of(error)
        except RecursionError:
            body, status = error_json(UsageError("the body is nested too deeply", "send a flat JSON object")), 400
        except Exception as error:  # a bug: the log has the rest
            logger.exception("%s failed", request.url.path)
            body, status = error_json(MindexError(f"unexpected {type(error).__name__}")), 500
        return JSONResponse(body, status, HEADERS)

    return endpoint


async def _values(request: Request, operation: Operation) -> dict[str, Any]:
    """What the request gives, by the names of `Memory`. Raises UsageError for a parameter that does not exist."""
    known = {one.name: one for one in operation.parameters}
    raw: Mapping[str, Any]
    if operation.method == "GET":
        raw = {name: request.query_params.getlist(name) for name in request.query_params}
    else:
        raw = await _json_body(request)
    if unknown := [name for name in raw if name not in known]:
        raise UsageError(f"unknown parameter '{unknown[0]}'", f"use one of {', '.join(known)}")
    if missing := [one.name for one in operation.parameters if one.required and one.name not in raw]:
        raise UsageError(f"{missing[0]} is missing", f"{DESCRIPTION} says what {operation.name} takes")
    read = Parameter.parsed if operation.method == "GET" else Parameter.checked
    return {known[name].option or name: read(known[name], value) for name, value in raw.items() if value is not None}


async def _json_body(request: Request) -> dict[str, Any]:
    # Only a script of the same origin can send this type without asking first, so no other page sends a request.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UsageError("the request body is not JSON", "send a JSON object with `Content-Type: application/json`")
    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError as error:
        raise UsageError(f"the request body is not JSON ({error})", "send a JSON object") from None
    if not isinstance(body, dict):
        raise UsageError("the request body is not a JSON object", 'send something like {"text": "…"}')
    return body


# ── the operations ────────────────────────────────────────────────────────────────────────────────────────────


def _search(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    _, shown = search_view(site.memory(), values.pop("q"), **values)
    return shown.json(), 200


def _get(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    found = site.memory().get(*values["ref"], as_of=values.get("as_of"))
    shown = view_records(found, budget=values.get("budget"))
    return shown.json(), 404 if found.missing and not found.records else 200


def _add(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    require_write()
    result = site.memory().add(values.pop("text"), **values)
    return to_json(result), 201 if result.created else 200


def _update(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    require_write()
    id_, reason = values.pop("id"), values.pop("reason", "")
    return change_json(site.memory().update(id_, reason=reason, **values)), 200


def _forget(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    require_write()
    return change_json(site.memory().forget(values["id"], values.get("reason", "")), forgotten=True), 200


def _index(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    require_write()
    path = values.pop("path", "")
    return to_json(site.memory().index(*([site.folder(path)] if path else []), **values)), 200


def _status(site: Site, _: dict[str, Any]) -> tuple[dict[str, Json], int]:
    return to_json(site.memory().status()), 200


def _parameter(option: Option) -> Parameter:
    renamed = option.name if option.name != option.parameter else ""
    return Parameter(option.parameter, _JSON_TYPES[option.value], option.help, option=renamed, choices=option.choices)


# fmt: off
_REASON = Parameter("reason", "string", "why, for the history")
_AS_OF = Parameter("as_of", "string", "entries as of this time")
_BUDGET = Parameter("budget", "integer", "maximum number of tokens")
_OPTIONS = tuple(_parameter(one) for one in MEMORY_OPTIONS if one.parameter)
_PROPERTIES = tuple(one for one in _OPTIONS if one.name != "agent")
OPERATIONS: tuple[Operation, ...] = (
    Operation("search", "GET", "Search everything that is stored", (
        Parameter("q", "string", 'plain words; "phrase", AND, OR, NOT, prefix*, title:word are strict', required=True),
        *(_parameter(one) for one in SEARCH_OPTIONS if one.parameter),
    ), _search),
    Operation("get", "GET", "Records by id, file, lines of a file, or glob", (
        Parameter("ref", "array", "an id, path, path:10-40, glob, history:ID, links:ID …; may be given again",
                  required=True),
        _BUDGET, _AS_OF,
    ), _get),
    Operation("add", "POST", "Add a memory; the same text again is the same memory", (
        Parameter("text", "string", "what to remember", required=True), *_OPTIONS,
    ), _add),
    Operation("update", "POST", "Change a memory: what is given is replaced, the rest stays", (
        Parameter("id", "string", "which one; a unique start is enough", required=True),
        Parameter("text", "string", "its new text"), *_PROPERTIES, _REASON,
    ), _update),
    Operation("forget", "POST", "Take a memory out of every search", (
        Parameter("id", "string", "which one; a unique start is enough", required=True), _REASON,
    ), _forget),
    Operation("index", "POST", "Index a folder, or bring all collections up to date", (
        Parameter("path", "string", "a collection's name or a folder below the server's root; default: all"),
        Parameter("force", "boolean", "also read unchanged files"),
    ), _index),
    Operation("status", "GET", "How much is stored, and what is pending", (), _status),
)
# fmt: on


# ── their description ─────────────────────────────────────────────────────────────────────────────────────────

_ERROR_SCHEMA: dict[str, Json] = {
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


def openapi(server: str) -> dict[str, Json]:
    """The OpenAPI 3.1 description of all operations."""
    paths: dict[str, Json] = {f"{PREFIX}/{one.name}": {one.method.lower(): _operation_json(one)} for one in OPERATIONS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mindex",
            "version": __version__,
            "description": "The commands of mindex over HTTP; results are the JSON that the command line prints.",
        },
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR_SCHEMA},
        },
    }


def _operation_json(one: Operation) -> dict[str, Json]:
    refused: dict[str, Json] = {
        "description": "Refused; nothing was changed",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    done: dict[str, Json] = {
        "description": "Done",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    described: dict[str, Json] = {
        "operationId": one.name,
        "summary": one.summary,
        "responses": {"200": done, "default": refused},
    }
    if one.method == "GET":
        described["parameters"] = [
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter.required,
                "description": parameter.meaning,
                "schema": parameter.schema(),
            }
            for parameter in one.parameters
        ]
    else:
        fields: dict[str, Json] = {
            parameter.name: {**parameter.schema(), "description": parameter.meaning} for parameter in one.parameters
        }
        required: list[Json] = [parameter.name for parameter in one.parameters if parameter.required]
        schema: dict[str, Json] = {"type": "object", "properties": fields, "additionalProperties": False}
        if required:
            schema["required"] = required
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described
