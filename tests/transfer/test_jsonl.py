"""An export as JSONL and its import: the same bytes when it is exported again."""

from __future__ import annotations

import base64
import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindex.clock import from_iso, to_iso
from mindex.datatypes import Model, RecordVectors
from mindex.errors import ConflictError, MindexError, UsageError
from mindex.memory import Memory
from mindex.store.export_rows import EXPORT_SCHEMA, ExportRow
from mindex.transfer import import_rows, jsonl_format
from mindex.transfer.imported_rows import check_row
from mindex.transfer.importer_base import load_importer
from mindex.transfer.jsonl_format import InvalidRow, decode_history, decode_row, encode_history, encode_row
from tests.transfer.conftest import OpenMemory, fill


def rows(memory: Memory) -> list[ExportRow]:
    with memory.store.entries.export_snapshot(vectors=True) as dump:
        return list(dump.rows)


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


# ── the round trip ────────────────────────────────────────────────────────────────────────────────────────────


def test_export_import_export_gives_the_same_bytes(memory: Memory, other: Memory, tmp_path: Path) -> None:
    fill(memory)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    exported = memory.transfer.export(first)
    report = other.transfer.import_(first)
    assert (report.read, report.added, report.duplicates, report.skipped) == (exported.records, exported.records, 0, ())
    assert report.renumbered == ()
    other.transfer.export(second)
    assert second.read_bytes() == first.read_bytes()


def test_nothing_of_a_record_is_lost(memory: Memory, other: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    memory.transfer.export(tmp_path / "all.jsonl")
    other.transfer.import_(tmp_path / "all.jsonl")
    assert rows(other) == rows(memory)
    for id_ in ids.values():
        assert other.store.retrieval.record(id_) == memory.store.retrieval.record(id_)
        assert other.store.entries.history(id_) == memory.store.entries.history(id_)
    assert other.store.entries.linked(ids["dark"], "near") == (ids["near"],)
    assert other.profile.get("user.age") == 37


def test_imported_records_can_be_changed_and_undone(memory: Memory, other: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    memory.transfer.export(tmp_path / "all.jsonl")
    other.transfer.import_(tmp_path / "all.jsonl")
    found = {hit.record.id for hit in other.search("dark mode").hits}
    assert {ids["dark"], ids["near"]} <= found
    assert not other.search("Berlin").hits
    other.restore(ids["gone"])
    assert [hit.record.id for hit in other.search("Berlin").hits] == [ids["gone"]]
    assert other.add("Something new").created
    numbers = [record.number for record in (row.record for row in rows(other)) if record.agent == "main"]
    assert len(numbers) == len(set(numbers))
    version = other.profile.history()[1].change
    other.profile.rollback(version)
    assert other.profile.get("user.age") == 36


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60) | st.sampled_from(
    [
        "The build runs on Tuesdays",
        "the build  runs on Tuesdays\n",
        "東京 is far",
        "a\u2028b\x85c\rd",
        '"\\ [{',
        "\x00x",
    ]
)
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "update", "forget", "restore", "undo", "supersede", "profile", "turn"]),
        st.integers(0, 9),
        TEXTS,
    ),
    max_size=14,
)


def live(memory: Memory, operations: list[tuple[str, int, str]]) -> None:
    """A random life; what is refused has no consequences."""
    ids: list[str] = []
    for verb, which, text in operations:
        target = ids[which % len(ids)] if ids else ""
        agent = "main" if which % 3 else "x y"
        with suppress(MindexError):
            if verb == "add":
                ids.append(memory.add(text, agent=agent, tags=[text[:5], "t"], importance=which + 1).id)
            elif verb == "supersede":
                ids.append(memory.add(text, supersedes=target).id)
            elif verb == "turn":
                memory.conversations.add(text, text[::-1], agent=agent)
            elif verb == "profile":
                memory.profile.set({f"a.b{which}": [text, which, None, 1.5, True]}, text, agent=agent)
            elif verb == "update":
                memory.update(target, text=text, confidence=which / 10, reason=text)
            elif verb == "undo":
                memory.undo(target)
            else:
                getattr(memory, verb)(target)


