"""The pages over a real socket, without a script: what they show, their forms, and who may use them."""

from __future__ import annotations

import html
import re
import threading
import time
from pathlib import Path

import httpx2
import pytest

from mindex.command_words import in_page_words
from mindex.memory import Memory
from mindex.providers.packaged_models import MINILM
from mindex.web.render import STATIC
from tests.mcp.team import LONG, Team, bearer, team_server
from tests.web.conftest import Browser, fill, id_of

pytestmark = pytest.mark.server

FOURTEEN = "The deployment window of Atlas opens at 14:00."
SIXTEEN = "The deployment window of Atlas opens at 16:00."
TEA = "Anna prefers tea in the morning."

PAGES = [
    "/", "/?q=release", "/tags", "/add", "/conflicts", "/conversations", "/conversations/s1", "/timeline", "/profile",
    "/people", "/projects", "/skills", "/collections", "/doctor", "/secrets", "/secrets?scan=1", "/settings",
    "/growth", "/models", "/files/docs/caching.md", "/files/docs/caching.md?lines=3-3&view=source&q=cached", "/job",
]  # fmt: skip


def test_an_error_names_what_can_be_done_on_the_page(shared: Team) -> None:
    browser = Browser(shared.url, shared.owner())
    missing = browser.get("/record/nothingsuch")
    assert missing.status_code == 404
    assert "search for it, or Timeline" in missing.text
    assert "mindex list" not in missing.text


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("run `mindex doctor`", "open Health"),
        ("`mindex restore abc` brings it back", "the record's page brings it back"),
        ("`mindex contact list` shows them", "People shows them"),
        ("run `mindex restore-backup FILE`", "run `mindex restore-backup FILE` on the command line"),
    ],
)
def test_commands_become_pages_or_stay_for_the_command_line(message: str, said: str) -> None:
    assert in_page_words(message) == said


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_and_lets_nothing_inline_run(shared: Team, path: str) -> None:
    answer = Browser(shared.url, shared.owner()).get(path)
    assert answer.status_code == 200, answer.text
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?! src=\"/static/)|\sstyle=|\son\w+=", answer.text)
    assert "http://" not in answer.text.replace(shared.url, "")


def test_the_files_of_the_page_are_small_and_of_this_server() -> None:
    assert sum(path.stat().st_size for path in STATIC.iterdir()) <= 150_000
    for path in STATIC.iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", path.read_text(encoding="utf-8"))


def test_at_an_unknown_path_a_browser_gets_a_page_and_a_program_gets_json(shared: Team) -> None:
    browser = Browser(shared.url, shared.owner())
    answer = browser.get("/nothing")
    assert answer.status_code == 404
    assert "there is no page /nothing" in answer.text
    assert 'href="/timeline"' in answer.text
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert browser.get("/nothing", headers={"accept": "*/*"}).json()["error"]["kind"] == "not_found"
    assert browser.http.post("/nothing").json()["error"]["kind"] == "not_found"
    assert Browser(shared.url).get("/login/nothing").json()["error"]["kind"] == "not_found"


# ── searching ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_marks_the_words_and_says_why(shared: Team) -> None:
    page = Browser(shared.url, shared.owner()).get("/?q=deployment+window").text
    assert "<mark>deployment</mark> <mark>window</mark>" in page
    assert "Why this hit" in page
    assert re.search(r'<th scope="row">surprise</th><td><svg class="bar"', page)


def test_relevance_has_a_label_and_no_note_names_a_tool(shared: Team) -> None:
    browser = Browser(shared.url, shared.owner())
    page = browser.get("/?q=deployment+window+of+Atlas&kind=memory").text
    assert re.search(r"<span>relevance [01]\.\d\d</span>", page)
    for query in ("deployment+window+of+Atlas", "quarterly+tax", "kubernetes+ingress", "tea", "relaese"):
        notes = re.findall(r'<p class="note">([^<]*)', browser.get(f"/?q={query}").text)
        assert not [note for note in notes if "`" in note or " id:" in note]


