"""The instructions of a server, which clients show their model before it uses a tool."""

from __future__ import annotations

from mindex.errors import MindexError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost

_MOST_COLLECTIONS = 10
# Opening takes 15 ms, unless another process holds the database.
_OPEN_SECONDS = 0.25


def build_instructions(host: MemoryHost, dialect: Dialect) -> str:
    """The dialect's instructions, and the names and contexts of the collections if it lists them.

    A memory that does not open at once is left out: the first request returns the reason.
    """
    memory = host.peek(_OPEN_SECONDS)
    if memory is None or not dialect.lists_collections:
        return dialect.instructions
    try:
        collections = memory.collections.list()  # no counts: they would delay the handshake of a large memory
    except MindexError:
        return dialect.instructions
    names = [one.name + (f" ({one.context})" if one.context else "") for one in collections[:_MOST_COLLECTIONS]]
    more = f" and {len(collections) - len(names)} more" if len(collections) > len(names) else ""
    return f"{dialect.instructions} Indexed: {', '.join(names)}{more}." if names else dialect.instructions
