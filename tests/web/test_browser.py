"""The page in Chromium, as a person uses it. Skipped if there is no Chromium or no playwright.

`MINDEX_TEST_CHROMIUM` names the browser (default: `chromium` on the PATH), `MINDEX_TEST_AXE` axe-core's `axe.min.js`,
without which the check for accessibility is skipped, and `MINDEX_TEST_SHOTS` a folder for screenshots.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindex.memory import Memory
from tests.mcp.team import Team, team_server
from tests.web.conftest import fill, id_of

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("MINDEX_TEST_CHROMIUM") or shutil.which("chromium") or ""
AXE = Path(os.environ.get("MINDEX_TEST_AXE", "axe.min.js"))
SHOTS = os.environ.get("MINDEX_TEST_SHOTS", "")

pytestmark = [
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium"),
]
PAGES = [
    "/?q=deployment+window", "/tags", "/add", "/conflicts", "/conversations", "/conversations/s1", "/timeline",
    "/profile", "/people", "/projects", "/skills", "/collections", "/growth", "/doctor", "/secrets?scan=1", "/settings",
    "/models",
    "/files/docs/caching.md?lines=3-3&q=cached", "/files/docs/caching.md?lines=3-3&view=source", "/record/zzzz",
]  # fmt: skip
TEA = "Anna prefers tea in the morning."
FOURTEEN = "The deployment window of Atlas opens at 14:00."
SIXTEEN = "The deployment window of Atlas opens at 16:00."


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(chromium: Any, team: Team, **options: Any) -> Any:
    """A page of the owner, who logged in with the form. What goes wrong in it is in `page.trouble`."""
    context = chromium.new_context(viewport={"width": 1200, "height": 850}, **options)
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.trouble = []
    page.on("console", lambda message: page.trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("dialog", lambda dialog: (page.trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.goto(f"{team.url}/")
    page.get_by_label("Token").fill(team.owner())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{team.url}/")
    return page


@pytest.fixture
def page(chromium: Any, team: Team) -> Iterator[Any]:
    page = opened(chromium, team)
    yield page
    trouble = page.trouble
    page.context.close()
    assert trouble == []


def test_results_come_while_typing_and_keys_lead_through_them(team: Team, page: Any) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("/")
    page.keyboard.type("deployment window")
    page.locator("mark", has_text="deployment").first.wait_for()
    assert page.url == f"{team.url}/?q=deployment+window"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('li') === document.querySelectorAll('.hit-row')[1]")
    page.keyboard.press("w")
    assert page.locator(".hit-row").nth(1).locator(".why[open] .bar").count() >= 1
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("?")
    page.get_by_role("heading", name="Keyboard").wait_for()
    page.keyboard.press("Escape")
    page.locator("[data-hit]").first.press("Enter")
    page.wait_for_url(re.compile("/record/"))


def test_filters_act_at_once(team: Team, page: Any) -> None:
    page.get_by_label("Search everything").fill("release")
    page.get_by_text("turn", exact=True).first.click()
    page.wait_for_url(re.compile("kind=turn"))
    playwright.expect(page.locator("#results .kind-chunk")).to_have_count(0)  # the hits before may still be there
    assert page.locator(".kind-turn").count() >= 1


def test_a_memory_is_edited_compared_and_undone(team: Team, page: Any) -> None:
    id_ = id_of(team, TEA)
    page.goto(f"{team.url}/record/{id_}")
    page.get_by_text("Edit", exact=True).click()
    page.locator("textarea[name=text]").fill("Anna prefers coffee in the morning.")
    page.get_by_label("Why").fill("she said so")
    page.get_by_role("button", name="Save").click()
    page.locator("ins", has_text="coffee").wait_for()
    assert page.locator("del").inner_text() == "tea"
    page.get_by_role("button", name="Undo", exact=True).click()
    page.get_by_text("was undone").wait_for()
    assert team.memory.entries.find(id_).text == TEA
    page.get_by_role("button", name="Forget").click()
    page.get_by_text("no search finds it any more").wait_for()
    page.get_by_role("button", name="Restore").click()
    page.get_by_text("Restored.").wait_for()


@pytest.mark.parametrize("choice", ["one", "both", "merge"])
def test_a_conflict_is_settled(team: Team, page: Any, choice: str) -> None:
    page.goto(f"{team.url}/conflicts")
    if choice == "one":
        page.get_by_role("button", name="Keep the newer one").click()
    elif choice == "both":
        page.locator("summary", has_text="Keep both").click()
        page.get_by_label("The newer one applies to").fill("production")
        page.get_by_label("The older one applies to").fill("staging")
        page.get_by_role("button", name="Keep both").click()
    else:
        page.locator("summary", has_text="Merge").click()
        page.get_by_label("Text that replaces both").fill("Atlas is deployed at 14:00 or at 16:00.")
        page.get_by_role("button", name="Merge").click()
    page.locator(".message").wait_for()
    page.goto(f"{team.url}/conflicts")
    page.get_by_text("No memory conflicts with another").wait_for()


def index_many(team: Team, page: Any) -> None:
    """Begin to index 400 files."""
    folder = team.memory.folder / "many"
    folder.mkdir()
    for number in range(400):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nA kestrel hovers.\n\n" * 8, encoding="utf-8")
    page.goto(f"{team.url}/collections")
    page.get_by_label("Folder to index").fill("many")
    page.get_by_role("button", name="Index", exact=True).click()


def test_indexing_shows_its_progress_until_it_is_done(team: Team, page: Any) -> None:
    index_many(team, page)
    page.locator("#job progress, #job .report").first.wait_for()
    page.locator("#job .report", has_text="400 new").wait_for(timeout=60_000)
    page.locator(".card", has_text="400 documents").wait_for()
    page.get_by_text("Indexing has started.").wait_for(state="detached")
    assert page.locator("#job").count() == 1


def test_what_is_being_written_stays_when_a_job_ends(team: Team, page: Any) -> None:
    index_many(team, page)
    page.locator("#job").wait_for()
    page.get_by_label("Folder to index").fill("another")
    page.locator("#job .report", has_text="400 new").wait_for(timeout=60_000)
    page.wait_for_load_state("networkidle")
    assert page.get_by_label("Folder to index").input_value() == "another"


def test_a_hit_of_a_file_leads_to_its_marked_lines(team: Team, page: Any) -> None:
    page.goto(f"{team.url}/?q=rolled+back&kind=chunk")
    page.locator("[data-hit]").first.click()
    page.locator(".prose .hit").first.wait_for()
    assert page.locator(".prose mark", has_text="rolled").count() == 1
    page.get_by_role("link", name="Lines").click()
    page.locator(".source tr.hit").first.wait_for()


def test_stored_scripts_do_not_run(chromium: Any, tmp_path: Path) -> None:
    script, handler = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'

    def hostile(memory: Memory) -> None:
        folder = memory.folder / "docs"
        folder.mkdir()
        text = f"# {script}\n\n{handler}\n\n[link](javascript:alert(1))\n"
        (folder / "a.md").write_text(text, encoding="utf-8")
        memory.index(folder)
        memory.add(f"{script} {handler}", tags=[script, handler])
        memory.conversations.add(f"{script} [x](javascript:alert(1))", handler, session_id="s")

    with team_server(tmp_path, prepare=hostile) as team:
        page = opened(chromium, team)
        for path in ("/", "/?q=alert", "/files/docs/a.md", "/conversations/s", "/tags", "/timeline"):
            page.goto(f"{team.url}{path}")
            page.wait_for_timeout(50)
        page.goto(f"{team.url}/")
        page.get_by_label("Search everything").fill("alert script")
        page.locator("mark").first.wait_for()
        assert page.trouble == []
        page.context.close()


def test_everything_works_without_a_script(chromium: Any, team: Team) -> None:
    page = opened(chromium, team, java_script_enabled=False)
    page.locator("#q").fill("tea")
    page.locator("#search button.primary").click()
    page.locator("[data-hit]").first.click()
    page.get_by_role("button", name="Forget").click()
    page.get_by_text("no search finds it any more").wait_for()
    page.context.close()


@pytest.mark.parametrize(("look", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
def test_no_page_is_wider_than_the_screen_or_fails_the_accessibility_rules(
    chromium: Any, tmp_path: Path, look: str, width: int
) -> None:
    if not AXE.is_file():
        pytest.skip("MINDEX_TEST_AXE names no axe.min.js")
    with team_server(tmp_path, prepare=fill) as team:
        page = opened(chromium, team, color_scheme=look)
        page.set_viewport_size({"width": width, "height": 850})
        found = []
        for path in [*PAGES, f"/record/{id_of(team, SIXTEEN)}", "/login"]:
            page.goto(f"{team.url}{path}")
            page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            page.evaluate(AXE.read_text(encoding="utf-8"))
            violations = page.evaluate("axe.run()")["violations"]
            found += [
                f"{path} {one['id']}: {one['nodes'][0]['html'][:200]}"
                for one in violations
                if one["impact"] in ("serious", "critical")
            ]
            if SHOTS:
                name = re.sub(r"\W+", "-", path).strip("-") or "start"
                page.screenshot(path=f"{SHOTS}/all-{name}-{look}-{width}.png", full_page=True)
        page.context.close()
    assert found == []
