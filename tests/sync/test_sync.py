"""Two machines that share a folder: what is exchanged, merged and reported."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.errors import MindexError, NotFoundError
from mindex.ids import short_hash
from mindex.memory import Memory
from mindex.sync.edits import Edit, FieldChange, Origin, encode_edit, file_line
from tests.sync.machines import DAY, OPTIONS, Machine, deliver, exported, machines, own_folder, sync_all

HARBOUR = "The harbour opens at six"
STRANGER = "zzzzzzzzzzz2"  # an id that no machine has


def exchange(*made: Machine) -> None:
    for one in (*made, *made):
        one.sync()
    assert len({str(exported(one)) for one in made}) == 1


def record(machine: Machine, id_: str) -> Record:
    found = machine.memory.entries.get(id_)
    assert found is not None
    return found


def stamp(number: int, machine: str = STRANGER) -> str:
    return f"{1_767_225_600_000 + number:015d}.000000000.{machine}"


def new_memory(number: int, text: str = HARBOUR, **more: object) -> Edit:
    values = {"text": text, "type": "fact", "summary": text}
    origin = Origin("memory", "main", 1_767_225_600_000)
    edit = Edit(stamp(number), short_hash(str(number)), origin=origin, at=origin.created_at, by="x", action="add")
    return replace(edit, values=values, **more)  # type: ignore[arg-type]


def write(machine: Machine, *lines: bytes | Edit, name: str = "0001.jsonl") -> Path:
    path = machine.folder / STRANGER / name
    path.parent.mkdir(exist_ok=True)
    whole = [file_line(encode_edit(line)) if isinstance(line, Edit) else line for line in lines]
    path.write_bytes(b"".join(whole))
    return path


def files(machine: Machine) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(machine.folder.glob("*/*")))


# ── what is exchanged ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_kind_of_entry_arrives_with_its_history(laptop: Machine, desktop: Machine) -> None:
    with laptop.at_work() as memory:
        id_ = memory.add(HARBOUR, tags=["port"]).id
        memory.update(id_, text="The harbour opens at seven", reason="winter")
        memory.conversations.add("When?", "At seven.", session_id="monday")
        memory.profile.set({"user.name": "Ada"})
        memory.contacts.add(name="Ann", email="ann@example.org")
        memory.projects.add(name="Harbour")
        memory.skills.add(name="Look", trigger_type="manual", instructions="Look")
        memory.notes.create("main", "/memories/a.md", "A note")
        memory.add("Another agent's", agent="scout")
    laptop.sync()
    report = desktop.sync()
    assert (report.received, report.conflicts, report.ignored) == (10, (), ())
    assert exported(desktop) == exported(laptop)
    assert [change.reason for change in desktop.memory.history(id_)] == ["", "winter"]
    assert desktop.memory.search("harbour seven").hits[0].record.id == id_


def test_syncing_again_changes_nothing(laptop: Machine, desktop: Machine) -> None:
    laptop.memory.add(HARBOUR)
    exchange(laptop, desktop)
    before = files(laptop)
    assert [(one.sent, one.received, one.updated) for one in (laptop.sync(), desktop.sync())] == [(0, 0, ())] * 2
    assert files(laptop) == before


def test_numbers_stay_local_and_turns_are_read_once(laptop: Machine, desktop: Machine) -> None:
    mine = desktop.memory.add("The market opens at eight").id
    theirs = laptop.memory.add(HARBOUR).id
    turn, _ = laptop.memory.conversations.add("When?", "At six.", session_id="s")
    exchange(laptop, desktop)
    assert (record(laptop, theirs).number, record(desktop, theirs).number) == (1, 2)
    assert record(desktop, mine).number == 1
    assert laptop.store.entries.is_unextracted(turn.id)
    assert not desktop.store.entries.is_unextracted(turn.id)


def test_numbers_of_other_programs_stay_local(laptop: Machine, desktop: Machine) -> None:
    mine = desktop.memory.add("The market opens at eight").id
    theirs = laptop.memory.add(HARBOUR).id
    for machine, id_ in ((laptop, theirs), (desktop, mine)):
        machine.memory.entries.numbers("mudpuppy", [machine.memory.entries.find(id_)])
    exchange(laptop, desktop)
    assert laptop.store.entries.numbers("mudpuppy", [mine, theirs]) == {theirs: 1}
    assert desktop.store.entries.numbers("mudpuppy", [mine, theirs]) == {mine: 1}


def test_indexed_files_and_accesses_stay_on_their_machine(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Lighthouse\n\nIt is white.\n")
    laptop.memory.index(tmp_path / "docs")
    laptop.memory.search("lighthouse keeper")
    laptop.memory.add(HARBOUR)
    exchange(laptop, desktop)
    assert not desktop.memory.search("lighthouse").hits
    assert b"ighthouse" not in files(laptop)


def test_a_new_database_reads_everything(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    laptop.memory.add(HARBOUR)
    desktop.memory.add("The market opens at eight")
    exchange(laptop, desktop)
    with Memory(tmp_path / "new.db", agent="main", options=OPTIONS) as fresh:
        assert fresh.sync.run(laptop.folder).received == 2
        assert len(fresh.list().records) == 2


def test_a_dry_run_tells_the_same_and_changes_nothing(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    laptop.sync()
    desktop.memory.add("The market opens at eight")
    before = files(laptop)
    for _ in range(2):
        report = desktop.sync(dry_run=True)
        assert (report.sent, report.received, report.updated, report.dry_run) == (1, 1, (id_,), True)
    assert desktop.memory.entries.get(id_) is None
    assert files(laptop) == before
    assert desktop.sync().sent == 1


def test_the_status_lists_machines_and_what_is_not_sent_or_read(laptop: Machine, desktop: Machine) -> None:
    laptop.memory.add(HARBOUR)
    assert laptop.memory.sync.status(laptop.folder).unsent == 1
    laptop.sync()
    status = desktop.memory.sync.status(laptop.folder)
    assert (status.machine, status.unsent, len(status.machines)) == ("", 0, 1)
    assert status.machines[0].unread_bytes == len(files(laptop))
    desktop.sync()
    status = desktop.memory.sync.status(laptop.folder)
    assert (status.machines[0].changes, status.machines[0].unread_bytes) == (1, 0)


def test_a_folder_that_is_not_there_or_no_folder_is_an_error(laptop: Machine, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no folder .*; create it, or connect the drive"):
        laptop.memory.sync.run(tmp_path / "stick")
    (tmp_path / "file").write_text("")
    with pytest.raises(MindexError, match="is not a folder"):
        laptop.memory.sync.run(tmp_path / "file")


# ── merging ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_changes_of_different_properties_both_hold(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR, importance=3).id
    exchange(laptop, desktop)
    laptop.memory.update(id_, tags=["port"])
    desktop.memory.update(id_, importance=9)
    reports = [laptop.sync(), desktop.sync(), laptop.sync()]
    assert (record(laptop, id_).tags, record(laptop, id_).importance) == (("port",), 9)
    assert not any(report.conflicts for report in reports)
    exchange(laptop, desktop)


def test_two_changes_of_one_text_are_a_conflict_and_both_are_in_the_history(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    exchange(laptop, desktop)
    laptop.memory.update(id_, text="The harbour opens at seven")
    desktop.memory.update(id_, text="The harbour opens at eight")
    laptop.sync()
    (conflict,) = desktop.sync().conflicts
    assert (conflict.record, conflict.changed, conflict.machine) == (id_, ("text",), own_folder(desktop))
    assert [one.record for one in laptop.sync().conflicts] == [id_]
    for one in (laptop, desktop):
        texts = [change.after.text[-5:] for change in one.memory.history(id_)]
        assert texts == ["t six", "seven", "eight"]
        assert not one.sync().conflicts
    laptop.memory.undo(id_)
    exchange(laptop, desktop)
    assert record(desktop, id_).text == "The harbour opens at seven"


def test_two_values_of_one_profile_both_hold(laptop: Machine, desktop: Machine) -> None:
    laptop.memory.profile.set({"user.name": "Ada", "user.city": "London"})
    desktop.memory.profile.set({"tools.editor": "vi"})
    exchange(laptop, desktop)
    laptop.memory.profile.set({"user.city": None})
    desktop.memory.profile.set({"user.name": "Ada L."})
    exchange(laptop, desktop)
    assert laptop.memory.profile.get() == {"user": {"name": "Ada L."}, "tools": {"editor": "vi"}}
    assert "Ada L." in record(laptop, desktop.memory.profile.record().id).text  # type: ignore[union-attr]


def test_a_memory_that_is_changed_here_and_forgotten_there_is_a_conflict(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    exchange(laptop, desktop)
    laptop.memory.forget(id_)
    desktop.memory.update(id_, text="The harbour opens at eight")
    laptop.sync()
    assert [one.changed for one in desktop.sync().conflicts] == [("retired_at",)]
    exchange(laptop, desktop)
    assert record(laptop, id_).retired_at is not None
    assert record(laptop, id_).text == "The harbour opens at eight"


def test_the_same_text_from_two_machines_is_one_memory_with_the_tags_of_both(laptop: Machine, desktop: Machine) -> None:
    kept = laptop.memory.add(HARBOUR, tags=["port"]).id
    retired = desktop.memory.add(f" {HARBOUR} ", tags=["quay"]).id
    laptop.sync()
    report = desktop.sync()
    assert report.merged == ((kept, retired),)
    exchange(laptop, desktop)
    assert record(laptop, kept).tags == ("port", "quay")
    assert record(laptop, retired).superseded_by == kept
    laptop.memory.update(kept, tags=["tide"])  # it would be refused while both were live


def test_the_same_text_from_three_machines_is_one_memory_with_the_tags_of_all(tmp_path: Path) -> None:
    with machines(tmp_path, "one", "two", "three") as made:
        for one in made:
            one.memory.add("The museum opens at 8", tags=[one.name])
            one.sync()
        sync_all(made)
        for one in made:
            (record,) = one.memory.list(one.memory.filters(kinds=["memory"])).records
            assert sorted(record.tags) == ["one", "three", "two"]
        assert exported(made[0]) == exported(made[1]) == exported(made[2])


def test_two_contacts_of_one_address_become_one(laptop: Machine, desktop: Machine) -> None:
    kept = laptop.memory.contacts.add(name="Ann", email="ann@example.org", role="pilot").id
    desktop.memory.contacts.add(name="Ann L", email="ANN@example.org", company="Harbour")
    laptop.sync()
    (conflict,) = desktop.sync().conflicts
    assert (conflict.record, conflict.changed) == (kept, ("name",))
    exchange(laptop, desktop)
    (contact,) = laptop.memory.contacts.all()
    assert [contact.fields[name] for name in ("name", "role", "company")] == ["Ann", "pilot", "Harbour"]
    assert "company: Harbour" in contact.text


def test_memories_that_superseded_each_other_do_not_both_go(laptop: Machine, desktop: Machine) -> None:
    one, other = (laptop.memory.add(text).id for text in (HARBOUR, "The harbour opens at eight"))
    exchange(laptop, desktop)
    laptop.memory.update(one, supersedes=other)
    desktop.memory.update(other, supersedes=one)
    exchange(laptop, desktop)
    assert record(laptop, one).retired_at is None
    assert record(laptop, other).superseded_by == one


def test_a_clock_that_is_a_day_behind_does_not_lose_the_later_change(laptop: Machine, desktop: Machine) -> None:
    laptop.ahead = DAY
    with laptop.at_work() as memory:
        id_ = memory.add(HARBOUR).id
    laptop.sync()
    report = desktop.sync()
    assert any("24 hours ahead" in note for note in report.notes)
    with desktop.at_work() as memory:
        memory.update(id_, text="The harbour opens at eight")
    exchange(desktop, laptop)
    assert record(laptop, id_).text == "The harbour opens at eight"
    assert not laptop.sync().conflicts


def test_history_undo_and_as_of_go_through_the_changes_of_all_machines(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    desktop.memory.add("The market opens at eight")  # so that numbers differ
    exchange(laptop, desktop)
    laptop.memory.update(id_, text="The harbour opens at seven")
    exchange(laptop, desktop)
    desktop.memory.undo(id_)
    exchange(laptop, desktop)
    for one in (laptop, desktop):
        history = one.memory.history(id_)
        assert [change.action for change in history] == ["add", "update", "undo"]
        assert history[2].reason == f"undo of change {history[1].change}"
        (then,) = one.store.entries.states_at(history[1].at)
        assert then.text == "The harbour opens at seven"
    change, _ = laptop.memory.undo(str(laptop.memory.history(id_)[2].change))  # the redo
    assert change.after.text == "The harbour opens at seven"


def test_what_an_import_adds_without_a_change_survives_a_change_from_elsewhere(
    laptop: Machine, desktop: Machine
) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    exchange(laptop, desktop)
    from mindex.store.export_rows import ExportRow, RestoreOptions

    known = replace(record(laptop, id_), id="foreign0row1", fields={"foreign_ids": {"other": "mem_1"}})
    laptop.store.entries.restore_rows([ExportRow(known)], RestoreOptions("main"))
    desktop.memory.update(id_, tags=["port"])
    desktop.sync()
    laptop.sync()
    assert record(laptop, id_).fields == {"foreign_ids": {"other": "mem_1"}}
    exchange(laptop, desktop)


# ── purging and secrets ───────────────────────────────────────────────────────────────────────────────────────


def test_a_purge_reaches_every_database_and_every_file(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    id_ = laptop.memory.add("The Zugspitze is high").id
    other = laptop.memory.add(HARBOUR).id
    exchange(laptop, desktop)
    desktop.memory.update(id_, text="The Zugspitze is very high")
    desktop.sync()
    purged = laptop.memory.purge(id_)
    assert any("until the next `mindex sync DIR`" in note for note in purged.notes)
    assert b"Zugspitze" in files(laptop)
    laptop.sync()
    assert desktop.sync().purged == 1
    for one in (laptop, desktop):
        assert one.memory.entries.get(id_) is None
        assert one.memory.entries.get(other) is not None
        one.sync()
    assert b"Zugspitze" not in files(laptop)
    assert b"Zugspitze" not in b"".join(path.read_bytes() for path in tmp_path.glob("*/memory.db*"))


def test_no_line_can_outlive_a_purge(laptop: Machine, desktop: Machine) -> None:
    later = f"{253_402_300_799_999:015d}.100000000.{STRANGER}"
    write(laptop, new_memory(1, of=later))
    exchange(laptop, desktop)
    laptop.memory.purge(new_memory(1).record)
    exchange(laptop, desktop)
    assert desktop.memory.entries.get(new_memory(1).record) is None


def test_a_rewritten_file_never_has_a_name_that_was_used(laptop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    laptop.sync()
    laptop.memory.purge(id_)
    laptop.sync()
    assert [path.name for path in laptop.folder.glob("*/*.jsonl")] == ["0002.jsonl"]


def test_a_purged_record_does_not_come_back_from_an_old_file(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    laptop.sync()
    desktop.sync()
    old = tmp_path / "old"
    shutil.copytree(laptop.folder / own_folder(laptop), old)
    laptop.memory.purge(id_)
    exchange(laptop, desktop)
    shutil.copytree(old, laptop.folder / STRANGER)
    for one in (laptop, desktop):
        one.sync()
        assert one.memory.entries.get(id_) is None


def test_a_change_of_a_profile_that_is_made_again_outlives_a_purge_that_arrives_after_it(tmp_path: Path) -> None:
    with machines(tmp_path, "one", "two", "three") as made:
        one, two, three = made
        one.memory.profile.set({"user.name": "Ada"})
        sync_all(made)
        one.memory.purge(one.memory.profile.record().id)  # type: ignore[union-attr]
        one.sync()
        deliver(one, three)
        one.memory.profile.set({"user.name": "Grace"})
        one.sync()
        deliver(one, two)
        two.sync()
        two.memory.profile.set({"user.city": "Paris"})
        two.sync()
        purge = sorted(three.folder.glob(f"{own_folder(one)}/*"))
        hidden = [path.rename(path.with_suffix(".later")) for path in purge]
        deliver(two, three, only_its_own=True)
        three.sync()
        for path in hidden:
            path.rename(path.with_suffix(".jsonl"))
        three.sync()  # the purge, but not yet what was made after it
        sync_all(made)
        for machine in made:
            assert machine.memory.profile.get()["user"] == {"name": "Grace", "city": "Paris"}
        assert exported(one) == exported(two) == exported(three)


def test_a_profile_that_is_made_again_after_a_purge_stays(laptop: Machine, desktop: Machine) -> None:
    laptop.memory.profile.set({"user.name": "Ada"})
    exchange(laptop, desktop)
    laptop.memory.purge(laptop.memory.profile.record().id)  # type: ignore[union-attr]
    laptop.memory.profile.set({"user.city": "London"})
    desktop.memory.profile.set({"user.name": "Ada L."})
    exchange(laptop, desktop)
    assert desktop.memory.profile.get() == {"user": {"city": "London"}}
    assert b"Ada" not in files(laptop)


def test_secrets_do_not_leave_even_if_they_may_be_stored(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    with Memory(tmp_path / "off.db", agent="main", options={**OPTIONS, "secrets.mode": "off"}) as open_memory:
        id_ = open_memory.add("The database has password=hunter22 since May").id
        open_memory.profile.set({"wifi.password": "correct-horse-7"})
        report = open_memory.sync.run(laptop.folder)
        assert any("secrets were left out" in note for note in report.notes)
    assert b"hunter22" not in files(laptop)
    assert b"correct-horse-7" not in files(laptop)
    desktop.sync()
    assert "hunter22" not in record(desktop, id_).text


def test_secrets_of_other_machines_do_not_come_in(laptop: Machine) -> None:
    edit = new_memory(1, "The database has password=hunter22 since May")
    write(laptop, edit)
    laptop.sync()
    assert "hunter22" not in record(laptop, edit.record).text


# ── bad files ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_that_is_half_written_is_read_when_it_is_whole(laptop: Machine) -> None:
    first, second = (file_line(encode_edit(new_memory(number, f"Text {number}"))) for number in (1, 2))
    path = write(laptop, first, second[:-20])
    report = laptop.sync()
    assert (report.received, report.ignored) == (1, ())
    path.write_bytes(first + second)
    assert laptop.sync().received == 1


def test_a_damaged_line_is_named_and_read_again_once_it_is_mended(laptop: Machine) -> None:
    lines = [file_line(encode_edit(new_memory(number, f"Text {number}"))) for number in (1, 2, 3)]
    path = write(laptop, lines[0], lines[1].replace(b"Text", b"Next"), lines[2])
    for _ in range(2):
        report = laptop.sync()
        assert [(one.file, one.line) for one in report.ignored] == [(f"{STRANGER}/0001.jsonl", 2)]
        assert "checksum" in report.ignored[0].reason
    path.write_bytes(b"".join(lines))
    report = laptop.sync()
    assert (report.received, report.ignored) == (1, ())


def test_lines_in_any_order_twice_and_with_other_line_ends_make_the_same(laptop: Machine, desktop: Machine) -> None:
    new = new_memory(1)
    update = Edit(stamp(2), new.record, at=new.at + 5, by="x", action="update", of=new.stamp, values={"title": "T"})
    forget = replace(update, stamp=stamp(3), action="forget", values={"retired_at": new.at + 9})
    write(laptop, forget, update, update, new)
    laptop.sync()
    reference = exported(laptop)
    desktop.folder = desktop.folder.parent / "another"
    desktop.folder.mkdir()
    text = b"".join(file_line(encode_edit(one)) for one in (new, update, new, forget))
    write(desktop, text.replace(b"\n", b"\r\n"))
    desktop.sync()
    assert exported(desktop) == reference
    assert len(desktop.memory.history(new.record)) == 3


def test_changes_of_a_record_that_has_not_arrived_wait_for_it(laptop: Machine) -> None:
    new = new_memory(1)
    update = Edit(stamp(2), new.record, at=new.at + 5, by="x", action="update", of=new.stamp, values={"title": "T"})
    write(laptop, update)
    assert (laptop.sync().waiting, laptop.memory.entries.get(new.record)) == (1, None)
    write(laptop, new, name="0002.jsonl")
    assert laptop.sync().waiting == 0
    assert record(laptop, new.record).title == "T"


GOOD = encode_edit(new_memory(7))
HOSTILE = {
    "newer": (GOOD.replace('"v":1', '"v":2'), "version 2"),
    "no version": (GOOD.replace('"v":1,', ""), "version None"),
    "list": ("[1]", "not JSON"),
    "text": ('{"v":1,"stamp":5}', "no stamp"),
    "clock": (GOOD.replace(stamp(7), f"{10**15 - 1}.000000000.{STRANGER}"), "no stamp"),
    "climbing id": (GOOD.replace(new_memory(7).record, "../../etc/passwd"), "not a record id"),
    "kind": (GOOD.replace('"kind":"memory"', '"kind":"chunk"'), "not a kind of entry"),
    "unknown kind": (GOOD.replace('"kind":"memory"', '"kind":"virus"'), "not a kind of entry"),
    "agent": (GOOD.replace('"agent":"main"', '"agent":"*"'), "no agent"),
    "empty agent": (GOOD.replace('"agent":"main"', '"agent":" "'), "no agent"),
    "text type": (GOOD.replace(f'"text":"{HARBOUR}"', '"text":5'), "is not a text"),
    "empty text": (GOOD.replace(f'"text":"{HARBOUR}"', '"text":" "'), "empty"),
    "type": (GOOD.replace('"type":"fact"', '"type":"gossip"'), "unknown type"),
    "unknown property": (GOOD.replace('"type":"fact"', '"number":3'), "no edit can set"),
    "time": (GOOD.replace('"at":1767225600000', '"at":1e400'), "no calendar"),
    "far time": (GOOD.replace('"at":1767225600000', '"at":99999999999999999'), "no calendar"),
    "tags": (GOOD.replace('"type":"fact"', '"type":"fact","tags":"x"'), "list of texts"),
    "nested": (
        GOOD.replace('"type":"fact"', '"type":"fact"},"fields":[[["a"],' + "[" * 200 + "]" * 200 + ']],"x":{'),
        "",
    ),
    "path": (GOOD.replace('"at"', '"fields":[["a",5]],"at"'), "list of names"),
    "surrogate": (GOOD.replace(HARBOUR, "\\ud800"), "half a character"),
    "not a number": (GOOD.replace('"at"', '"fields":[[["a"],NaN]],"at"'), "number that is none"),
    "action": (GOOD.replace('"action":"add",', ""), "what was done"),
    "purged": (f'{{"v":1,"stamp":"{stamp(7)}","record":"abcdefghijkl","purged":1}}', "not true"),
    "removed": (
        f'{{"v":1,"stamp":"{stamp(7)}","record":"abcdefghijkl","purged":true,"removed":["x"]}}',
        "list of stamps",
    ),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_line_is_ignored_with_its_place_and_reason(name: str, laptop: Machine) -> None:
    line, reason = HOSTILE[name]
    write(laptop, new_memory(1, "Before"), file_line(line), new_memory(9, "After"))
    report = laptop.sync()
    assert [(one.file, one.line) for one in report.ignored] == [(f"{STRANGER}/0001.jsonl", 2)]
    assert reason in report.ignored[0].reason
    assert len(laptop.memory.list().records) == 2


def test_a_line_that_is_too_long_is_ignored_and_the_next_one_is_read(
    laptop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.transfer.importers.source_files.LONGEST_LINE", 2_000)
    write(laptop, b"x" * 10_000 + b"\n", new_memory(1))
    report = laptop.sync()
    assert ([one.line for one in report.ignored], report.received) == ([1], 1)
    assert "longer than" in report.ignored[0].reason


def test_no_line_takes_a_record_from_another_agent_or_touches_a_file(laptop: Machine, tmp_path: Path) -> None:
    mine = laptop.memory.add("Mine", agent="scout").id
    (tmp_path / "a.md").write_text("# Lighthouse\n\nIt is white.\n")
    laptop.memory.index(tmp_path)
    (chunk,) = laptop.memory.search("lighthouse").hits
    before = exported(laptop)
    write(laptop, replace(new_memory(1), record=mine), replace(new_memory(2), record=chunk.record.id))
    report = laptop.sync()
    assert len(report.ignored) == 2
    assert all("belongs to another record here" in one.reason for one in report.ignored)
    assert exported(laptop) == before
    assert laptop.memory.search("lighthouse").hits[0].record.text == chunk.record.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_links_pipes_and_other_files_are_not_followed_or_waited_for(laptop: Machine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.jsonl").write_bytes(file_line(encode_edit(new_memory(1))))
    folder = write(laptop).parent
    (folder / "0002.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    os.mkfifo(folder / "0003.jsonl")
    (laptop.folder / "zzzzzzzzzzz3").symlink_to(folder)
    (laptop.folder / "README.md").write_text("Do not read me.")
    report = laptop.sync()
    assert report.received == 0
    assert {one.file for one in report.ignored} == {f"{STRANGER}/0002.jsonl", f"{STRANGER}/0003.jsonl", "zzzzzzzzzzz3"}


def test_fields_of_a_hostile_line_cannot_break_a_contact(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.contacts.add(name="Ann", email="ann@example.org").id
    laptop.sync()
    line = Edit(stamp(9), id_, at=5, by="x", action="update", fields=(FieldChange(("email",), {"a": 1}),))
    write(laptop, line)
    report = desktop.sync()
    assert "invalid email of a contact" in report.ignored[0].reason
    assert record(desktop, id_).fields["email"] == "ann@example.org"


# ── this machine's own files ──────────────────────────────────────────────────────────────────────────────────


def test_an_incomplete_line_of_this_machine_is_rewritten(laptop: Machine, desktop: Machine) -> None:
    laptop.memory.add(HARBOUR)
    laptop.memory.add("The market opens at eight")
    laptop.sync()
    (path,) = laptop.folder.glob("*/*.jsonl")
    path.write_bytes(path.read_bytes()[:-30])
    assert desktop.sync().received == 1
    assert laptop.sync().sent == 1
    exchange(laptop, desktop)
    assert len(desktop.memory.list().records) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_nothing_is_written_through_a_link_or_into_a_pipe_with_the_name_of_our_next_file(
    laptop: Machine, tmp_path: Path, kind: str
) -> None:
    laptop.memory.add(HARBOUR)
    laptop.sync()
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    planted = laptop.folder / own_folder(laptop) / "0002.jsonl"
    if kind == "link":
        planted.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(planted)
        reader = os.open(planted, os.O_RDWR)  # a writer of a pipe that has a reader does not even wait
    else:
        planted.mkdir()
    laptop.memory.add("The market opens at eight")
    report = laptop.sync()
    assert report.sent == 1
    assert [one.file for one in report.ignored] == [f"{own_folder(laptop)}/0002.jsonl"]
    assert b"The market opens" in (planted.parent / "0003.jsonl").read_bytes()
    assert victim.read_text() == "mine"
    if kind == "pipe":
        os.set_blocking(reader, False)
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
        os.close(reader)
    assert laptop.sync().sent == 0


def test_a_link_in_place_of_the_machines_folder_is_an_error(laptop: Machine, tmp_path: Path) -> None:
    laptop.memory.add(HARBOUR)
    laptop.sync()
    own = laptop.folder / own_folder(laptop)
    own.rename(laptop.folder / "moved")
    own.symlink_to(tmp_path)
    with pytest.raises(MindexError, match=f"{own} is a link; remove it"):
        laptop.sync()
    assert not (tmp_path / "0001.jsonl").exists()


def test_a_stamp_with_digits_of_another_script_is_not_a_stamp(laptop: Machine) -> None:
    laptop.memory.add(HARBOUR)
    laptop.sync()
    other_digits = stamp(1, own_folder(laptop)).replace(".000000000.", f".{chr(0x660) * 9}.")
    write(laptop, replace(new_memory(1), stamp=other_digits))
    report = laptop.sync()
    assert [one.reason for one in report.ignored] == ["it has no stamp"]
    assert laptop.sync().sent == 0


def test_missing_files_of_this_machine_are_written_again(laptop: Machine, tmp_path: Path) -> None:
    laptop.memory.add(HARBOUR)
    assert laptop.sync().sent == 1
    shutil.rmtree(laptop.folder / own_folder(laptop))
    assert laptop.sync().sent == 1
    (tmp_path / "stick").mkdir()
    assert laptop.memory.sync.run(tmp_path / "stick").sent == 1


def test_a_file_that_is_full_is_followed_by_another(laptop: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex.sync.folder._SEGMENT_BYTES", 1_000)
    laptop.memory.add_many([], embed=False)
    for number in range(12):
        laptop.memory.add(f"Text number {number}")
    laptop.sync()
    names = sorted(path.name for path in laptop.folder.glob("*/*.jsonl"))
    assert len(names) > 2
    assert names[0] == "0001.jsonl"


def test_a_copy_of_a_database_takes_a_new_id(laptop: Machine, desktop: Machine, tmp_path: Path) -> None:
    laptop.memory.add(HARBOUR)
    laptop.sync()
    laptop.memory.close()
    shutil.copy(tmp_path / "laptop" / "memory.db", tmp_path / "copy.db")
    with (
        Memory(tmp_path / "laptop" / "memory.db", agent="main", options=OPTIONS) as original,
        Memory(tmp_path / "copy.db", agent="main", options=OPTIONS) as copy,
    ):
        original.add("Told to the original")
        copy.add("Told to the copy")
        original.sync.run(laptop.folder)
        report = copy.sync.run(laptop.folder)
        assert any("perhaps a copy of this one" in note for note in report.notes)
        original.sync.run(laptop.folder)
        assert not copy.sync.run(laptop.folder).notes
        for memory in (original, copy):
            assert len(memory.list().records) == 3
    assert len(list(laptop.folder.iterdir())) == 2


def test_copies_that_were_made_before_the_first_sync_have_each_change_once(laptop: Machine, tmp_path: Path) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    laptop.memory.update(id_, tags=["port"])
    laptop.memory.transfer.export(tmp_path / "all.jsonl")
    with Memory(tmp_path / "copy.db", agent="main", options=OPTIONS) as copy:
        copy.transfer.import_(tmp_path / "all.jsonl")
        laptop.sync()
        copy.sync.run(laptop.folder)
        laptop.sync()
        assert [change.action for change in copy.history(id_)] == ["add", "update"]
    assert [change.action for change in laptop.memory.history(id_)] == ["add", "update"]


def test_a_folder_that_cannot_be_written_is_an_error_after_receiving(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    laptop.sync()
    desktop.memory.add("The market opens at eight")
    (laptop.folder / "machine").write_text("")

    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mindex.sync.service.write_lines", refused)
        with pytest.raises(MindexError, match=r"cannot be used .No space left on device.; check the drive"):
            desktop.sync()
    assert desktop.memory.entries.get(id_) is not None
    assert desktop.sync().sent == 1


KILLED = """
import os, sys
from mindex.memory import Memory
from mindex.sync import folder, receiver, service
step, database, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
count = 0
def counted(function):
    def run(*args, **options):
        global count
        count += 1
        if count == step:
            os.kill(os.getpid(), 9)
        return function(*args, **options)
    return run
