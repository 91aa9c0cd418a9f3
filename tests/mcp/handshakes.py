"""Conversations with `mindex serve` over stdio, line by line, and the prepared handshake that is made of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from mindex.mcp.dialect import dialect_named

Message = dict[str, Any]

CLIENT = {"name": "test", "version": "1"}
STATELESS = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN_PROTOCOL_VERSIONS[-1],
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
LISTS = ("tools/list", "prompts/list", "resources/templates/list")
INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def initialize(version: str = LATEST_HANDSHAKE_VERSION, id_: object = 1) -> Message:
    return request("initialize", id_, {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT})


def request(method: str, id_: object, params: Message | None = None) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "method": method} | ({} if params is None else {"params": params})


def replies(
    arguments: Sequence[str], messages: Sequence[Message], *, at_once: bool = False, seconds: float | None = None
) -> list[bytes]:
    """The lines that the server writes for these messages, each sent after the reply to the one before, or at once.

    The server is ended after `seconds`: one that does not answer then fails the test.
    """
    command = [sys.executable, "-m", "mindex", *arguments]
    environment = {**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"}
    pipe = subprocess.PIPE
    lines: list[bytes] = []
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment) as server:
        assert server.stdin is not None and server.stdout is not None
        end = threading.Timer(seconds, server.kill) if seconds is not None else None
        if end is not None:
            end.start()
        for message in messages:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            if "id" in message and not at_once:
                lines.append(server.stdout.readline())
        while at_once and len(lines) < sum("id" in message for message in messages):
            lines.append(server.stdout.readline())
        server.stdin.close()
        lines += server.stdout.readlines()
        if end is not None:
            end.cancel()
        return lines


def prepared(tools: str) -> bytes:
    """The prepared handshake of a dialect: what the SDK itself returns in both eras of the protocol."""
    methods = (*LISTS, "ping")
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--db", str(Path(folder) / "memory.db"), "serve", "--no-instant", "--tools", tools]
        asked = [initialize(), INITIALIZED, *(request(method, method) for method in methods)]
        with_handshake = _results(["initialize", *methods], replies(arguments, asked))
        methods = ("server/discover", *LISTS)
        stateless = _results(methods, replies(arguments, [request(method, method, STATELESS) for method in methods]))
    content = {
        "versions": HANDSHAKE_PROTOCOL_VERSIONS,
        "stateless_versions": MODERN_PROTOCOL_VERSIONS,
        "instructions_change": dialect_named(tools).lists_collections,
        "with_handshake": with_handshake,
        "stateless": stateless,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _results(methods: Sequence[str], lines: Sequence[bytes]) -> dict[str, Any]:
    return {method: json.loads(line)["result"] for method, line in zip(methods, lines, strict=True)}
