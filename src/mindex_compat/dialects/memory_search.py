"""The addresses of memory-search over HTTP: /search, /get, /status and /index, with its JSON.

It has no tools over MCP, so a server offers the native ones beside them. Unlike there, every request needs an access
token, and no other site's page may send one (`--cors`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mindex.errors import MindexError, NotFoundError, UsageError
from mindex.mcp.dialect import NATIVE, Dialect, dialect_named
from mindex.mcp.dialect_parts import MemoryHost, require_write, status_of, to_json
from mindex_compat.memory_search.guidance import GUIDANCE, in_own_words
from mindex_compat.memory_search.observations import TYPES
from mindex_compat.memory_search.output import capped_results
from mindex_compat.memory_search.passages import Passages
from mindex_compat.memory_search.search import DEFAULT_LIMIT, MODES, Request, search
from mindex_compat.memory_search.status import status_of as numbers_of

logger = logging.getLogger(__name__)
_TEXTS = ("collection", "path", "concept", "after", "before")
_KNOWN = ("q", "limit", "mode", "type", "budget", "expand", "explain", *_TEXTS)
_YES = {"": True, "true": True, "1": True, "false": False, "0": False}

Answer = Callable[[MemoryHost, HttpRequest], Mapping[str, Any]]


def _routes(host: MemoryHost) -> Sequence[Route]:
    return (
        Route("/search", _endpoint(host, _search), methods=["GET"]),
        Route("/get/{id:path}", _endpoint(host, _get), methods=["GET"]),
        Route("/status", _endpoint(host, _status), methods=["GET"]),
        Route("/index", _endpoint(host, _index), methods=["POST"]),
    )


def _endpoint(host: MemoryHost, answer: Answer) -> Callable[[HttpRequest], Any]:
    async def endpoint(request: HttpRequest) -> Response:
        try:
            return JSONResponse(await run_sync(answer, host, request), headers={"cache-control": "no-store"})
        except MindexError as error:
            return JSONResponse({"error": in_own_words(host.error_text(error))}, status_of(error))
        except Exception as error:  # a bug: the log has the rest
            logger.exception("%s failed", request.url.path)
            return JSONResponse({"error": f"unexpected {type(error).__name__}"}, 500)

    return endpoint


def _search(host: MemoryHost, request: HttpRequest) -> Mapping[str, Any]:
    """`/search?q=…&limit=5`, and the flags of `ms search` as parameters."""
    given = dict(request.query_params)
    if unknown := [name for name in given if name not in _KNOWN]:
        raise UsageError(f"unknown parameter '{unknown[0]}'", f"use one of {', '.join(_KNOWN)}")
    if not given.get("q", "").strip():
        raise UsageError('missing query parameter "q"', "send /search?q=WORDS")
    mode, type_ = given.get("mode", "hybrid"), given.get("type", "")
    if mode not in MODES:
        raise UsageError(f"unknown mode '{mode}'", f"use one of {', '.join(MODES)}")
    if type_ and type_ not in TYPES:
        raise UsageError(f"unknown type '{type_}'", f"use one of {', '.join(TYPES)}")
    wanted = Request(
        given["q"],
        _whole(given, "limit") or DEFAULT_LIMIT,
        MODES[mode],
        _flag(given, "expand"),
        type=type_,
        **{name: given.get(name, "") for name in _TEXTS},
    )
    found = search(host.memory, wanted)
    shown = capped_results(found, explain=_flag(given, "explain"), budget=_whole(given, "budget"))
    return {**shown, **({"notes": [in_own_words(one) for one in found.notes]} if found.notes else {})}


def _whole(given: Mapping[str, str], name: str) -> int | None:
    """Return a parameter that is a number from 1 on; None if it is not given. Raises UsageError."""
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**31):
        raise UsageError(f"{name} is '{text}'", "send a number of at least 1")
    return int(text)


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in _YES:
        raise UsageError(f"{name} is '{text}'", "send true or false")
    return _YES[text]


def _get(host: MemoryHost, request: HttpRequest) -> Mapping[str, Any]:
    """`/get/ID`, a chunk; for a reference of several, the list of them."""
    reference = request.path_params["id"]
    if not reference:
        raise NotFoundError("the chunk id is missing", "send /get/ID")
    found = [one.json() for one in Passages(host.memory).find(reference)]
    return found[0] if len(found) == 1 else {"chunks": found}


def _status(host: MemoryHost, _: HttpRequest) -> Mapping[str, Any]:
    return numbers_of(host.memory)


def _index(host: MemoryHost, _: HttpRequest) -> Mapping[str, Any]:
    """`POST /index`: bring the collections up to date."""
    require_write()
    return to_json(host.memory.index())


DIALECT: Dialect = replace(dialect_named(NATIVE), guidance=GUIDANCE, routes=_routes)
