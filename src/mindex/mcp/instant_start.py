"""Answers a client's handshake on stdio before the SDK is imported, then hands the conversation over to the SDK.

The import takes a second of CPU, and some clients send their first turn without the tools of a server that is not
ready. The results are prepared, in `handshakes/`: what the SDK returns for the same requests, in both eras of the
protocol (with a handshake, and stateless). A message that is anything but such a request ends this: from there on the
SDK reads all of them, after those of the handshake, its own reply to which is dropped.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_READ_SIZE = 65_536
_MAX_BRACKETS = 100  # of a message that is answered here: the SDK reads none that is nested 200 deep
_META = "io.modelcontextprotocol/"
_Object = dict[str, Any]


class InstantStart:
    """Takes stdin and stdout, and answers what it can: `answer`, then `hand_over` where that returns True."""

    def __init__(self, package: str, tools: str, instructions: Callable[[], str]) -> None:
        """`package` has the prepared results; `instructions` returns those that tell what is in the store."""
        prepared = json.loads(resources.files(package).joinpath("handshakes", f"{tools}.json").read_bytes())
        self._with_handshake: dict[str, _Object] = prepared["with_handshake"]
        self._stateless: dict[str, _Object] = prepared["stateless"]
        self._versions: list[str] = prepared["versions"]
        self._stateless_versions: list[str] = prepared["stateless_versions"]
        self._instructions = instructions if prepared["instructions_change"] else None
        self._wire_in, self._wire_out = _claim_stdin_and_stdout()
        self._unread = b""
        self._handshake: list[bytes] = []
        self._initialize_id: object = None

    def answer(self, answered: Callable[[], None]) -> bool:
        """Answer messages until the SDK must see one, and call `answered` after each. Returns False at their end."""
        for line in self._lines():
            reply = self._reply(line)
            if reply is None:
                self._unread = line + self._unread
                return True
            try:
                _write_all(self._wire_out, reply)
            except BrokenPipeError:
                return False
            answered()
        return False

    def hand_over(self) -> None:
        """Make `sys.stdin` and `sys.stdout` streams for the SDK, in which the handshake is made again unseen."""
        messages = _Messages(self._wire_in, b"".join(self._handshake) + self._unread)
        replies = _Replies(self._wire_out, self._initialize_id)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(messages), encoding="utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(replies), encoding="utf-8")

    def _lines(self) -> Iterator[bytes]:
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                yield line + newline
            elif read := os.read(self._wire_in, _READ_SIZE):
                self._unread += read
            else:
                return

    def _reply(self, line: bytes) -> bytes | None:
        """The reply to a message, empty for a notification; None if the SDK must see the message."""
        if line.count(b"[") + line.count(b"{") > _MAX_BRACKETS:
            return None
        try:
            message = json.loads(line)
            _encoded(message)
        except ValueError:  # also of half a surrogate pair, which cannot be encoded
            return None
        if not isinstance(message, dict) or not isinstance(message.get("params", {}), dict):
            return None
        if message.get("method") == "notifications/initialized" and "id" not in message and len(self._handshake) == 1:
            self._handshake.append(line)
            return b""
        if message.get("jsonrpc") != "2.0" or type(message.get("id")) not in (str, int):
            return None
        result = self._initialize(message, line) if message.get("method") == "initialize" else self._prepared(message)
        return None if result is None else _encoded({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _initialize(self, message: _Object, line: bytes) -> _Object | None:
        params = message.get("params", {})
        version, client, capabilities = (params.get(one) for one in ("protocolVersion", "clientInfo", "capabilities"))
        has_types = isinstance(version, str) and isinstance(client, dict) and isinstance(capabilities, dict)
        if self._handshake or not has_types or not all(isinstance(client.get(one), str) for one in ("name", "version")):
            return None
        self._handshake.append(line)
        self._initialize_id = message["id"]
        result = self._with_handshake["initialize"]
        known = version if version in self._versions else result["protocolVersion"]
        return {**self._with_instructions(result), "protocolVersion": known}

    def _prepared(self, message: _Object) -> _Object | None:
        params, method = message.get("params", {}), str(message.get("method"))
        meta = params.get("_meta", {})
        if params.keys() > {"_meta"} or not isinstance(meta, dict):  # a cursor, or what is not known here
            return None
        if f"{_META}protocolVersion" in meta:
            result = self._stateless.get(method) if self._is_stateless(meta) else None
        else:
            result = self._with_handshake.get(method) if len(self._handshake) == 2 else None
        return self._with_instructions(result) if result and method == "server/discover" else result

    def _with_instructions(self, result: _Object) -> _Object:
        return {**result, "instructions": self._instructions()} if self._instructions else result

    def _is_stateless(self, meta: _Object) -> bool:
        """Whether a request has what one of the stateless era must have."""
        parts = (meta.get(f"{_META}{name}") for name in ("clientInfo", "clientCapabilities"))
        return meta[f"{_META}protocolVersion"] in self._stateless_versions and all(
            isinstance(one, dict) for one in parts
        )


def _encoded(reply: _Object) -> bytes:
    """One line of JSON. Raises ValueError for a text that has half a surrogate pair."""
    return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _claim_stdin_and_stdout() -> tuple[int, int]:
    """Move both to new descriptors: other output goes to stderr, and other readers see an empty stdin."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire_in, wire_out


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


class _Messages(io.RawIOBase):
    """What was read already, then what a descriptor gives."""

    def __init__(self, descriptor: int, read: bytes) -> None:
        self._descriptor = descriptor
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer).cast("B")
        data = self._read[: len(target)] or os.read(self._descriptor, len(target))
        self._read = self._read[len(data) :]
        target[: len(data)] = data
        return len(data)


class _Replies(io.RawIOBase):
    """Writes lines to a descriptor, but for the reply to one request that was answered already."""

    def __init__(self, descriptor: int, answered: object) -> None:
        self._descriptor = descriptor
        self._answered = answered
        self._held = b""

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        text = bytes(data)
        if self._answered is None:
            _write_all(self._descriptor, text)
            return len(text)
        *lines, self._held = (self._held + text).split(b"\n")
        for line in lines:
            if self._answered is not None and self._is_dropped(line):
                self._answered = None
            else:
                _write_all(self._descriptor, line + b"\n")
        if self._answered is None:
            _write_all(self._descriptor, self._held)
        return len(text)

    def _is_dropped(self, line: bytes) -> bool:
        message = json.loads(line)
        return "method" not in message and message.get("id") == self._answered