def test_a_long_memory_is_named_by_its_first_whole_words(team: Team, browser: Browser) -> None:
    team.memory.add("The ferry to the island leaves from the second pier " + "behind the old customs house " * 5)
    title = re.findall(r"data-hit>([^<]+)<", browser.get("/?q=ferry+to+the+island").text)[0]
    assert title == "The ferry to the island leaves from the second pier behind the old customs house behind…"


def test_a_search_can_be_narrowed_by_every_filter(shared: Team) -> None:
    browser = Browser(shared.url, shared.owner())
    titles = lambda path: re.findall(r"data-hit>([^<]+)<", browser.get(path).text)  # noqa: E731 - three words
    assert titles("/?q=release&kind=turn") == ["Conversation of " + time.strftime("%-d %B %Y", time.gmtime())]
    assert titles("/?q=rolled+back&collection=docs&kind=chunk") == ["Releases"]
    assert len(titles("/?q=atlas&tag=atlas&type=fact")) == 2
    assert titles("/?q=tea&type=fact") == []
    assert titles("/?q=tea&after=2030-01-01") == []
    assert titles("/?kind=contact") == ["Anna Berg"]


def test_while_typing_only_the_results_are_sent_and_nothing_counts_as_an_access(team: Team, browser: Browser) -> None:
    id_ = id_of(team, TEA)
    team.memory.store.settle()
    before = team.memory.entries.usage([id_])[id_].access_count
    page = browser.get("/?q=tea&typing=1", headers={"x-fragment": "1"}).text
    assert page.strip().startswith('<div id="results"')
    assert "<html" not in page
    team.memory.store.settle()
    assert team.memory.entries.usage([id_])[id_].access_count == before


def test_a_wrong_filter_is_explained_and_not_a_crash(shared: Team) -> None:
    answer = Browser(shared.url, shared.owner()).get("/?q=a&after=whenever")
    assert answer.status_code == 400
    assert "whenever" in answer.text


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_rendered_with_the_lines_of_the_hit_marked_and_its_links(shared: Team) -> None:
    browser = Browser(shared.url, shared.owner())
    page = browser.get("/files/docs/caching.md?lines=3-3").text
    assert '<p class="hit" id="hit">Lookups are cached for fifteen minutes.</p>' in page
    assert '<a href="/files/docs/releases.md">releases</a>' in page
    assert "caching.md</a>" in browser.get("/files/docs/releases.md").text.partition("What links here")[2]


@pytest.mark.parametrize("path", ["/files/docs/nothing.md", "/files/docs/../../memory.db", "/record/zzzz", "/nothing"])
def test_what_is_not_there_is_not_found(shared: Team, path: str) -> None:
    assert Browser(shared.url, shared.owner()).get(path).status_code in (403, 404)


# ── changing entries ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_is_added_edited_forgotten_restored_and_undone(team: Team, browser: Browser) -> None:
    page = browser.send("/add", text="The archive is in Bergen.", tags="place, north", importance="7")
    assert "Remembered." in page.text
    id_ = id_of(team, "The archive is in Bergen.")
    record = team.memory.entries.find(id_)
    assert (record.tags, record.importance) == (("place", "north"), 7)

    fields = {"updated_at": str(record.updated_at), "tags": "place", "type": record.type, "summary": record.summary}
    page = browser.send(f"/record/{id_}/edit", text="The archive is in Oslo.", reason="it moved", **fields)
    assert "<del>Bergen</del><ins>Oslo</ins>" in page.text
    assert "it moved" in page.text
    changed = team.memory.entries.find(id_)
    assert (changed.text, changed.tags, changed.importance) == ("The archive is in Oslo.", ("place",), 7)
    assert changed.summary == "The archive is in Oslo."

    assert "no search finds it" in browser.send(f"/record/{id_}/forget").text
    assert team.memory.entries.find(id_).retired_at is not None
    browser.send(f"/record/{id_}/restore")
    assert team.memory.entries.find(id_).retired_at is None
    number = next(str(one.change) for one in team.memory.history(id_) if one.action == "update")
    browser.send(f"/record/{id_}/undo", change=number)
    assert team.memory.entries.find(id_).text == "The archive is in Bergen."


