"""The least MCP server the SDK can make: what `mindex serve` is measured against."""

from mcp.server import MCPServer

server = MCPServer("bare")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


server.run()
