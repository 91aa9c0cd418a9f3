"""memory-search's users write `mindex ms` for `memory`: its commands, flags, outputs, errors, and its addresses."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import httpx2
import pytest

from mindex.memory import Memory
from mindex_compat.memory_search.observations import MAX_CONCEPTS, TYPES, concepts, observation_type
from mindex_compat.memory_search.passages import Passages
from mindex_compat.memory_search.search import moment
from tests.conftest import write
from tests.mcp.team import KEYWORD, LONG, Team, bearer, team_server
from tests.mindex_compat.importers.foreign_programs import make
from tests.running import Ran
from tests.running import run_here as mindex

pytestmark = pytest.mark.sqlite_only  # named indexes and imports are files

FILES = {
    "architecture.md": (
        "# System\n\n## Caching\n\nKeys expire after 300 seconds in Redis. `PolicyController` checks the cache.\n\n"
        "## Decision: Redis\n\nKnown issue: crash when the cache is full.\n\n"
        "## Choice\n\nWe decided to use Redis for the cache instead of Memcached.\n"
    ),
    "auth/tokens.md": "# Tokens\n\nA token lasts one hour. The cache of tokens is small.\n",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a model, whose working folder has no index yet."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path / "home"


@pytest.fixture
def docs(home: Path) -> Path:
    folder = write(Path.cwd() / "docs", FILES)
    assert ms("collection", "add", "docs").code == 0
    return folder


def ms(*arguments: object) -> Ran:
    return mindex("ms", *arguments)


# ── an empty database, and errors ─────────────────────────────────────────────────────────────────────────────


def test_a_database_without_a_collection_says_how_to_index(home: Path) -> None:
    ran = ms("search", "cache")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: nothing is indexed in ")
    assert "index a folder: `mindex ms collection add DIR`" in ran.err
    assert "`mindex ms collection add DIR`" in ms("index").err
    path, _ = make("memory-search", home / ".memory-search")
    assert path.name == "index.db"
    assert f"`mindex ms import {home / '.memory-search'}`" in ms("search", "cache").err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("search", " "), "the query is empty"),
        (("search", "x", "--limit", "0"), "--limit is 0"),
        (("search", "x", "--mode", "foo"), "is not one of 'hybrid', 'bm25', 'vector'; see `mindex ms search -h`"),
        (("search", "x", "--after", "soon"), "--after 'soon' is not a time; write 7d, 2w, 1m"),
        (("search", "x", "--collection", "nope"), "there is no collection 'nope'; `mindex ms collection list`"),
        (("search", "x", "--compact", "-f", "csv"), "--compact cannot be combined with --format csv"),
        (("get", "nope"), "there is no chunk or file 'nope'; find one with `mindex ms search QUERY`"),
        (("get", ","), "missing argument; pass an id"),
        (("search", "x", "--timeline", ","), "missing argument; pass an id"),
        (("get", "9" * 5_000), "there is no chunk or file '999"),
        (("get", "auth", "--lines", "9-2"), "--lines '9-2' is not a range"),
        (("get", "auth", "--lines", "90-91"), "it has no lines 90-91"),
        (("facts", "delete", "x"), "there is no fact 'x'; `mindex ms facts list` shows them"),
        (("facts", "set", "a*", "b"), "'a*' is a pattern"),
        (("mode", "set", "x"), "unknown mode 'x'"),
        (("config", "get", "colour"), "unknown key 'colour'"),
        (("config", "set", "apiKey", "x"), "apiKey is a secret"),
        (("context", "rm", "auth"), "auth has no description"),
        (("sessions", "show", "x"), "there is no session 'x'"),
        (("import", "x.json"), "is not empty, and an import replaces nothing; add --merge"),
        (("collection", "remove", "x"), "there is no collection 'x'; `mindex ms status` lists them"),
        (("--index", "other", "search", "x"), "there is no index 'other'"),
        (("--index", "../x", "search", "x"), "'../x' is not the name of an index"),
        (("bogus",), "No such command 'bogus'; see `mindex ms -h`"),
    ],
)
def test_errors_name_its_own_commands_and_exit_with_1(docs: Path, arguments: tuple[str, ...], text: str) -> None:
    ran = ms(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: ") and text in ran.err
    assert ran.err.count("\n") == 1


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_json_of_a_search_has_its_names(docs: Path) -> None:
    found = json.loads(ms("search", "redis cache", "-f", "json", "-l", "2", "--explain").out)
    assert found["query"] == "redis cache" and len(found["results"]) == 2
    first = found["results"][0]
    assert first["file"] == str(docs / "architecture.md")
    assert first["fullContent"].startswith(first["snippet"]) and len(first["snippet"]) <= 300
    assert first["fileMtime"] == pytest.approx((docs / "architecture.md").stat().st_mtime * 1000, abs=1)
    assert 0 <= first["score"] <= 1 and first["explain"]["bm25Rank"] in (1, 2)
    assert first.keys() == {
        "file", "score", "lineStart", "lineEnd", "snippet", "chunkIndex", "chunkId", "shortId", "contentHash",
        "fullContent", "fileMtime", "explain",
    }  # fmt: skip
    assert json.loads(ms("search", "zeppelin", "-f", "json").out) == {"query": "zeppelin", "results": []}
    assert ms("search", "zeppelin").out == "No matches found.\n"


def test_layers_show_more_and_more(docs: Path) -> None:
    digest = ms("search", "policycontroller", "--digest", "-l", "1").out
    number = digest.split("#")[1].strip()
    assert digest == f"{docs}/architecture.md:3-5 #{number}\n"
    compact = json.loads(ms("search", "policycontroller", "--layer", "1", "-l", "1").out)
    (row,) = compact["results"]
    assert (str(row["id"]), row["lines"], compact["totalTokens"]) == (number, [3, 5], row["tokens"])
    timeline = ms("search", "policycontroller", "--layer", "2").out
    assert timeline.startswith("➤ ") and "Memcached" in timeline
    as_json = json.loads(ms("search", "x", "--timeline", number, "-f", "json").out)["timeline"]
    assert [one["chunkIndex"] for one in as_json] == [0, 1, 2]
    whole = ms("search", "policycontroller", "--layer", "3").out
    assert "  Keys expire after 300 seconds" in whole and "Memcached" not in whole


@pytest.mark.parametrize("view", ["--compact", "--digest", "--explain"])
@pytest.mark.parametrize("form", ["human", "json"])
def test_a_budget_is_never_exceeded(docs: Path, view: str, form: str) -> None:
    for budget in (1, 40, 90, 5_000):
        out = ms("search", "cache", view, "-f", form, "--budget", budget).out
        if form == "json" or view == "--compact":
            cost = json.loads(out)["budget"]
            assert cost["totalTokens"] <= budget
            assert cost["truncated"] is (budget < 5_000)
            rows = json.loads(out)["results"]
            assert -(-sum(len(json.dumps(row)) for row in rows) // 4) <= budget + len(rows)
        else:
            shown = [line for line in out.splitlines() if "beyond --budget" not in line and "fits into" not in line]
            assert len("\n".join(shown)) <= 4 * budget


def test_formats_are_what_their_names_say(docs: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(ms("search", "cache", "-f", "csv").out)))
    assert [*rows[0]] == ["file", "score", "lineStart", "lineEnd", "snippet"] and len(rows) == 4
    root = ElementTree.fromstring(ms("search", 'cache <"&', "-f", "xml").out)
    assert root.get("query") == 'cache <"&' and len(root.findall("result/snippet")) == 4
    assert "| 1 | architecture.md |" in ms("search", "cache", "-f", "md").out
    files = ms("search", "cache", "-f", "files").out.splitlines()
    assert sorted(files) == [str(docs / "architecture.md"), str(docs / "auth" / "tokens.md")]


@pytest.mark.parametrize(
    ("flags", "files"),
    [
        (("--path", "AUTH"), {"tokens.md"}),
        (("--path", "docs/*.md"), {"architecture.md", "tokens.md"}),
        (("--path", "*/arch*"), {"architecture.md"}),
        (("--collection", "docs"), {"architecture.md", "tokens.md"}),
        (("--type", "bugfix"), {"architecture.md"}),
        (("--type", "feature"), set()),
        (("--concept", "PolicyController"), {"architecture.md"}),
        (("--after", "1m"), {"architecture.md", "tokens.md"}),
        (("--before", "1d"), set()),
        (("--mode", "bm25"), {"architecture.md", "tokens.md"}),
    ],
)
def test_filters_narrow_a_search(docs: Path, flags: tuple[str, ...], files: set[str]) -> None:
    found = json.loads(ms("search", "cache", "-f", "json", *flags).out)["results"]
    assert {Path(one["file"]).name for one in found} == files


def test_filters_act_before_the_limit(home: Path) -> None:
    """Sixty better matches of another path leave none of the places that the filter gives."""
    folder = write(
        Path.cwd() / "many", {f"a/{n}.md": f"# Cache {n}\n\nThe cache cache cache {n}.\n" for n in range(60)}
    )
    write(folder, {"b/one.md": "# Notes\n\nLong ago somebody wrote a word about a cache in a long sentence here.\n"})
    ms("collection", "add", folder)
    (found,) = json.loads(ms("search", "cache", "-f", "json", "-l", "1", "--path", "b/").out)["results"]
    assert found["file"].endswith("b/one.md")
    assert len(json.loads(ms("search", "cache", "-f", "json", "-l", "55").out)["results"]) == 55


def test_a_month_is_a_month_and_a_time_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex_compat.memory_search.search.now_ms", lambda: 1_774_951_200_000)  # 2026-03-31T10:00Z
    assert moment("1m", "--after") == "2026-02-28T10:00:00+00:00"
    assert moment("2w", "--after") == "2026-03-17T10:00:00+00:00"
    assert moment("1y", "--after") == "2025-03-31T10:00:00+00:00"
    assert moment("2026-01-15", "--after") == "2026-01-15"
    assert moment("", "--after") is None


# ── get ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_get_takes_every_kind_of_reference(docs: Path) -> None:
    number = ms("search", "policycontroller", "--digest", "-l", "1").out.split("#")[1].strip()
    (chunk,) = json.loads(ms("get", number, "--json").out)
    assert (chunk["id"], chunk["lineStart"], chunk["lineEnd"]) == (int(number), 3, 5)
    for reference in (chunk["shortId"], "docs/architecture.md:5", f"{docs}/architecture.md:4", "architecture.md:3"):
        assert json.loads(ms("get", reference, "--json").out)[0]["id"] == int(number), reference
    whole = (docs / "auth" / "tokens.md").read_text(encoding="utf-8").rstrip("\n")
    for reference in ("auth/tokens.md", "tokens", str(docs / "auth" / "tokens.md"), "memory://docs/auth/tokens.md"):
        assert ms("get", reference, "--raw").out == whole + "\n", reference
    assert len(json.loads(ms("get", "*.md", "--json").out)) == 2
    assert len(json.loads(ms("get", f"{number},tokens", "--json").out)) == 2
    assert ms("get", "tokens", "--lines", "1-1", "--raw").out == "# Tokens\n"


# ── index, status, collections ────────────────────────────────────────────────────────────────────────────────


def test_index_reports_changes_and_lists_removed_files(docs: Path) -> None:
    (docs / "auth" / "tokens.md").unlink()
    write(docs, {"new.md": "# New\n\nThe zeppelin lands.\n"})
    assert "docs: 1 new, 0 changed, 1 removed, 1 unchanged" in ms("index", "--dry-run").out
    ran = ms("index", "--prune", "--pull")
    assert "removed docs/auth/tokens.md" in ran.out
    assert f"note: {docs} was not pulled: fatal: not a git repository" in ran.err
    assert "new.md" in ms("search", "zeppelin", "-f", "files").out
    assert "0 new, 2 changed" in ms("index", "--force").out


def test_status_and_collections_are_counted(docs: Path) -> None:
    found = ms("status", "--json").json
    assert (found["files"], found["chunks"], found["entries"]) == (2, 4, 0)
    assert "Files Indexed:  2" in ms("status").out
    assert ms("collection", "list").out == f"docs: 2 files, 4 chunks, {docs}\n"
    assert ms("collection", "remove", "docs").out == "removed docs (4 chunks)\n"
    assert ms("collection", "list").out == "No collections.\n"


def test_a_named_index_is_a_separate_database(docs: Path) -> None:
    write(Path.cwd() / "log", {"day.md": "# Day\n\nThe zeppelin landed.\n"})
    assert ms("--index", "journal", "collection", "add", "log").code == 0
    assert "day.md" in ms("--index", "journal", "search", "zeppelin", "-f", "files").out
    assert "No matches" in ms("search", "zeppelin").out


def test_a_list_of_files_reads_the_files_once(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory() as memory:
        files = memory.collections.documents(limit=9)
        read: list[int] = []

        def documents(_: object, *, limit: int) -> object:
            read.append(limit)
            return files

        monkeypatch.setattr(type(memory.collections), "documents", documents)
        found = Passages(memory).find("architecture.md,auth,tokens.md:3")
    assert len(found) == 3 and len(read) == 1


# ── facts, context, sessions ──────────────────────────────────────────────────────────────────────────────────


def test_a_fact_is_replaced_found_and_forgotten(home: Path) -> None:
    assert ms("facts", "set", "editor", "vim").code == 0
    assert ms("facts", "set", "editor", "emacs").out.startswith("editor = emacs (")
    ms("facts", "set", "env", "test")
    found = ms("facts", "get", "e*", "--json").json
    assert found["pattern"] == "e*"
    assert [(one["key"], one["value"]) for one in found["results"]] == [("editor", "emacs"), ("env", "test")]
    assert [one["key"] for one in ms("facts", "get", "e?v", "--json").json["results"]] == ["env"]
    assert json.loads(ms("facts", "list", "-f", "json").out)["results"] == found["results"]
    assert "editor: emacs" in ms("search", "emacs").out
    with Memory() as memory:
        (record,) = (one for one in memory.list().records if "editor" in one.text)
        assert [change.action for change in memory.history(record.id)] == ["add", "update"]
    assert ms("facts", "delete", "e*", "--pattern", "--json").json == {"deleted": ["editor", "env"]}
    assert ms("facts", "list").out == "No facts found.\n"


def test_a_secret_in_a_fact_is_not_stored(home: Path) -> None:
    ran = ms("facts", "set", "key", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF")
    assert "sk-proj" not in ran.out and "secret" in ran.err
    assert "sk-proj" not in ms("facts", "list").out


def test_a_fact_that_is_a_password_is_not_kept(home: Path) -> None:
    ran = ms("facts", "set", "db_password", "hunter22X#9k")
    assert ran.out.startswith("db_password = [redacted:password] (")
    ms("facts", "set", "db_password", "Winter25!Yq")
    assert "Winter25" not in ms("facts", "list").out


def test_imported_facts_pieces_and_sessions_are_its_own(home: Path) -> None:
    path, _ = make("memory-search", home / "old")
    assert ms("import", path).code == 0
    assert [one["key"] for one in ms("facts", "list", "--json").json["results"]] == ["editor"]
    ms("facts", "set", "editor", "vim")
    assert [one["value"] for one in ms("facts", "list", "--json").json["results"]] == ["vim"]
    (piece,) = json.loads(ms("search", "SQLite", "--collection", "journal", "-l", "1", "-f", "json").out)["results"]
    assert (piece["file"], piece["chunkId"], piece["lineStart"], piece["lineEnd"]) == ("/home/eve/log.md", 10, 3, 4)
    assert json.loads(ms("get", "10", "--json").out)[0]["concepts"] == ["storage", "sqlite"]
    listed = ms("sessions", "list", "--json").json["sessions"]
    assert {one["id"]: (one["summary"], one["captureCount"]) for one in listed} == {
        "s1": ("Moved to SQLite.", 3),
        "s2": ("", 0),
    }
    assert "We chose SQLite." in ms("sessions", "show", "s1").out
    assert ": 0 added" in ms("import", path, "--merge").out


def test_context_is_built_within_tokens_and_kept_in_a_file(docs: Path) -> None:
    block = ms("context", "build", "policycontroller redis", "-t", "60").out
    assert "Keys expire" in block and len(block) <= 4 * 60 + 1
    target = write(Path.cwd(), {"CLAUDE.md": "# Mine\n\nKeep this.\n"}) / "CLAUDE.md"
    assert "updated" in ms("context", "sync", "-q", "policycontroller", "-l", "1").out
    text = target.read_text(encoding="utf-8")
    assert text.startswith("# Mine\n\nKeep this.\n\n<!-- memory-search-context:start -->\n") and "Keys expire" in text
    assert "is up to date" in ms("context", "sync", "-q", "policycontroller", "-l", "1").out
    ms("context", "sync", "-q", "memcached", "-l", "1")
    changed = target.read_text(encoding="utf-8")
    assert "Memcached" in changed and "Keys expire" not in changed and changed.count("context:start") == 1


def test_context_leaves_a_links_target_its_mode_and_its_line_ends(docs: Path) -> None:
    target = Path.cwd() / "AGENTS.md"
    target.write_bytes(b"# Mine\r\n")
    target.chmod(0o644)
    link = Path.cwd() / "CLAUDE.md"
    link.symlink_to(target)
    assert "updated" in ms("context", "sync", "-q", "policycontroller", "-l", "1").out
    text = target.read_bytes()
    assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o644
    assert text.startswith(b"# Mine\r\n\r\n<!-- memory") and text.count(b"\n") == text.count(b"\r\n")
    assert "is up to date" in ms("context", "sync", "-q", "policycontroller", "-l", "1").out


def test_a_path_is_not_described_without_a_database(home: Path) -> None:
    assert mindex("--db", "no.db", "ms", "context", "add", "docs", "About the cache").code == 1
    assert ms("context", "list").out == "No descriptions.\n"


def test_all_sessions_are_exported(docs: Path) -> None:
    with Memory() as memory:
        for number in range(201):
            memory.conversations.add("hello", "hi", session_id=f"s{number}", extract=False)
    assert "201 sessions" in ms("export").out


def test_a_described_path_is_shown_with_its_passages(docs: Path) -> None:
    assert ms("context", "add", "docs", "About the cache").code == 0
    ms("context", "add", "docs/auth/tokens.md", "Tokens of the team")
    assert ms("context", "list").out == f"{docs}: About the cache\n{docs}/auth/tokens.md: Tokens of the team\n"
    (found,) = json.loads(ms("search", "hour", "-f", "json", "-l", "1").out)["results"]
    assert found["context"] == ["About the cache", "Tokens of the team"]
    assert "\nAbout the cache\nTokens of the team\n  #" in ms("context", "build", "token hour", "-l", "1").out
    with Memory() as memory:
        assert [one.context for one in memory.collections.list()] == ["About the cache"]
    ms("context", "rm", "docs")
    assert ms("context", "list").out == f"{docs}/auth/tokens.md: Tokens of the team\n"


def test_cursor_is_connected_by_its_own_words(home: Path) -> None:
    (home / ".cursor").mkdir(parents=True)
    assert ms("cursor", "install").code == 0
    config = home / ".cursor" / "mcp.json"
    assert "mindex" in json.loads(config.read_text(encoding="utf-8"))["mcpServers"]
    assert "cursor" in ms("cursor", "status").out.lower()
    assert ms("cursor", "uninstall").code == 0
    assert not config.exists()


# ── settings, caches, transfer ────────────────────────────────────────────────────────────────────────────────


def test_its_keys_are_settings_and_modes_are_profiles_of_them(docs: Path) -> None:
    assert "search.candidates = 150" in ms("config", "set", "candidates", "150").out
    assert ms("config", "get", "candidates", "--json").json["value"] == 150
    assert ms("mode", "create", "narrow", "--set", "candidates=20", "--set", "search.floor=0.9").code == 0
    assert ms("mode", "show").out == "No mode.\n"
    ms("mode", "set", "narrow")
    assert (ms("mode", "list").out, ms("config", "get", "candidates", "--json").json["value"]) == (
        "narrow (active)\n",
        20,
    )
    assert "weak" in ms("search", "one hour of zeppelin cache").out  # its floor is .9
    assert "narrow\n  search.candidates = 20" in ms("mode", "show", "narrow").out
    ms("mode", "clear")
    assert ms("config", "get", "candidates", "--json").json["value"] == 150
    assert "candidates" in ms("mode", "create", "odd", "--set", "candidates=many").err


def test_upkeep_commands_do_their_work(docs: Path) -> None:
    assert ms("cache", "prune").code == 0
    assert ms("cleanup", "--dry-run", "--json").json["indexSize"] > 0
    assert ms("cleanup").code == 0
    assert "ok   keyword index: every record is in the keyword index" in ms("doctor").out


def test_an_export_is_imported_with_everything_that_it_has(docs: Path) -> None:
    assert ms("export", "-o", "out.json").out == "out.json: 2 files, 4 chunks, 1 collections, 0 sessions\n"
    held = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert held["version"] == 1 and held["fileCollections"][0]["collectionName"] == "docs"
    assert json.loads(held["chunks"][0]["concepts"])
    assert "4 read: 4 added" in ms("--index", "copy", "import", "out.json").out
    (found,) = json.loads(ms("--index", "copy", "search", "policycontroller", "-f", "json", "-l", "1").out)["results"]
    assert (found["file"], found["lineStart"]) == (str(docs / "architecture.md"), 3)


# ── observations ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "headings", "expected"),
    [
        ("Known issue: crash", "Decision", "bugfix"),
        ("## Decision: Redis\n\nKnown issue: crash", "", "bugfix"),
        ("Fixed the crash in the parser.", "", "bugfix"),
        ("We use Redis.", "Decision", "decision"),
        ("We decided on Redis.", "", "decision"),
        ("Anna prefers tea.", "", "preference"),
        ("Implemented the export of notes.", "", "feature"),
        ("I learned that vacuum locks the file.", "", "learning"),
        ("MAX_BYTES=100 in settings.toml", "", "config"),
        ("The pipeline has three layers.", "Architecture", "architecture"),
        ("See also https://example.org", "", "reference"),
        ("The roses are red.", "Garden", ""),
        ("One error.", "", ""),
    ],
)
def test_the_type_of_an_observation_follows_its_text_before_its_heading(
    text: str, headings: str, expected: str
) -> None:
    assert observation_type(text, headings) == expected
    assert not expected or expected in TYPES


def test_concepts_are_tags_code_and_names_and_at_most_twenty() -> None:
    found = concepts("`PolicyController` and Anna Bauer use `redis`.", ["Caching"])
    assert found == ("caching", "policycontroller", "redis", "anna-bauer")
    assert len(concepts(" ".join(f"`name{n}`" for n in range(50)))) == MAX_CONCEPTS


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Team]:
    docs = write(tmp_path / "served" / "docs", FILES)
    with team_server(tmp_path / "served", "memory-search", prepare=lambda memory: memory.index(docs)) as team:
        yield team


@pytest.mark.server
def test_its_addresses_answer_with_a_token_only(served: Team) -> None:
    for path in ("/status", "/search?q=cache", "/get/1"):
        assert served.get(path).status_code == 401
    token = served.owner()
    found = served.get("/search?q=policycontroller&limit=1", token).json()
    (row,) = found["results"]
    assert (found["query"], row["lineStart"]) == ("policycontroller", 3)
    chunk = served.get(f"/get/{row['chunkId']}", token).json()
    assert (chunk["id"], chunk["content"]) == (row["chunkId"], row["fullContent"])
    assert served.get("/status", token).json()["files"] == 2
    assert served.get("/health").status_code == 200
    budget = served.get("/search?q=cache&budget=1&type=bugfix&path=arch", token).json()
    assert budget["results"] == [] and budget["budget"] == {"truncated": True, "totalTokens": 0}


@pytest.mark.server
@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/search", 400, 'missing query parameter "q"'),
        ("/search?q=x&limit=0", 400, "limit is '0'"),
        ("/search?q=x&mode=odd", 400, "use one of hybrid, bm25, vector"),
        ("/search?q=x&colour=red", 400, "unknown parameter 'colour'"),
        ("/search?q=x&collection=nope", 404, "there is no collection 'nope'"),
        ("/get/99", 404, "there is no chunk or file '99'"),
    ],
)
def test_its_addresses_say_what_is_wrong(served: Team, path: str, status: int, text: str) -> None:
    answer = served.get(path, served.owner())
    assert answer.status_code == status and text in answer.json()["error"]


@pytest.mark.server
def test_index_over_http_needs_a_token_that_may_write(served: Team) -> None:
    write(Path(served.memory.collections.list()[0].root), {"new.md": "# New\n\nThe zeppelin lands.\n"})
    reader = served.token("reader", rights="read")
    refused = httpx2.post(f"{served.url}/index", headers=bearer(reader), timeout=LONG)
    assert (refused.status_code, "read-only" in refused.json()["error"]) == (403, True)
    done = httpx2.post(f"{served.url}/index", headers=bearer(served.owner()), timeout=LONG)
    assert done.json()["collections"][0]["files"]["new"] == 1
    assert served.get("/search?q=zeppelin", served.owner()).json()["results"]


@pytest.mark.server
def test_a_token_for_one_collection_sees_no_other(served: Team, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"secret.md": "# Plans\n\nThe zeppelin lands at dawn.\n"})
    served.memory.index(other)
    token = served.token("guest", collections=["docs"])
    assert served.get("/search?q=zeppelin", token).json()["results"] == []
    assert served.get("/get/secret.md", token).status_code == 404
    assert served.get("/status", token).json()["files"] == 2


@pytest.mark.server
def test_the_native_tools_are_beside_its_addresses_and_other_servers_have_none(served: Team, tmp_path: Path) -> None:
    tools = served.post(served.owner()).text
    assert all(f'"name":"{name}"' in tools for name in ("search", "get", "remember"))
    with team_server(tmp_path, settings=KEYWORD) as plain:
        assert plain.get("/search?q=x", plain.owner()).status_code == 404
