from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.errors import AmbiguousIdError, ForbiddenPathError, NotFoundError, UsageError
from mindex.memory import Memory
from tests.conftest import write

FILES = {
    "guide/setup.md": "# Setup\n\none\ntwo\nthree\n",
    "guide/use.md": "# Use\n\nfour\n",
    "notes.md": "# Notes\n\nfive\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "docs-secret", {"plan.md": "secret"})
    return write(tmp_path / "docs", FILES)


@pytest.fixture
def memory(keyword_memory: Memory, root: Path) -> Memory:
    keyword_memory.index(root)
    return keyword_memory


def texts(memory: Memory, *references: str) -> list[str]:
    return [record.text for record in memory.get(*references).records]


def test_lines_of_several_files_are_those_of_the_files_that_have_them(keyword_memory: Memory, tmp_path: Path) -> None:
    keyword_memory.index(write(tmp_path / "docs", {"a/guide.md": "One line.", "b/guide.md": "One.\nTwo.\nThree."}))
    found = keyword_memory.get("guide.md:2-3")
    assert ([record.text for record in found.records], found.missing) == (["Two.\nThree."], ())
    assert keyword_memory.get("…uide.md:1-1").records == keyword_memory.get("guide.md:1-1").records
    assert keyword_memory.get("guide.md:9-9").missing == ("guide.md:9-9",)


def test_an_id_or_a_unique_prefix_returns_the_record(memory: Memory) -> None:
    record = memory.search("five").hits[0].record
    assert memory.get(record.id).records == (record,)
    assert memory.get(record.id[:8].upper()).records == (record,)


def test_an_ambiguous_start_is_an_error_that_names_the_candidates(memory: Memory) -> None:
    ids = sorted(record.id for record in memory.list().records)
    twin = ids[0][:4] + "zzzzzzzz"
    with memory.store._engine.database.write() as connection:
        connection.execute("UPDATE records SET id = ? WHERE id = ?", (twin, ids[1]))
    with pytest.raises(AmbiguousIdError, match=twin):
        memory.get(ids[0][:4])


def test_paths_spans_globs_and_lists(memory: Memory) -> None:
    assert texts(memory, "guide/setup.md") == ["# Setup\n\none\ntwo\nthree"]
    assert texts(memory, "setup.md:4-5") == ["two\nthree"]
    assert texts(memory, "setup.md:3") == ["one"]
    assert texts(memory, "guide/setup.md:4-900") == ["two\nthree"]
    assert len(texts(memory, "guide/*.md")) == 2
    assert len(texts(memory, "guide/use.md,notes.md")) == 2
    assert len(texts(memory, "docs/notes.md", "notes.md")) == 1


def test_a_file_is_returned_as_it_is_on_disk_now(memory: Memory, root: Path) -> None:
    write(root, {"notes.md": "# Notes\n\nsix\n"})
    assert "six" in texts(memory, "notes.md")[0]


def test_references_without_a_record_are_listed_and_the_others_are_found(memory: Memory) -> None:
    found = memory.get("notes.md", "nowhere.md", "notes.md:99", "zzzzzzzz")
    assert len(found.records) == 1
    assert found.missing == ("nowhere.md", "notes.md:99", "zzzzzzzz")


def test_an_absolute_path_inside_a_collection_is_that_file(memory: Memory, root: Path) -> None:
    assert memory.lookup.read_file(str(root / "notes.md")).path == "notes.md"


@pytest.mark.parametrize(
    "path", ["../docs-secret/plan.md", "guide/../../docs-secret/plan.md", "/etc/passwd", "..\\docs-secret\\plan.md"]
)
def test_a_path_never_leaves_its_collection(memory: Memory, path: str) -> None:
    with pytest.raises(ForbiddenPathError):
        memory.lookup.read_file(path)
    assert memory.get(path).records == ()


def test_the_sibling_of_a_collection_is_outside_it(memory: Memory, root: Path) -> None:
    with pytest.raises(ForbiddenPathError):
        memory.lookup.read_file(f"{root}-secret/plan.md")


def test_a_file_replaced_by_a_link_is_not_followed_out(memory: Memory, root: Path) -> None:
    (root / "notes.md").unlink()
    (root / "notes.md").symlink_to(root.parent / "docs-secret" / "plan.md")
    with pytest.raises(ForbiddenPathError):
        memory.lookup.read_file("notes.md")


def test_a_folder_replaced_by_a_link_is_not_followed_out(memory: Memory, root: Path) -> None:
    write(root.parent / "elsewhere", {"setup.md": "secret"})
    (root / "guide").rename(root / "guide-before")
    (root / "guide").symlink_to(root.parent / "elsewhere")
    with pytest.raises(ForbiddenPathError):
        memory.lookup.read_file("guide/setup.md")


def test_a_name_in_two_collections_needs_the_name_of_the_collection(memory: Memory, tmp_path: Path) -> None:
    memory.index(write(tmp_path / "more", {"notes.md": "other"}))
    with pytest.raises(UsageError, match=r"docs/notes.md, more/notes.md"):
        memory.lookup.read_file("notes.md")
    assert memory.lookup.read_file("more/notes.md").text == "other"


@pytest.mark.parametrize("path", ["", "  ", "a\0b"])
def test_an_empty_path_is_an_error(memory: Memory, path: str) -> None:
    with pytest.raises(UsageError):
        memory.lookup.read_file(path)


def test_a_file_that_is_not_indexed_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="no indexed file"):
        memory.lookup.read_file("nowhere.md")


