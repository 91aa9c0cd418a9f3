"""`NOT` in a query keeps what it names out of every dialect's search, also when other words are searched loosely."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp import Client
from tests.conftest import write
from tests.mcp.conftest import Served, text

pytestmark = pytest.mark.anyio

FLOORED = ("native", "openai")  # loose words may be too little for them
SEARCHES = {
    "native": ("search",),
    "openai": ("search",),
    "memory-exchange": ("search_memory_exchange", "search_memory_bank"),
    "memory-mcp": ("memory_recall",),
    "mudpuppy": ("memory_search",),
    "memorizer": ("retrieve_memories", "search_conversations"),
}


@pytest.mark.parametrize(
    "dialect",
    [pytest.param(one, marks=[] if one == "native" else pytest.mark.extension("mindex_compat")) for one in SEARCHES],
)
@pytest.mark.parametrize("query", ["python NOT fastapi", "python web NOT fastapi", '"a python" web NOT fastapi'])
async def test_no_dialect_returns_what_a_query_excludes(
    serving: Callable[..., Served], tmp_path: Path, dialect: str, query: str
) -> None:
    served = serving(dialect)
    memory = served.host.memory
    memory.index(write(tmp_path / "pages", {"a.md": "# Ball\n\nFastAPI is python web.", "b.md": "# Ball\n\nA python."}))
    memory.add("FastAPI serves python web applications.")
    memory.add("The snake is a python.")
    memory.conversations.add("Which python web framework?", "FastAPI.", extract=False)
    memory.conversations.add("Which snake?", "A python.", extract=False)
    async with Client(served.server) as client:
        for tool in SEARCHES[dialect]:
            result = await client.call_tool(tool, {"query": query})
            assert not result.is_error, text(result)
            answered = text(result)
            assert not re.search("FastAPI|serves|framework|/a.md", answered), answered
            assert dialect in FLOORED or re.search("A python|a python", answered), answered
