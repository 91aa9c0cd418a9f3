from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

import mindex.files.file_scan as scan_module
from mindex.datatypes import SkippedFile
from mindex.files.file_scan import ScannedFile, read_bytes, scan
from mindex.files.ignore_rules import rules_from_patterns

LIMIT = 1_000


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def scan_folder(root: Path, exclude: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    found = list(scan(root, exclude=exclude, max_bytes=LIMIT))
    paths = [item.path for item in found if isinstance(item, ScannedFile)]
    return paths, {item.path: item.reason for item in found if isinstance(item, SkippedFile)}


def paths(root: Path, exclude: Sequence[str] = ()) -> list[str]:
    found, skipped = scan_folder(root, exclude)
    assert skipped == {}
    return found


def test_markdown_and_text_are_found_in_order_of_their_paths(tmp_path: Path) -> None:
    names = ["b.md", "a/z.markdown", "a.md", "a-b/c.TXT", "a/b/c.md", ".github/x.md"]
    write(tmp_path, dict.fromkeys([*names, "code.py", "a/pic.png", "md"], "x"))
    assert paths(tmp_path) == sorted(names)


def test_a_scanned_file_has_its_path_location_and_size(tmp_path: Path) -> None:
    write(tmp_path, {"a/b.md": "hello"})
    (file,) = scan(tmp_path, max_bytes=LIMIT)
    assert isinstance(file, ScannedFile)
    assert (file.path, file.location, file.size) == ("a/b.md", str(tmp_path / "a" / "b.md"), 5)
    assert file.mtime_ns == (tmp_path / "a" / "b.md").stat().st_mtime_ns
    assert read_bytes(file, max_bytes=LIMIT) == b"hello"


def test_gitignore_is_honoured_with_negation_and_nesting(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.txt\n!keep.txt\nbuild/\n/only-here.md\nlogs/**\n!logs/keep.md\n",
            "a.txt": "",
            "keep.txt": "",
            "build/x.md": "",
            "only-here.md": "",
            "sub/only-here.md": "",
            "logs/a.md": "",
            "logs/keep.md": "",
            "sub/.gitignore": "secret.md\n!b.txt\n",
            "sub/secret.md": "",
            "sub/deep/secret.md": "",
            "sub/b.txt": "",
            "secret.md": "",
        },
    )
    assert paths(tmp_path) == ["keep.txt", "logs/keep.md", "secret.md", "sub/b.txt", "sub/only-here.md"]


def test_mindexignore_adds_to_gitignore_and_may_take_back(tmp_path: Path) -> None:
    write(
        tmp_path, {".gitignore": "notes/\n", ".mindexignore": "!notes/\ndraft.md\n", "notes/a.md": "", "draft.md": ""}
    )
    assert paths(tmp_path) == ["notes/a.md"]


def test_ignore_files_above_count_up_to_the_checkout(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.md\n",  # outside the checkout
            "repo/.git/HEAD": "",
            "repo/.gitignore": "docs/private/\n*.txt\n",
            "repo/docs/a.md": "",
            "repo/docs/b.txt": "",
            "repo/docs/private/c.md": "",
        },
    )
    assert paths(tmp_path / "repo" / "docs") == ["a.md"]


def test_a_folder_that_is_itself_ignored_can_be_indexed_by_name(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", ".gitignore": "notes/\n", "notes/a.md": "", "notes/deep/b.md": "", "c.md": ""})
    assert paths(tmp_path) == ["c.md"]
    assert paths(tmp_path / "notes") == ["a.md", "deep/b.md"]
    assert paths(tmp_path / "notes" / "deep") == ["b.md"]


def test_exclude_patterns_are_final(tmp_path: Path) -> None:
    write(tmp_path, {".mindexignore": "!a.md\n", "a.md": "", "b.md": "", "old/c.md": "", "x/old/d.md": ""})
    assert paths(tmp_path, ["a.md", "/old/"]) == ["b.md", "x/old/d.md"]


def test_malformed_patterns_match_nothing(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "!\n[z-a].md\n\\\n///\n\r\nb.md\r\n", "a.md": "", "b.md": ""})
    assert paths(tmp_path, ["!", "["]) == ["a.md"]


def test_a_file_over_the_limit_is_skipped_and_named(tmp_path: Path) -> None:
    write(tmp_path, {"big.md": "x" * (LIMIT + 1), "just.md": "x" * LIMIT, "big.py": "x" * (LIMIT + 1)})
    found, skipped = scan_folder(tmp_path)
    assert found == ["just.md"]
    assert skipped == {"big.md": "too large: 1,001 bytes, the limit is 1,000 (index.max_bytes)"}


def test_version_control_folders_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {".git/x.md": "", "sub/.git/y.md": "", ".hg/z.md": "", "a.md": ""})
    assert paths(tmp_path) == ["a.md"]


def test_links_are_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path, {"root/a.md": "", "outside/secret.md": "secret"})
    (root / "loop").symlink_to(root)
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "broken.md").symlink_to("nowhere")
    (root / "self.md").symlink_to("self.md")
    (root / "other.py").symlink_to(root / "a.md")
    found, skipped = scan_folder(root)
    assert found == ["a.md"]
    assert set(skipped) == {"loop", "out", "file.md", "broken.md", "self.md"}
    assert {skipped[name] for name in ("loop", "out", "file.md", "broken.md")} == {"symbolic link, not followed"}


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="the system cannot refuse links when it opens a file")
def test_a_file_that_becomes_a_link_after_the_scan_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"root/a.md": "", "secret.md": "secret"})
    (file,) = scan(tmp_path / "root", max_bytes=LIMIT)
    assert isinstance(file, ScannedFile)
    Path(file.location).unlink()
    Path(file.location).symlink_to(tmp_path / "secret.md")
    assert isinstance(read_bytes(file, max_bytes=LIMIT), SkippedFile)


def test_a_file_that_grew_or_went_away_after_the_scan_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x"})
    (file,) = scan(tmp_path, max_bytes=LIMIT)
    assert isinstance(file, ScannedFile)
    Path(file.location).write_text("x" * (LIMIT + 1))
    assert read_bytes(file, max_bytes=LIMIT) == SkippedFile(
        "a.md", "too large: 1,001 bytes, the limit is 1,000 (index.max_bytes)"
    )
    Path(file.location).unlink()
    gone = read_bytes(file, max_bytes=LIMIT)
    assert isinstance(gone, SkippedFile) and gone.reason.startswith("cannot be read: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert scan_folder(tmp_path) == ([], {"pipe.md": "not a regular file"})
    pipe = ScannedFile("pipe.md", str(tmp_path / "pipe.md"), 0, 0)
    assert read_bytes(pipe, max_bytes=LIMIT) == SkippedFile("pipe.md", "not a regular file")


@pytest.mark.skipif(os.name == "nt", reason="such names cannot exist there")
def test_odd_names_are_found_as_they_are(tmp_path: Path) -> None:
    names = ["line\nbreak.md", "quo\"te's.md", " space .md", "-flag.md", "東京.md", "*.md", "back\\slash.md"]
    write(tmp_path, dict.fromkeys(names, "x"))
    assert paths(tmp_path) == sorted(names)


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="such names cannot exist there")
def test_a_name_that_is_not_utf8_is_skipped_in_printable_form(tmp_path: Path) -> None:
    (tmp_path / "good.md").touch()
    os.mkdir(os.fsencode(tmp_path) + b"/f\xe9")  # noqa: PTH102 - a name of bytes
    for name in (b"caf\xe9.md", b"f\xe9/a.md", b"caf\xe9.py"):
        with open(os.fsencode(tmp_path) + b"/" + name, "wb"):  # noqa: PTH123
            pass
    found, skipped = scan_folder(tmp_path)
    assert found == ["good.md"]
    assert skipped == dict.fromkeys(["caf\\xe9.md", "f\\xe9/"], "its name is not valid UTF-8; rename it")


def test_a_missing_root_is_reported_not_raised(tmp_path: Path) -> None:
    found, skipped = scan_folder(tmp_path / "nowhere")
    assert found == [] and skipped["./"].startswith("folder cannot be read: ")


def test_a_folder_that_cannot_be_read_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.md": "", "locked/b.md": "", "z.md": ""})
    refuse(monkeypatch, tmp_path / "locked", PermissionError(13, "Permission denied"))
    assert scan_folder(tmp_path) == (["a.md", "z.md"], {"locked/": "folder cannot be read: Permission denied"})


def test_a_folder_deleted_during_the_scan_is_simply_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.md": "", "gone/b.md": "", "z.md": ""})
    refuse(monkeypatch, tmp_path / "gone", FileNotFoundError(2, "No such file or directory"))
    assert paths(tmp_path) == ["a.md", "z.md"]


def test_the_root_may_vanish_while_its_files_are_being_taken(tmp_path: Path) -> None:
    write(tmp_path, {"root/a.md": "", "root/sub/b.md": ""})
    found = scan(tmp_path / "root", max_bytes=LIMIT)
    assert isinstance(next(found), ScannedFile)
    (tmp_path / "root").rename(tmp_path / "elsewhere")
    assert list(found) == []


def refuse(monkeypatch: pytest.MonkeyPatch, folder: Path, error: OSError) -> None:
    """Root may read everything, so the system's refusal is played here."""
    real = os.scandir

    def scandir(path: str) -> object:
        if path == str(folder):
            raise error
        return real(path)

    monkeypatch.setattr(scan_module.os, "scandir", scandir)


GLOBS = st.text(alphabet="ab*?/.", min_size=1, max_size=10)
# A scan makes no path with an empty part or one that begins with `./`, which pathspec takes off.
PATHS = st.text(alphabet="ab./", min_size=1, max_size=12).filter(
    lambda path: not path.startswith(("/", "./")) and "//" not in path
)


@settings(max_examples=1_000)
@given(GLOBS, PATHS)
def test_a_pattern_ignores_what_it_does_in_pathspec(line: str, path: str) -> None:
    try:
        theirs = GitIgnoreSpec.from_lines([f"{line}/*" if line.endswith("/**") else line]).check_file(path).include
    except ValueError:
        return
    assert rules_from_patterns([line]).ignores(path) == bool(theirs)


@pytest.mark.parametrize(
    "line", ["*a*a*a*a*a*a*a*a*a*a*b.md", "*" * 60 + "x", "[ab]*" * 20 + "c.md", "**/a/" * 20 + "b"]
)
def test_no_pattern_takes_long(line: str) -> None:
    rules = rules_from_patterns([line])
    started = time.process_time()
    for path in ("a" * 250 + ".md", "a/" * 100 + "x.md"):
        assert not rules.ignores(path)
    assert time.process_time() - started < 5  # minutes, or years, before
