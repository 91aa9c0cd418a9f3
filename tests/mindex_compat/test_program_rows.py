"""The rows of docs/other-programs.md, replayed through the real interfaces: MCP over stdio, CLI, HTTP.

Each replay is one session with one program's tools. `Seen` notes which rows it has seen to work; the page says of the
others which test holds them.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp import Client
from mindex.clock import now_ms, to_iso
from tests.conftest import write
from tests.mcp.conftest import text
from tests.mcp.sessions import started
from tests.mcp.team import team_server
from tests.mindex_compat.importers.foreign_programs import make
from tests.running import finish, run, start

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "other-programs.md").read_text(encoding="utf-8")
# Row → (state, how it was seen).
ROWS = {
    match[1]: (match[2], match[3])
    for match in re.finditer(r"^\| ([A-Z0-9]{2}-\d\d) \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
}
COUNTS = {"ME": (42, "06 14 24"), "V3": (32, "26"), "MP": (24, ""), "MS": (26, "08 20 26"), "AN": (30, "")}
APPLICABLE = {
    f"{program}-{number:02}"
    for program, (count, left_out) in COUNTS.items()
    for number in range(1, count + 1)
    if f"{number:02}" not in left_out.split()
}

pytestmark = [pytest.mark.anyio, pytest.mark.sqlite_only]  # one user's programs


class Seen:
    """The rows of one program that a replay has seen."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._rows: set[str] = set()

    def __call__(self, rows: str, condition: object, why: object = "") -> None:
        assert condition, f"{self._program}-{rows}: {why}"
        self._rows |= {f"{self._program}-{number}" for number in rows.split()}

    def check(self) -> None:
        """The page says `replay` of these rows and of no others."""
        claimed = {row for row, (_, how) in ROWS.items() if row.startswith(self._program) and "replay" in how}
        assert claimed == self._rows, (sorted(claimed - self._rows), sorted(self._rows - claimed))


@contextmanager
def seen(program: str) -> Iterator[Seen]:
    noted = Seen(program)
    yield noted
    noted.check()


async def call(client: Client, tool: str, /, **arguments: object) -> Any:
    answered = text(await client.call_tool(tool, arguments))
    try:
        return json.loads(answered)
    except ValueError:
        return answered


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "MUDPUPPY_HOME", "MATRIOSHKA_BRAIN_HOME", "MEMORY_DB_PATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def mindex(*arguments: object) -> Any:
    """A command in its own process: its JSON, or its output."""
    ran = run(*arguments)
    assert ran.code == 0, ran
    return json.loads(ran.out) if ran.out.startswith(("{", "[")) else ran.out


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_has_every_row_once_and_counts_them() -> None:
    assert ROWS.keys() == APPLICABLE and len(APPLICABLE) == 147
    assert len(re.findall(r"^\| [A-Z0-9]{2}-\d\d \|", PAGE, re.MULTILINE)) == 147
    states = [state for state, _ in ROWS.values()]
    assert {*states} <= {"works", "partly", "not"}
    assert states.count("works") >= 141
    assert f"{states.count('works')} of 147 rows work" in PAGE


def test_every_test_that_the_page_names_is_there() -> None:
    held = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert named
    assert [name for name in named if f"def {name}(" not in held] == []
    for row, (_, how) in ROWS.items():
        assert "replay" in how or "`" in how, f"{row} does not say how it was seen"


# ── MemoryExchange, over stdio ────────────────────────────────────────────────────────────────────────────────

