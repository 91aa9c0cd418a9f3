"""The HTTP API below `/api/v1`: the commands of the command line for programs, with the same JSON.

One table names the operations and what they take: it checks requests, and `scripts/reference` writes the OpenAPI
description from it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mindex import __version__
from mindex.datatypes.option import Option, OptionValue
from mindex.entries.options import MEMORY_OPTIONS
from mindex.errors import MindexError, UsageError
from mindex.http_access.current_principal import require_write
from mindex.present.history import change_json
from mindex.present.records_view import view_records
from mindex.present.to_json import Json, error_json, to_json
from mindex.search.options import SEARCH_OPTIONS
from mindex.search_view import search_view
from mindex.web.site import HEADERS, Site, status_of

PREFIX = "/api/v1"
DESCRIPTION = f"{PREFIX}/openapi.json"

logger = logging.getLogger(__name__)

# How a value of each kind is written in JSON, and what Python reads there.
JSON_TYPES: Mapping[OptionValue, tuple[str, type | tuple[type, ...]]] = {
    "text": ("string", str), "texts": ("array", list), "integer": ("integer", int), "number": ("number", (int, float)),
    "flag": ("boolean", bool),
}  # fmt: skip
_FROM_TEXT: Mapping[OptionValue, Callable[[str], object]] = {
    "integer": int, "number": float, "flag": {"true": True, "1": True, "false": False, "0": False}.__getitem__,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `run` takes the site and the values by the names of `Memory`, and returns JSON and a status.

    A row of `options` is a parameter of the address, or a field of the JSON body, by the name of its `parameter`.
    """

    name: str
    method: Literal["GET", "POST"]
    summary: str
    options: tuple[Option, ...]
    run: Callable[[Site, dict[str, Any]], tuple[dict[str, Json], int]]
    required: str = ""  # the parameter that must be given


def _read_texts(option: Option, texts: list[str]) -> object:
    """The value of the texts in an address. Raises UsageError."""
    if option.value == "texts":
        return [_checked(option, text) for text in texts]
    text = texts[-1]
    try:
        return _FROM_TEXT[option.value](text.lower()) if option.value in _FROM_TEXT else _checked(option, text)
    except (ValueError, KeyError):
        raise _wrong(option, text) from None


def _read_json(option: Option, value: object) -> object:
    """A value of a JSON body. Raises UsageError for another type."""
    is_number_as_flag = isinstance(value, bool) and option.value != "flag"
    if not isinstance(value, JSON_TYPES[option.value][1]) or is_number_as_flag:
        raise _wrong(option, value)
    if not isinstance(value, list):
        return _checked(option, value)
    if not all(isinstance(one, str) for one in value):
        raise _wrong(option, value)
    return [_checked(option, one) for one in value]


def _checked(option: Option, value: object) -> object:
    if option.choices and value not in option.choices:
        raise UsageError(f"unknown {option.parameter} '{value}'", f"use one of {', '.join(option.choices)}")
    return value


def _wrong(option: Option, value: object) -> UsageError:
    expected = "a list of texts" if option.value == "texts" else f"a value of the type {JSON_TYPES[option.value][0]}"
    return UsageError(f"{option.parameter} is {json.dumps(value, default=str)[:60]}", f"send {expected}")


def api_routes(site: Site) -> list[Route]:
    made = [
        Route(f"{PREFIX}/{one.name}", _endpoint(site, one), methods=[one.method], name=f"api-{one.name}")
        for one in OPERATIONS
    ]
    return [*made, Route(DESCRIPTION, _describe, methods=["GET"])]


async def _describe(request: Request) -> Response:
    """The OpenAPI 3.1 description of all operations, which `scripts/reference` writes from them."""
    described = json.loads(files("mindex.web").joinpath("openapi.json").read_bytes())
    described["info"]["version"] = __version__
    described["servers"] = [{"url": str(request.base_url).rstrip("/")}]
    return JSONResponse(described, headers=HEADERS)


def _endpoint(site: Site, operation: Operation) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            values = await _values(request, operation)
            if operation.method == "POST":
                require_write()
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
    known = {one.parameter: one for one in operation.options}
    raw: Mapping[str, Any]
    if operation.method == "GET":
        raw = {name: request.query_params.getlist(name) for name in request.query_params}
    else:
        raw = await _json_body(request)
    if unknown := [name for name in raw if name not in known]:
        raise UsageError(f"unknown parameter '{unknown[0]}'", f"use one of {', '.join(known)}")
    if operation.required and operation.required not in raw:
        raise UsageError(f"{operation.required} is missing", f"{DESCRIPTION} says what {operation.name} takes")
    read = _read_texts if operation.method == "GET" else _read_json
    return {known[name].name: read(known[name], value) for name, value in raw.items() if value is not None}


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
    result = site.memory().add(values.pop("text"), **values)
    return to_json(result), 201 if result.created else 200


def _update(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    id_, reason = values.pop("id"), values.pop("reason", "")
    return change_json(site.memory().update(id_, reason=reason, **values)), 200


def _forget(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    return change_json(site.memory().forget(values["id"], values.get("reason", "")), forgotten=True), 200


def _index(site: Site, values: dict[str, Any]) -> tuple[dict[str, Json], int]:
    path = values.pop("path", "")
    return to_json(site.memory().index(*([site.folder(path)] if path else []), **values)), 200


def _status(site: Site, _: dict[str, Any]) -> tuple[dict[str, Json], int]:
    return to_json(site.memory().status()), 200


def _text(name: str, help_: str) -> Option:
    return Option(name, "text", "", help_, parameter=name)


# fmt: off
_ID = _text("id", "which one; a unique start is enough")
_REASON = _text("reason", "why, for the history")
_PROPERTIES = tuple(one for one in MEMORY_OPTIONS if one.parameter)
OPERATIONS: tuple[Operation, ...] = (
    Operation("search", "GET", "Search everything that is stored", (
        _text("q", 'plain words; "phrase", AND, OR, NOT, prefix*, title:word are strict'),
        *(one for one in SEARCH_OPTIONS if one.parameter),
    ), _search, required="q"),
    Operation("get", "GET", "Records by id, file, lines of a file, or glob", (
        Option("ref", "texts", (), "an id, path, path:10-40, glob, history:ID, links:ID …; may be given again",
               parameter="ref"),
        Option("budget", "integer", None, "maximum number of tokens", parameter="budget"),
        _text("as_of", "entries as of this time"),
    ), _get, required="ref"),
    Operation("add", "POST", "Add a memory; the same text again is the same memory", (
        _text("text", "what to remember"), *_PROPERTIES,
    ), _add, required="text"),
    Operation("update", "POST", "Change a memory: what is given is replaced, the rest stays", (
        _ID, _text("text", "its new text"), *(one for one in _PROPERTIES if one.name != "agent"), _REASON,
    ), _update, required="id"),
    Operation("forget", "POST", "Take a memory out of every search", (_ID, _REASON), _forget, required="id"),
    Operation("index", "POST", "Index a folder, or bring all collections up to date", (
        _text("path", "a collection's name or a folder below the server's root; default: all"),
        Option("force", "flag", False, "also read unchanged files", parameter="force"),
    ), _index),
    Operation("status", "GET", "How much is stored, and what is pending", (), _status),
)
# fmt: on
