"""Answers messages on stdio that the SDK cannot read, and drops: a client would wait for its reply for ever.

Such are JSON with half a surrogate pair, with values nested 200 deep or with a number of thousands of digits, and what
is JSON but no request. A request whose id is neither a text nor a whole number (`1.5`, `null`) the SDK takes for a
notification, without its id; but the methods of notifications have a prefix.
"""

import json
import re
from collections.abc import Mapping
from typing import Self

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream  # the SDK has no public names for them
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification
from pydantic import ValidationError

# A string, also one that does not end, a mark, or anything else.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)
_ADVICE = "send JSON of valid Unicode, nested less than 200 deep, with numbers of at most 4,000 digits"
_RESPONSE = ("result", "error")
_NOTIFICATIONS = "notifications/"


class AnsweredMessages:
    """The messages of a stream without those that could not be read, which are answered with an error."""

    def __init__(self, messages: ReadStream[SessionMessage | Exception], replies: WriteStream[SessionMessage]) -> None:
        self._messages = messages
        self._replies = replies

    @property
    def last_context(self) -> object:
        """The context in which the last message was sent, which the SDK asks a stream for."""
        return getattr(self._messages, "last_context", None)

    async def receive(self) -> SessionMessage:
        while True:
            item = await self._messages.receive()
            if isinstance(item, SessionMessage) and not _lacks_id(item):
                return item
            if (reply := _NO_ID if isinstance(item, SessionMessage) else error_reply(item)) is not None:
                await self._replies.send(SessionMessage(reply))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._messages.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def error_reply(problem: Exception) -> JSONRPCError | None:
    """Return the reply to a message that could not be read; None for an empty line, a notification or a response."""
    if not isinstance(problem, ValidationError):
        return _error(PARSE_ERROR, None, str(problem))
    errors = problem.errors(include_url=False)
    first = errors[0]
    if first["type"] == "json_invalid":
        line, what = str(first["input"]), first["msg"].removeprefix("Invalid JSON: ")
        return (
            _error(PARSE_ERROR, request_id(line), f"the message cannot be read ({what}); {_ADVICE}")
            if line.strip()
            else None
        )
    # A message without `result` is not a response; pydantic reports the enclosing object.
    wholes = (one["input"] for one in errors if one["type"] == "missing" and len(one["loc"]) == 2)
    message = next((one for one in wholes if isinstance(one, Mapping)), None)
    if message is not None and ("id" not in message or any(name in message for name in _RESPONSE)):
        return None
    where = ".".join(map(str, first["loc"][1:]))
    what = f"{where}: {first['msg']}" if where else first["msg"]
    return _error(INVALID_REQUEST, _usable(message["id"]) if message else None, f"this is not a request ({what})")


def _lacks_id(item: SessionMessage) -> bool:
    """Whether a message is a request without an id that could be sent back."""
    return isinstance(item.message, JSONRPCNotification) and not item.message.method.startswith(_NOTIFICATIONS)


def request_id(line: str) -> str | int | None:
    """Return the id of a message that may not be valid JSON; None if it has no id that can be sent back."""
    depth, before = 0, ("", "")
    for found in _TOKEN.finditer(line):
        token = found[0]
        if depth == 1 and before == ('"id"', ":"):
            try:
                return _usable(json.loads(token))
            except ValueError:
                return None
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        before = before[1], token
    return None


def _usable(id_: object) -> str | int | None:
    if isinstance(id_, str):
        return id_ if id_ == id_.encode("utf-8", "ignore").decode() else None  # half a surrogate pair cannot be sent
    return id_ if isinstance(id_, int) and not isinstance(id_, bool) else None


def _error(code: int, id_: str | int | None, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=code, message=message))


_NO_ID = _error(INVALID_REQUEST, None, "this is not a request (id: it must be a text or a whole number)")
