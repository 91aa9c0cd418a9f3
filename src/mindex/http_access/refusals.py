"""Refusals of a server: the same JSON error from every part of the server."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from mindex.errors import MindexError
from mindex.present.to_json import error_json

_JSON, _PLAIN = "application/json", "text/plain"
_KINDS = {
    400: "bad_request",
    403: "denied",
    404: "not_found",
    405: "method",
    408: "timeout",
    413: "too_large",
    421: "host",
    429: "rate_limit",
}
# What is said in place of the text of a library.
_MESSAGES = {
    400: ("the request is malformed", f"send a JSON-RPC message with the header `Content-Type: {_JSON}`"),
    403: (
        "requests of web pages from another origin are refused",
        "have the server's owner set MINDEX_HTTP_PUBLIC_URL (http.public_url) to the address that clients use",
    ),
    404: (
        "there is nothing at this path",
        "MCP is at /mcp, the API below /api/v1, the page at /; there are also /health, /ready and /metrics",
    ),
    405: ("this path does not take this method", "send POST to /mcp and what changes something, and GET elsewhere"),
    421: (
        "this server is not known by the name in the header Host",
        "have the server's owner set MINDEX_HTTP_PUBLIC_URL (http.public_url) to the address that clients use",
    ),
}


def refusal(status: int, error: MindexError | None = None, headers: dict[str, str] | None = None) -> Response:
    """The refusal with a status. Without an error it says what the status means here."""
    error = error or MindexError(*_MESSAGES.get(status, (f"the request was refused with {status}", "")))
    kind = _KINDS.get(status, error.kind) if error.kind == MindexError.kind else error.kind
    return JSONResponse(error_json(error, kind), status, headers)


class JsonRefusals:
    """A `send` that puts JSON in place of a refusal in plain text; pages, JSON and all answers pass unchanged."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._replaced = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=list(message["headers"]))
            if message["status"] in _MESSAGES and headers.get("content-type", _PLAIN).startswith(_PLAIN):
                self._replaced = True
                allow = {"allow": headers["allow"]} if "allow" in headers else None
                await refusal(message["status"], None, allow)(self._scope, self._receive, self._send)
        if not self._replaced:
            await self._send(message)
