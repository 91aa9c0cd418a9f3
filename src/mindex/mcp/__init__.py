"""The MCP server: tools, resources and prompts over one memory. Nothing but the protocol goes to stdout."""
