"""Clocks that are wrong, and stamps that no clock gave: no machine continues from them, and damage is repaired."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mindex.clock import LAST_MS
from mindex.datatypes import Record
from mindex.errors import MindexError
from mindex.ids import short_hash
from mindex.store.base import Engine
from mindex.store.open import register_engine
from mindex.sync import local_changes, receiver, service
from mindex.sync.edits import Edit, Origin, decode_edit, encode_edit, file_line
from mindex.sync.folder import ReadLine
from mindex.sync.stamps import machine_of, next_stamp, stamp_limit, time_of
from mindex.transfer.jsonl_format import InvalidRow
from tests.contract.memory_engine import DATABASES, open_memory_store
from tests.running import is_one_error, run_here
from tests.sync.machines import DAY, START, Machine, exported, machines, own_folder, sync_all
from tests.sync.test_random_histories import HISTORIES, SHARED, change, clocks, contents_of, histories, run, seeds

register_engine("toy", Engine(open_memory_store))

HARBOUR = "The harbour opens at six"
STRANGER = "zzzzzzzzzzz2"
HIGHEST = f"{LAST_MS:015d}.{10**8:09d}.{STRANGER}"
YEARS = 73 * 365 * DAY  # a clock in 2099


def line(stamp: str, text: str = "A line of a stranger") -> bytes:
    origin = Origin("memory", "main", START)
    values = {"text": text, "type": "fact", "summary": text}
    edit = Edit(stamp, short_hash(stamp), origin=origin, at=START, by="x", action="add", values=values)
    return file_line(encode_edit(edit))


def put_line(machine: Machine, stamp: str) -> Path:
    path = machine.folder / STRANGER / "0001.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(line(stamp))
    return path


def old_next_stamp(latest: str, at: int, machine: str) -> str:
    """What mindex 0.1.0 did."""
    last_at, counter = (int(latest[:15]), int(latest[16:25])) if latest else (-1, 0)
    at = min(max(at, 0), LAST_MS)
    return f"{at:015d}.{0:09d}.{machine}" if at > last_at else f"{last_at:015d}.{counter + 1:09d}.{machine}"


@contextmanager
def mindex_0_1_0() -> Iterator[None]:
    """Take in every stamp up to a counter of 100,000,000, and continue from it, as mindex 0.1.0 did."""
    parse = receiver.Receiver._parse

    def old_parse(self: receiver.Receiver, read: ReadLine) -> Edit:
        edit = parse(self, read)
        if int(edit.stamp[16:25]) > 10**8:
            raise InvalidRow("it has no stamp")
        return edit

    def unbounded(now: int) -> str:
        return "9" * 15

    with (
        patch.object(receiver.Receiver, "_parse", old_parse),
        patch.object(local_changes, "next_stamp", old_next_stamp),
        patch.object(receiver, "stamp_limit", unbounded),
        patch.object(service, "stamp_limit", unbounded),
        patch.object(local_changes, "stamp_limit", unbounded),
    ):
        yield


def record(machine: Machine, id_: str) -> Record:
    found = machine.memory.entries.get(id_)
    assert found is not None
    return found


def update(machine: Machine, id_: str, text: str) -> None:
    with machine.at_work() as memory:
        memory.update(id_, text=text)


def own_stamps(machine: Machine) -> list[str]:
    return sorted(stamp for stamp in machine.store.sync.stamps() if machine_of(stamp) == own_folder(machine))


def stamps_check(machine: Machine) -> list[bool]:
    with machine.at_work() as memory:
        return [one.ok for one in memory.doctor() if one.name == "sync stamps"]


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_highest_stamp_is_kept_for_later_and_stops_no_exchange(laptop: Machine, desktop: Machine) -> None:
    put_line(laptop, HIGHEST)
    id_ = laptop.memory.add(HARBOUR).id
    for _ in range(2):
        report = laptop.sync()
        assert [(one.file, one.first, one.lines, one.latest_at) for one in report.held] == [
            (f"{STRANGER}/0001.jsonl", 1, 1, LAST_MS)
        ]
        assert not report.ignored
    assert desktop.sync().received == 1
    update(desktop, id_, "The harbour opens at eight")
    assert (desktop.sync().sent, laptop.sync().received) == (1, 1)
    assert record(laptop, id_).text == "The harbour opens at eight"
    assert max(map(time_of, laptop.store.sync.stamps())) < START + DAY


def test_a_held_line_is_received_when_the_clock_has_caught_up(laptop: Machine) -> None:
    put_line(laptop, f"{START + 3 * DAY:015d}.{0:09d}.{STRANGER}")
    assert (laptop.sync().received, len(laptop.sync().held)) == (0, 1)
    laptop.clock.now += 3 * DAY
    report = laptop.sync()
    assert (report.received, report.held) == (1, ())


def test_the_highest_counter_of_a_time_in_range_pushes_no_stamp_out_of_range(laptop: Machine, desktop: Machine) -> None:
    put_line(laptop, f"{START + DAY // 4:015d}.{10**9 - 1:09d}.{STRANGER}")
    laptop.sync()
    id_ = laptop.memory.add(HARBOUR).id
    laptop.sync()
    assert own_stamps(laptop) == [f"{START + DAY // 4 + 1:015d}.{1:09d}.{own_folder(laptop)}"]
    desktop.sync()
    assert desktop.memory.entries.get(id_) is not None


@given(st.integers(0, LAST_MS), st.integers(0, 10**9 - 1), st.integers(-(10**14), 2 * LAST_MS), st.integers(0, LAST_MS))
def test_a_stamp_that_is_written_is_above_the_latest_one_and_never_out_of_range(
    time: int, counter: int, at: int, now: int
) -> None:
    latest = f"{min(time, now + DAY):015d}.{counter:09d}.{STRANGER}"
    made = next_stamp(latest, min(at, now), "aaaaaaaaaaaa")
    assert made > latest[:25]
    assert int(made[16:25]) <= 10**8
    assert made < stamp_limit(now + 1)  # a millisecond later, when the counter of the last one was used up


def test_a_clock_in_2099_infects_no_other_machine(laptop: Machine, desktop: Machine) -> None:
    id_ = laptop.memory.add(HARBOUR).id
    laptop.sync(), desktop.sync()
    desktop.ahead = YEARS
    update(desktop, id_, "The harbour opens in 2099")
    desktop.sync()
    desktop.ahead = 0
    report = laptop.sync()
    assert (report.received, len(report.held)) == (0, 1)
    assert any(f"the clock of {own_folder(desktop)} is 26,645 days ahead" in note for note in report.notes)
    update(laptop, id_, "The harbour opens at seven")
    laptop.sync()
    with pytest.raises(MindexError, match=r"1 changes .* more than a day ahead of this machine's clock .*--repair`"):
        desktop.sync()
    assert desktop.sync(repair=True).restamped == 1
    laptop.sync(), desktop.sync()
    assert exported(laptop) == exported(desktop)
    assert record(desktop, id_).text == "The harbour opens at seven"
    assert not laptop.sync().held


def test_a_change_made_while_the_clock_was_wrong_is_sent_with_the_time_of_the_sync(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.ahead = YEARS
    with laptop.at_work() as memory:
        memory.add(HARBOUR)
    laptop.ahead = 0
    laptop.sync()
    report = desktop.sync()
    assert (report.received, report.held, report.notes) == (1, (), ())


# ── which clock ───────────────────────────────────────────────────────────────────────────────────────────────


def three(folder: Path, *ahead: int) -> Any:
    return machines(folder, "a", "b", "c", ahead=ahead)


def test_the_machine_whose_clock_is_wrong_is_named_and_not_one_that_continues_from_it(tmp_path: Path) -> None:
    with three(tmp_path, 0, 20 * 3_600_000, 0) as made:
        a, b, c = made
        a.folder = b.folder = c.folder
        for one in (c, b, a):  # b is 20 hours ahead, a continues from its stamps
            with one.at_work() as memory:
                memory.add(f"Made on {one.name}")
            one.sync()
        notes = c.sync().notes
        assert [own_folder(b) in note for note in notes] == [True]
        assert "20 hours ahead" in notes[0]
        assert not any(own_folder(a) in note for note in notes)


def test_a_clock_that_is_behind_all_others_is_reported(tmp_path: Path) -> None:
    with three(tmp_path, 0, 0, -2 * DAY) as made:
        a, b, c = made
        a.folder = b.folder = c.folder
        for one in made:
            with one.at_work() as memory:
                memory.add(f"Made on {one.name}")
            one.sync()
        report = c.sync()
        assert len(report.held) == 2
        assert report.notes == (
            "the clock of this machine is behind the clocks of all 2 other machines, by 48 hours or more: set it",
        )
        c.ahead = 0
        assert (c.sync().received, a.sync().notes) == (2, ())


def test_a_clock_that_was_reset_to_1970_changes_nothing(laptop: Machine, desktop: Machine) -> None:
    laptop.memory.add(HARBOUR)
    desktop.memory.add("The market opens at eight")
    laptop.sync(), desktop.sync(), laptop.sync()
    before = laptop.store.sync.stamps()
    laptop.ahead = -START
    for repair in (False, True):
        with pytest.raises(
            MindexError, match=r"behind: it shows 1970-01-01.* all changes of 2 machines are later; set"
        ):
            laptop.sync(repair=repair)
    assert laptop.store.sync.stamps() == before


# ── repair ────────────────────────────────────────────────────────────────────────────────────────────────────


def damaged(laptop: Machine, desktop: Machine) -> tuple[str, Path]:
    """Have mindex 0.1.0 read the highest stamp on both machines, and change a record on each afterwards."""
    id_ = laptop.memory.add(HARBOUR).id
    with mindex_0_1_0():
        laptop.sync(), desktop.sync()
        path = put_line(laptop, HIGHEST)
        laptop.sync(), desktop.sync()
        for number in range(3):
            update(laptop, id_, f"The harbour opens at {number}")
            with suppress(InvalidRow):
                laptop.sync()
        desktop.memory.add("The market opens at eight")
        desktop.sync(), laptop.sync()
    assert any(".100000001." in stamp for stamp in laptop.store.sync.stamps())
    assert desktop.store.entries.history(id_)[-1].action == "add", "the exchange has stopped"
    return id_, path


@pytest.mark.parametrize("removed", [False, True], ids=["line stays", "line removed"])
def test_a_database_that_0_1_0_damaged_is_found_and_repaired(removed: bool, laptop: Machine, desktop: Machine) -> None:
    id_, path = damaged(laptop, desktop)
    if removed:
        path.unlink()
    in_order = [decode_edit(row.line).values["text"] for row in laptop.store.sync.of_records([id_])]
    assert stamps_check(laptop) == stamps_check(desktop) == [False]
    assert laptop.memory.sync.status(laptop.folder).out_of_range > 0
    for one in (laptop, desktop):
        with pytest.raises(MindexError, match="--repair"):
            one.sync()
        assert one.sync(repair=True).restamped > 0
    for one in (laptop, desktop, laptop):
        one.sync()
    assert exported(laptop) == exported(desktop)
    assert stamps_check(laptop) == stamps_check(desktop) == [True]
    assert record(desktop, id_).text == "The harbour opens at 2"
    history = [change.after.text for change in desktop.memory.history(id_)]
    assert history == in_order
    assert len(desktop.memory.list().records) == 3
    assert max(map(time_of, laptop.store.sync.stamps())) < START + DAY


def test_a_repair_that_is_run_twice_changes_nothing(laptop: Machine, desktop: Machine) -> None:
    damaged(laptop, desktop)
    laptop.sync(repair=True)
    stamps = laptop.store.sync.stamps()
    files = {path: path.read_bytes() for path in laptop.folder.glob("*/*")}
    report = laptop.sync(repair=True)
    assert (report.restamped, report.sent, report.received) == (0, 0, 0)
    assert laptop.store.sync.stamps() == stamps
    assert {path: path.read_bytes() for path in laptop.folder.glob("*/*")} == files


def test_a_dry_run_of_a_repair_changes_nothing(laptop: Machine, desktop: Machine) -> None:
    damaged(laptop, desktop)
    stamps = laptop.store.sync.stamps()
    assert laptop.sync(repair=True, dry_run=True).restamped > 0
    assert laptop.store.sync.stamps() == stamps
    assert laptop.sync(repair=True).restamped > 0


def test_own_changes_come_just_above_the_highest_stamp_in_range_and_received_ones_when_they_came(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.memory.add(HARBOUR)
    laptop.sync()
    highest = max(laptop.store.sync.stamps())
    laptop.ahead = YEARS
    ids = []
    for number in range(3):
        with laptop.at_work() as memory:
            ids.append(memory.add(f"Memory number {number}", embed=False).id)
        laptop.sync()
    laptop.ahead = 0
    with mindex_0_1_0():
        laptop.clock.now += DAY // 2
        first = desktop.memory.add("The market opens at eight")
        laptop.clock.now += DAY // 2
        desktop.sync()
    laptop.sync(repair=True)
    restamped = {row.record: row.stamp for row in laptop.store.sync.of_records(ids)}
    me = own_folder(laptop)
    assert [restamped[id_] for id_ in ids] == [f"{highest[:15]}.{number:09d}.{me}" for number in (1, 2, 3)]
    desktop.sync(repair=True)
    received = {row.record: row.stamp for row in desktop.store.sync.of_records(ids) if own_folder(desktop) in row.stamp}
    assert min(map(time_of, received.values())) == record(desktop, first.id).created_at


def test_a_repair_that_is_killed_before_it_sends_keeps_the_id_of_the_machine(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(laptop, desktop)
    machine = own_folder(laptop)
    with monkeypatch.context() as patched:
        patched.setattr(service._Run, "_send", lambda _: None)
        laptop.sync(repair=True)
    report = laptop.sync()
    assert (report.machine, report.notes, report.sent > 0) == (machine, (), True)
    assert not any(
        stamp in path.read_text() for path in (laptop.folder / machine).iterdir() for stamp in (HIGHEST[:15],)
    )


def test_purged_records_stay_purged_after_a_repair(laptop: Machine, desktop: Machine) -> None:
    id_, _ = damaged(laptop, desktop)
    with mindex_0_1_0(), suppress(InvalidRow):
        laptop.memory.purge(id_)
        laptop.sync()
    laptop.sync(repair=True)
    desktop.sync(repair=True)
    laptop.sync(), desktop.sync()
    assert laptop.memory.entries.get(id_) is desktop.memory.entries.get(id_) is None
    assert exported(laptop) == exported(desktop)


@pytest.mark.parametrize("names_changes", [True, False], ids=["this version", "0.1.0"])
def test_a_purge_of_a_wrong_clock_removes_the_record_from_all_machines_after_a_repair(
    names_changes: bool, laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not names_changes:
        monkeypatch.setattr(local_changes, "_NAMED", 0)
    market = laptop.memory.add("The market opens at eight").id
    harbour = laptop.memory.add(HARBOUR).id
    laptop.sync(), desktop.sync()
    desktop.ahead = YEARS
    with desktop.at_work() as memory:
        memory.purge(harbour)  # the stamp of this record, the highest in range, is known no more
        memory.update(market, text="The market opens in 2099")
    desktop.sync()
    desktop.ahead = 0
    update(laptop, market, "The market opens at nine")
    laptop.sync()
    assert desktop.sync(repair=True).restamped == 2
    laptop.sync(), desktop.sync()
    assert laptop.memory.entries.get(harbour) is desktop.memory.entries.get(harbour) is None
    assert record(desktop, market).text == "The market opens at nine", "a purge changes the order of other records"
    assert exported(laptop) == exported(desktop)


def test_a_repaired_purge_removes_what_a_machine_ahead_of_the_repairing_one_wrote(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.memory.add("The market opens at eight")
    laptop.ahead = DAY // 2
    with laptop.at_work() as memory:
        harbour = memory.add(HARBOUR).id
    laptop.sync(), desktop.sync()
    desktop.ahead = YEARS
    with desktop.at_work() as memory:
        memory.purge(harbour)
    desktop.sync()
    desktop.ahead = 0
    assert desktop.sync(repair=True).restamped == 1
    laptop.sync(), desktop.sync()
    assert laptop.memory.entries.get(harbour) is desktop.memory.entries.get(harbour) is None
    assert exported(laptop) == exported(desktop)


@pytest.mark.parametrize("read", [False, True], ids=["repaired first", "read first"])
def test_a_repaired_purge_of_another_machine_spares_what_was_made_again_since(
    read: bool, laptop: Machine, desktop: Machine
) -> None:
    laptop.memory.profile.set({"user.name": "Ada"})
    laptop.memory.add(HARBOUR)
    laptop.sync(), desktop.sync()
    laptop.ahead = YEARS
    with laptop.at_work() as memory:
        memory.purge(memory.profile.record().id)  # type: ignore[union-attr]
    with mindex_0_1_0():
        laptop.sync(), desktop.sync()
    laptop.ahead = 0
    laptop.sync(repair=True)
    laptop.memory.profile.set({"user.name": "Grace"})
    laptop.sync()
    laptop.clock.now += DAY
    if read:  # what 0.1.0 reads now is below the stamp of the purge
        with mindex_0_1_0():
            desktop.sync()
    assert desktop.sync(repair=True).restamped > 0
    laptop.sync(), desktop.sync()
    for one in (laptop, desktop):
        assert one.memory.profile.get()["user"]["name"] == "Grace"
    assert exported(laptop) == exported(desktop)


@pytest.mark.server
def test_a_database_on_postgresql_is_repaired_like_any_other(
    laptop: Machine, desktop: Machine, postgres_database: str
) -> None:
    from mindex.memory import Memory
    from tests.sync.machines import OPTIONS

    with Memory(postgres_database, agent="main", options=OPTIONS) as memory:
        team = Machine("team", memory, laptop.folder, laptop.clock)
        id_, _ = damaged(team, desktop)
        team.sync(repair=True)
        desktop.sync(repair=True)
        team.sync()
        assert exported(team) == exported(desktop)
        assert record(desktop, id_).text == "The harbour opens at 2"


# ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────

wrong = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 2), st.sampled_from(["jump", "back", "attack"])), max_size=6
)


def do(made: list[Machine], steps: list[tuple[Any, ...]], clocks_right: tuple[int, ...]) -> None:
    for step in steps:
        action, place, *details = step
        one = made[place]
        if action == "jump":
            one.ahead = YEARS
        elif action == "back":
            one.ahead = clocks_right[place]
        elif action == "attack":
            put_line(one, HIGHEST)
        elif action == "sync":
            try:
                one.sync()
            except (MindexError, InvalidRow):  # as 0.1.0 also failed
                with suppress(MindexError, InvalidRow):
                    one.sync(repair=True)
        elif action == "deliver":
            run(made, [step])
        else:
            with one.at_work() as memory, suppress(MindexError, IndexError):
                change(memory, action, details)


def check(steps: list[tuple[Any, ...]], wrong_clocks: list[Any], ahead: tuple[int, ...], seed: int, old: bool) -> None:
    for at, place, what in wrong_clocks:
        steps.insert(at, (what, place))
    with (
        TemporaryDirectory() as folder,
        machines(Path(folder), "a", "b", "c", url="toy://", ahead=ahead, seed=seed) as made,
    ):
        run(made, SHARED)
        sync_all(made)
        if old:
            with mindex_0_1_0():
                do(made, steps, ahead)
        else:
            do(made, steps, ahead)
        for one, right in zip(made, ahead, strict=True):
            one.ahead = right
        made[0].clock.now += 3 * DAY
        before = contents_of(made)
        for one in made:
            one.sync(repair=True)
        sync_all(made)
        made[0].clock.now += 3 * DAY  # what the slow clocks kept for later is received now
        sync_all(made)
        for one in made:
            assert one.sync(repair=True).restamped == 0
            assert stamps_check(one) == [True]
        first, *others = map(exported, made)
        for other in others:
            assert other == first
        purged = {row.record for one in made for row in one.store.sync.of_records([id_ for id_, _ in before])
                  if '"purged":true' in row.line}  # fmt: skip
        assert {one for one in before if one[0] not in purged} <= contents_of(made), "something was lost"
    DATABASES.clear()


@given(histories, wrong, clocks, seeds, st.booleans())
@settings(max_examples=25, phases=(Phase.reuse, Phase.generate))
def test_repaired_machines_that_exchanged_everything_have_the_same_entries(
    steps: list[tuple[Any, ...]], wrong_clocks: list[Any], ahead: tuple[int, ...], seed: int, old: bool
) -> None:
    check(steps, wrong_clocks, ahead, seed, old)


@pytest.mark.slow
@given(histories, wrong, clocks, seeds, st.booleans())
@settings(max_examples=HISTORIES, phases=(Phase.generate,))
def test_many_random_histories_with_wrong_clocks_end_in_equal_databases(
    steps: list[tuple[Any, ...]], wrong_clocks: list[Any], ahead: tuple[int, ...], seed: int, old: bool
) -> None:
    check(steps, wrong_clocks, ahead, seed, old)


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_exit_code_is_3_if_lines_were_dropped_and_0_if_lines_are_kept_for_later(tmp_path: Path) -> None:
    db, shared = tmp_path / "memory.db", tmp_path / "shared"
    (shared / STRANGER).mkdir(parents=True)
    (shared / STRANGER / "0001.jsonl").write_bytes(line(HIGHEST))
    ran = run_here("--db", db, "sync", shared)
    assert ran.code == 0
    assert f"warning: kept for later: 1 line of {STRANGER}/0001.jsonl from line 1 on" in ran.out
    (shared / STRANGER / "0002.jsonl").write_bytes(line(HIGHEST).replace(b"stranger", b"friend"))
    ran = run_here("--db", db, "sync", shared)
    assert ran.code == 3
    assert f"ignored {STRANGER}/0002.jsonl:1: its checksum is wrong" in ran.out
    assert "exit code is 3" in " ".join(run_here("sync", "--help").out.split())


def test_status_and_repair_exclude_each_other(tmp_path: Path) -> None:
    is_one_error(run_here("sync", tmp_path, "--status", "--repair"), "--status is read-only; remove --repair", code=2)