_DOCS = {
    "architecture.md": """# Architecture

## Overview

Parcels enter at the hub, are sorted by district, and leave with the first van that has room for them.

## Caching

### Redis Setup

Keys of the routing service live for ninety seconds. The paragraph explains the code below it:

```csharp
cache.Set(district, tours, TimeSpan.FromSeconds(90));
```

## Deployment

Releases go out on Tuesday mornings, one district at a time, and are rolled back by the same job.
""",
    "domains/caching/redis.md": "# Redis\n\n## TTL\n\nEntries of the cache expire; see [setup](../../a.md).\n",
    "domains/caching/keys.instructions.md": "# Keys\n\nName entries of the cache by district and version.\n",
    "domains/security/access.md": "# Access\n\n`PolicyController` decides who may open a locker in the end.\n",
    "policies.md": "# Rules\n\nA policy of a controller is a policy, and every controller has a policy, and so on.\n",
    "personal/diary.md": "# Diary\n\nThe cache of chocolate is in the attic.\n",
    "drafts/old.md": "# Draft\n\nThe cache of the draft.\n",
    "MemoryExchangeManagement.md": "# Map\n\n```yaml\ncaching: ['src/Caching/', 'src/**/Cache/']\n```\n",
}


@pytest.mark.server
@pytest.mark.model
@pytest.mark.slow
async def test_replay_of_memory_exchange(home: Path, database: str) -> None:
    docs = write(Path.cwd() / "docs", _DOCS)
    flags = ("--source-path", str(docs), "--database-path", database, "--index-name", "wiki", "--exclude", "drafts/")
    with seen("ME") as see:
        async with started("memory-exchange", *flags, "--build-index", "--watch", "--debug", env={}) as client:

            async def search(query: str, **more: object) -> str:
                found: str = await call(client, "search_memory_exchange", query=query, **more)
                return found

            first = await search("how does caching work")
            see("01 02 03", "Redis Setup" in first, first)
            see(
                "39",
                re.search(r"--- Result 1 ---\nSource: .+\nSection: .+\nDomain: .+\n", first) and client.instructions,
            )
            names = [tool.name for tool in (await client.list_tools()).tools]
            see("26", {"search_memory_exchange", "search_memory_bank"} <= {*names}, names)
            see("11", "Section: Architecture > Caching > Redis Setup\n" in first)
            for section in ("Overview", "Deployment"):
                see("10 15", f"Section: Architecture > {section}\n" in await search(section, topK=10), section)
            see(
                "12 13", re.search(r"explains the code below it:\n\n\s+```csharp\n.*FromSeconds\(90\).*\n\s+```", first)
            )
            see("36", (await search("PolicyController", topK=2)).index("access.md") < 200)
            here = await search("entries of the cache", currentFilePath="src/Caching/RedisClient.cs", topK=10)
            see("32 33 34", here.index("keys.instructions.md") < here.index("redis.md") < here.index("architecture.md"))
            see("37", "Domain: caching\n" in here and "Domain: root\n" in here)
            see("35", (await search("the", topK=1)).count("--- Result") <= 1 < here.count("--- Result") <= 10)
            see("27", "Redis Setup" in await search("how long are answers remembered"))  # no word in common
            see("40", "attic" not in here and "Draft" not in here)
            see("38", "# Redis" in await call(client, "get_memory_file", filePath="domains\\caching\\redis.md"))
            see("38", (await call(client, "get_memory_file", filePath="../work-secret/x.md")).startswith("Error:"))
            status = await call(client, "get_index_status")
            see("41", "- **Index name:** wiki\n" in status and "- **Provider:** Local" in status, status)
            (docs / "domains" / "caching" / "redis.md").write_text("# Redis\n\nThe zeppelin lands.\n", encoding="utf-8")
            (docs / "policies.md").unlink()
            found = ""
            for _ in range(60):
                found = await search("zeppelin lands") + await search("controller has a policy and so on")
                if "zeppelin lands" in found and "policies.md" not in found:
                    break
                await anyio.sleep(0.5)  # until the watcher has seen it
            see("04 05 07 08", "zeppelin lands" in found and "policies.md" not in found, found)
        indexed = mindex("--db", database, "index", "--dry-run", "--json")["collections"][0]["files"]
        see("04", indexed["changed"] == 0 and indexed["unchanged"] == indexed["seen"], indexed)
        embedding = mindex("--db", database, "status", "--json")["embedding"]
        see("16 20", (embedding["provider"], embedding["dimensions"]) == ("local", 384), embedding)
        with closing(sqlite3.connect(database)) as connection:
            see("23", connection.execute("PRAGMA journal_mode").fetchone() == ("wal",))
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            see("21 22", {"records", "records_fts", "vectors", "documents"} <= tables)