def test_addresses_name_files_and_records(memory: Memory) -> None:
    note = memory.search("five").hits[0].record
    assert texts(memory, "doc://docs/notes.md") == texts(memory, "notes.md")
    assert texts(memory, "doc://guide/setup.md:4-5") == ["two\nthree"]
    assert memory.get(f"memory://{note.id}").records == (note,)
    assert texts(memory, "memory://docs/notes.md") == texts(memory, "notes.md")
    assert memory.get("doc://nothing.md", "memory://nothing").missing == ("doc://nothing.md", "memory://nothing")
    # The scheme of files finds no record by any id.
    assert memory.get(f"doc://{note.id}").missing == (f"doc://{note.id}",)


def test_an_address_may_be_percent_encoded(keyword_memory: Memory, tmp_path: Path) -> None:
    keyword_memory.index(write(tmp_path / "my docs", {"to do.md": "# To do\n\nsix\n"}))
    assert texts(keyword_memory, "doc://my%20docs/to%20do.md") == ["# To do\n\nsix"]


def test_an_entry_is_found_by_its_number(memory: Memory) -> None:
    first, second = memory.add("the first memory"), memory.add("the second memory")
    assert [record.id for record in memory.get("#1,#2").records] == [first.id, second.id]
    assert [record.id for record in memory.get("2").records] == [second.id]
    missing = memory.get("#7")
    assert (missing.missing, missing.why) == (("#7",), ("main has no entry #7",))
    memory.forget(first.id)
    assert memory.get("#1").missing == ("#1",)


def test_a_number_of_several_agents_names_all_of_them(memory: Memory, tmp_path: Path) -> None:
    first = memory.add("mine")
    second = Record("theirs000001", "memory", "theirs", agent="other", number=1)  # of when agents counted apart
    memory.store.entries.add([second], by="other")
    named = f"{first.id} of main, {second.id} of other"
    with (
        Memory(memory.status().db, agent="*", options={"embedding.provider": "none"}) as everyone,
        pytest.raises(AmbiguousIdError, match=named),
    ):
        everyone.get("#1")
    assert memory.get("#1").records[0].id == first.id


def test_what_another_program_called_exactly_so_wins_over_the_start_of_an_id(memory: Memory) -> None:
    chunk = memory.search("five").hits[0].record
    added = memory.add("from elsewhere", fields={"foreign_ids": {"memory-search": chunk.id[:6]}})
    assert [record.id for record in memory.get(chunk.id[:6]).records] == [added.id]
    assert memory.get(chunk.id[:7]).records == (chunk,)
    assert memory.get(chunk.id).records == (chunk,)


def test_a_forgotten_record_is_said_to_be_one(memory: Memory) -> None:
    id_ = memory.add("The standup is at nine", fields={"foreign_ids": {"memory-mcp": "mem_a1"}}).id
    memory.forget(id_)
    for reference in (id_, "#1", "1", "mem_a1", "memory-mcp:mem_a1"):
        found = memory.get(reference)
        assert (found.records, found.missing) == ((), (reference,))
        assert found.why == (f"'{id_}' is forgotten; `mindex restore {id_}` brings it back",)


def test_the_number_of_a_forgotten_entry_hides_no_name(memory: Memory) -> None:
    memory.forget(memory.add("The standup is at nine").id)
    project = memory.projects.add(name="1")
    assert [record.id for record in memory.get("1").records] == [project.id]


def test_more_than_a_hundred_references_at_once_are_refused(memory: Memory) -> None:
    with pytest.raises(UsageError, match="101 references are too many"):
        memory.get(*["notes.md"] * 101)