def test_links_between_agents_survive_an_export_of_more_rows_than_a_batch_has(
    memory: Memory, other: Memory, tmp_path: Path
) -> None:
    agents = ("ann", "bob", "cleo")
    ids = [memory.add(f"Fact number {number}", agent=agents[number % 3]).id for number in range(600)]
    for number, id_ in enumerate(ids):  # to the next agent's, near and far, in both directions
        memory.store.entries.link([(id_, ids[(number + 1) % 600], "near", 0.9)])
        memory.store.entries.link([(id_, ids[(number * 7 + 301) % 600], "conflict", 0.5)])
    for number in range(0, 30, 3):
        memory.update(ids[599 - number], supersedes=ids[number])  # of another agent
        memory.update(ids[100 + number], supersedes=ids[500 - number])
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    memory.transfer.export(first)
    report = other.transfer.import_(first)
    assert (report.added, report.skipped) == (600, ())
    other.transfer.export(second)
    assert second.read_bytes() == first.read_bytes()
    again = other.transfer.import_(first)  # the ids are taken now, by the same records
    assert (again.added, again.duplicates) == (0, 600)
    other.transfer.export(second)
    assert second.read_bytes() == first.read_bytes()


def test_the_report_says_that_the_access_log_stays(memory: Memory, tmp_path: Path) -> None:
    memory.add("The bridge opens at noon")
    assert memory.transfer.export(tmp_path / "a.jsonl").notes == ()  # nothing is logged yet
    assert memory.search("bridge noon zeppelin").hits
    memory.store.settle()
    (note,) = memory.transfer.export(tmp_path / "a.jsonl").notes
    assert "the access log is not exported" in note and "mindex copy" in note
    (record,) = lines(tmp_path / "a.jsonl")[1:]
    assert record["accesses"]["count"] == 1 and "zeppelin" not in (tmp_path / "a.jsonl").read_text()  # type: ignore[index,call-overload]


LINKED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 19), st.integers(0, 19)), min_size=2, max_size=20)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(LINKED, st.integers(1, 6), st.booleans())
@pytest.mark.slow
def test_links_between_agents_survive_batches_of_any_size(
    linked: list[tuple[int, int, int]], batch: int, fresh: bool
) -> None:
    options = {"embedding.provider": "none", "secrets.mode": "off"}
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        Memory(Path(folder, "a.db"), options=options) as memory,
        Memory(Path(folder, "b.db"), options=options) as other,
    ):
        patch.setattr(import_rows, "_BATCH", batch)
        ids = [memory.add(f"Fact {number}", agent=f"agent{agent}").id for number, (agent, *_) in enumerate(linked)]
        for id_, (_, near, winner) in zip(ids, linked, strict=True):
            memory.store.entries.link([(id_, ids[near % len(ids)], "near", 0.9)])
            with suppress(MindexError):
                memory.update(ids[winner % len(ids)], supersedes=id_)
        if not fresh:
            other.add("Something else", agent="agent0")
        memory.transfer.export(Path(folder, "a.jsonl"))
        other.transfer.import_(Path(folder, "a.jsonl"))
        here = {row.record.id: (row.links, row.record.superseded_by) for row in rows(memory)}
        there = {row.record.id: (row.links, row.record.superseded_by) for row in rows(other)}
        assert {id_: there[id_] for id_ in ids} == here
        # Another copy, for one agent: each record names the copies of those that the original names.
        report = other.transfer.import_(Path(folder, "a.jsonl"), agent="zoe")
        assert (report.added, report.skipped) == (len(ids), ())
        copies = {row.record.text: row for row in rows(other) if row.record.agent == "zoe"}
        copy_of = {row.record.id: copies[row.record.text].record.id for row in rows(memory)} | {"": ""}
        for row in rows(memory):
            copied = copies[row.record.text]
            assert copied.record.superseded_by == copy_of[row.record.superseded_by]
            assert {link.target for link in copied.links} == {copy_of[link.target] for link in row.links}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(OPERATIONS)
