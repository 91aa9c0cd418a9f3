"""A server over the handbook, without a model: fast, and the same everywhere. Tests talk to it in memory."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from mcp import Client
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.mcp.tools import StrictTool
from tests.conftest import HANDBOOK
from tests.databases import Databases

KEYWORD: dict[str, object] = {"embedding.provider": "none"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def schemas_of_tools() -> Iterator[None]:
    """Make the schema of each tool once: the 27 of one dialect take 0.1 s, and most tests start a server."""
    made: dict[object, StrictTool] = {}
    make = StrictTool.of

    def of(method: Callable[..., Any], **published: Any) -> StrictTool:
        key = (method.__module__, method.__qualname__, published["name"])
        if key not in made:
            made[key] = make(method, **published)
        return made[key].model_copy(update={"fn": method})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StrictTool, "of", of)
        yield


@dataclass(frozen=True)
class Served:
    host: MemoryHost
    server: MindexServer
    root: Path


@pytest.fixture(scope="session")
def handbook_server(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Served]:
    """Shared: tests must not change what is indexed."""
    root = tmp_path_factory.mktemp("served")
    shutil.copytree(HANDBOOK, root / "handbook")
    host = MemoryHost(ServerOptions(db=databases.new(root / "memory.db"), root=root, settings=KEYWORD))
    host.memory.index(root / "handbook")
    yield Served(host, MindexServer(host, dialect_named("native")), root)
    host.close()


@pytest.fixture
async def client(handbook_server: Served) -> AsyncIterator[Client]:
    async with Client(handbook_server.server) as connected:
        yield connected


@pytest.fixture
def own(tmp_path: Path, database: str) -> Iterator[Served]:
    """An empty memory of the test's own."""
    native = dialect_named("native")
    options = ServerOptions(db=database, root=tmp_path, settings=KEYWORD, guidance=native.guidance)
    host = MemoryHost(options)
    yield Served(host, MindexServer(host, native), tmp_path)
    host.close()


@pytest.fixture
def serving(tmp_path: Path, database: str) -> Iterator[Callable[..., Served]]:
    """Makes servers of any dialect over one memory of the test's own, with the dialect's settings."""
    opened: list[MemoryHost] = []

    def make(tools: str, *, agent: str | None = None, settings: dict[str, object] = KEYWORD) -> Served:
        dialect = dialect_named(tools)
        given = {**dialect.settings_for(None), **settings}
        opened.append(
            MemoryHost(
                ServerOptions(
                    db=database,
                    root=tmp_path,
                    agent=agent,
                    settings=given,
                    guidance=dialect.guidance,
                )
            )
        )
        return Served(opened[-1], MindexServer(opened[-1], dialect), tmp_path)

    yield make
    for host in opened:
        host.close()


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def structured(result: CallToolResult) -> dict[str, Any]:
    assert result.structured_content is not None
    return dict(result.structured_content)
