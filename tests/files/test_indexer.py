"""From a folder on disk to records in a store, and back in step after every kind of change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindex.datatypes import CollectionReport
from mindex.errors import CollectionError, NotFoundError, UsageError
from mindex.memory import Memory
from tests.conftest import write

ARCHITECTURE = """# Architecture

## Overview

The service tracks parcels. Every scan arrives as an event, is checked, stored and shown on the map within seconds.

## Caching

Lookups are kept in Redis for ten minutes, because the database would not survive the morning rush without them.

## Deployment

Releases leave on Tuesdays. A canary takes five percent of the traffic for an hour before everybody else follows.
"""


def index(memory: Memory, root: Path, **options: object) -> CollectionReport:
    return memory.index(root, **options).collections[0]  # type: ignore[arg-type]


def ids(memory: Memory) -> dict[str, str]:
    return {record.text: record.id for record in memory.list(limit=50).records}


def test_the_example_of_the_spec_gives_three_chunks_with_their_paths(keyword_memory: Memory, tmp_path: Path) -> None:
    index(keyword_memory, write(tmp_path / "docs", {"architecture.md": ARCHITECTURE}))
    found = {record.title: record.path for record in keyword_memory.list().records}
    assert found == {
        "Architecture > Overview": "architecture.md",
        "Architecture > Caching": "architecture.md",
        "Architecture > Deployment": "architecture.md",
    }


def test_one_changed_file_of_two_hundred_means_one_reprocessed(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {f"page{n:03}.md": f"# Page {n}\n\nWhat page {n} says.\n" for n in range(200)})
    assert index(keyword_memory, root).new == 200
    write(root, {"page007.md": "# Page 7\n\nSomething else.\n"})
    report = index(keyword_memory, root)
    assert (report.changed, report.unchanged, report.chunks_added, report.chunks_removed) == (1, 199, 1, 1)


def test_a_second_run_without_changes_does_nothing(keyword_memory: Memory, handbook: Path) -> None:
    first = index(keyword_memory, handbook)
    again = index(keyword_memory, handbook)
    assert again.unchanged == again.seen == first.seen
    assert (again.chunks_added, again.chunks_kept, again.chunks_removed) == (0, 0, 0)


def test_a_touched_file_with_the_same_bytes_is_unchanged(keyword_memory: Memory, handbook: Path) -> None:
    index(keyword_memory, handbook)
    os.utime(handbook / "README.md", (1, 1))
    report = index(keyword_memory, handbook)
    assert (report.changed, report.unchanged) == (0, report.seen)


def test_a_change_that_keeps_size_and_time_right_after_indexing_is_still_seen(
    keyword_memory: Memory, tmp_path: Path
) -> None:
    root = write(tmp_path / "docs", {"a.md": "apple"})
    index(keyword_memory, root)
    before = (root / "a.md").stat()
    (root / "a.md").write_text("grape", encoding="utf-8")
    os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert index(keyword_memory, root).changed == 1


def test_an_inserted_section_renumbers_nothing_else(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": ARCHITECTURE})
    index(keyword_memory, root)
    before = ids(keyword_memory)
    inserted = ARCHITECTURE.replace(
        "## Caching", "## Queues\n\nMessages wait in order until somebody takes them.\n\n## Caching"
    )
    write(root, {"a.md": inserted})
    report = index(keyword_memory, root)
    assert (report.chunks_added, report.chunks_kept, report.chunks_removed) == (1, 3, 0)
    after = ids(keyword_memory)
    assert all(after[text] == id_ for text, id_ in before.items())
    lines = {record.title.split(" > ")[1]: record.first_line for record in keyword_memory.list().records}
    assert lines["Caching"] == 11


def test_a_moved_file_keeps_its_ids(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": ARCHITECTURE})
    index(keyword_memory, root)
    before = ids(keyword_memory)
    (root / "deep").mkdir()
    (root / "a.md").rename(root / "deep" / "b.md")
    report = index(keyword_memory, root)
    assert (report.moved, report.new, report.changed, report.deleted) == (1, 0, 0, 0)
    assert ids(keyword_memory) == before
    assert {record.path for record in keyword_memory.list().records} == {"deep/b.md"}
    assert {record.domain for record in keyword_memory.list().records} == {"deep"}


def test_a_new_file_may_take_the_place_of_one_that_moved(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# One\n\nfirst\n"})
    index(keyword_memory, root)
    (root / "a.md").rename(root / "b.md")
    index(keyword_memory, root)
    write(root, {"a.md": "# One\n\nfirst\n"})
    index(keyword_memory, root)
    assert sorted(record.path for record in keyword_memory.list().records) == ["a.md", "b.md"]
    assert len({record.id for record in keyword_memory.list().records}) == 2


def test_deleted_files_leave_the_memory(keyword_memory: Memory, handbook: Path) -> None:
    index(keyword_memory, handbook)
    (handbook / "domains" / "caching" / "redis.md").unlink()
    assert index(keyword_memory, handbook).deleted == 1
    assert not keyword_memory.search("redis", path="domains/caching/redis.md").hits


def test_a_dry_run_changes_nothing(keyword_memory: Memory, handbook: Path) -> None:
    assert index(keyword_memory, handbook, dry_run=True).new == 14
    assert keyword_memory.store.files.collections() == ()
    assert keyword_memory.list().total == 0


def test_force_reads_everything_again_and_doubles_nothing(keyword_memory: Memory, handbook: Path) -> None:
    first = index(keyword_memory, handbook)
    forced = index(keyword_memory, handbook, force=True)
    assert (forced.changed, forced.chunks_kept, forced.chunks_added) == (14, first.chunks_added, 0)


def test_identical_sections_are_all_kept_apart(keyword_memory: Memory, tmp_path: Path) -> None:
    index(keyword_memory, write(tmp_path / "docs", {"a.md": "# Same\n\nwords\n\n# Same\n\nwords\n"}))
    assert keyword_memory.list().total == 2


def test_one_bad_file_among_many_is_skipped_named_and_counted(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"good.md": "# Good\n\nwords\n"})
    (root / "binary.md").write_bytes(b"\x00\x01\x02\xff" * 100)
    (root / "huge.md").write_bytes(b"x" * (3 * 1024 * 1024))
    (root / "empty.md").touch()
    report = keyword_memory.index(root)
    assert {skip.path for skip in report.skipped} == {"binary.md", "huge.md"}
    assert all(skip.reason for skip in report.skipped)
    assert report.collections[0].skipped == 2
    assert keyword_memory.list().total == 1


def test_a_file_that_turned_binary_leaves_the_memory(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# Good\n\nwords\n"})
    keyword_memory.index(root)
    (root / "a.md").write_bytes(b"\x00\x01\x02\xff" * 100)
    keyword_memory.index(root)
    assert keyword_memory.list().total == 0


# ── collections ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_root_again_is_the_same_collection(keyword_memory: Memory, handbook: Path) -> None:
    index(keyword_memory, handbook)
    index(keyword_memory, handbook / "domains" / "..")
    assert len(keyword_memory.store.files.collections()) == 1


def test_another_root_of_the_same_name_gets_a_number(keyword_memory: Memory, tmp_path: Path) -> None:
    for place in ("a", "b"):
        index(keyword_memory, write(tmp_path / place / "docs", {"x.md": "words"}))
    assert [collection.name for collection in keyword_memory.store.files.collections()] == ["docs", "docs-2"]


def test_a_root_inside_or_around_an_indexed_one_is_refused_by_name(keyword_memory: Memory, handbook: Path) -> None:
    index(keyword_memory, handbook)
    with pytest.raises(CollectionError, match="inside the collection 'handbook'"):
        index(keyword_memory, handbook / "domains")
    with pytest.raises(CollectionError, match="contains the collection 'handbook'"):
        index(keyword_memory, handbook.parent)


def test_a_sibling_with_a_similar_name_is_another_collection(keyword_memory: Memory, tmp_path: Path) -> None:
    index(keyword_memory, write(tmp_path / "docs", {"x.md": "words"}))
    index(keyword_memory, write(tmp_path / "docs-secret", {"x.md": "words"}))
    assert len(keyword_memory.store.files.collections()) == 2


def test_indexing_again_cannot_rename_a_collection(keyword_memory: Memory, handbook: Path) -> None:
    index(keyword_memory, handbook, name="team")
    with pytest.raises(CollectionError, match="already indexed as 'team'"):
        index(keyword_memory, handbook, name="other")


def test_a_missing_folder_and_a_file_are_named_in_the_error(keyword_memory: Memory, handbook: Path) -> None:
    with pytest.raises(NotFoundError, match="no folder"):
        index(keyword_memory, handbook / "nowhere")
    with pytest.raises(UsageError, match="is a file"):
        index(keyword_memory, handbook / "README.md")
    with pytest.raises(UsageError, match="nothing is indexed yet"):
        keyword_memory.index()


def test_without_a_folder_every_known_one_is_brought_up_to_date(keyword_memory: Memory, tmp_path: Path) -> None:
    roots = [write(tmp_path / name, {"x.md": "words"}) for name in ("one", "two")]
    keyword_memory.index(*roots)
    write(roots[1], {"y.md": "more words"})
    report = keyword_memory.index()
    assert {one.name: one.new for one in report.collections} == {"one": 0, "two": 1}


def test_a_missing_folder_keeps_its_index_and_is_named(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"x.md": "words"})
    keyword_memory.index(root)
    root.rename(tmp_path / "elsewhere")
    report = keyword_memory.index()
    assert any("docs" in note for note in report.notes)
    assert keyword_memory.list().total == 1


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
def test_what_is_not_embedded_is_pending_and_embedded_by_the_next_run(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": ARCHITECTURE})
    with Memory(tmp_path / "memory.db") as memory:
        first = memory.index(root, embed=False)
        assert (first.embedded, first.pending) == (0, 3)
        assert memory.search("releases canary").tier == "keyword"
        second = memory.index(root)
        assert (second.embedded, second.pending) == (3, 0)
        assert memory.search("releases canary").tier == "hybrid"


@pytest.mark.model
def test_only_changed_chunks_are_embedded_again(tmp_path: Path) -> None:
    root = write(
        tmp_path / "docs", {"log.md": "# Log\n\n## Monday\n\nWe moved the harbour office to the third floor.\n"}
    )
    with Memory(tmp_path / "memory.db") as memory:
        memory.index(root)
        with (root / "log.md").open("a", encoding="utf-8") as log:
            log.write("\n## Tuesday\n\nThe new crane was delivered and tested with an empty container.\n")
        assert memory.index(root).embedded == 1
