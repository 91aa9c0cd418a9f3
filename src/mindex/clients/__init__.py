"""Agents that can use the MCP server: where their configuration is, and how an entry is added to it or removed."""