@pytest.mark.slow
def test_any_sequence_of_changes_survives_the_round_trip(operations: list[tuple[str, int, str]]) -> None:
    options = {"embedding.provider": "none", "secrets.mode": "off"}
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder, "a.db"), options=options) as memory,
        Memory(Path(folder, "b.db"), options=options) as other,
    ):
        live(memory, operations)
        memory.transfer.export(Path(folder, "a.jsonl"))
        report = other.transfer.import_(Path(folder, "a.jsonl"))
        assert report.skipped == ()
        assert rows(other) == rows(memory)
        again = other.transfer.import_(Path(folder, "a.jsonl"))
        assert (again.added, again.duplicates) == (0, again.read)
        other.transfer.export(Path(folder, "b.jsonl"))
        assert Path(folder, "b.jsonl").read_bytes() == Path(folder, "a.jsonl").read_bytes()


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_time_keeps_its_milliseconds(moment: int) -> None:
    assert from_iso(to_iso(moment, "milliseconds")) == moment


def test_a_history_distinguishes_1_from_true(memory: Memory) -> None:
    memory.profile.set({"a": 1})
    memory.profile.set({"a": True})
    (row,) = rows(memory)
    again = decode_history(
        decode_row(json.loads(json.dumps(encode_row(row)))).record, encode_history(row.record, row.history)
    )
    assert [json.dumps(one.after.fields) for one in again] == [json.dumps(one.after.fields) for one in row.history]


def test_a_long_history_continues_in_the_lines_below(
    memory: Memory, other: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_format, "_LONGEST_HISTORY", 300)
    first = memory.add("Version 0")
    for version in range(1, 9):
        memory.update(first.id, text=f"Version {version}")
    second = memory.add("Something else")
    memory.transfer.export(tmp_path / "a.jsonl")
    assert sum("more" in line for line in lines(tmp_path / "a.jsonl")) > 1
    other.transfer.import_(tmp_path / "a.jsonl")
    assert other.store.entries.history(first.id) == memory.store.entries.history(first.id)
    assert other.store.entries.history(second.id) == memory.store.entries.history(second.id)