# ── Memory MCP, over stdio ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.server
@pytest.mark.slow
async def test_replay_of_memory_mcp(home: Path, database: str) -> None:
    with seen("V3") as see:
        async with started("memory-mcp", env={"MEMORY_DB_PATH": database, "DEFAULT_TTL_DAYS": "30"}) as client:

            async def recall(query: str, **more: object) -> dict[str, Any]:
                found: dict[str, Any] = await call(client, "memory_recall", query=query, **more)
                return found

            added = await call(
                client, "memory_store", content="Anna Bauer at Acme GmbH in Berlin prefers TypeScript daily.",
                importance=8, tags=["language"], metadata={"ticket": 4711}, provenance={"source": "chat"},
            )  # fmt: skip
            see("22 25", {"id", "type", "summary", "content", "importance", "created_at"} <= added.keys(), added)
            see("15 28", added["summary"] and len(added["summary"].split()) <= 20)
            see("16 29", {"Anna Bauer", "Acme GmbH", "Berlin", "TypeScript"} <= {*added["entities"]}, added)
            see("30", added["type"] in ("fact", "entity", "relationship", "self"))
            for query in (
                '"prefers TypeScript"',
                "bauer NOT python",
                "typescript OR java",
                "{content}: berlin",
                "typ*",
            ):
                see("11", (await recall(query))["total_count"] == 1, query)
            see("11", (await recall("{summary}: typescript"))["total_count"] == 1)
            see("10", (await recall("  TypeScript?!  daily "))["total_count"] == 1)
            see("02 03", (await recall("prefer"))["total_count"] == 1)  # porter
            see("08 17", not (await recall("typescript", type="entity"))["index"])
            see("16", (await recall("daily", entities=["acme gmbh", "nobody"]))["total_count"] == 1)
            named = await recall("typescript", minImportance=10)
            see("19", named["notes"] == ["minImportance excluded 1 match"], named)
            corrected = await recall("typescrpit")
            see("19", corrected["index"] and "typescrpit" in corrected["notes"][0])
            long = await recall(" ".join(f"w{number}" for number in range(150)))
            see("19", any("150 words" in note for note in long["notes"]), long)
            for number in range(25):
                await call(
                    client, "memory_store", importance=5, ttl_days=None, type="fact",
                    content=f"Widget {number} of the shop is blue. " + "It has a long story behind it. " * 25,
                )  # fmt: skip
            dual = await recall("widget shop", limit=50, max_tokens=1000)
            see("13 14", len(dual["index"]) >= 20 and len(dual["details"]) >= 3 and dual["tokens_used"] <= 1000, dual)
            see("13", (dual["total_count"], dual["query"]) == (25, "widget shop"))
            see("23", [len((await recall("widget", limit=limit))["index"]) for limit in (1, 5)] == [1, 5])
            pages = [
                (await recall("widget", limit=10, offset=offset, max_tokens=5000))["index"] for offset in (0, 10, 20)
            ]
            see("09", len({row["id"] for page in pages for row in page}) == 25, [len(page) for page in pages])
            await call(client, "memory_store", id=added["id"], content="Anna Bauer prefers Rust daily.", type="fact")
            see("22", (await recall("rust"))["total_count"] == 1 and not (await recall("typescript"))["index"])
            soon = to_iso(now_ms() + 2_000, "milliseconds")
            await call(client, "memory_store", content="The old port was 8080 then.", expires_at=soon)
            await anyio.sleep(3)
            shown = await recall("port 8080", includeExpired=True)
            see("08", shown["index"] and not (await recall("port 8080"))["index"])
            forgotten = await call(client, "memory_forget", id=added["id"], reason="it moved")
            see("24", forgotten["success"] and not (await recall("rust"))["index"])
        history = mindex("--db", database, "history", added["id"], "--json")["changes"]
        see("31", [one["action"] for one in history][-1] == "forget" and history[-1]["reason"] == "it moved", history)
        with closing(sqlite3.connect(database)) as connection:
            see("27", connection.execute("SELECT count(*) FROM records WHERE expires_at > 0").fetchone()[0] > 1)
        mindex("--db", database, "optimize")
        checks = json.loads(run("--db", database, "doctor", "--json").out)["checks"]
        see("12", [one["ok"] for one in checks if one["name"] == "keyword index"] == [True], checks)