real_write = os.fsync
os.fsync = counted(os.fsync)
receiver.Receiver._apply = counted(receiver.Receiver._apply)
service._Run._send = counted(service._Run._send)
service._Run._retire_duplicates = counted(service._Run._retire_duplicates)
folder._append = counted(folder._append)
with Memory(database, agent="main", options={"embedding.provider": "none"}) as memory:
    memory.sync.run(place)
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", range(1, 7))
def test_a_sync_that_is_killed_at_any_step_is_completed_by_the_next(
    step: int, laptop: Machine, desktop: Machine, tmp_path: Path
) -> None:
    desktop.memory.add("The market opens at eight")
    desktop.sync()
    laptop.memory.add(HARBOUR)
    laptop.memory.close()
    database = tmp_path / "laptop" / "memory.db"
    arguments = [sys.executable, "-c", KILLED, str(step), str(database), str(laptop.folder)]
    ended = subprocess.run(arguments, check=False)
    assert ended.returncode in (0, -signal.SIGKILL)
    with Memory(database, agent="main", options=OPTIONS) as memory:
        memory.sync.run(laptop.folder)
        desktop.sync()
        memory.sync.run(laptop.folder)
        assert len(memory.list().records) == len(desktop.memory.list().records) == 2


@pytest.mark.server
def test_a_database_on_postgresql_takes_part_like_any_other(
    laptop: Machine, desktop: Machine, postgres_database: str
) -> None:
    id_ = laptop.memory.add(HARBOUR, tags=["port"]).id
    laptop.memory.profile.set({"user.name": "Ada"})
    gone = laptop.memory.add("The market opens at eight").id
    laptop.sync()
    with Memory(postgres_database, agent="main", options=OPTIONS) as memory:
        team = Machine("team", memory, laptop.folder, laptop.clock)
        memory.add(HARBOUR, tags=["quay"])
        memory.profile.set({"user.city": "London"})
        team.sync()
        memory.update(id_, text="The harbour opens at seven")
        memory.purge(gone)
        exchange(team, laptop, desktop)
        assert record(desktop, id_).text == "The harbour opens at seven"
        assert record(desktop, id_).tags == ("port", "quay")
        assert desktop.memory.entries.get(gone) is None
        assert memory.profile.get() == {"user": {"name": "Ada", "city": "London"}}