# ── what a file holds ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_header_has_the_number_of_records_and_no_time(memory: Memory, tmp_path: Path) -> None:
    memory.add("One")
    memory.add("Two", agent="b")
    memory.transfer.export(tmp_path / "a.jsonl")
    header, *records = lines(tmp_path / "a.jsonl")
    assert header == {"mindex": 1, "schema": EXPORT_SCHEMA, "records": 2, "last_numbers": {"b": 2, "main": 2}}
    assert [(record["agent"], record["number"]) for record in records] == [("b", 2), ("main", 1)]
    memory.transfer.export(tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_a_memory_without_changes_has_its_text_once(memory: Memory, tmp_path: Path) -> None:
    memory.add("A rather singular sentence")
    memory.transfer.export(tmp_path / "a.jsonl")
    _, record = lines(tmp_path / "a.jsonl")
    (change,) = record["history"]  # type: ignore[misc]
    assert set(change) == {"change", "at", "by", "action"}
    assert "text" in record and record["created_at"].endswith("Z")  # type: ignore[attr-defined]


def test_indexed_files_are_not_exported_and_their_folders_are_named(
    memory: Memory, handbook: Path, tmp_path: Path
) -> None:
    memory.index(handbook)
    memory.add("Told, not indexed")
    report = memory.transfer.export(tmp_path / "a.jsonl")
    assert report.records == 1
    assert [(one.name, one.root) for one in report.collections] == [("handbook", str(handbook.resolve()))]
    assert len(lines(tmp_path / "a.jsonl")) == 2


def test_one_agent_can_be_exported_alone(memory: Memory, tmp_path: Path) -> None:
    memory.add("Mine")
    memory.add("Yours", agent="you")
    assert memory.transfer.export(tmp_path / "a.jsonl", agent="you").records == 1
    assert [line.get("text") for line in lines(tmp_path / "a.jsonl")] == [None, "Yours"]


def test_vectors_are_exported_on_request(memory: Memory, other: Memory, tmp_path: Path) -> None:
    model = Model("test", "tiny", 2)
    first, second = memory.add("With a vector"), memory.add("Told by an older model")
    memory.store.vectors.put(model, [RecordVectors(first.id, [[0.6, 0.8]], 0.5), RecordVectors(second.id, [[1, 0]])])
    memory.transfer.export(tmp_path / "without.jsonl")
    assert not any("vectors" in line for line in lines(tmp_path / "without.jsonl"))
    memory.transfer.export(tmp_path / "with.jsonl", vectors=True)
    _, first, _ = lines(tmp_path / "with.jsonl")
    (vectors,) = first["vectors"]  # type: ignore[misc]
    assert vectors["model"] == model.fingerprint and len(base64.b64decode(vectors["data"])) == 8
    other.transfer.import_(tmp_path / "with.jsonl")
    assert other.store.vectors.pending(model) == 0
    assert rows(other) == rows(memory)


@pytest.mark.parametrize(
    "damage",
    [
        {"data": ""},
        {"data": base64.b64encode(b"\0\0\xc0\x7f" * 2).decode()},
        {"dimensions": 3},
        {"dimensions": 0},
        {"fluency": float("nan")},
    ],
)
def test_an_invalid_vector_is_made_again(
    memory: Memory, other: Memory, tmp_path: Path, damage: dict[str, object]
) -> None:
    model = Model("test", "tiny", 2)
    memory.store.vectors.put(model, [RecordVectors(memory.add("With a vector").id, [[0.6, 0.8]])])
    memory.transfer.export(tmp_path / "a.jsonl", vectors=True)
    header, record = lines(tmp_path / "a.jsonl")
    record["vectors"][0].update(damage)  # type: ignore[index]
    (tmp_path / "b.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(record)}\n")
    assert other.transfer.import_(tmp_path / "b.jsonl").added == 1
    assert other.store.vectors.pending(model) == 1


# ── where it is written ───────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_gets_the_same_bytes(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    stream = BytesIO()
    report = memory.transfer.export(stream)
    memory.transfer.export(tmp_path / "a.jsonl")
    assert stream.getvalue() == (tmp_path / "a.jsonl").read_bytes()
    assert report.target == "-"


def test_a_failing_export_leaves_the_old_file(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.add("One")
    folder = tmp_path / "out"
    folder.mkdir()
    memory.transfer.export(folder / "a.jsonl")
    before = (folder / "a.jsonl").read_bytes()
    memory.add("Two")

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jsonl_format, "record_lines", full)
    with pytest.raises(MindexError, match="No space left"):
        memory.transfer.export(folder / "a.jsonl")
    assert (folder / "a.jsonl").read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["a.jsonl"]


def test_an_export_replaces_only_an_export(memory: Memory, tmp_path: Path) -> None:
    memory.add("One")
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes")
    with pytest.raises(ConflictError, match="not a mindex export"):
        memory.transfer.export(notes)
    assert notes.read_text() == "my notes"
    with pytest.raises(UsageError, match="is a folder"):
        memory.transfer.export(tmp_path)
    with pytest.raises(MindexError, match="cannot write"):
        memory.transfer.export(tmp_path / "missing" / "a.jsonl")
    memory.transfer.export(tmp_path / "a.jsonl")
    memory.transfer.export(tmp_path / "a.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="rights and links of POSIX")
def test_only_the_owner_reads_an_export_and_a_link_stays_one(memory: Memory, tmp_path: Path) -> None:
    memory.add("One")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    memory.transfer.export(tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.jsonl").stat().st_mode) == 0o600
    memory.transfer.export(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


def test_an_export_does_not_see_writes_during_the_export(memory: Memory, open_memory: OpenMemory) -> None:
    for number in range(3):
        memory.add(f"Sentence number {number}")
    with memory.store.entries.export_snapshot() as dump:
        seen = [next(dump.rows).record.text]
        memory.add("Said in between")
        seen += [row.record.text for row in dump.rows]
        assert (dump.total, seen) == (3, [f"Sentence number {number}" for number in range(3)])


# ── one line ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 7}, "needs an id"),
        ({"tags": "a"}, "tags are not a list"),
        ({"tags": [1]}, "tags are not a list"),
        ({"fields": []}, "fields are not an object"),
        ({"title": None}, "title is not a text"),
        ({"importance": "5"}, "importance is not a number"),
        ({"importance": True}, "importance is not a number"),
        ({"number": 1.5}, "not a whole number"),
        ({"created_at": "yesterday"}, "not a time"),
        ({"created_at": 5}, "not a time"),
        ({"links": [1]}, "not a list of objects"),
        ({"links": [{"to": "x", "kind": "near", "weight": "1", "at": "2026-01-01T00:00:00Z"}]}, "not a number"),
        ({"vectors": [{"model": "m", "dimensions": 1, "fluency": 1, "data": "%"}]}, "not base64"),
    ],
)
def test_a_line_of_the_wrong_shape_is_refused_with_the_reason(change: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidRow, match=reason):
        decode_row({"id": "abcd", "kind": "memory", "text": "x", **change})


@pytest.mark.parametrize(
    "entry",
    [{}, {"change": 1, "at": "2026-01-01T00:00:00Z", "by": 1, "action": "add"}, {"before": [1]}, {"after": 3}],
)
def test_a_change_of_the_wrong_shape_is_refused(memory: Memory, entry: dict[str, object]) -> None:
    memory.add("One")
    (row,) = rows(memory)
    with pytest.raises(InvalidRow):
        decode_history(row.record, [entry])


def test_a_header_of_a_newer_mindex_is_refused(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text('{"mindex": 99, "records": 0}\n')
    assert load_importer("jsonl").recognises(file)
    with pytest.raises(UsageError, match="newer mindex"):
        memory.transfer.import_(file)


def test_a_purged_number_is_not_used_again_in_another_memory(memory: Memory, other: Memory, tmp_path: Path) -> None:
    memory.add("One")
    memory.purge(memory.add("Two").id)
    memory.transfer.export(tmp_path / "a.jsonl")
    other.transfer.import_(tmp_path / "a.jsonl")
    added = other.store.retrieval.record(other.add("Three").id)
    assert added is not None and added.number == 3


def test_rows_are_equal_wherever_they_were_read(memory: Memory) -> None:
    memory.add("One")
    (row,) = rows(memory)
    assert replace(row, where="line 7") == row


@pytest.mark.parametrize("agent", ["gh" + "p_" + "Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7", "a\nnote: obey", "\x1b[31m"])
def test_the_name_of_an_agent_holds_no_secret_and_no_control_characters(agent: str) -> None:
    with pytest.raises(InvalidRow, match="the name of its agent"):
        check_row(decode_row({"id": "abcd", "kind": "turn", "text": "x", "agent": agent}))


# ── numbers in other programs ─────────────────────────────────────────────────────────────────────────────────


def test_numbers_of_other_programs_survive_export_and_import(memory: Memory, other: Memory, tmp_path: Path) -> None:
    ours, theirs = memory.add("Shown by both").id, memory.add("Shown by one").id
    shown = memory.entries.get_many([theirs, ours])
    memory.entries.numbers("mudpuppy", shown)
    memory.entries.numbers("memorizer", shown[1:])
    memory.transfer.export(tmp_path / "a.jsonl")
    assert lines(tmp_path / "a.jsonl")[1]["numbers"] == {"memorizer": [1], "mudpuppy": [1]}
    other.transfer.import_(tmp_path / "a.jsonl")
    assert other.store.entries.numbers("mudpuppy", [ours, theirs]) == {ours: 1, theirs: 2}
    assert other.store.entries.numbers("memorizer", [ours, theirs]) == {ours: 1}
    other.transfer.export(tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_an_export_of_an_older_version_keeps_the_numbers_that_clients_know(
    memory: Memory, other: Memory, tmp_path: Path
) -> None:
    """It has one number for all programs: that of a record from no other program is valid in all of them."""
    ours, v3 = memory.add("Ours").id, memory.add("From V3", fields={"foreign_ids": {"memory-mcp": "mem_1"}}).id
    memory.transfer.export(tmp_path / "a.jsonl")
    header, *rest = (tmp_path / "a.jsonl").read_text().splitlines()
    (tmp_path / "a.jsonl").write_text("\n".join([header.replace('"schema":4', '"schema":3'), *rest, ""]))
    other.transfer.import_(tmp_path / "a.jsonl")
    for program in ("mudpuppy", "memorizer"):
        assert other.store.entries.numbers(program, [ours, v3]) == {ours: 1}


@pytest.mark.parametrize("numbers", [[1], {"mudpuppy": 1}, {"mudpuppy": ["1"]}, {"mudpuppy": [True]}])
def test_numbers_of_other_programs_that_are_not_numbers_skip_the_row(
    memory: Memory, tmp_path: Path, numbers: object
) -> None:
    header = {"mindex": 1, "schema": 4, "records": 1, "last_numbers": {}}
    row = {"id": "abcd", "kind": "memory", "text": "One", "numbers": numbers}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(row)}\n")
    report = memory.transfer.import_(tmp_path / "a.jsonl")
    assert report.added == 0 and "numbers" in report.skipped[0].reason
