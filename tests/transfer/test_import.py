"""What an import does with rows: each is stored once, for the right agent, with a free number, without secrets."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mindex.datatypes import Change, Filters, Model, Progress, Record
from mindex.datatypes.program_numbers import Renumbered
from mindex.datatypes.transfer import ImportReport
from mindex.entries.profile import profile_id
from mindex.errors import StoreError, UsageError
from mindex.memory import Memory
from mindex.redaction.redactor import Redactor
from mindex.store.export_rows import ExportRow, Link
from mindex.transfer import import_rows
from mindex.transfer.imported_rows import AgentMapping, rows_with_secrets
from mindex.transfer.importer_base import (
    Importer,
    SkippedRow,
    detect_importer,
    foreign_id,
    importer_names,
    load_importer,
)
from tests.running import finish, kill, start, wait_until
from tests.transfer.conftest import OpenMemory, fill


@dataclass(frozen=True)
class GivenRows(Importer):
    """An importer that yields the rows of a test."""

    found: tuple[ExportRow | SkippedRow, ...]
    name: str = "given"

    def recognises(self, path: Path) -> bool:  # noqa: ARG002
        return True

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:  # noqa: ARG002
        yield from self.found


def memory_record(text: str, /, **changes: object) -> Record:
    values: dict[str, object] = {
        "id": foreign_id("given", text),
        "kind": "memory",
        "text": text,
        "agent": "main",
        "type": "fact",
        "created_at": 1_700_000_000_000,
        "updated_at": 1_700_000_000_000,
        "source": f"given:{text[:10]}",
        **changes,
    }
    return Record(**values)  # type: ignore[arg-type]


def import_given(
    memory: Memory, *found: ExportRow | SkippedRow, dry_run: bool = False, **options: object
) -> ImportReport:
    options = {"by": "main", **options}
    return import_rows.import_rows(memory.store, Path(), GivenRows(found), dry_run=dry_run, **options)  # type: ignore[arg-type]


def everything(memory: Memory) -> list[Record]:
    with memory.store.entries.export_snapshot() as dump:
        return [row.record for row in dump.rows]


# ── duplicates ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_import_adds_nothing(memory: Memory, other: Memory, tmp_path: Path) -> None:
    fill(memory)
    memory.transfer.export(tmp_path / "a.jsonl")
    first = other.transfer.import_(tmp_path / "a.jsonl")
    before = everything(other)
    second = other.transfer.import_(tmp_path / "a.jsonl")
    assert (second.read, second.added, second.duplicates, second.skipped) == (first.read, 0, first.read, ())
    assert everything(other) == before


def test_importing_into_the_exported_memory_adds_nothing(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    memory.transfer.export(tmp_path / "a.jsonl")
    report = memory.transfer.import_(tmp_path / "a.jsonl")
    assert (report.added, report.duplicates) == (0, report.read)


def test_the_same_text_is_the_same_memory_unless_it_is_forgotten(memory: Memory) -> None:
    known = memory.add("The build runs on Tuesdays")
    same = ExportRow(memory_record("The build runs on  Tuesdays\n"))
    forgotten = ExportRow(memory_record("The build runs on Tuesdays", retired_at=1_700_000_000_001))
    report = import_given(memory, same, forgotten)
    assert (report.added, report.duplicates) == (1, 1)
    assert [hit.record.id for hit in memory.search("build").hits] == [known.id]
    memory.forget(known.id)
    assert import_given(memory, same).added == 1


def test_an_expired_memory_is_not_a_duplicate(memory: Memory) -> None:
    old = ExportRow(memory_record("The build runs on Tuesdays", id="aaaa", expires_at=1_700_000_000_001))
    assert import_given(memory, old, ExportRow(memory_record("The build runs on Tuesdays"))).added == 2


def test_rows_of_one_file_are_duplicates_of_each_other(memory: Memory) -> None:
    one = ExportRow(memory_record("The same"))
    report = import_given(memory, one, one, ExportRow(memory_record("The same", id="bbbb")))
    assert (report.read, report.added, report.duplicates) == (3, 1, 2)


def test_every_row_is_added_a_duplicate_or_skipped_by_name(memory: Memory) -> None:
    memory.add("Known")
    found = (
        ExportRow(memory_record("New")),
        ExportRow(memory_record("Known")),
        ExportRow(memory_record("Bad", type="opinion")),
        SkippedRow("line 7", "it is torn"),
    )
    report = import_given(memory, *found, SkippedRow("end", "it was cut off", row=False))
    assert report.read == 4
    assert report.read == report.added + report.duplicates + len([one for one in report.skipped if one.row])
    assert [one.where for one in report.skipped] == ["given:Bad", "line 7", "end"]


def test_an_imported_record_can_be_undone_and_its_history_names_the_import(memory: Memory) -> None:
    record = memory_record("From another memory")
    import_given(memory, ExportRow(record))
    (change,) = memory.history(record.id)
    assert (change.action, change.at, change.reason) == ("import", record.created_at, "imported from given")
    memory.undo(record.id)
    assert not memory.search("another").hits


def test_an_imported_history_keeps_its_order(memory: Memory) -> None:
    memory.add("Takes the first number of a change")
    early, late = memory_record("Draft", id="aaaa"), memory_record("Final", id="aaaa")
    history = (
        Change(0, "", 1_700_000_000_000, "x", "add", "", None, early),
        Change(0, "", 1_700_000_000_001, "x", "update", "better", early, late),
    )
    import_given(memory, ExportRow(late, history))
    assert [(one.action, one.after.text) for one in memory.history("aaaa")] == [("add", "Draft"), ("update", "Final")]
    memory.undo("aaaa")
    found = memory.store.retrieval.record("aaaa")
    assert found is not None and found.text == "Draft"


def test_changes_whose_numbers_are_taken_get_new_ones_and_keep_their_order(
    memory: Memory, other: Memory, tmp_path: Path
) -> None:
    ids = fill(memory)
    for number in range(6):
        other.add(f"Something else that takes number {number}")
    memory.transfer.export(tmp_path / "a.jsonl")
    other.transfer.import_(tmp_path / "a.jsonl")
    for id_ in ids.values():
        before, after = memory.store.entries.history(id_), other.store.entries.history(id_)
        assert [(one.at, one.action, one.reason) for one in after] == [
            (one.at, one.action, one.reason) for one in before
        ]
        assert [one.change for one in after] == sorted(one.change for one in after)


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_free_numbers_are_kept_and_taken_ones_replaced_and_reported(
    memory: Memory, other: Memory, tmp_path: Path
) -> None:
    for number in range(1, 5):
        memory.add(f"Sentence {number} of the first")
    other.add("Takes one")
    other.add("Takes two")
    memory.transfer.export(tmp_path / "a.jsonl")
    report = other.transfer.import_(tmp_path / "a.jsonl")
    assert report.renumbered == (Renumbered("memory", 1, 5), Renumbered("memory", 2, 6))
    numbers = {record.number: record.text for record in everything(other)}
    assert numbers[3] == "Sentence 3 of the first" and numbers[5] == "Sentence 1 of the first"
    renamed = next(record for record in everything(other) if record.number == 5)
    assert {change.after.number for change in other.history(renamed.id)} == {5}
    assert other.store.entries.by_number("main", 6) is not None


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**40, 0, -5])
def test_a_number_out_of_range_is_replaced(memory: Memory, number: int) -> None:
    report = import_given(
        memory,
        ExportRow(
            memory_record("Numbered", number=number), (Change(2**63, "", 0, "", "add", "", None, memory_record("x")),)
        ),
    )
    assert report.renumbered == (Renumbered("memory", number, 1),)
    added = memory.store.retrieval.record(memory.add("The next").id)
    assert added is not None and added.number == 2


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_can_be_imported_for_one_agent(memory: Memory, other: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    memory.transfer.export(tmp_path / "a.jsonl")
    report = other.transfer.import_(tmp_path / "a.jsonl", agent="eve")
    assert report.skipped == () and {record.agent for record in everything(other)} == {"eve"}
    assert other.store.retrieval.record(ids["dark"]) is not None
    assert {change.after.agent for change in other.history(ids["dark"])} == {"eve"}
    assert other.profile.get("user.name", agent="eve") == "Ada"
    record = other.profile.record(agent="eve")
    assert record is not None and record.title == "Profile of eve"


def test_an_agent_can_be_mapped_to_another(memory: Memory, other: Memory, tmp_path: Path) -> None:
    memory.add("Mine")
    memory.add("Yours", agent="you")
    memory.transfer.export(tmp_path / "a.jsonl")
    other.transfer.import_(tmp_path / "a.jsonl", agents={"you": "them"})
    assert {record.agent: record.text for record in everything(other)} == {"main": "Mine", "them": "Yours"}


def test_a_copy_for_another_agent_gets_new_ids(memory: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    memory.transfer.export(tmp_path / "a.jsonl", agent="main")
    report = memory.transfer.import_(tmp_path / "a.jsonl", agent="eve")
    assert (report.added, report.skipped) == (report.read, ())
    again = memory.transfer.import_(tmp_path / "a.jsonl", agent="eve")
    assert (again.added, again.duplicates) == (0, again.read)
    copies = [record for record in everything(memory) if record.agent == "eve"]
    gone = next(record for record in copies if record.text == "The office is in Berlin")
    moved = next(record for record in copies if record.text == "The office is in Hamburg")
    assert gone.id != ids["gone"] and gone.superseded_by == moved.id
    dark = next(record for record in copies if record.text == "User prefers dark mode in every editor")
    (near,) = memory.store.entries.linked(dark.id, "near")
    found = memory.store.retrieval.record(near)
    assert found is not None and found.agent == "eve"


def test_rows_cannot_belong_to_all_agents(memory: Memory) -> None:
    with pytest.raises(UsageError, match="means all agents"):
        AgentMapping(everything="*")
    assert import_given(memory, ExportRow(memory_record("x", agent="*"))).skipped


# ── conflicts ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_profile_does_not_replace_another_one_and_is_skipped_by_name(
    memory: Memory, other: Memory, tmp_path: Path
) -> None:
    memory.profile.set({"user": "Ada"})
    other.profile.set({"user": "Grace"})
    memory.transfer.export(tmp_path / "a.jsonl")
    report = other.transfer.import_(tmp_path / "a.jsonl")
    assert (report.added, report.duplicates) == (0, 0)
    assert [one.reason for one in report.skipped] == ["'main' has a profile already, and another one"]
    assert other.profile.get("user") == "Grace"
    assert profile_id("main") == everything(other)[0].id


def test_a_profile_that_changed_since_is_a_duplicate(memory: Memory, other: Memory, tmp_path: Path) -> None:
    memory.profile.set({"user": "Ada"})
    memory.transfer.export(tmp_path / "a.jsonl")
    other.transfer.import_(tmp_path / "a.jsonl")
    other.profile.set({"user": "Grace"})
    assert other.transfer.import_(tmp_path / "a.jsonl").duplicates == 1


def test_a_contact_with_a_taken_address_is_skipped(memory: Memory, other: Memory, tmp_path: Path) -> None:
    memory.contacts.add(name="Grace", email="grace@example.com")
    held = other.contacts.add(name="G. Hopper", email="grace@example.com")
    memory.transfer.export(tmp_path / "a.jsonl")
    report = other.transfer.import_(tmp_path / "a.jsonl")
    assert [one.reason for one in report.skipped] == [f"contact '{held.id}' has the same email already"]


def test_an_id_that_a_record_of_another_kind_has_is_skipped_by_name(memory: Memory) -> None:
    import_given(memory, ExportRow(memory_record("A memory", id="abcd")))
    report = import_given(memory, ExportRow(memory_record("A note", id="abcd", kind="note", type="")))
    assert [one.reason for one in report.skipped] == ["another record has the id abcd"]


SKILL = {"name": "x", "trigger_type": "manual", "instructions": "y"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": ""}, "is not a mindex id"),
        ({"id": "ABC/../x"}, "is not a mindex id"),
        ({"kind": "chunk"}, "is not a kind of entry"),
        ({"kind": "thing"}, "is not a kind of entry"),
        ({"agent": " "}, "`agent` is blank"),
        ({"text": "  "}, "empty"),
        ({"text": "x" * (1024 * 1024 + 1)}, "bytes"),
        ({"text": "half \ud800"}, "surrogate"),
        ({"agent": "half \ud800"}, "surrogate"),
        ({"type": "opinion"}, "unknown type"),
        ({"importance": 11}, "importance"),
        ({"confidence": float("nan")}, "confidence"),
        ({"created_at": 2**70}, "no calendar"),
        ({"updated_at": None}, "no calendar"),
        ({"expires_at": -(2**62)}, "no calendar"),
        ({"fields": {"x": float("inf")}}, "a number that is none"),
        ({"kind": "profile", "type": "", "fields": {"data": []}}, "profile"),
        ({"kind": "contact", "type": "", "fields": {}}, "name"),
        (
            {"kind": "skill", "type": "", "fields": {"name": "x", "trigger_type": "cron", "instructions": "y"}},
            "schedule",
        ),
        ({"kind": "skill", "type": "", "fields": {**SKILL, "last_run_at": "2h"}}, "last_run_at"),
        ({"kind": "skill", "type": "", "fields": {**SKILL, "last_notified_at": "tomorrow"}}, "last_notified_at"),
    ],
)
def test_an_invalid_row_is_skipped_by_name_and_the_rest_is_imported(
    memory: Memory, changes: dict[str, object], reason: str
) -> None:
    report = import_given(
        memory, ExportRow(memory_record("Bad", **changes), where="line 3"), ExportRow(memory_record("Good"))
    )
    assert report.added == 1
    ((where, why),) = [(one.where, one.reason) for one in report.skipped]
    assert where == "line 3" and reason in why, why


def test_fields_that_are_nested_too_deeply_are_refused(memory: Memory) -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"x": deep}
    report = import_given(memory, ExportRow(memory_record("Deep", fields=deep)))
    assert [one.reason for one in report.skipped] == ["its fields are nested too deeply"]


def test_a_link_to_a_missing_record_is_not_stored(memory: Memory) -> None:
    one, two = memory_record("One", id="aaaa"), memory_record("Two", id="bbbb")
    links = (Link("bbbb", "near", 0.7, 5), Link("zzzz", "near", 0.9, 5))
    assert import_given(memory, ExportRow(one, links=links), ExportRow(two)).added == 2
    assert memory.store.entries.linked("aaaa", "near") == ("bbbb",)
    report = import_given(
        memory, ExportRow(memory_record("Three", id="cccc"), links=(Link("aaaa", "near", float("nan")),))
    )
    assert [one.reason for one in report.skipped] == ["a link has a weight that is not a number"]


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "ghp_" + "a1B2" * 9


def test_secrets_are_redacted_in_every_property_and_in_the_history(memory: Memory) -> None:
    past = memory_record(f"Before it was {SECRET}", id="aaaa")
    record = memory_record(
        "Clean", id="aaaa", tags=("ok", SECRET), context=f"see {SECRET}", fields={"deep": [{"x": SECRET}]}
    )
    history = (Change(1, "", 0, "me", "update", f"because of {SECRET}", past, record),)
    report = import_given(memory, ExportRow(record, history), ExportRow(memory_record("Nothing to hide")))
    assert (report.added, report.notes) == (2, ("secrets were left out of 1 records: github-token",))
    with memory.store._engine.database.read() as connection:  # type: ignore[attr-defined]
        kept = "\n".join(connection.iterdump())
    assert SECRET not in kept and "[redacted:github-token]" in kept


def test_a_number_that_is_a_secret_is_redacted_as_in_an_entry_that_is_added(memory: Memory) -> None:
    fields = {"card number": 4111111111111111, "amount": 5}
    import_given(memory, ExportRow(memory_record("A payment", id="aaaa", fields=fields)))
    assert memory.get("aaaa").records[0].fields == {"card number": "[redacted:card]", "amount": 5}


def test_in_strict_mode_a_row_with_a_secret_is_skipped_by_name(memory: Memory) -> None:
    report = import_given(
        memory,
        ExportRow(memory_record(f"It is {SECRET}")),
        ExportRow(memory_record("Clean")),
        redactor=Redactor("strict"),
    )
    assert (report.added, len(report.skipped)) == (1, 1)
    assert SECRET not in report.skipped[0].reason and "github-token" in report.skipped[0].reason


def test_a_field_is_redacted_by_its_name(memory: Memory) -> None:
    import_given(memory, ExportRow(memory_record("Fields", id="aaaa", fields={"password": "hunter22!x"})))
    found = memory.store.retrieval.record("aaaa")
    assert found is not None and found.fields["password"] == "[redacted:password]"


@pytest.mark.parametrize("key", ["key", "name"])
def test_a_value_is_redacted_by_the_name_beside_it(memory: Memory, key: str) -> None:
    pair: dict[str, object] = {key: "db_password", "value": "hunter22!x"}
    other: dict[str, object] = {key: "editor", "value": "hunter22!x"}
    import_given(memory, ExportRow(memory_record("Fields", id="aaaa", fields={"env": [pair, other]})))
    found = memory.store.retrieval.record("aaaa")
    assert found is not None
    assert found.fields["env"] == [{**pair, "value": "[redacted:password]"}, other]


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"x {SECRET}",
        "password: hunter22",
        "the password is hunter22",
        "4111 1111 1111 1111",
        "postgres://u:s3cretpw@db.example.com/x",
        "a <private>b",
        "<private>b</private>",
        "AKIAIOSFODNN7EXAMPLQ",
        "zero\u200bwidth",
        "密码是 hunter22",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----",
    ],
)
@pytest.mark.parametrize(
    "around", [("", ""), ("word", "word"), ("password", "secret"), ("</private>", "=x"), ("7", "7")]
)
def test_a_secret_is_found_among_other_rows(text: str, around: tuple[str, str]) -> None:
    assert Redactor().redact_text(text) != text
    rows = [
        ExportRow(memory_record(f"{one}", id=f"id{number}x")) for number, one in enumerate((around[0], text, around[1]))
    ]
    assert rows[1] in rows_with_secrets(rows, Redactor())


# ── dry runs, progress, kills ─────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_reports_what_would_happen_and_stores_nothing(memory: Memory, other: Memory, tmp_path: Path) -> None:
    fill(memory)
    other.add("Takes number one")
    other.contacts.add(name="G. Hopper", email="grace@example.com")
    memory.transfer.export(tmp_path / "a.jsonl")
    before = everything(other)
    foreseen = other.transfer.import_(tmp_path / "a.jsonl", dry_run=True)
    assert everything(other) == before
    happened = other.transfer.import_(tmp_path / "a.jsonl")
    assert foreseen.dry_run and not happened.dry_run
    assert (foreseen.read, foreseen.added, foreseen.duplicates) == (happened.read, happened.added, happened.duplicates)
    assert (foreseen.skipped, foreseen.renumbered) == (happened.skipped, happened.renumbered)


def test_a_dry_run_sees_duplicates_across_batches(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_rows, "_BATCH", 1)
    rows = (
        ExportRow(memory_record("Same", number=1)),
        ExportRow(memory_record("Same", id="bbbb", number=2)),
        ExportRow(memory_record("Else", number=1)),
    )
    foreseen = import_given(memory, *rows, dry_run=True)
    assert (foreseen.added, foreseen.duplicates, foreseen.renumbered) == (2, 1, (Renumbered("memory", 1, 2),))
    happened = import_given(memory, *rows)
    assert (happened.added, happened.duplicates, happened.renumbered) == (2, 1, (Renumbered("memory", 1, 2),))


def test_progress_is_reported_after_each_batch(memory: Memory, other: Memory, tmp_path: Path) -> None:
    for number in range(12):
        memory.add(f"Sentence number {number}")
    memory.transfer.export(tmp_path / "a.jsonl")
    seen: list[Progress] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_rows, "_BATCH", 5)
        other.transfer.import_(tmp_path / "a.jsonl", report=seen.append)
    assert [(one.stage, one.done, one.total) for one in seen] == [("import", done, 12) for done in (5, 10, 12)]


def test_long_texts_make_small_batches(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_rows, "_BATCH_CHARACTERS", 1000)
    sizes = [
        len(batch)
        for batch in import_rows._batches(ExportRow(memory_record("x" * 400, id=f"id{n}x")) for n in range(7))
    ]
    assert sizes == [3, 3, 1]


def test_the_error_of_a_failing_store_says_how_much_was_imported(
    memory: Memory, open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_rows, "_BATCH", 2)
    restore, left = memory.store.entries.restore_rows, [1]

    def failing(*arguments: object, **options: object) -> object:
        if not left:
            raise StoreError("no space left to write", "free some space")
        left.pop()
        return restore(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(memory.store.entries, "restore_rows", failing)
    rows = [ExportRow(memory_record(f"Sentence number {number}")) for number in range(4)]
    with pytest.raises(StoreError, match=r"2 records came in before that.*import again"):
        import_given(memory, *rows)
    monkeypatch.undo()
    report = import_given(memory, *rows)
    assert (report.added, report.duplicates) == (2, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.slow
def test_a_killed_import_is_completed_when_it_is_repeated(memory: Memory, tmp_path: Path) -> None:
    source, db = tmp_path / "a.jsonl", tmp_path / "killed.db"
    record = {"kind": "memory", "agent": "main", "type": "fact", "created_at": "2026-01-01T00:00:00Z"}
    with source.open("w") as file:
        file.write('{"mindex":1,"records":6000,"last_numbers":{"main":6000}}\n')
        for number in range(1, 6001):
            line = {**record, "id": f"id{number:06}", "number": number, "text": f"Sentence number {number}"}
            file.write(json.dumps({**line, "updated_at": record["created_at"]}) + "\n")
    environment = {"MINDEX_EMBEDDING_PROVIDER": "none"}
    process = start("--db", db, "import", source, env=environment)

    def some_came_in() -> bool:
        try:
            with Memory(db, options={"embedding.provider": "none"}) as watching:
                return watching.list(Filters(agent="*"), limit=1).total > 0
        except StoreError:
            return False

    wait_until(some_came_in, what="the first batch")
    kill(process)
    assert process.returncode in (-signal.SIGKILL, 0)
    ran = finish(start("--db", db, "--json", "import", source, env=environment))
    assert ran.code == 0, ran
    assert ran.json["added"] + ran.json["duplicates"] == 6000 and not ran.json["skipped"]
    with Memory(db, options={"embedding.provider": "none"}) as whole:
        assert whole.list(limit=1).total == 6000


class Counting:
    """A model that gives everything the same vector."""

    model = Model("test", "tiny", 2)

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[0.6, 0.8] for _ in texts]

    def fluency(self, texts: list[str]) -> list[float]:
        return [1.0 for _ in texts]


def test_imported_records_are_embedded(memory: Memory, other: Memory, tmp_path: Path) -> None:
    memory.add("One")
    memory.add("Two")
    memory.transfer.export(tmp_path / "a.jsonl")
    other.models.use(Counting())
    seen: list[Progress] = []
    other.transfer.import_(tmp_path / "a.jsonl", report=seen.append)
    assert other.store.vectors.pending(Counting.model) == 0
    assert seen[-1] == Progress("embed", 2, 2)


def test_a_server_embeds_imported_records_in_the_background(
    memory: Memory, other: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("One")
    memory.transfer.export(tmp_path / "a.jsonl")
    embedded: list[bool] = []
    other.models.use(Counting())
    monkeypatch.setattr(other.embedding_queue, "in_background", True)
    monkeypatch.setattr(other.embedding_queue, "embed_all", lambda: embedded.append(True))
    other.transfer.import_(tmp_path / "a.jsonl")
    assert embedded == [True]


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_importer_in_the_table_can_be_loaded() -> None:
    for name in importer_names():
        assert load_importer(name).name == name


def test_the_same_foreign_row_always_gets_the_same_id() -> None:
    assert foreign_id("x", "facts", 1, "words") == foreign_id("x", "facts", 1, "words")
    assert foreign_id("x", "facts", 1, "words") != foreign_id("x", "facts", 1, "other words")


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x00\x01")
    with pytest.raises(UsageError, match="unknown format of the file"):
        detect_importer(tmp_path / "x.bin")
    with pytest.raises(UsageError, match="--from"):
        detect_importer(tmp_path)
    with pytest.raises(UsageError, match="unknown format 'fax'"):
        load_importer("fax")
