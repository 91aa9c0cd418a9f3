"""The MCP App of the tool `search`: its result as the page shows it, in a frame of hosts that show apps.

Such a host reads the HTML at `SEARCH_APP` and sends the result into it by postMessage. For other hosts nothing changes.
"""

from importlib.resources import files

from mcp.server.apps import Apps

from mindex import __version__

SEARCH_APP = "ui://mindex/search"


def make_search_app() -> Apps:
    """The extension with the HTML, which holds the style of the page and loads nothing."""
    html = files("mindex.mcp").joinpath("search_app.html").read_text(encoding="utf-8")
    style = files("mindex.web").joinpath("static", "page.css").read_text(encoding="utf-8")
    html = html.replace("/* page.css */", style).replace("/* version */", __version__)
    apps = Apps()
    apps.add_html_resource(SEARCH_APP, html, name="search", title="What a search found", prefers_border=True)
    return apps
