"""Everything that someone wrote into a file is found: bare headings, front matter, inline tags, MDX."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.embedding_text import embedding_pieces
from mindex.memory import Memory
from tests.conftest import write

# Pages with front matter and without an H1, by others; they come with Node.
NPM_PAGES = Path("/usr/lib/node_modules/npm/docs/content")

GUIDE = """---
title: Running Kubernetes
description: How the platform team keeps the clusters alive
aliases: [K8s, kube]
tags: [platform, ops/on-call]
status: needs review
---

## Upgrades

One minor version at a time, never on a Friday.

## Certificates

They are renewed by a controller; a page goes out ten days before one expires.
"""


def found(memory: Memory, query: str, **options: object) -> list[str]:
    hits = memory.search(query, **options).hits  # type: ignore[arg-type]
    return [f"{hit.record.path}:{hit.record.first_line}" for hit in hits]


# ── headings ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_that_is_a_heading_is_found(keyword_memory: Memory, tmp_path: Path) -> None:
    pages = {"a.md": "# Renew passport before July\n", "list.md": "# Shopping\n\n## Buy oat milk\n\n## Buy rope\n"}
    keyword_memory.index(write(tmp_path / "notes", pages))
    assert found(keyword_memory, "passport") == ["a.md:1"]
    assert found(keyword_memory, "oat milk") == ["list.md:1"]


def test_each_heading_of_a_run_is_embedded_separately() -> None:
    run = Record("a", "chunk", "## Buy oat milk\n\n## Learn C#\n## Buy oat milk\n##", "List")
    assert embedding_pieces(run) == ["List\nBuy oat milk", "List\nLearn C#"]
    assert embedding_pieces(replace(run, text="## A\n\n#hashtag")) == ["List\n## A\n\n#hashtag"]


@pytest.mark.model
def test_one_of_many_headings_is_found_by_its_meaning(tmp_path: Path) -> None:
    things = ("Renew passport before July", "Buy oat milk", "Call the plumber about the boiler", "Book a table for six")
    others = {f"{n}.md": f"# Note {n}\n\nThe harbour office moved to floor {n}.\n" for n in range(20)}
    page = {"list.md": "# Tasks\n\n" + "\n\n".join(f"## {thing}" for thing in things)}
    with Memory(tmp_path / "memory.db", options={"search.floor": 0}) as memory:
        memory.index(write(tmp_path / "notes", {**page, **others}))
        for query in ("travel document expires", "dairy-free drinks", "heating repair", "reserving seats for dinner"):
            assert found(memory, query, mode="vector", limit=1) == ["list.md:1"], query


# ── front matter ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("query", ["K8s", "platform team clusters alive", "status review", "kubernetes", "on-call"])
def test_every_chunk_is_found_by_the_front_matter_of_its_file(
    keyword_memory: Memory, tmp_path: Path, query: str
) -> None:
    keyword_memory.index(write(tmp_path / "docs", {"a.md": GUIDE, "b.md": "# Other\n\nSomething else.\n"}))
    assert sorted(found(keyword_memory, query)) == ["a.md:13", "a.md:9"]


def test_tags_of_the_front_matter_filter_with_what_they_are_nested_in(keyword_memory: Memory, tmp_path: Path) -> None:
    keyword_memory.index(write(tmp_path / "docs", {"a.md": GUIDE, "b.md": "# Other\n\nUpgrades.\n"}))
    for tag in ("platform", "ops/on-call", "ops"):
        assert found(keyword_memory, "upgrades", tags=[tag])[0] == "a.md:9"


def test_a_note_that_is_only_front_matter_is_found(keyword_memory: Memory, tmp_path: Path) -> None:
    keyword_memory.index(write(tmp_path / "people", {"ann.md": "---\nname: Ann Bell\nphone: 555-0199\n---\n"}))
    (hit,) = keyword_memory.search("phone of Ann Bell").hits
    assert (hit.record.title, hit.record.text) == ("ann", "name: Ann Bell\nphone: 555-0199")


def test_a_title_beside_another_h1_is_found(keyword_memory: Memory, tmp_path: Path) -> None:
    page = "---\ntitle: Payment gateway\n---\n\n# Overview\n\nMoney goes in.\n"
    keyword_memory.index(write(tmp_path / "docs", {"a.md": page}))
    (hit,) = keyword_memory.search("payment gateway").hits
    assert hit.record.title == "Overview"


@pytest.mark.parametrize(
    ("path", "text", "titles"),
    [
        ("a.md", GUIDE, ["Running Kubernetes > Upgrades", "Running Kubernetes > Certificates"]),
        ("log/ideas.md", "First.\n\n## Boats\n\nSmall ones.\n", ["ideas", "ideas > Boats"]),
        ("a.md", "---\ntitle: T\n---\n\n# H\n\nx\n\n## Two\n\ny\n", ["H", "H > Two"]),
        ("Boats.md", "## Boats\n\nSmall ones.\n", ["Boats"]),
        ("a.txt", "## no heading\n", ["a"]),
    ],
    ids=["title", "file name", "H1", "heading like the file", "text"],
)
def test_without_an_h1_the_breadcrumb_starts_with_the_title_or_the_files_name(
    keyword_memory: Memory, tmp_path: Path, path: str, text: str, titles: list[str]
) -> None:
    keyword_memory.index(write(tmp_path / "docs", {path: text}))
    (document,) = keyword_memory.store.files.find_documents(path)
    assert [chunk.title for chunk in keyword_memory.store.files.chunks(document.id)] == titles


def test_a_changed_description_changes_what_finds_the_chunks_and_not_their_ids(
    keyword_memory: Memory, tmp_path: Path
) -> None:
    root = write(tmp_path / "docs", {"a.md": GUIDE})
    keyword_memory.index(root)
    before = {record.id for record in keyword_memory.list().records}
    write(root, {"a.md": GUIDE.replace("K8s", "Borg").replace("Running Kubernetes", "Clusters")})
    keyword_memory.index(root)
    assert {record.id for record in keyword_memory.list().records} == before
    assert found(keyword_memory, "K8s") == found(keyword_memory, "Kubernetes") == []
    assert len(found(keyword_memory, "Borg")) == 2


def test_the_description_is_embedded_with_every_chunk_and_other_fields_are_not() -> None:
    chunk = Record("a", "chunk", "The text.", "Title", document_fields=("status: done", "description: About it"))
    assert embedding_pieces(chunk) == ["Title\nAbout it\nThe text."]
    long = replace(chunk, document_fields=("description: " + "word " * 100,), text="sentence. " * 300)
    assert max(map(len, embedding_pieces(long))) <= 800 + len("Title\n\n")


@pytest.mark.model
def test_a_file_is_found_by_the_meaning_of_its_description(tmp_path: Path) -> None:
    others = {f"{n}.md": f"# Note {n}\n\nThe harbour office moved to floor {n}.\n" for n in range(20)}
    with Memory(tmp_path / "memory.db", options={"search.floor": 0}) as memory:
        memory.index(write(tmp_path / "docs", {"a.md": GUIDE, **others}))
        assert found(memory, "who takes care of container orchestration", mode="vector")[0].startswith("a.md")


# ── tags and MDX ──────────────────────────────────────────────────────────────────────────────────────────────


def test_inline_tags_filter(keyword_memory: Memory, tmp_path: Path) -> None:
    pages = {"a.md": "Bread with rye. #recipe/sour\n", "b.md": "Bread is sold out.\n"}
    keyword_memory.index(write(tmp_path / "notes", pages))
    assert found(keyword_memory, "bread", tags=["recipe"]) == found(keyword_memory, "sour") == ["a.md:1"]


def test_mdx_files_are_indexed_without_their_imports(keyword_memory: Memory, tmp_path: Path) -> None:
    page = "import {Box} from './box.js'\n\n# Boxes\n\n<Box>\n\nA box holds *rope*.\n\n</Box>\n"
    keyword_memory.index(write(tmp_path / "docs", {"boxes.mdx": page}))
    (record,) = keyword_memory.list().records
    assert (record.title, record.first_line, record.last_line) == ("Boxes", 3, 9)
    assert found(keyword_memory, "rope") == ["boxes.mdx:3"]


# ── texts by others ───────────────────────────────────────────────────────────────────────────────────────────


def test_every_word_of_a_model_card_is_in_a_chunk_or_its_breadcrumb(keyword_memory: Memory, tmp_path: Path) -> None:
    spec = find_spec("huggingface_hub")
    assert spec is not None and spec.submodule_search_locations
    templates = Path(spec.submodule_search_locations[0]) / "templates"
    pages = {file.name: file.read_text(encoding="utf-8") for file in templates.glob("*card_template.md")}
    assert len(pages) == 2
    keyword_memory.index(write(tmp_path / "cards", pages))
    for name, text in pages.items():
        (document,) = keyword_memory.store.files.find_documents(name)
        chunks = keyword_memory.store.files.chunks(document.id)
        held = set(re.findall(r"\w+", " ".join(f"{chunk.title} {chunk.text}" for chunk in chunks)))
        assert set(re.findall(r"\w+", text)) - held == set()


@pytest.mark.skipif(not NPM_PAGES.is_dir(), reason="npm is not installed")
@pytest.mark.slow
def test_the_pages_of_npm_are_found_by_name_and_their_front_matter_is_not_a_chunk(
    keyword_memory: Memory, tmp_path: Path
) -> None:
    files = sorted(NPM_PAGES.rglob("*.md"))
    pages = {str(file.relative_to(NPM_PAGES)): file.read_text(encoding="utf-8") for file in files}
    keyword_memory.index(write(tmp_path / "npm", pages))
    for path, text in pages.items():
        (document,) = keyword_memory.store.files.find_documents(path)
        chunks = keyword_memory.store.files.chunks(document.id)
        assert not [chunk for chunk in chunks if chunk.first_line <= 5]
        title = re.search(r"^title: (.+)$", text, re.MULTILINE)
        assert title and all(chunk.title.startswith(title[1]) for chunk in chunks)
    assert found(keyword_memory, "npm-whoami", limit=1)[0].startswith("commands/npm-whoami.md")
    linking = {record.path for record in keyword_memory.get("backlinks:commands/npm-shrinkwrap.md").records}
    assert {"commands/npm-install.md", "configuring-npm/npm-shrinkwrap-json.md"} <= linking
