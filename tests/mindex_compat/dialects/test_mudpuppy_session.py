"""A session with mudpuppy, made of its document: adding, hybrid search, duplicates, files, the daily log, deletion."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import pytest

from tests.conftest import write
from tests.mcp.sessions import MS, Matching, Number, Session, session

pytestmark = [pytest.mark.anyio, pytest.mark.server, pytest.mark.model]

DARK = "user prefers dark mode"
SCORE = Number(0, 1)


async def test_a_day_with_mudpuppy(tmp_path: Path, database: str) -> None:
    workspace = write(tmp_path / "workspace", {"roses.md": "# Roses\n\nThe roses are cut in March.\n"})
    async with session("mudpuppy", database, MINDEX_WORKSPACE_PATH=str(workspace)) as replay:
        empty = {"totalEntries": 0, "byType": {}, "avgImportance": 0, "avgConfidence": 0, "totalAccesses": 0}
        await replay.call("memory_stats", {}, {**empty, "oldestEntry": None, "newestEntry": None})

        # Adding: the content's hash decides what is a duplicate.
        dark = {"content": DARK, "entryType": "preference"}
        await replay.call("memory_add", dark, {"id": 1, "created": True, "duplicate": False})
        await replay.call("memory_add", dark, {"id": 1, "created": False, "duplicate": True})
        long = "The deploy of the shop takes four steps. " * 10
        given = {
            "content": long, "entryType": "event", "source": "conversation", "context": "release", "confidence": 0.8,
            "importance": 9, "tags": ["deploy", "shop"], "expiresAt": 4_000_000_000_000,
        }  # fmt: skip
        await replay.call("memory_add", given, {"id": 2, "created": True, "duplicate": False})

        # Meaning finds what shares no word with the question; what was just added is among it.
        row = {
            "id": 1, "content": DARK, "entryType": "preference", "source": "manual", "confidence": 1.0,
            "importance": 5, "tags": [], "score": SCORE, "matchedBy": ["vector"], "createdAt": MS,
        }  # fmt: skip
        by_vector = await replay.call("memory_search", {"query": "night theme", "mode": "vector", "limit": 1})
        assert (by_vector["results"], by_vector["total"]) == ([row], 1)
        hybrid = await replay.call("memory_search", {"query": "dark theme", "limit": 1})
        assert hybrid["results"] == [{**row, "matchedBy": ["vector", "keyword"]}]
        keyword = await replay.call("memory_search", {"query": 'dark* (mode) ^"', "mode": "keyword"})
        assert keyword["results"] == [{**row, "score": 1.0, "matchedBy": ["keyword"]}]
        filtered = await replay.call(
            "memory_search",
            {"query": "deploy", "entryTypes": ["event"], "minImportance": 9, "minConfidence": 0.5, "tags": ["shop"]},
        )
        assert [one["id"] for one in filtered["results"]] == [2]
        assert filtered["results"][0]["context"] == "release"
        weighed = await replay.call(
            "memory_search", {"query": "dark theme", "vectorWeight": 0, "keywordWeight": 1, "limit": 1}
        )
        assert weighed["results"][0]["score"] == 1.0

        entry = (await replay.call("memory_get", {"id": 2}))["entry"]
        assert entry.pop("lastAccessedAt", 1_750_000_000_000) == MS  # accesses are counted in the background
        assert entry == {
            **given,
            "id": 2,
            "content": long.strip(),
            "contentHash": hashlib.sha256(long.strip().encode()).hexdigest(),
            "createdAt": MS,
            "updatedAt": MS,
            "accessCount": Number(0, 9),
        }

        await _finds_the_file(replay)
        _keeps_a_daily_log(workspace)

        # Mistakes and the end.
        wrong = await replay.call("memory_add", {"content": "x", "entryType": "rumour"}, is_error=True)
        assert wrong["error"].startswith("entryType: input should be 'fact'")
        await replay.call("memory_get", {"id": 99}, {"error": "Memory entry not found: 99"})
        await replay.call("memory_delete", {"id": 1}, {"success": True, "deleted": True})
        await replay.call("memory_delete", {"id": 1}, {"success": False, "deleted": False})
        stats = await replay.call("memory_stats", {})
        assert {name: stats[name] for name in ("totalEntries", "byType", "avgImportance", "avgConfidence")} == {
            "totalEntries": 1, "byType": {"event": 1}, "avgImportance": 9, "avgConfidence": 0.8,
        }  # fmt: skip


async def _finds_the_file(replay: Session) -> None:
    """Files of the workspace are indexed by the server itself, after its start."""
    deadline = time.monotonic() + 60
    while True:
        found = await replay.call("memory_search", {"query": "roses", "mode": "keyword", "tags": ["roses.md"]})
        if found["results"] or time.monotonic() > deadline:
            break
    assert found["results"] == [
        {
            "id": Number(2**52, 2**53), "content": Matching(r"(?s).*The roses are cut in March\."),
            "entryType": "fact", "source": "file-index", "context": "Roses", "confidence": 1.0, "importance": 5,
            "tags": ["roses.md"], "score": 1.0, "matchedBy": ["keyword"], "createdAt": MS,
        }
    ]  # fmt: skip


def _keeps_a_daily_log(workspace: Path) -> None:
    (log,) = (workspace / "memory").glob("*.md")
    heading, *lines = (line for line in log.read_text(encoding="utf-8").splitlines() if line)
    assert heading == f"# Daily Log - {log.stem}"
    assert re.fullmatch(rf"- \*\*\d\d:\d\d:\d\d\*\* \[preference\] \(manual\) {DARK}", lines[0])
    text = lines[1].partition("(conversation) ")[2]
    assert (len(lines), len(text), text[-3:]) == (2, 200, "...")
