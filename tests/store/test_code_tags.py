"""Files of version 0.1.0, which stored the names in inline code as tags: what the migration leaves of them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.store.rules.code_tags import TaggedChunk, correct_tags
from mindex.store.sqlite.row_checksums import watch_writes
from tests.conftest import write
from tests.running import run_here

GUIDE = """---
tags: [cache, Redis]
---

# Guide

Read `Path` before `dict`. #howto

## Redis

`redis` keeps what `Path` gives; see `shared/cfg.toml`. #project/alpha
"""
PLAIN = "# Plain\n\nA `dict` is no `list()`, and C is not #1.\n"
BOTH = "---\ntags: [redis]\n---\n\nStart `redis` first.\n"


def as_indexed_by_0_1_0(path: Path) -> None:
    """Give the chunks of a file the tags that version 0.1.0 gave them."""
    stored = {
        "Guide": ["cache", "Redis", "howto", "Path", "dict"],
        "Guide > Redis": ["cache", "Redis", "project/alpha", "Path", "shared/cfg.toml", "project"],
        "Plain": ["dict", "list"],
        "both": ["redis"],
    }
    with contextlib.closing(sqlite3.connect(path)) as connection:
        watch_writes(connection)
        for key, title in connection.execute("SELECT key, title FROM records").fetchall():
            connection.execute("DELETE FROM tags WHERE record = ?", (key,))
            tags = [(tag.casefold(), key) for tag in stored[title]]
            connection.executemany("INSERT INTO tags (tag, record) VALUES (?, ?)", tags)
            connection.execute("UPDATE records SET tags = ? WHERE key = ?", (json.dumps(stored[title]), key))
        connection.execute("UPDATE documents SET tags = '[\"Path\"]'")
        connection.execute("PRAGMA user_version = 10")
        connection.commit()


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    root = write(tmp_path / "docs", {"guide.md": GUIDE, "plain.md": PLAIN, "both.md": BOTH})
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.index(root)
    as_indexed_by_0_1_0(path)
    return path


def tags_by_title(memory: Memory) -> dict[str, tuple[str, ...]]:
    return {record.title: record.tags for record in memory.list(limit=50).records}


def test_the_migration_keeps_the_tags_of_front_matter_and_text(upgraded: Path) -> None:
    with Memory(upgraded) as memory:
        assert tags_by_title(memory) == {
            "Guide": ("cache", "Redis", "howto"),
            "Guide > Redis": ("cache", "Redis", "project/alpha", "project"),
            "Plain": (),
            "both": ("redis",),
        }
        assert memory.list(memory.filters(tags=["dict"])).total == 0
        assert [check for check in memory.doctor(deep=True) if not check.ok] == []


def test_names_in_code_are_found_after_the_migration_as_before(upgraded: Path) -> None:
    with Memory(upgraded) as memory:
        assert memory.search("shared/cfg.toml").hits[0].record.title == "Guide > Redis"


def test_only_a_file_whose_tag_is_also_code_everywhere_is_read_again(upgraded: Path) -> None:
    with Memory(upgraded) as memory:
        report = memory.index().collections[0]
        assert (report.changed, report.unchanged, report.chunks_added, report.chunks_removed) == (1, 2, 0, 0)
        assert tags_by_title(memory)["both"] == ("redis",)


def test_the_command_lists_no_code_after_the_migration(upgraded: Path) -> None:
    listed = run_here("--db", upgraded, "tags").out
    assert "howto" in listed
    assert "dict" not in listed
    assert "Path" not in listed


def test_a_tag_that_is_also_code_stays() -> None:
    chunk = TaggedChunk("#redis is `redis`, as `Path()` is", ("redis", "Path"), 1)
    assert correct_tags([chunk], ()).chunks == (("redis",),)


def test_a_link_to_a_heading_is_not_a_tag() -> None:
    chunk = TaggedChunk("see [`cache`](#cache)", ("cache",), 1)
    assert correct_tags([chunk], ()).chunks == ((),)


@pytest.mark.parametrize(
    ("text", "tags", "fields", "kept"),
    [
        ("Use `Path` and `dict` and `and`.", ("Path", "dict", "and"), ("title: A",), ()),
        ("Use `Path` and `dict` and `and`. #real", ("guide", "real", "Path", "dict", "and"), (), ("guide", "real")),
        ("Use `Path` and `redis` and `dict`.", ("guide", "redis", "Path", "dict"), (), ("guide", "redis")),
        ("Use `Path` and `redis` and `dict`.", ("dict", "redis", "Path"), ("title: A",), ("dict", "redis")),
        ("Use `redis` and `Path`.", ("redis", "Path"), (), ("redis",)),
    ],
    ids=[
        "no tag in the front matter",
        "front matter and text",
        "one tag out of order",
        "two out of order",
        "only tags",
    ],
)
def test_a_file_of_one_chunk_loses_its_code_tags_and_is_read_again(
    text: str, tags: tuple[str, ...], fields: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    corrected = correct_tags([TaggedChunk(text, tags, 4)], fields)
    assert corrected.chunks == (kept,)
    assert corrected.document == kept
    assert corrected.unsure
