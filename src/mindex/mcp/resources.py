"""Indexed files and records as resources of the server, and the MCP App of the tool `search`."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

import mcp_types as types
from mcp.server.apps import Apps
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from mindex import __version__
from mindex.errors import MindexError
from mindex.mcp.memory_host import MemoryHost
from mindex.present.records_view import view_records

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

# `+`: the slashes of the path stay as they are.
DOC = "doc://{+path}"
MEMORY = "memory://{id}"
MAX_LISTED = 100
SEARCH_APP = "ui://mindex/search"
_ID = re.compile(r"[a-zA-Z0-9]{3,64}")


def list_documents(host: MemoryHost) -> list[types.Resource]:
    """Return the first indexed files; the templates reach the rest."""
    return [
        types.Resource(
            uri=f"doc://{quote(document.collection)}/{quote(document.path)}",
            name=document.path,
            title=document.title or None,
            mime_type="text/plain" if document.path.lower().endswith(".txt") else "text/markdown",
            size=document.size,
        )
        for document in host.memory.collections.documents(limit=MAX_LISTED)
    ]


def add_resources(server: MindexServer, host: MemoryHost) -> None:
    """Register the resources at the server."""

    @server.resource(DOC, name="document", description="An indexed file, as it is now", mime_type="text/markdown")
    def document(path: str) -> str:
        try:
            return host.memory.lookup.read_file(path).text
        except MindexError as error:
            raise ResourceNotFoundError(server.in_tool_words(host.error_text(error))) from error

    @server.resource(MEMORY, name="record", description="One record, by the id that search gives")
    def record(id: str) -> str:
        found = host.memory.get(f"memory://{id}") if _ID.fullmatch(id) else None
        if found is None or not found.records:
            raise ResourceNotFoundError(f"no record '{id}'; search for it first")
        return view_records(found).text()


def make_search_app() -> Apps:
    """The extension with the HTML, which holds the style of the page and loads nothing."""
    html = files("mindex.mcp").joinpath("search_app.html").read_text(encoding="utf-8")
    style = files("mindex.web").joinpath("static", "page.css").read_text(encoding="utf-8")
    html = html.replace("/* page.css */", style).replace("/* version */", __version__)
    apps = Apps()
    apps.add_html_resource(SEARCH_APP, html, name="search", title="What a search found", prefers_border=True)
    return apps
