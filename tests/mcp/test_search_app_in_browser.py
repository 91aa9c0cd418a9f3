"""The MCP App of `search` in Chromium, in a host that speaks the protocol. Skipped without Chromium or playwright.

`MINDEX_TEST_CHROMIUM`, `MINDEX_TEST_AXE` and `MINDEX_TEST_SHOTS` mean the same as in tests/web/test_browser.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp_types import TextResourceContents

from mcp import Client
from mindex.mcp.resources import SEARCH_APP
from tests.mcp.conftest import Served

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("MINDEX_TEST_CHROMIUM") or shutil.which("chromium") or ""
AXE = Path(os.environ.get("MINDEX_TEST_AXE", "axe.min.js"))
SHOTS = os.environ.get("MINDEX_TEST_SHOTS", "")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium")]

HOSTILE = "<img src=x onerror=alert(1)> 🦅 kestrel <script>alert(2)</script>"
# What a host must allow where a resource names no domains.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " media-src 'self' data:; connect-src 'none'"
)
# The part of a host: it shows the app in a sandboxed frame and sends nothing before it is initialized.
HOST = """
({ html, policy, input, result, theme }) => {
  window.heard = [];
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.title = "app";
  frame.width = "100%";
  frame.height = 100;
  const guard = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  frame.srcdoc = html.replace("<head>", `<head>${guard}`);
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    window.heard.push(data);
    if (data.method === "ui/initialize") {
      const hostContext = { theme, displayMode: "inline" };
      const hostInfo = { name: "test", version: "1" };
      send({ id: data.id, result: { protocolVersion: "2026-01-26", hostCapabilities: {}, hostInfo, hostContext } });
    } else if (data.method === "ui/notifications/initialized") {
      send({ method: "ui/notifications/tool-input", params: { arguments: input } });
      send({ method: "ui/notifications/tool-result", params: result });
    } else if (data.method === "ui/notifications/size-changed") frame.height = data.params.height;
  });
  window.hostSends = send;
  document.body.replaceChildren(frame);
}
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def called(served: Served, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The HTML of the app, and the result of a search as a host gets it."""

    async def call() -> tuple[str, dict[str, Any]]:
        shows_apps = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]
        async with Client(served.server, extensions=shows_apps) as client:
            (app,) = (await client.read_resource(SEARCH_APP)).contents
            result = await client.call_tool("search", arguments)
        assert isinstance(app, TextResourceContents)
        return app.text, result.model_dump(by_alias=True, exclude_none=True, mode="json")

    with ThreadPoolExecutor(1) as thread:  # playwright has an event loop in this one
        return thread.submit(anyio.run, call).result()


@pytest.fixture
def show(chromium: Any) -> Iterator[Any]:
    """Show a result in a host; returns its page. Nothing may go wrong in it."""
    context = chromium.new_context(viewport={"width": 760, "height": 900})
    page = context.new_page()
    page.set_default_timeout(15_000)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def shown(html: str, result: dict[str, Any], theme: str = "light", **arguments: Any) -> Any:
        page.set_content("<!doctype html><html lang=en><title>host</title><body></body>")
        page.evaluate(HOST, {"html": html, "policy": POLICY, "input": arguments, "result": result, "theme": theme})
        return page

    yield shown
    context.close()
    assert trouble == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_hits_are_shown_with_marks_and_reasons(handbook_server: Served, show: Any, theme: str) -> None:
    html, result = called(handbook_server, query="redis eviction", limit=3)
    page = show(html, result, theme, query="redis eviction")
    frame = page.frame_locator("iframe")
    frame.locator(".hit-row").nth(2).wait_for()
    assert frame.locator(".hit-row").count() == 3
    words = {word.casefold() for word in frame.locator("mark").all_inner_texts()}
    assert words and all(word.startswith(("red", "evicti")) for word in words)
    frame.locator(".why summary").first.click()
    assert frame.locator(".why[open] .bar rect").count() >= 1
    assert "for “redis eviction”" in frame.locator(".count").inner_text()
    assert frame.locator("html").evaluate("(root) => getComputedStyle(root).colorScheme") == theme
    methods = [one.get("method") for one in page.evaluate("window.heard")]
    assert methods.index("ui/initialize") < methods.index("ui/notifications/initialized")
    page.wait_for_function("Number(document.querySelector('iframe').height) > 150")  # as high as what it shows
    if AXE.is_file():
        page.frames[1].evaluate(AXE.read_text(encoding="utf-8"))
        violations = page.frames[1].evaluate("axe.run()")["violations"]
        assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/search-app-{theme}.png", full_page=True)


def test_the_marks_of_the_full_view_are_those_of_the_result(handbook_server: Served, show: Any) -> None:
    html, result = called(handbook_server, query="redis eviction", limit=3, view="full")
    frame = show(html, result).frame_locator("iframe")
    frame.locator(".hit-row").nth(2).wait_for()
    rows = result["structuredContent"]["results"]
    words = [row["text"][start:end] for row in rows for start, end in row.get("highlights", ())]
    assert frame.locator("mark").all_inner_texts() == words != []


@pytest.mark.parametrize("view", ["full", "compact", "digest", "dual"])
def test_every_view_shows_every_hit(handbook_server: Served, show: Any, view: str) -> None:
    html, result = called(handbook_server, query="how is data cached", limit=2, view=view)
    found = result["structuredContent"]
    frame = show(html, result).frame_locator("iframe")
    rows = found.get("results") or found["index"]
    frame.locator(".hit-row").nth(len(rows) - 1).wait_for()
    assert frame.locator(".hit-row").count() == len(rows) >= 2


def test_stored_html_is_text_and_marks_are_on_the_matching_words(own: Served, show: Any) -> None:
    own.host.memory.add(HOSTILE)
    html, result = called(own, query="kestrel")
    frame = show(html, result, query="kestrel").frame_locator("iframe")
    frame.locator("mark", has_text="kestrel").wait_for()
    assert frame.locator(".passage").inner_text() == HOSTILE
    assert frame.locator("img, .passage script").count() == 0


def test_errors_notes_and_a_teardown_are_answered(own: Served, show: Any) -> None:
    html, result = called(own, query="nothing is stored")
    page = show(html, result)
    page.frame_locator("iframe").locator(".note").first.wait_for()
    page.evaluate("hostSends({ id: 'end', method: 'ui/resource-teardown', params: { reason: 'test' } })")
    page.wait_for_function("heard.some((one) => one.id === 'end' && one.result)")
    failed = {"isError": True, "content": [{"type": "text", "text": "error: limit 0 is too small"}]}
    show(html, failed).frame_locator("iframe").locator(".error", has_text="too small").wait_for()
