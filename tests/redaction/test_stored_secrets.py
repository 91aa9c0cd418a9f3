"""`scan` finds secrets wherever they are stored, and `scan --fix` leaves none of them in the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindex.clock import now_ms
from mindex.datatypes import SecretFinding
from mindex.memory import Memory
from mindex.store.base import Access
from tests.running import run_here

PIECES = [f"{place:02}Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2U" for place in range(20)]


def token(place: int) -> str:
    """A different token for each place, so that a finding says where it was."""
    return "gh" + "p_" + PIECES[place]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_DB", str(tmp_path / "memory.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "memory.db"


def unprotected(database: Path) -> Memory:
    """A memory that stores secrets, as one did before there were rules for them."""
    return Memory(database, options={"secrets.mode": "off", "embedding.provider": "none"})


def content(database: Path) -> bytes:
    return b"".join(path.read_bytes() for path in database.parent.glob(f"{database.name}*"))


@pytest.fixture
def filled(database: Path, tmp_path: Path) -> Path:
    """A database with a secret at each place that there is; `clean` is an entry without one."""
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "a.md").write_text(f"# Keys\n\nThe key is {token(0)} here.\n", encoding="utf-8")
    (notes / f"{token(1)}.md").write_text("# Parcels\n\nNothing in it.\n", encoding="utf-8")
    (notes / "clean.md").write_text("# Clean\n\nThe harbour office is closed.\n", encoding="utf-8")
    with unprotected(database) as memory:
        memory.index(notes, name="notes", exclude=[f"*{token(2)}*"], context=f"about {token(3)}")
        memory.add("The clean memory.", title="clean")
        memory.add(f"The key is {token(4)}.")
        memory.add("A summary.", summary=f"It is {token(5)}")
        forgotten = memory.add(f"Forgotten: {token(6)}").id
        memory.forget(forgotten)
        updated = memory.add(f"Former text with {token(7)}").id
        memory.update(updated, text="A later text.", reason=f"was {token(8)}")
        memory.profile.set({"city": f"Oslo {token(9)}"})
        memory.profile.set({"city": "Oslo"})
        memory.conversations.add(f"my key: {token(10)}", "noted")
        known = memory.add("The lighthouse is white.").id
        store = memory.store
        store.entries.log_access([Access(known, now_ms(), "search", f"where is {token(11)}", 0.5)], oldest=0, rows=100)
        store.caches.put_many("expansion", {"key": json.dumps([token(12)]).encode()}, now=True)
        store.settle()
    assert all(piece.encode() in content(database) for piece in PIECES[:13])
    return database


PLACES = {
    0: "text", 1: "document", 2: "collection", 3: "collection", 4: "text", 5: "properties", 6: "text", 7: "history",
    8: "history", 9: "history", 10: "text", 11: "query", 12: "cache",
}  # fmt: skip


def scanned(database: Path) -> tuple[SecretFinding, ...]:
    with Memory(database, options={"embedding.provider": "none"}) as memory:
        return memory.maintenance.scan()


def test_a_secret_is_found_at_every_place_that_there_is(filled: Path) -> None:
    found = scanned(filled)
    assert sorted({one.place for one in found}) == sorted(set(PLACES.values()))
    by_place = {place: sum(one.place == place for one in found) for place in set(PLACES.values())}
    assert by_place["collection"] == 2 and by_place["query"] == 1 and by_place["cache"] == 1
    assert by_place["history"] >= 3 and by_place["document"] >= 1
    assert {one.kind for one in found} == {"github-token"}


def test_a_scan_shows_no_secret(filled: Path) -> None:
    ran = run_here("scan")
    assert ran.code == 1
    shown = ran.out + ran.err + json.dumps(run_here("scan", "--json").json)
    assert not [piece for piece in PIECES if piece[:10] in shown]
    assert "[redacted:github-token].md" in shown and "`mindex scan --fix`" in shown


def test_fixing_leaves_no_secret_in_the_file_and_everything_else_as_it_was(filled: Path) -> None:
    ran = run_here("scan", "--fix", "--yes")
    assert ran.code == 0, ran
    assert "removed: " in ran.out and "1 query" in ran.out and "1 cache" in ran.out and "2 files" in ran.out
    assert not [piece for piece in PIECES if piece.encode() in content(filled)]
    assert scanned(filled) == ()
    with Memory(filled, options={"embedding.provider": "none"}) as memory:
        assert memory.search("harbour office").hits and memory.search("lighthouse").hits
        assert [one.title for one in memory.list().records if one.title == "clean"] == ["clean"]
        (collection,) = memory.collections.list()
        assert (collection.exclude, collection.context) == ((), "about [redacted:github-token]")
        again = memory.index()
        assert [one.new for one in again.collections] == [1]  # a.md; the file with the token in its name is skipped
        assert "[redacted:github-token]" in memory.search("Keys").hits[0].record.text


def test_a_collection_named_by_a_secret_is_removed(database: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Parcels\n\nNothing in it.\n", encoding="utf-8")
    with unprotected(database) as memory:
        memory.index(notes, name=token(1))
    ran = run_here("scan", "--fix", "--yes", "--json")
    assert ran.json["removed"]["collections"] == 1
    with Memory(database, options={"embedding.provider": "none"}) as memory:
        assert memory.collections.list() == ()
    assert PIECES[1].encode() not in content(database)


def test_without_a_terminal_and_without_yes_nothing_is_removed(filled: Path) -> None:
    before = len(scanned(filled))
    ran = run_here("scan", "--fix")
    assert ran.code != 0 and "--yes" in ran.err
    assert len(scanned(filled)) == before


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
def test_on_a_terminal_it_asks_first(filled: Path) -> None:
    before = len(scanned(filled))
    assert answered("n") == (1, True)
    assert len(scanned(filled)) == before
    assert answered("y") == (0, True)
    assert scanned(filled) == ()


def answered(answer: str) -> tuple[int, bool]:
    """Run `scan --fix` on a terminal and give it an answer. Returns the exit code, and whether it asked."""
    master, terminal = os.openpty()
    try:
        os.write(master, f"{answer}\n".encode())
        command = [sys.executable, "-m", "mindex", "scan", "--fix"]
        ran = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=60, check=False)
    finally:
        os.close(master)
        os.close(terminal)
    return ran.returncode, "Remove what holds them" in ran.stderr


def test_a_store_without_secrets_is_left_alone(database: Path) -> None:
    with Memory(database, options={"embedding.provider": "none"}) as memory:
        memory.add("The clean memory.")
    assert run_here("scan").out.strip() == "no secrets found"
    assert run_here("scan", "--fix", "--yes").code == 0