# ── mudpuppy, over stdio ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.server
@pytest.mark.model
@pytest.mark.slow
async def test_replay_of_mudpuppy(home: Path) -> None:
    puppy = home / ".mudpuppy"
    write(puppy / "workspace", {"roses.md": "# Roses\n\nThe roses are cut in March.\n"})
    write(puppy / "workspace", {"big.md": "# Big\n\n" + "The roses again and again. " * 7_000})
    config = {"memory": {"hybridWeights": {"vector": 0.6, "keyword": 0.4}, "autoIndex": True}}
    write(puppy, {"config.json": json.dumps(config)})
    with seen("MP") as see:
        async with started("mudpuppy", env={}) as client:

            async def search(query: str, **more: object) -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = (await call(client, "memory_search", query=query, **more))["results"]
                return found

            names = {tool.name for tool in (await client.list_tools()).tools}
            see("01", names == {f"memory_{verb}" for verb in ("add", "search", "get", "stats", "delete")}, names)
            dark = {
                "content": "The user prefers dark mode.",
                "entryType": "preference",
                "importance": 9,
                "tags": ["ui"],
            }
            see("12", await call(client, "memory_add", **dark) == {"id": 1, "created": True, "duplicate": False})
            see("10", await call(client, "memory_add", **dark) == {"id": 1, "created": False, "duplicate": True})
            for type_ in ("fact", "event", "insight", "task", "relationship"):
                await call(client, "memory_add", content=f"Something to note as {type_}.", entryType=type_)
            refused = await call(client, "memory_add", content="x", entryType="rumour")
            see("15 21", "error" in refused and (await call(client, "memory_stats"))["totalEntries"] == 6, refused)
            (found,) = await search("night theme", mode="vector", limit=1, entryTypes=["preference"])
            see("05 11 22", found["matchedBy"] == ["vector"] and found["content"] == dark["content"], found)
            see("07", (await search("dark theme", limit=1))[0]["matchedBy"] == ["vector", "keyword"])
            see("07", (await search("dark theme", limit=1, vectorWeight=0, keywordWeight=1))[0]["score"] == 1.0)
            see("08 15", (await search('dark* (mode) ^"', mode="keyword"))[0]["score"] == 1.0)
            see("09", not await search("dark", minImportance=10, mode="keyword"))
            see("09", not await search("dark", entryTypes=["task"], tags=["ui"], mode="keyword"))
            entry = (await call(client, "memory_get", id=1))["entry"]
            see("03", {"contentHash", "confidence", "importance", "accessCount", "createdAt"} <= entry.keys(), entry)
            accesses = 0
            for _ in range(60):  # they are logged in the background
                accesses = (await call(client, "memory_get", id=1))["entry"]["accessCount"]
                if accesses >= 2:
                    break
                await anyio.sleep(0.2)
            see("06", accesses >= 2)
            see("15", "error" in await call(client, "memory_get", id=4711))
            files: list[dict[str, Any]] = []
            for _ in range(100):
                files = [one for one in await search("roses cut in March", limit=50) if one["source"] == "file-index"]
                if files:
                    break
            see("17 19", [one["tags"] for one in files] == [["roses.md"]], files)
            see("17", isinstance(files[0]["id"], int))
            see("17", (await call(client, "memory_get", id=files[0]["id"]))["entry"]["source"] == "file-index")
            (puppy / "workspace" / "roses.md").write_text("# Roses\n\nThe roses bloom in June.\n", encoding="utf-8")
            texts: list[str] = []
            for _ in range(100):
                texts = [one["content"] for one in await search("roses bloom June", limit=50)]
                if any("June" in one for one in texts):
                    break
            see("17", any("June" in one for one in texts) and not any("cut in March" in one for one in texts), texts)
            stats = await call(client, "memory_stats")
            see("23", stats["byType"]["preference"] == 1 and stats["avgImportance"] > 5, stats)
            see("13", (await call(client, "memory_delete", id=1)) == {"success": True, "deleted": True})
            see("13", (await call(client, "memory_delete", id=1)) == {"success": False, "deleted": False})
        (log,) = (puppy / "workspace" / "memory").glob("*.md")
        lines = log.read_text(encoding="utf-8").splitlines()
        see("16", lines[0] == f"# Daily Log - {log.stem}" and re.match(r"- \*\*\d\d:\d\d:\d\d\*\* \[", lines[2]), lines)
        see("18", not any("roses" in line for line in lines))
        checks = mindex("doctor", "--json")["checks"]
        see("04", [one["ok"] for one in checks if one["name"] == "keyword index"] == [True], checks)
        copied = Path(shutil.copy(mindex("status", "--json")["db"], "copy.db"))
        see("02", mindex("--db", copied, "status", "--json")["records"] == mindex("status", "--json")["records"])
        shown = run("config", "--tools", "mudpuppy").out
        see("24", re.search(r"search\.weights\.weighted +0\.6", shown), shown)