def test_an_edit_of_an_older_state_is_refused(team: Team, browser: Browser) -> None:
    id_ = id_of(team, TEA)
    seen = str(team.memory.entries.find(id_).updated_at)
    time.sleep(0.01)
    team.memory.update(id_, text="Anna prefers coffee.")
    answer = browser.send(f"/record/{id_}/edit", text="Anna prefers water.", updated_at=seen)
    assert answer.status_code == 409
    assert team.memory.entries.find(id_).text == "Anna prefers coffee."


def test_a_change_of_another_entry_is_not_undone(team: Team, browser: Browser) -> None:
    one, other = id_of(team, TEA), id_of(team, FOURTEEN)
    number = str(team.memory.history(other)[0].change)
    assert browser.send(f"/record/{one}/undo", change=number).status_code == 404
    assert team.memory.entries.find(other).retired_at is None


def test_near_duplicates_are_shown_and_one_replaces_the_other(team: Team, browser: Browser) -> None:
    other = team.memory.add("Anna prefers tea in the early morning.", type="preference").id
    id_ = id_of(team, TEA)
    page = browser.get(f"/record/{id_}").text
    assert "Anna prefers tea in the early morning." in page.partition("Near-duplicates")[2]
    browser.send(f"/record/{id_}/supersede", other=other)
    assert team.memory.entries.find(other).superseded_by == id_


# ── conflicts ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hit_in_conflict_leads_to_the_page_that_settles_it(team: Team, browser: Browser) -> None:
    page = browser.get("/?q=deployment+window+of+Atlas&kind=memory").text
    assert page.count('href="/conflicts">in conflict</a>') == 2
    browser.send("/conflicts/keep", keep=id_of(team, SIXTEEN), drop=id_of(team, FOURTEEN))
    assert "in conflict</a>" not in browser.get("/?q=deployment+window+of+Atlas&kind=memory").text


def test_of_two_memories_in_conflict_one_is_kept(team: Team, browser: Browser) -> None:
    page = browser.get("/conflicts").text
    assert FOURTEEN in page
    assert SIXTEEN in page
    keep, drop = id_of(team, SIXTEEN), id_of(team, FOURTEEN)
    page = browser.send("/conflicts/keep", keep=keep, drop=drop).text
    assert "No memory conflicts with another" in page
    assert team.memory.entries.find(drop).superseded_by == keep
    number = re.search(r'name="change" value="(\d+)"', page)
    assert number is not None
    browser.send(f"/record/{drop}/undo", change=number[1])  # the button beside the message
    assert team.memory.entries.find(drop).superseded_by == ""
    assert SIXTEEN in browser.get("/conflicts").text


def test_both_memories_in_conflict_are_kept_for_different_things(team: Team, browser: Browser) -> None:
    one, other = id_of(team, SIXTEEN), id_of(team, FOURTEEN)
    refused = browser.send("/conflicts/both", id=one, other=other, context="here", other_context="here")
    assert refused.status_code == 400
    page = browser.send("/conflicts/both", id=one, other=other, context="production", other_context="staging")
    assert "No memory conflicts with another" in page.text
    assert {team.memory.entries.find(id_).context for id_ in (one, other)} == {"production", "staging"}


def test_two_memories_in_conflict_are_merged(team: Team, browser: Browser) -> None:
    one, other = id_of(team, SIXTEEN), id_of(team, FOURTEEN)
    text = "The deployment window of Atlas opens at 14:00 in winter, at 16:00 in summer."
    browser.send("/conflicts/merge", id=one, other=other, text=text)
    assert team.memory.entries.find(one).text == text
    assert team.memory.entries.find(other).superseded_by == one


# ── profile, people, projects, skills ─────────────────────────────────────────────────────────────────────────


def form_of(page: str, action: str) -> dict[str, str]:
    """The fields of a form, as a browser would send them without a change."""
    form = page[page.index(f'action="{action}"') :]
    form = form[: form.index("</form>")]
    inputs = re.findall(r'<input[^>]* name="(\w+)" value="([^"]*)"', form)
    areas = re.findall(r'<textarea name="(\w+)"[^>]*>([^<]*)<', form)
    chosen = [
        (name, (re.findall(r"<option selected>(\w+)", options) or [""])[0])
        for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', form, re.DOTALL)
    ]
    return {name: html.unescape(value) for name, value in (*inputs, *areas, *chosen)}


