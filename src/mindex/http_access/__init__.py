"""Access over HTTP: tokens, limits, metrics. Independent of MCP, so that every interface of a server can use it."""
