"""MemoryExchange's rows are chunks of a separate collection, which no indexing of folders touches."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from mcp import Client
from mindex.errors import UsageError
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex.present.answer_view import view_answer
from tests.conftest import write
from tests.mcp.conftest import text as text_of
from tests.mindex_compat.importers.foreign_programs import fill, memory_exchange

NAME = "memory-exchange"


def chunk(id_: str, file: str, content: str, **more: object) -> dict[str, object]:
    return {"id": id_, "source_file": file, "content": content, "tags": "[]", **more}


CHUNKS = [
    chunk("a0", "domains/caching/redis.md", "## TTL\n\nEach entry expires after 45 seconds.", domain="caching",
          heading_path="Redis > TTL", chunk_index=0, related_files='["domains/auth/login.md"]'),
    chunk("a1", "domains/caching/redis.md", "## Keys\n\nKeys start with the tenant.", domain="caching",
          heading_path="Redis > Keys", chunk_index=1),
    chunk("b0", "domains/auth/login.md", "## TTL\n\nEach entry expires after 30 minutes.", domain="auth",
          heading_path="Login > TTL"),
    chunk("c0", "coding.instructions.md", "Each entry expires, so write the date.", domain="root", is_instruction=1),
]  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "memory_exchange.db", memory_exchange.SCHEMA, {"chunks": CHUNKS})


@pytest.fixture
def memory(keyword_memory: Memory, source: Path) -> Memory:
    keyword_memory.transfer.import_(source)
    return keyword_memory


def texts(memory: Memory) -> list[str]:
    documents = memory.collections.documents_of(NAME)
    return sorted(one.text for document in documents for one in memory.collections.chunks(document.id))


ALL = sorted(str(one["content"]) for one in CHUNKS)


def test_rows_become_chunks_with_their_file_section_and_domain(memory: Memory) -> None:
    (hit,) = memory.search("tenant").hits
    record = hit.record
    assert (record.kind, record.collection, record.path) == ("chunk", NAME, "domains/caching/redis.md")
    assert (record.title, record.domain, record.instruction) == ("Redis > Keys", "caching", False)
    assert record.fields["foreign_ids"] == {NAME: "a1"}


def test_the_domain_of_the_current_file_and_instructions_are_lifted(memory: Memory) -> None:
    def first(**options: object) -> str:
        hit = memory.search("entry expires", fusion="rrf", floor=0, **options).hits[0]  # type: ignore[arg-type]
        return hit.record.path

    assert first() == "coding.instructions.md"
    assert first(current_file="src/auth/session.py") == "domains/auth/login.md"
    assert first(current_file="src/caching/session.py") == "domains/caching/redis.md"


def test_indexing_leaves_imported_chunks_alone(memory: Memory, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nOf a folder."})
    memory.index(docs)
    report = memory.index(force=True)
    assert [one.name for one in report.collections] == ["docs"] and report.notes == ()
    # The folder of the database itself is another collection.
    write(tmp_path / "domains/caching", {"redis.md": "# Redis\n\nAnother text."})
    memory.collections.remove("docs")
    memory.index(tmp_path / "domains")
    assert texts(memory) == ALL
    assert all(check.ok for check in memory.doctor() if check.name.startswith("collection"))
    assert {one.name: one.missing for one in memory.status().collections} == {NAME: False, "domains": False}


def test_without_a_folder_there_is_nothing_to_index(memory: Memory) -> None:
    with pytest.raises(UsageError, match="nothing is indexed yet"):
        memory.index()


def test_a_second_import_follows_what_changed(memory: Memory, source: Path) -> None:
    before = {record.text: record.id for record in memory.list(memory.filters(kinds=["chunk"])).records}
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("UPDATE chunks SET content = 'Keys start with the region.' WHERE id = 'a1'")
        connection.execute("INSERT INTO chunks (id, content, source_file) VALUES ('d0', 'A new file.', 'new.md')")
    report = memory.transfer.import_(source)
    (table, *_) = report.tables
    assert (table.read, table.stored, table.merged, table.dropped) == (5, 2, 3, 0)
    assert report.notes == ("1 chunks of an earlier import are no longer in the source, and were removed",)
    after = {record.text: record.id for record in memory.list(memory.filters(kinds=["chunk"])).records}
    assert set(after) - set(before) == {"Keys start with the region.", "A new file."}
    assert all(after[text] == before[text] for text in after.keys() & before.keys())
    assert not memory.search("tenant").hits


def test_two_databases_are_two_collections(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    rows = [chunk("a0", "domains/caching/redis.md", "Of another project.")]
    other = fill(tmp_path / "other" / "memory_exchange.db", memory_exchange.SCHEMA, {"chunks": rows})
    assert memory.transfer.import_(other).added == 1
    assert [one.name for one in memory.collections.list()] == [NAME, f"{NAME}-2"]
    assert texts(memory) == ALL
    assert memory.transfer.import_(other).added == 0
    memory.collections.remove(NAME)
    assert memory.transfer.import_(other).added == 0
    (hit,) = memory.search("another project").hits
    assert (hit.record.collection, hit.record.path) == (f"{NAME}-2", "domains/caching/redis.md")


def test_get_reads_an_imported_file_from_its_chunks(memory: Memory) -> None:
    (record,) = memory.get("redis.md").records
    assert record.text == "## TTL\n\nEach entry expires after 45 seconds.\n\n## Keys\n\nKeys start with the tenant."
    (lines,) = memory.get("redis.md:5-7").records
    assert lines.text == "## Keys\n\nKeys start with the tenant."
    assert [one.path for one in memory.get("links:redis.md").records] == ["domains/auth/login.md"]


def test_a_place_without_lines_is_the_path_alone(memory: Memory) -> None:
    shown = view_answer(memory.search("tenant"), "compact").text()
    assert "domains/caching/redis.md · Keys" in shown and ":0-0" not in shown


def test_a_secret_in_a_chunk_is_redacted(keyword_memory: Memory, tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4" * 6
    rows = [chunk("a0", "a.md", f"The key is {key} for now.")]
    report = keyword_memory.transfer.import_(fill(tmp_path / "m.db", memory_exchange.SCHEMA, {"chunks": rows}))
    (record,) = keyword_memory.list(keyword_memory.filters(kinds=["chunk"])).records
    assert key not in record.text and "The key is" in record.text
    assert "secrets were left out of 1 records" in report.notes[0]


def test_an_export_of_one_agent_and_markdown_say_that_they_leave_chunks_out(memory: Memory, tmp_path: Path) -> None:
    memory.add("a memory")
    note = "imported collections are left out: memory-exchange (4 chunks); a jsonl export of all agents has them"
    assert note in memory.transfer.export(tmp_path / "one.jsonl", agent="main").notes
    assert note in memory.transfer.export(tmp_path / "folder", format="markdown").notes
    whole = memory.transfer.export(tmp_path / "all.jsonl")
    assert (whole.records, whole.chunks, whole.collections, whole.notes) == (1, 4, (), ())


def test_an_export_cannot_bring_in_a_collection_of_a_folder(memory: Memory, other: Memory, tmp_path: Path) -> None:
    """Else an import could make `mindex index` read any folder, or `get` any file."""
    memory.transfer.export(tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if "collection" in line:
            line["collection"]["root"] = "/etc"
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    report = other.transfer.import_(tmp_path / "b.jsonl")
    assert report.added == 0
    assert other.collections.list() == ()
    assert report.skipped[0].reason == "it is not an imported collection"


def test_an_export_cannot_replace_a_file_that_is_indexed(memory: Memory, other: Memory, tmp_path: Path) -> None:
    other.index(write(tmp_path / "docs", {"a.md": "# A\n\nOf a folder."}))
    (indexed,) = other.collections.documents_of("docs")
    (chunk_of_folder,) = other.collections.chunks(indexed.id)
    memory.transfer.export(tmp_path / "a.jsonl")
    document = memory.collections.documents_of(NAME)[0]
    first, *_ = memory.collections.chunks(document.id)
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(text.replace(document.id, indexed.id), encoding="utf-8")
    assert other.transfer.import_(tmp_path / "b.jsonl").added == 4
    assert other.collections.documents_of("docs") == (indexed,)
    other.collections.remove(NAME)
    (tmp_path / "c.jsonl").write_text(text.replace(first.id, chunk_of_folder.id), encoding="utf-8")
    report = other.transfer.import_(tmp_path / "c.jsonl")
    assert [one.reason for one in report.skipped] == [f"another record has the id {chunk_of_folder.id}"]
    assert other.collections.chunks(indexed.id) == (chunk_of_folder,)


def test_numbers_and_times_out_of_range_do_not_stop_an_import(keyword_memory: Memory, tmp_path: Path) -> None:
    rows = [chunk("a0", "a.md", "Of the last year.", last_updated="9999-12-31T00:00:00Z"), chunk("b0", "b.md", "Ours.")]
    rows.append(chunk("c0", "c.md", "Of the first year.", last_updated="0001-01-01T00:00:00Z"))
    source = fill(tmp_path / "m.db", memory_exchange.SCHEMA, {"chunks": rows})
    assert keyword_memory.transfer.import_(source).added == 3
    keyword_memory.transfer.export(tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    size = len("Ours.")
    (tmp_path / "b.jsonl").write_text(text.replace(f'"size":{size}', f'"size":{2**70}'), encoding="utf-8")
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        report = other.transfer.import_(tmp_path / "b.jsonl")
    assert report.added == 2
    assert "it has a number that is out of range" in {one.reason for one in report.skipped}


# ── the dialect ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def client(tmp_path: Path, source: Path) -> AsyncIterator[Client]:
    settings: dict[str, object] = {"embedding.provider": "none"}
    host = MemoryHost(ServerOptions(db=str(tmp_path / "served.db"), settings=settings))
    host.memory.transfer.import_(source)
    async with Client(MindexServer(host, dialect_named(NAME))) as connected:
        yield connected
    host.close()


@pytest.mark.anyio
async def test_its_dialect_searches_and_reads_imported_chunks(client: Client) -> None:
    found = text_of(await client.call_tool("search_memory_exchange", {"query": "tenant", "topK": 1}))
    assert found == (
        "Found 1 relevant memory exchange entries:\n\n--- Result 1 ---\nSource: domains/caching/redis.md\n"
        "Section: Redis > Keys\nDomain: caching\n\n  ## Keys\n\n  Keys start with the tenant.\n\n"
    )
    whole = text_of(await client.call_tool("get_memory_file", {"filePath": "domains\\caching\\redis.md"}))
    assert whole.endswith("Keys start with the tenant.") and "45 seconds" in whole
    status = text_of(await client.call_tool("get_index_status", {}))
    assert "- **Indexed chunks:** 4" in status and "- **Indexed files:** 3" in status


def test_a_file_with_a_secret_in_its_name_is_left_out_and_said(keyword_memory: Memory, tmp_path: Path) -> None:
    token = "gh" + "p_" + "Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7"
    rows = [*CHUNKS, chunk("d0", f"domains/{token}.md", "## Else\n\nSomething else.", domain="auth")]
    source = fill(tmp_path / "memory_exchange.db", memory_exchange.SCHEMA, {"chunks": rows})
    report = keyword_memory.transfer.import_(source)
    assert [one.reason for one in report.skipped] == ["the name of its file or collection contains a secret"]
    assert texts(keyword_memory) == ALL
    assert not keyword_memory.maintenance.scan()
