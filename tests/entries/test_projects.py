"""The sources of projects through `Memory`: linked, unlinked, listed, with a status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mindex.clock import now_ms
from mindex.datatypes import Record
from mindex.entries.project_sources import type_of
from mindex.errors import NotFoundError, UsageError
from mindex.memory import Memory
from mindex.present.record_view import view_record
from tests.conftest import write


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


@pytest.fixture
def atlas(memory: Memory) -> Record:
    return memory.projects.add(name="Atlas", description="Maps of the harbour")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {"a.md": "# A\n\nThe harbour opens at six.\n"})


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/home/ann/atlas", "folder"),
        ("~/notes.git-free", "folder"),
        ("C:\\work\\atlas", "folder"),
        ("git@host.example:ann/atlas.git", "repository"),
        ("ssh://git@host.example/ann/atlas", "repository"),
        ("https://github.com/ann/atlas", "repository"),
        ("https://host.example/ann/atlas.git", "repository"),
        ("https://github.com/ann/atlas/issues", "address"),
        ("https://atlas.example.org/wiki", "address"),
        ("ftp://files.example.org", "address"),
    ],
)
def test_the_form_of_a_location_tells_its_type(location: str, expected: str) -> None:
    assert type_of(location) == expected


def test_sources_are_linked_listed_and_unlinked(memory: Memory, atlas: Record, docs: Path) -> None:
    before = now_ms()
    memory.projects.link("Atlas", str(docs))
    memory.projects.link(atlas.id, "https://atlas.example.org")
    memory.projects.link("atlas", "git@host.example:ann/atlas.git")
    listed = memory.projects.sources("Atlas")
    assert [(one.type, one.location, one.project, one.project_name) for one in listed] == [
        ("folder", str(docs), atlas.id, "Atlas"),
        ("address", "https://atlas.example.org", atlas.id, "Atlas"),
        ("repository", "git@host.example:ann/atlas.git", atlas.id, "Atlas"),
    ]
    assert all(before // 1000 * 1000 <= one.linked_at <= now_ms() for one in listed)
    assert memory.projects.unlink("Atlas", "https://atlas.example.org").type == "address"
    assert [one.type for one in memory.projects.sources()] == ["folder", "repository"]
    assert [one.location for one in memory.projects.sources(source_type="folder")] == [str(docs)]


def test_what_is_linked_again_stays_one_source_and_keeps_its_time_and_report(memory: Memory, atlas: Record) -> None:
    address = "https://atlas.example.org"
    first = memory.projects.link("Atlas", address)
    memory.projects.report("Atlas", address, "warning", "slow")
    again = memory.projects.link("Atlas", address, source_type="repository")
    assert again == replace(first, type="repository", status="warning", message="slow", checked_at=again.checked_at)
    assert memory.projects.link("Atlas", address) == again
    assert len(memory.projects.sources(atlas.id)) == 1
    assert len(memory.history(atlas.id)) == 4  # an update without a difference is not a change


def test_a_folder_is_looked_at_each_time(memory: Memory, atlas: Record, docs: Path) -> None:
    linked = memory.projects.link(atlas.id, str(docs))
    assert (linked.status, linked.message) == ("warning", "it is not indexed")
    memory.index(docs)
    (source,) = memory.projects.sources(atlas.id)
    assert (source.status, source.message, source.checked_at) == ("ok", "", None)
    (docs / "a.md").unlink()
    docs.rmdir()
    (source,) = memory.projects.sources(atlas.id)
    assert (source.status, source.message) == ("error", f"there is no folder {docs}")
    docs.write_text("a file now")
    (source,) = memory.projects.sources(atlas.id)
    assert (source.status, source.message) == ("error", f"{docs} is a file")


def test_a_folder_inside_or_around_an_indexed_one_is_indexed(memory: Memory, atlas: Record, docs: Path) -> None:
    (docs / "inner").mkdir()
    memory.index(docs)
    for folder in (docs / "inner", docs.parent):
        assert memory.projects.link(atlas.id, str(folder)).status == "ok"


def test_a_folder_with_git_in_it_is_a_repository_and_one_without_is_warned_about(
    memory: Memory, atlas: Record, docs: Path
) -> None:
    with_git = docs.parent / "code"
    (with_git / ".git").mkdir(parents=True)
    source = memory.projects.link(atlas.id, str(with_git))
    assert (source.type, source.status) == ("repository", "ok")
    source = memory.projects.link(atlas.id, str(docs), source_type="repository")
    assert (source.status, source.message) == ("warning", "it is not a git repository")


def test_the_status_of_what_is_elsewhere_is_unknown_until_it_is_reported(memory: Memory, atlas: Record) -> None:
    address = "https://atlas.example.org"
    assert memory.projects.link(atlas.id, address).status == "unknown"
    for status in ("ok", "warning", "error", "unknown"):
        before = now_ms()
        memory.projects.report(atlas.id, address, status, "as seen")
        (source,) = memory.projects.sources(atlas.id)
        assert (source.status, source.message) == (status, "as seen")
        assert source.checked_at is not None
        assert before // 1000 * 1000 <= source.checked_at <= now_ms()


def test_a_report_counts_for_a_folder_until_the_folder_is_gone(memory: Memory, atlas: Record, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    memory.projects.link(atlas.id, str(folder))
    memory.projects.report(atlas.id, str(folder), "error", "the tests fail")
    (source,) = memory.projects.sources(atlas.id)
    assert (source.status, source.message) == ("error", "the tests fail")
    folder.rmdir()
    (source,) = memory.projects.sources(atlas.id)
    assert source.message == f"there is no folder {folder}"


def test_a_relative_folder_is_stored_with_its_whole_path(
    memory: Memory, atlas: Record, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(docs.parent)
    assert memory.projects.link(atlas.id, "docs").location == str(docs)
    assert memory.projects.unlink(atlas.id, "./docs").location == str(docs)


def test_a_project_is_found_by_its_sources_and_linking_is_undone(memory: Memory, atlas: Record) -> None:
    memory.projects.add(name="Borealis")
    memory.projects.link(atlas.id, "https://harbourmaps.example.org", reason="told")
    assert [hit.record.id for hit in memory.search("harbourmaps").hits] == [atlas.id]
    assert [change.reason for change in memory.history(atlas.id)] == ["", "told"]
    memory.undo(atlas.id)
    assert memory.projects.sources() == ()
    assert memory.search("harbourmaps").hits == ()


def test_a_search_shows_each_location_once_and_what_was_reported(memory: Memory, atlas: Record) -> None:
    memory.projects.link(atlas.id, "https://harbourmaps.example.org")
    record = memory.projects.get(atlas.id)
    assert view_record(record).fields is None or "sources" not in view_record(record).fields
    memory.projects.link(atlas.id, "/srv/atlas")
    memory.projects.report(atlas.id, "/srv/atlas", "warning", "slow disk")
    fields = view_record(memory.projects.get(atlas.id)).fields
    assert fields is not None
    assert fields["sources"] == [{"location": "/srv/atlas", "status": "warning", "message": "slow disk"}]


def test_sources_come_with_a_project_and_are_exported_with_it(memory: Memory, tmp_path: Path) -> None:
    given = ["https://atlas.example.org", {"location": "/srv/atlas", "type": "repository", "status": "ok"}]
    memory.projects.add(name="Atlas", sources=given)
    memory.transfer.export(tmp_path / "all.jsonl")
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        other.transfer.import_(tmp_path / "all.jsonl")
        assert [(one.type, one.location) for one in other.projects.sources("Atlas")] == [
            ("address", "https://atlas.example.org"),
            ("repository", "/srv/atlas"),
        ]


def test_a_password_in_an_address_is_not_stored(memory: Memory, atlas: Record) -> None:
    source = memory.projects.link(atlas.id, "https://ann:hunter2hunter2@git.example.org/atlas.git")
    assert "hunter2" not in source.location
    assert "hunter2" not in str(memory.projects.get(atlas.id).fields)


def test_the_sources_of_another_agent_are_its_own(memory: Memory, atlas: Record) -> None:
    memory.projects.link(atlas.id, "https://atlas.example.org")
    theirs = memory.projects.add(name="Atlas", agent="work")
    memory.projects.link(theirs.id, "https://work.example.org")
    assert [one.location for one in memory.projects.sources()] == ["https://atlas.example.org"]
    assert [one.location for one in memory.projects.sources(agent="work")] == ["https://work.example.org"]


def test_what_cannot_be_a_source_is_refused(memory: Memory, atlas: Record) -> None:
    for location, type_, message in (
        ("", "", "one line of 1 to"),
        ("two\nlines", "", "one line of 1 to"),
        ("https://atlas.example.org", "folder", "is not a folder"),
        ("/srv/atlas", "address", "is not a URL"),
        ("/srv/atlas", "planet", "one of folder, repository, address is expected"),
    ):
        with pytest.raises(UsageError, match=message):
            memory.projects.link(atlas.id, location, source_type=type_)
    with pytest.raises(NotFoundError, match=r"is not linked to Atlas; linked is nothing"):
        memory.projects.unlink(atlas.id, "/srv/atlas")
    memory.projects.link(atlas.id, "/srv/atlas")
    with pytest.raises(NotFoundError, match=r"linked is /srv/atlas"):
        memory.projects.report(atlas.id, "/srv/other", "ok")
    with pytest.raises(UsageError, match="one of ok, warning, error, unknown is expected, not 'fine'"):
        memory.projects.report(atlas.id, "/srv/atlas", "fine")
    with pytest.raises(UsageError, match="a location is there twice"):
        memory.projects.update(atlas.id, sources=["/srv/atlas", "/srv/atlas"])
    with pytest.raises(NotFoundError, match="there is no project 'Nowhere'"):
        memory.projects.sources("Nowhere")
