"""`links:ID` and `backlinks:ID`: from a file to those it links to, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex.memory import Memory
from tests.conftest import write

VAULT = {
    "Index.md": "# Index\n\nBegin with [[Redis]], [[people/Ann Bell|Ann]] and [the plan](plans/2026.md#second-half).\n",
    "tech/Redis.md": "---\naliases: [cache]\n---\n\nHow we run it.\n\n## TTL\n\nTen minutes, as Ann decided. ^ttl\n",
    "people/Ann Bell.md": "She decided on [[Redis#^ttl|the time]].\n\n## Later\n\nSee [[Nowhere]] and [[Ann Bell]].\n",
    "plans/2026.md": "# Plan\n\nTo begin with.\n\n## Second half\n\nFaster [[cache]].\n",
    "lonely.md": '---\nup: "[[Index]]"\n---\n\nNo link in the text.\n',
}


@pytest.fixture
def memory(keyword_memory: Memory, tmp_path: Path) -> Memory:
    keyword_memory.index(write(tmp_path / "vault", VAULT))
    return keyword_memory


def places(memory: Memory, reference: str) -> list[str]:
    return [f"{record.path}:{record.first_line}" for record in memory.get(reference).records]


def id_of(memory: Memory, query: str) -> str:
    return memory.search(query, limit=1).hits[0].record.id


def test_links_lead_to_the_place_that_they_name(memory: Memory) -> None:
    assert places(memory, "links:Index.md") == ["plans/2026.md:5", "tech/Redis.md:5", "people/Ann Bell.md:1"]
    assert places(memory, "links:people/Ann Bell.md") == ["tech/Redis.md:7"]
    assert places(memory, "links:plans/2026.md") == ["tech/Redis.md:5"]


def test_the_id_of_a_chunk_means_its_file(memory: Memory) -> None:
    id_ = id_of(memory, "index")
    assert places(memory, f"links:{id_}") == places(memory, f"links:{id_[:6]}") == places(memory, "links:Index.md")


def test_backlinks_are_the_chunks_that_hold_a_link_to_the_file(memory: Memory) -> None:
    expected = ["Index.md:1", "people/Ann Bell.md:1", "plans/2026.md:5"]
    assert places(memory, f"backlinks:{id_of(memory, 'ten minutes')}") == expected
    assert places(memory, "backlinks:Ann Bell.md") == ["Index.md:1"]


def test_a_link_in_front_matter_leads_back_to_the_first_chunk(memory: Memory) -> None:
    assert places(memory, "backlinks:Index.md") == ["lonely.md:5"]


def test_links_to_what_is_not_indexed_are_named(memory: Memory) -> None:
    found = memory.get("links:people/Ann Bell.md")
    assert found.notes == ("links to 1 file that is not indexed: [[Nowhere]]",)


def test_a_file_without_links_has_a_note_and_is_not_missing(memory: Memory) -> None:
    found = memory.get("links:tech/Redis.md", "backlinks:lonely.md")
    assert (found.records, found.missing) == ((), ())
    assert found.notes == ("tech/Redis.md links to no indexed file", "no indexed file links to lonely.md")


def test_a_reference_that_is_not_a_file_is_missing(memory: Memory) -> None:
    told = memory.add("Mara prefers tabs").id
    found = memory.get(f"links:{told}", "backlinks:nowhere.md")
    assert found.missing == (f"links:{told}", "backlinks:nowhere.md")
    assert found.why == (f"'{told}' is not a part of a file: only files have links", "no indexed file 'nowhere.md'")
    with pytest.raises(UsageError):
        memory.get("links:")


def test_links_change_with_their_files(memory: Memory, tmp_path: Path) -> None:
    write(tmp_path / "vault", {"plans/2026.md": "# Plan\n\nNothing to see.\n"})
    memory.index(tmp_path / "vault")
    assert places(memory, "backlinks:tech/Redis.md") == ["Index.md:1", "people/Ann Bell.md:1"]
    (tmp_path / "vault" / "tech" / "Redis.md").rename(tmp_path / "vault" / "Redis.md")
    memory.index(tmp_path / "vault")
    assert places(memory, "backlinks:Redis.md") == ["Index.md:1", "people/Ann Bell.md:1"]
