"""Files and folders as they are in the wild: one bad file among many is skipped, named and counted, nothing else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.datatypes import IndexReport, Progress, SkippedFile
from mindex.errors import MindexError
from mindex.files import file_scan as scan_module
from mindex.files import indexer as indexer_module
from mindex.files.file_scan import ScannedFile
from mindex.memory import Memory
from tests.conftest import write
from tests.running import is_one_error, open_up, run_as_nobody, within

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX file system")


def reasons(report: IndexReport) -> dict[str, str]:
    return {skip.path: skip.reason for skip in report.skipped}


def paths(memory: Memory, query: str) -> set[str]:
    return {hit.record.path for hit in memory.search(query, limit=50).hits}


def is_sound(memory: Memory) -> bool:
    return all(check.ok for check in memory.doctor())


# ── encodings ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("latin-1", "Die Größe der Tür beträgt zwei Meter.".encode("latin-1")),
        ("windows-1252", "Die „Größe“ der Tür – zwei Meter.".encode("cp1252")),
        ("utf-16-le", b"\xff\xfe" + "Die Größe der Tür.".encode("utf-16-le")),
        ("utf-16-be", b"\xfe\xff" + "Die Größe der Tür.".encode("utf-16-be")),
        ("utf-8-bom", b"\xef\xbb\xbf" + "Die Größe der Tür.".encode()),
        ("utf-8-with-errors", "Die Größe der Tür ist ".encode() + b"\xff\xc3( kaputt."),
        ("utf-8-cut-short", "Die Größe der Tür und ü".encode()[:-1]),
    ],
)
def test_words_are_found_in_every_encoding(keyword_memory: Memory, tmp_path: Path, name: str, data: bytes) -> None:
    root = write(tmp_path / "docs", {"other.md": "nothing of the kind"})
    (root / f"{name}.md").write_bytes(data)
    assert reasons(keyword_memory.index(root)) == {}
    for word in ("Größe", "tür"):
        assert paths(keyword_memory, word) == {f"{name}.md"}, word
    (record,) = keyword_memory.get(f"{name}.md").records
    assert "Größe" in record.text


def test_line_ends_of_every_system_give_the_same_lines(keyword_memory: Memory, tmp_path: Path) -> None:
    text = "# One\n\nfirst words\n\n# Two\n\nsecond words\n"
    root = tmp_path / "docs"
    root.mkdir()
    for name, end in (("unix", "\n"), ("dos", "\r\n"), ("mac", "\r")):
        (root / f"{name}.md").write_bytes(text.replace("\n", end).encode())
    keyword_memory.index(root)
    lines = {(hit.record.first_line, hit.record.last_line) for hit in keyword_memory.search("second").hits}
    assert len(keyword_memory.search("second").hits) == 3
    assert lines == {(5, 7)}
    assert {record.text for record in keyword_memory.get("*.md").records} == {text.rstrip("\n")}


# ── contents ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_binary_empty_and_oversized_files_among_good_ones(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"good.md": "harbour", "empty.md": "", "blank.md": " \n\n\t\n"})
    (root / "image.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + os.urandom(2000))
    with (root / "huge.md").open("wb") as huge:
        huge.truncate(50 * 1024 * 1024)
    report = keyword_memory.index(root)
    (one,) = report.collections
    assert set(reasons(report)) == {"image.md", "huge.md"}
    assert "binary" in reasons(report)["image.md"]
    assert "too large: 52,428,800 bytes" in reasons(report)["huge.md"]
    assert "index.max_bytes" in reasons(report)["huge.md"]
    assert (one.seen, one.new, one.skipped, one.chunks_added) == (3, 3, 2, 1)
    assert paths(keyword_memory, "harbour") == {"good.md"}


def test_what_is_skipped_is_not_new_at_every_run(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"good.md": "harbour"})
    (root / "image.md").write_bytes(b"\0" * 100)
    keyword_memory.index(root)
    (again,) = keyword_memory.index(root).collections
    assert (again.seen, again.new, again.changed, again.unchanged, again.skipped) == (1, 0, 0, 1, 1)


def test_a_file_that_grew_too_large_leaves_with_its_chunks(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"log.md": "harbour", "other.md": "crane"})
    keyword_memory.index(root)
    (root / "log.md").write_text("harbour " * 400_000)
    report = keyword_memory.index(root)
    assert set(reasons(report)) == {"log.md"}
    assert report.collections[0].chunks_removed == 1
    assert paths(keyword_memory, "harbour") == set()
    assert paths(keyword_memory, "crane") == {"other.md"}
    assert is_sound(keyword_memory)


def test_a_file_that_turned_binary_counts_its_lost_chunks(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# One\n\nharbour\n\n# Two\n\ncrane"})
    keyword_memory.index(root)
    (root / "a.md").write_bytes(b"\0\0")
    (report,) = keyword_memory.index(root).collections
    assert (report.changed, report.skipped, report.chunks_removed) == (0, 1, 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a fence that never closes", "# Log\n\nharbour\n\n```\n" + "line of code\n" * 150_000 + "thelastword\n"),
        ("ten thousand headings", "".join(f"# Heading {n}\n\nharbour thelastword {n}\n\n" for n in range(10_000))),
        ("one endless line", "harbour " + "word " * 300_000 + "thelastword"),
        ("one endless word", "harbour thelastword\n\n" + "x" * 1_500_000),
        ("deep quotes", "harbour thelastword\n\n" + ">" * 5_000 + " deep\n"),
        ("deep lists", "harbour thelastword\n\n" + "".join("  " * n + "- item\n" for n in range(600))),
        ("brackets", "harbour thelastword\n\n" + "[" * 50_000),
        ("a table of 20,000 rows", "harbour\n\n| a | b |\n|---|---|\n" + "| thelastword | y |\n" * 20_000),
        ("backticks", "harbour thelastword\n\n" + "`" * 50_000 + "\n" + "``` " * 20_000),
        ("stars", "harbour thelastword\n\n" + "*a **a " * 20_000),
        ("front matter that never ends", "---\ntitle: harbour thelastword\n" + "key: value\n" * 50_000),
        ("front matter of aliases", "---\na: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\ntags: *c\n---\n"
         "harbour thelastword"),
    ],
    ids=lambda value: value if len(value) < 40 else "",
)  # fmt: skip
def test_monstrous_files_are_indexed_to_their_last_word(
    keyword_memory: Memory, tmp_path: Path, name: str, text: str
) -> None:
    root = write(tmp_path / "docs", {"monster.md": text, "good.md": "crane"})
    report = keyword_memory.index(root)
    assert reasons(report) == {}
    assert report.seconds < 120  # a few seconds; with the square of the length it would be hours
    assert paths(keyword_memory, "thelastword") == {"monster.md"}
    assert paths(keyword_memory, "crane") == {"good.md"}
    assert is_sound(keyword_memory)


def test_a_fence_of_200_000_lines_is_skipped_by_size_and_named(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"fence.md": "```\n" + "a line of code\n" * 200_000})
    assert "too large" in reasons(keyword_memory.index(root))["fence.md"]


def test_a_fence_of_200_000_lines_is_read_where_the_limit_allows_it(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"fence.md": "harbour\n\n~~~\n" + "a line of code\n" * 200_000 + "thelastword\n"})
    with Memory(tmp_path / "m.db", options={"embedding.provider": "none", "index.max_bytes": 50_000_000}) as memory:
        assert reasons(memory.index(root)) == {}
        assert paths(memory, "thelastword") == {"fence.md"}
        assert memory.list().total > 100  # cut at blank lines or sizes, and all of it kept


# ── names and links ───────────────────────────────────────────────────────────────────────────────────────────


@unix_only
def test_names_of_every_kind_are_indexed_or_named(keyword_memory: Memory, tmp_path: Path) -> None:
    names = ["new\nline.md", "tab\there.md", "it's.md", 'say "hi".md', "-dash.md", "a b.md", "größe.md", "*.md", "%.md",
             "\x1b[31m.md", "-.md", "con.md", "x" * 240 + ".md", "UPPER.MD", "dots..md", "..md"]  # fmt: skip
    root = write(tmp_path / "docs", dict.fromkeys(names, "harbour"))
    (root / os.fsdecode(b"br\xf6ken.md")).write_text("harbour")
    report = keyword_memory.index(root)
    assert list(reasons(report)) == ["br\\xf6ken.md"]
    assert "UTF-8" in reasons(report)["br\\xf6ken.md"]
    assert {record.path for record in keyword_memory.list(limit=50).records} == set(names)
    for name in names:
        assert keyword_memory.lookup.read_file(name).text == "harbour"


@unix_only
def test_links_that_loop_or_leave_the_folder_are_not_followed(keyword_memory: Memory, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"secret.md": "topsecret"})
    root = write(tmp_path / "docs", {"real.md": "harbour", "deep/below.md": "crane"})
    (root / "loop").symlink_to(root)
    (root / "deep" / "up").symlink_to("..")
    (root / "itself.md").symlink_to("itself.md")
    (root / "dangling.md").symlink_to("nowhere.md")
    (root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "outside").symlink_to(tmp_path / "outside")
    report = keyword_memory.index(root)
    assert set(reasons(report)) == {"loop", "deep/up", "itself.md", "dangling.md", "out.md", "outside"}
    assert all("symbolic link" in reason for reason in reasons(report).values())
    assert paths(keyword_memory, "topsecret") == set()
    assert {record.path for record in keyword_memory.list().records} == {"real.md", "deep/below.md"}


@unix_only
def test_pipes_and_sockets_are_not_waited_for(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"good.md": "harbour", "later.md": "crane"})
    os.mkfifo(root / "pipe.md")
    assert reasons(keyword_memory.index(root)) == {"pipe.md": "not a regular file"}
    (root / "later.md").unlink()
    os.mkfifo(root / "later.md")
    assert within(60, lambda: keyword_memory.get("later.md").missing) == ("later.md",)
    assert paths(keyword_memory, "harbour") == {"good.md"}


def test_a_folder_called_like_a_file_is_a_folder(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"notes.md/inner.md": "harbour"})
    assert reasons(keyword_memory.index(root)) == {}
    assert paths(keyword_memory, "harbour") == {"notes.md/inner.md"}


# ── rights ────────────────────────────────────────────────────────────────────────────────────────────────────


def index_for_everybody(root: Path, place: Path) -> dict[str, str]:
    """A database that every user may write, and the settings to use it."""
    place.mkdir()
    env = {"MINDEX_DB": str(place / "memory.db"), "MINDEX_EMBEDDING_PROVIDER": "none"}
    with Memory(place / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.index(root)
    open_up(place)
    return env


@unix_only
def test_unreadable_files_and_folders_are_named_and_what_is_known_of_them_is_kept(public_path: Path) -> None:
    root = write(
        public_path / "docs",
        {"good.md": "harbour", "closed.md": "crane", "cellar/deep.md": "anchor", "new/x.md": "rope"},
    )
    env = index_for_everybody(root, public_path / "place")
    (root / "closed.md").chmod(0)
    (root / "cellar").chmod(0)
    index, anchor, rope, get = run_as_nobody(
        ["index", root, "--force", "--json"],
        ["search", "anchor", "--json"],
        ["search", "rope", "--json"],
        ["get", "cellar/deep.md"],
        env=env,
    )
    assert index.code == 0, index
    assert {skip["path"]: "Permission denied" in skip["reason"] for skip in index.json["skipped"]} == {
        "closed.md": True,
        "cellar/": True,
    }
    assert index.json["collections"][0]["files"]["deleted"] == 0
    assert anchor.json["total"] == rope.json["total"] == 1
    assert get.code == 1


@unix_only
def test_a_root_that_cannot_be_read_loses_nothing(public_path: Path) -> None:
    root = write(public_path / "docs", {"good.md": "harbour"})
    env = index_for_everybody(root, public_path / "place")
    root.chmod(0)
    named, unnamed, search = run_as_nobody(
        ["index", root], ["index", "--json"], ["search", "harbour", "--json"], env=env
    )
    is_one_error(named, "not readable", code=2)
    assert unnamed.code == 0, unnamed
    assert [skip["path"] for skip in unnamed.json["skipped"]] == ["./"]
    assert search.json["total"] == 1


# ── folders that change under our eyes ────────────────────────────────────────────────────────────────────────


def test_a_folder_deleted_during_the_scan(
    keyword_memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "docs", {f"{part}/{n}.md": f"harbour {n}" for part in "abc" for n in range(5)})
    keyword_memory.index(root)
    scan = scan_module.scan

    def vanishing(*arguments: object, **options: object) -> Iterator[ScannedFile | SkippedFile]:
        for number, found in enumerate(scan(*arguments, **options)):  # type: ignore[arg-type]
            yield found
            if number == 6:
                shutil.rmtree(root / "b")
                shutil.rmtree(root / "c")

    monkeypatch.setattr(indexer_module, "scan", vanishing)
    keyword_memory.index(root, force=True)
    monkeypatch.undo()
    keyword_memory.index(root)
    assert {path.split("/")[0] for path in paths(keyword_memory, "harbour")} == {"a"}
    assert is_sound(keyword_memory)


def test_a_root_deleted_during_the_scan_does_not_crash_and_comes_back(
    keyword_memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{n:02}.md": f"harbour {n}" for n in range(30)}
    root = write(tmp_path / "docs", files)

    def vanish(progress: Progress) -> None:
        if progress.done == 10:
            shutil.rmtree(root, ignore_errors=True)

    report = keyword_memory.index(root, report=vanish)
    assert len(report.skipped) == 20
    write(root, files)
    keyword_memory.index(root)
    assert len(paths(keyword_memory, "harbour")) == 30
    assert is_sound(keyword_memory)


def test_files_deleted_between_scan_and_reading_are_named_and_others_kept(
    keyword_memory: Memory, tmp_path: Path
) -> None:
    root = write(tmp_path / "docs", {f"{n}.md": f"harbour {n}" for n in range(5)})

    def remove(progress: Progress) -> None:
        (root / "4.md").unlink(missing_ok=True)

    assert set(reasons(keyword_memory.index(root, report=remove))) == {"4.md"}
    assert len(paths(keyword_memory, "harbour")) == 4


@pytest.mark.parametrize("strange", ["\0", "x" * 5_000, "no/such/place", "~nobodyatall/x"])
def test_a_strange_folder_is_an_error_of_ours(keyword_memory: Memory, strange: str) -> None:
    with pytest.raises(MindexError):
        keyword_memory.index(strange)
