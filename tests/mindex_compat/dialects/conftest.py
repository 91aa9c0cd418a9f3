"""Servers of any dialect, as the tests of the MCP server have them."""

from tests.mcp.conftest import anyio_backend, client, handbook_server, own, schemas_of_tools, serving

__all__ = ["anyio_backend", "client", "handbook_server", "own", "schemas_of_tools", "serving"]