def test_the_profile_is_changed_and_brought_back(team: Team, browser: Browser) -> None:
    browser.send("/profile/set", path="user.age", value="40")
    assert team.memory.profile.get() == {"user": {"name": "Bea", "age": 40}}
    version = team.memory.profile.history()[-2].change
    browser.send("/profile/rollback", version=str(version))
    assert team.memory.profile.get() == {"user": {"name": "Bea"}}


def test_a_contact_is_added_and_changed(team: Team, browser: Browser) -> None:
    assert "Carl" in browser.send("/people/add", name="Carl", email="carl@example.org").text
    carl = team.memory.contacts.get("Carl")
    browser.send(f"/people/{carl.id}/edit", name="Carl", email="c@example.org")
    assert team.memory.contacts.get("Carl").fields["email"] == "c@example.org"
    refused = browser.send("/people/add", name="Dora", email="nonsense")
    assert refused.status_code == 400


def test_a_skill_is_added_with_its_schedule_and_changed(team: Team, browser: Browser) -> None:
    assert 'name="trigger_config"' in browser.get("/skills").text
    given = {"name": "Standup", "trigger_type": "cron", "instructions": "Ask everyone."}
    browser.send("/skills/add", trigger_config='{"schedule": "0 9 * * 1-5"}', **given)
    skill = team.memory.skills.get("Standup")
    assert skill.fields["trigger_config"] == {"schedule": "0 9 * * 1-5"}
    shown = browser.get("/skills").text
    assert "{&#34;schedule&#34;: &#34;0 9 * * 1-5&#34;}</textarea>" in shown
    browser.send(f"/skills/{skill.id}/edit", trigger_config='{"schedule": "0 8 * * 1-5"}')
    assert team.memory.skills.get("Standup").fields["trigger_config"] == {"schedule": "0 8 * * 1-5"}
    refused = browser.send("/skills/add", trigger_config="at nine", **given)
    assert refused.status_code == 400
    assert "trigger config is not JSON" in refused.text