# ── memory-search, by commands and over HTTP ──────────────────────────────────────────────────────────────────


@pytest.mark.server
@pytest.mark.slow
def test_replay_of_memory_search(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    texts = {
        "a.md": "# Cache\n\n## Decision\n\nKnown issue: crash of `RedisClient`.\n\n## Plan\n\nWe decided on Redis.\n",
        "b/c.md": "# Tokens\n\nA token of the cache lasts an hour. <private>the code is 4711</private>\n",
    }
    docs = write(Path.cwd() / "docs", texts)
    with seen("MS") as see:
        see("09", "collection add DIR" in run("ms", "search", "x").err)
        mindex("ms", "collection", "add", docs)
        see("12", "0 changed" in mindex("ms", "index", "--dry-run") and "2 changed" in mindex("ms", "index", "--force"))
        see("12", "removed docs/" not in mindex("ms", "index", "--prune", "--pull"))
        digest, compact = mindex("ms", "search", "cache", "--digest"), mindex("ms", "search", "cache", "--compact")
        see("03 05", len(digest) / 4 / 3 < 30 and {"id", "tokens", "lines"} <= compact["results"][0].keys(), digest)
        see("04", mindex("ms", "search", "cache", "-f", "json", "--budget", "200")["budget"]["totalTokens"] <= 200)
        number = compact["results"][0]["id"]
        for form in ("human", "csv", "xml", "md", "files"):
            see("10", mindex("ms", "search", "cache", "-f", form, "-l", "1"), form)
        flags = ("--after", "1m", "--path", "a.md", "--type", "bugfix", "--concept", "redisclient", "--mode", "bm25")
        (bug,) = mindex("ms", "search", "cache", "-f", "json", "--explain", "--collection", "docs", *flags)["results"]
        see("10 22", "Known issue" in bug["snippet"] and bug["explain"], bug)
        see("10", mindex("ms", "search", "cache", "--timeline", number, "-f", "json")["timeline"])
        see("10", all(mindex("ms", "search", "cache", "--layer", layer) for layer in "123"))
        for reference in (
            number,
            bug["shortId"],
            "b/c.md",
            "a.md:5",
            "*.md",
            f"{number},b/c.md",
            "memory://docs/b/c.md",
        ):
            see("11", mindex("ms", "get", reference, "--json"), reference)
        see("11", mindex("ms", "get", "a.md", "--lines", "1-1", "--raw") == "# Cache\n")
        mindex("ms", "facts", "set", "editor", "vim")
        see("13", mindex("ms", "facts", "get", "ed*", "--json")["results"][0]["value"] == "vim")
        mindex("ms", "context", "add", "docs/b", "Of the team")
        see("13", "Of the team" in mindex("ms", "context", "build", "token hour", "-t", "100"))
        see("13", "updated" in mindex("ms", "context", "sync", "-q", "redis") and Path("CLAUDE.md").exists())
        see("13", mindex("ms", "sessions", "list") == "No sessions.\n" and "docs" in mindex("ms", "collection", "list"))
        see("13", not mindex("ms", "facts", "delete", "editor").startswith("Error"))
        mindex("ms", "mode", "create", "code", "--set", "candidates=50")
        mindex("ms", "mode", "set", "code")
        see(
            "15",
            "code (active)" in mindex("ms", "mode", "list") and "50" in mindex("ms", "config", "get", "candidates"),
        )
        mindex("ms", "mode", "clear")
        see("16", mindex("ms", "cleanup", "--dry-run") and mindex("ms", "cleanup") and mindex("ms", "doctor"))
        mindex("ms", "cache", "prune")
        mindex("ms", "export", "-o", "out.json")
        see("16", "added" in mindex("ms", "--index", "copy", "import", "out.json"))
        see("09", mindex("ms", "--index", "copy", "search", "redis", "-f", "json")["results"])
        old, _ = make("memory-search", home / "old")
        see("16", " added" in mindex("ms", "import", old, "--merge"))
        see("09", {one["id"] for one in mindex("ms", "sessions", "list", "--json")["sessions"]} == {"s1", "s2"})
        see("23", "4711" not in mindex("ms", "get", "b/c.md"))
        see("21", "redis" in mindex("ms", "search", "reddis").lower())
        see("06", mindex("ms", "status", "--json")["chunks"] == 3)
        database = mindex("ms", "status", "--json")["indexPath"]
        with team_server(tmp_path, "memory-search", db=database) as team:
            for path in ("/search?q=cache", "/status", f"/get/{number}"):
                see("14", (team.get(path).status_code, team.get(path, team.owner()).status_code) == (401, 200), path)
            see("14", team.get("/health").status_code == 200)
        server = start("ms", "serve", "--port", "0")
        try:
            assert server.stderr is not None
            see("14", any("serving http://" in line for line in iter(server.stderr.readline, "")))
        finally:
            server.terminate()
            finish(server)


# ── Memorizer, over stdio ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.server
@pytest.mark.slow
async def test_replay_of_memorizer(home: Path, database: str, tmp_path: Path) -> None:
    env = {"MEMORY_DB_PATH": database, "MEMORY_EXPORT_PATH": str(tmp_path / "out"), "EMBEDDING_PROVIDER": "none"}
    with seen("AN") as see:
        async with started("memorizer", env=env) as client:

            async def ask(tool: str, **arguments: object) -> dict[str, Any]:
                answered: dict[str, Any] = await call(client, tool, **arguments)
                return answered

            async def data(tool: str, **arguments: object) -> dict[str, Any]:
                answered = await ask(tool, **arguments)
                assert answered["success"], answered
                found: dict[str, Any] = answered["data"]
                return found

            names = {tool.name for tool in (await client.list_tools()).tools}
            see("18", {"store_fact", "list_facts", "update_fact", "delete_fact", "retrieve_memories"} <= names, names)
            tea = {"fact": "Eve prefers tea without sugar from Assam", "category": "preference"}
            first = await data("store_fact", **tea)
            see("13 30", (await data("store_fact", **tea))["fact_id"] == first["fact_id"])
            like = await data("store_fact", fact="Eve prefers tea without sugar from Ceylon", category="preference")
            see("14 19", like["fact_id"] != first["fact_id"] and like["similar_existing"], like)
            for category in ("background", "pattern", "project", "contact", "decision"):
                await data("store_fact", fact=f"A note about the {category} of ships.", category=category)
            see("02", (await data("list_facts", category="decision"))["total_count"] == 1)
            secret = await ask("store_fact", fact="The password is hunter2secret!9", category="background")
            see("15", not secret["success"], secret)
            await data("store_fact", agent_id="other", fact="The lighthouse is painted white.", category="background")
            hinted = await ask("retrieve_memories", query="lighthouse painted")
            see("16", not hinted["data"]["facts"] and any("another agent" in note for note in hinted["notes"]), hinted)
            see("16", "white" not in json.dumps(hinted))
            see(
                "05 26", (await data("retrieve_memories", query="tea", limit=1))["facts"][0]["category"] == "preference"
            )
            see("05 08", (await data("retrieve_memories", query="eylo"))["facts"])  # part of a word
            updated = await data("update_fact", fact_id=first["fact_id"], fact="Eve prefers black tea.")
            see("18", updated["old_fact"].startswith("Eve prefers tea"), updated)
            see("18", "black" in (await data("delete_fact", fact_id=first["fact_id"]))["deleted_fact"])
            turn = await data(
                "store_conversation", user_message="Where is the harbour?", agent_response="In the north."
            )
            see("20", turn["conversation_id"].startswith("conv_") or turn["conversation_id"], turn)
            see("20", (await data("search_conversations", query="harbour"))["total_count"] == 1)
            see("21", {"user_info", "preferences"} <= (await data("get_profile"))["profile"].keys())
            await data(
                "update_profile", updates={"user_info.name": "Eve", "preferences.tools[0]": "vim"}, reason="told"
            )
            see("21", (await data("get_profile"))["profile"]["user_info"]["name"] == "Eve")
            skill = {
                "name": "Brief",
                "trigger_type": "cron",
                "instructions": "Sum up.",
                "trigger_config": {"schedule": "0 8 * * *"},
            }
            made = await data("store_skill", **skill)
            see(
                "22",
                not (again := await ask("store_skill", **skill))["success"] or again["data"].get("already_existed"),
            )
            await data("update_skill", skill_id=made["skill_id"], enabled=False)
            see("22", (await data("get_skill", skill_id=made["skill_id"]))["skill"]["enabled"] in (False, 0))
            contact = await data("create_contact", name="Ann", email="ann@example.org", company="ACME")
            see("23", not (await ask("create_contact", name="Bob", email="ann@example.org"))["success"])
            await data("update_contact", contact_id=contact["contact_id"], role="pilot")
            see("23", (await data("list_contacts", company="ACME"))["contacts"][0]["role"] == "pilot")
            project = await data(
                "create_project", name="Falcon", priority="high", primary_contact_id=contact["contact_id"]
            )
            source = {"project_id": project["project_id"], "location": "/src/x"}
            await data("link_project_source", source_type="folder", **source)
            await data("update_project_source_status", last_status="warning", message="old", **source)
            (linked,) = (await data("list_project_sources", project_id=project["project_id"]))["sources"]
            see("24", (linked["last_status"], linked["message"]) == ("warning", "old"), linked)
            see("24", (await data("list_projects", priority="high"))["total_count"] == 1)
            events = await data("query_timeline", date_from="2020-01-01")
            see("25", {"facts", "conversations", "skills", "contacts"} <= {*events["sources_queried"]}, events)
            stats = await data("get_memory_stats")
            see("27", stats["search_capabilities"]["search_mode"] == "fts5_only" and stats["fact_count"] >= 6, stats)
            exported = await data("export_memory", format="json")
            see("28 30", (Path(exported["export_path"]) / "facts" / "all-facts.json").exists(), exported)
            facts = Path(exported["export_path"]) / "facts" / "all-facts.json"
            see("28", (await data("import_memory", file_path=str(facts)))["changes_applied"] >= 0)
            see("01", (await data("list_facts", agent_id="other"))["total_count"] == 1)
        with closing(sqlite3.connect(database)) as connection:
            see(
                "03",
                connection.execute("SELECT count(*) FROM records_fts WHERE records_fts MATCH 'text:tea'").fetchone()[0]
                >= 1,
            )
