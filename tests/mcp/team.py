"""A server over HTTP with tokens, on a real socket, for tests."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp.client.streamable_http import streamable_http_client

from mcp import Client
from mindex.http_access.connections import TimedProtocol
from mindex.mcp.dialect import dialect_named
from mindex.mcp.http import Address, app, bind, parse_address
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory

LONG = 60.0
KEYWORD: dict[str, object] = {"embedding.provider": "none"}


@dataclass(frozen=True)
class Team:
    """A running server and the memory behind it."""

    url: str
    host: MemoryHost
    server: MindexServer

    @property
    def memory(self) -> Memory:
        return self.host.whole_memory

    def token(self, name: str, **options: Any) -> str:
        return self.memory.tokens.add(name, **options).secret

    def owner(self) -> str:
        self.memory.tokens.owner_file()
        return self.memory.tokens.owner_token()

    @asynccontextmanager
    async def client(self, token: str, mode: str = "auto") -> AsyncIterator[Client]:
        """The SDK's own client, with a token."""
        async with (
            httpx2.AsyncClient(headers=bearer(token), timeout=LONG) as http,
            Client(streamable_http_client(f"{self.url}/mcp", http_client=http), mode=mode) as client,  # type: ignore[arg-type]
        ):
            yield client

    def get(self, path: str, token: str = "", **options: Any) -> httpx2.Response:
        return httpx2.get(f"{self.url}{path}", headers=bearer(token), timeout=LONG, **options)

    def post(self, token: str = "", **options: Any) -> httpx2.Response:
        """Call `tools/list`, or send another body."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = {"Accept": "application/json, text/event-stream", **bearer(token), **options.pop("headers", {})}
        return httpx2.post(f"{self.url}/mcp", **{"json": message, "headers": headers, "timeout": LONG, **options})


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


@contextmanager
def team_server(
    root: Path,
    tools: str = "native",
    *,
    db: str = "",
    settings: dict[str, object] | None = None,
    tokens: bool = True,
    protocol: type[TimedProtocol] = TimedProtocol,
    prepare: Callable[[Memory], object] = lambda _: None,
) -> Iterator[Team]:
    """Start a server of a dialect over a memory below a folder. `prepare` fills the memory before it starts."""
    dialect = dialect_named(tools)
    given = {**dialect.settings_for(None), **KEYWORD, **(settings or {})}
    options = ServerOptions(
        db=db or str(root / "memory.db"), root=root, settings=given, guidance=dialect.guidance, exclude=dialect.exclude
    )
    host = MemoryHost(options)
    prepare(host.whole_memory)
    server = MindexServer(host, dialect)
    listening = bind(parse_address("0"))
    address = Address("127.0.0.1", listening.getsockname()[1])
    config = uvicorn.Config(
        app(server, address, tokens=tokens), http=protocol, log_level="error", timeout_graceful_shutdown=2
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield Team(f"http://{address}", host, server)
    finally:
        running.should_exit = True
        thread.join(LONG)
        host.close()
        assert not thread.is_alive()
