"""Memories without an embedding model, as the tests of exports have them."""

from tests.mcp.conftest import anyio_backend
from tests.transfer.conftest import memory, open_memory, other

__all__ = ["anyio_backend", "memory", "open_memory", "other"]