def test_a_form_that_is_sent_as_it_was_shown_changes_nothing(team: Team, browser: Browser) -> None:
    config = {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    given = {
        "trigger_type": "cron",
        "trigger_config": config,
        "required_tools": ["mail", "web"],
        "instructions": "Ask.",
    }
    skill = team.memory.skills.add(name="Standup", enabled=False, **given)
    project = team.memory.projects.add(name="Harbour", sources=["https://example.org/harbour"])
    for name, record in (("skills", skill), ("projects", project)):
        shown = form_of(browser.get(f"/{name}").text, f"/{name}/{record.id}/edit")
        assert shown["name"] == record.title
        browser.send(f"/{name}/{record.id}/edit", **{key: value for key, value in shown.items() if key != "csrf"})
        assert len(team.memory.history(record.id)) == 1


# ── collections and health ────────────────────────────────────────────────────────────────────────────────────


def wait_for_job(browser: Browser) -> str:
    deadline = time.monotonic() + LONG
    while "data-poll" in (page := browser.get("/job").text) and time.monotonic() < deadline:
        time.sleep(0.05)
    return page


def test_a_folder_is_indexed_in_the_background_and_removed(team: Team, browser: Browser) -> None:
    folder = team.memory.folder / "more"
    folder.mkdir()
    (folder / "a.md").write_text("# Kestrel\n\nA kestrel hovers.\n", encoding="utf-8")
    browser.send("/collections/index", path="more")
    assert "1 new" in wait_for_job(browser)
    assert "Kestrel" in browser.get("/?q=kestrel").text
    browser.send("/collections/remove", name="more")
    assert [one.name for one in team.memory.collections.list()] == ["docs"]
    assert browser.send("/collections/index", path="/usr").status_code == 403


def test_health_runs_what_a_check_suggests(team: Team, browser: Browser) -> None:
    browser.send("/doctor/run", action="optimize")
    assert "is done" in wait_for_job(browser)
    assert browser.send("/doctor/run", action="rm").status_code == 400


@pytest.mark.model
def test_vectors_of_the_former_model_are_offered_to_be_replaced_until_they_are(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with Memory(db, options={"embedding.provider": "local", "embedding.model": MINILM.name}) as memory:
        memory.add("Parcels wait in the harbour")
    with team_server(tmp_path, db=str(db), settings={"embedding.provider": "local"}) as team:
        browser = Browser(team.url, team.owner())
        assert "1 record with vectors of the former model" in browser.get("/models").text
        assert "Replace 1 vector of the former model (about 1 minute)" in browser.get("/doctor").text
        browser.send("/doctor/run", action="reembed")
        assert "1 embedded" in wait_for_job(browser)
        for path in ("/models", "/doctor"):
            assert "former model" not in browser.get(path).text


def test_secrets_are_found_by_their_beginning_and_removed_after_a_confirmation(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    with Memory(tmp_path / "memory.db", options={"secrets.mode": "off", "embedding.provider": "none"}) as memory:
        id_ = memory.add(f"The token is {secret}.").id
    with team_server(tmp_path) as team:
        browser = Browser(team.url, team.owner())
        page = browser.get("/secrets?scan=1").text
        assert "2 secrets found" in page
        assert secret not in page
        assert browser.send("/secrets/remove").status_code == 400
        browser.send("/secrets/remove", sure="yes")
        assert team.memory.entries.get(id_) is None


def test_growth_is_drawn_described_to_screen_readers_and_repeated_as_a_table(team: Team, browser: Browser) -> None:
    browser.get("/?q=tea")
    team.memory.store.settle()
    page = browser.get("/growth").text
    assert re.search(r'<svg [^>]*role="img" aria-label="Entries by day: [^"]*in the day of \d{4}-\d\d-\d\d', page)
    (_, total, *_), *_ = re.findall(r'<th scope="row">(\d{4}-\d\d-\d\d)</th><td data-title="entries">(\d+)</td>', page)
    status = team.memory.status()
    assert int(total) == sum(count for kind, count in status.records.items() if kind != "chunk")
    recalled, unused = page.split("<h2>Never recalled</h2>")
    assert TEA in recalled.split("<h2>Most recalled</h2>")[1]
    assert TEA not in unused
    assert FOURTEEN in unused
    assert "2 of 3 memories" in unused


def test_settings_show_their_origin_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_RERANK_API_KEY", "very-secret-key")
    with team_server(tmp_path) as team:
        page = Browser(team.url, team.owner()).get("/settings").text
    assert "MINDEX_RERANK_API_KEY" in page
    assert "(set)" in page
    assert "very-secret-key" not in page


# ── who may ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_browser_without_a_session_is_sent_to_the_login_and_back(shared: Team) -> None:
    browser = Browser(shared.url)
    page = browser.get("/timeline?after=7d")
    assert page.url.path == "/login"
    assert 'name="next" value="/timeline?after=7d"' in page.text
    back = browser.http.post("/login", data={"token": shared.owner(), "next": "/timeline?after=7d"})
    assert back.url.path == "/timeline"


def test_a_login_with_a_wrong_token_is_refused(shared: Team) -> None:
    browser = Browser(shared.url)
    answer = browser.http.post("/login", data={"token": "mdx_wrong", "next": "/"})
    assert answer.status_code == 401
    assert "unknown or was revoked" in answer.text
    assert not browser.http.cookies


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_login_leads_to_no_other_site(shared: Team, target: str) -> None:
    answer = httpx2.post(f"{shared.url}/login", data={"token": shared.owner(), "next": target}, timeout=LONG)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(shared: Team) -> None:
    answer = httpx2.post(f"{shared.url}/login", data={"token": shared.owner(), "next": "/"}, timeout=LONG)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert shared.owner() not in cookie


def test_a_session_ends_with_its_token_and_with_the_log_out(team: Team) -> None:
    browser = Browser(team.url, team.token("ben", agent="ben"))
    assert browser.get("/").url.path == "/"
    team.memory.tokens.revoke("ben")
    deadline = time.monotonic() + 10
    while browser.get("/").url.path == "/" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert browser.get("/").url.path == "/login"
    other = Browser(team.url, team.owner())
    other.send("/logout")
    assert other.get("/").url.path == "/login"


def test_a_form_without_the_sessions_token_changes_nothing(team: Team, browser: Browser) -> None:
    id_ = id_of(team, TEA)
    stale = browser.csrf()
    for csrf in ("", "wrong", "é"):
        answer = browser.http.post(f"/record/{id_}/forget", data={"csrf": csrf})
        assert answer.status_code == 403
        assert "this form is out of date" in answer.text
    fresh = Browser(team.url, team.owner())  # logged in again: the form of the former session counts no more
    assert fresh.http.post(f"/record/{id_}/forget", data={"csrf": stale}).status_code == 403
    assert team.memory.entries.find(id_).retired_at is None


def test_a_form_sent_by_another_origin_is_refused(team: Team, browser: Browser) -> None:
    id_ = id_of(team, TEA)
    data = {"csrf": browser.csrf()}
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example"}):
        assert browser.http.post(f"/record/{id_}/forget", data=data, headers=headers).status_code in (403, 421)
    assert team.memory.entries.find(id_).retired_at is None


def test_a_token_that_may_read_sees_no_buttons_and_is_refused(team: Team) -> None:
    browser = Browser(team.url, team.token("reader", agent="main", rights="read"))
    id_ = id_of(team, TEA)
    for path in (f"/record/{id_}", "/conflicts", "/collections", "/people", "/profile"):
        forms = re.findall(r'method="post" action="([^"]+)"', browser.get(path).text)
        assert forms == ["/logout"]
    for path in (f"/record/{id_}/forget", "/add", "/collections/index", "/conflicts/keep", "/profile/set"):
        assert browser.send(path, text="x", path="user").status_code == 403
    assert team.memory.entries.find(id_).retired_at is None


@pytest.mark.parametrize("path", ["/doctor", "/secrets", "/settings", "/models"])
def test_pages_about_the_whole_server_are_for_its_owner(team: Team, path: str) -> None:
    browser = Browser(team.url, team.token("ben", agent="ben"))
    assert browser.get(path).status_code == 403
    assert f'href="{path}"' not in browser.get("/").text


def test_only_the_owner_removes_a_collection(team: Team) -> None:
    browser = Browser(team.url, team.token("ben", agent="ben"))
    assert "/collections/remove" not in browser.get("/collections").text
    assert browser.send("/collections/remove", page="/add", name="docs").status_code == 403
    assert [one.name for one in team.memory.collections.list()] == ["docs"]


def test_a_token_sees_nothing_of_another_agent(team: Team) -> None:
    browser = Browser(team.url, team.token("ben", agent="ben", collections=["docs"]))
    id_ = id_of(team, TEA)
    assert browser.get(f"/record/{id_}").status_code == 404
    for path in (
        "/?q=tea",
        "/",
        "/timeline",
        "/conversations",
        "/people",
        "/conflicts",
        "/profile",
        "/?agent=main",
        "/growth",
    ):
        page = browser.get(path).text
        assert "Anna" not in page
        assert "Bea" not in page


def test_without_tokens_forms_still_need_the_token_of_their_page(tmp_path: Path) -> None:
    with team_server(tmp_path, tokens=False, prepare=fill) as team:
        browser = Browser(team.url)
        assert browser.http.post("/add", data={"text": "A stray form."}).status_code == 403
        assert "Remembered." in browser.send("/add", page="/add", text="A form of the page.").text


def test_a_one_time_link_lets_in_once(team: Team) -> None:
    # The address of `mindex web` is tested with the command itself.
    answer = Browser(team.url).get("/open/nothing")
    assert answer.status_code == 401
    assert "this link was used already or is too old" in answer.text


# ── hostile texts ─────────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = "<script>alert(1)</script>"
HANDLER = '"><img src=x onerror=alert(1)>'


def test_stored_scripts_are_shown_as_text(tmp_path: Path) -> None:
    def hostile(memory: Memory) -> None:
        folder = memory.folder / "docs"
        folder.mkdir()
        name = "a'\"><script>alert(1)<.md" if folder.drive == "" else "a.md"
        (folder / name).write_text(
            f"---\ntitle: '{SCRIPT}'\ntags: ['{HANDLER}']\n---\n# {SCRIPT}\n\n{HANDLER}\n\n[x](javascript:alert(1))"
            "\n[y](<data:text/html,x>) ![z](https://evil.example/pixel.png)\n[w](\tjavascript:alert(1))\n",
            encoding="utf-8",
        )
        memory.index(folder, name=f"docs{SCRIPT}", context=HANDLER)
        memory.add(f"{SCRIPT} {HANDLER}", tags=[SCRIPT, HANDLER], context=HANDLER, source=SCRIPT, summary=HANDLER)
        memory.conversations.add(SCRIPT, HANDLER, session_id=HANDLER, speaker=SCRIPT)
        memory.contacts.add(name=SCRIPT, notes=HANDLER)
        memory.profile.set({"user.name": SCRIPT, 'x"><script>': HANDLER})

    with team_server(tmp_path, prepare=hostile) as team:
        browser = Browser(team.url, team.owner())
        paths = [
            "/",
            "/?q=alert",
            "/tags",
            "/conversations",
            "/timeline",
            "/profile",
            "/people",
            "/collections",
            "/growth",
        ]
        links = {
            link
            for path in paths
            for link in re.findall(r'href="(/(?:record|files|conv)[^"]+)"', browser.get(path).text)
        }
        assert len(links) >= 5
        for path in [*paths, *links]:
            answer = browser.get(path.replace("&amp;", "&"))
            assert answer.status_code == 200, path
            page = answer.text
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert not re.search(r'(?:href|src)="(?:javascript|data):', page)
            assert not re.search(r'(?:href|src)="https?:', page)


# ── several at once ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_eight_tabs_search_and_read_while_a_folder_is_indexed(team: Team, browser: Browser) -> None:
    folder = team.memory.folder / "many"
    folder.mkdir()
    for number in range(300):
        text = f"# Page {number}\n\n" + f"The lighthouse number {number} is lit at dusk.\n\n" * 5
        (folder / f"{number}.md").write_text(text, encoding="utf-8")
    browser.send("/collections/index", path="many")
    failures: list[str] = []

    def tab() -> None:
        mine = Browser(team.url, team.owner())
        for path in ("/?q=lighthouse", "/collections", "/timeline", "/?q=release&typing=1", "/job", "/conflicts") * 4:
            answer = mine.get(path)
            if answer.status_code != 200:
                failures.append(f"{path}: {answer.status_code} {answer.text}")

    tabs = [threading.Thread(target=tab) for _ in range(8)]
    for one in tabs:
        one.start()
    for one in tabs:
        one.join(LONG)
    assert failures == []
    assert "300 new" in wait_for_job(browser)


def test_a_program_with_a_token_reads_a_page_and_sends_no_form(team: Team) -> None:
    headers = bearer(team.owner())
    assert httpx2.get(f"{team.url}/timeline", headers=headers, timeout=LONG).status_code == 200
    answer = httpx2.post(f"{team.url}/add", data={"text": "x"}, headers=headers, timeout=LONG)
    assert answer.status_code == 403


# ── other engines ─────────────────────────────────────────────────────────────────────────────────────────────


def test_an_engine_without_entries_is_searched_and_says_what_it_lacks(azure_index: str, tmp_path: Path) -> None:
    def index(memory: Memory) -> None:
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / "a.md").write_text("# Kestrel\n\nA kestrel hovers.\n", encoding="utf-8")
        memory.index(folder)

    with team_server(tmp_path, db=azure_index, prepare=index) as team:
        browser = Browser(team.url, team.owner())
        assert "<mark>kestrel</mark>" in browser.get("/?q=kestrel").text
        for path in ("/", "/collections", "/doctor", "/files/docs/a.md"):
            assert browser.get(path).status_code == 200, path
        assert 'href="/growth"' not in browser.get("/").text
        assert "does not store entries" in browser.get("/growth").text
        refused = browser.get("/timeline")
        assert refused.status_code == 501
        assert "The request failed" in refused.text
