"""The MCP edge: thin, and silent on stdout."""
