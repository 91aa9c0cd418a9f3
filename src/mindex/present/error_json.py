"""Errors as JSON: the same object from the command line, the HTTP API and every refusal of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindex.errors import MindexError

if TYPE_CHECKING:
    from mindex.present.to_json import Json


def error_json(error: MindexError, kind: str = "") -> dict[str, Json]:
    """`{"error": {"kind", "message", "hint"}}`, without a hint if there is none. `kind` replaces the error's own."""
    shown: dict[str, Json] = {"kind": kind or error.kind, "message": _encodable(error.message)}
    if error.hint:
        shown["hint"] = _encodable(error.hint)
    return {"error": shown}


def _encodable(text: str) -> str:
    """The text as UTF-8 carries it: half a character, which an error may repeat, is written as JSON escapes it."""
    return text.encode("utf-8", "backslashreplace").decode()
