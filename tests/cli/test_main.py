"""What all commands share: help, global options, streams, errors and exit codes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import mindex as package
from mindex.cli import output
from mindex.cli.main import cli
from mindex.cli.output import ProgressBar
from mindex.datatypes import Progress
from mindex.memory import Memory
from tests.cli.conftest import Mindex
from tests.conftest import write
from tests.databases import Databases
from tests.running import finish, is_one_error, run, start

COMMANDS = cli.list_commands(click.Context(cli))


def every_option() -> Iterator[tuple[str, click.Parameter]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            yield name, parameter


# ── help ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_command_is_listed_with_a_sentence(mindex: Mindex) -> None:
    listed = mindex("--help").out.partition("Files:")[2].splitlines()
    found = {line.split()[0]: line.split(maxsplit=1)[1] for line in listed if line.startswith("  ")}
    assert list(found) == COMMANDS
    assert not any(sentence.endswith("...") for sentence in found.values())  # cut at 80 columns
    assert set(COMMANDS) >= {"index", "watch", "search", "get", "list", "status", "doctor", "config", "paths", "serve"}
    assert all(len(sentence) > 10 for sentence in found.values())


def test_commands_are_listed_by_topic(mindex: Mindex) -> None:
    topics = mindex("--help").out.partition("Options:")[2].split("\n\n")[1:]
    by_topic = {lines[0]: [line.split()[0] for line in lines[1:]] for lines in map(str.splitlines, topics)}
    assert by_topic["Search:"] == ["search", "get", "list", "tags", "types", "web"]
    assert by_topic["Clients:"][:4] == ["setup", "install", "serve", "token"]
    assert len(by_topic) > 5


@pytest.mark.parametrize("words", [[], ["search"], ["conversation"], ["conversation", "add"], ["models", "pull"]])
def test_help_shows_what_the_option_shows(mindex: Mindex, words: list[str]) -> None:
    ran = mindex("help", *words)
    assert (ran.code, ran.out, ran.err) == (0, mindex(*words, "--help").out, "")
    assert mindex("help", *words, "--json").json == {"help": ran.out.rstrip("\n")}


def test_help_of_what_does_not_exist_is_an_error(mindex: Mindex) -> None:
    is_one_error(mindex("help", "serach"), "No such command 'serach'; did you mean `mindex search`?", code=2)
    is_one_error(mindex("help", "search", "x"), "`mindex search` has no command 'x'", code=2)
    is_one_error(mindex("help", "conversation", "x"), "No such command 'x'", code=2)


@pytest.mark.parametrize(
    "group",
    [
        *("token", "profile", "contact", "project", "skill", "conversation"),
        pytest.param("admin", marks=pytest.mark.extension("mindex_postgres")),
    ],
)
def test_a_group_without_a_command_shows_its_help(mindex: Mindex, group: str) -> None:
    ran = mindex(group)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == mindex(group, "--help").out


def test_mindex_alone_shows_the_help(mindex: Mindex) -> None:
    ran = mindex()
    assert (ran.code, ran.out, ran.err) == (0, mindex("--help").out, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(mindex: Mindex, command: str) -> None:
    for flag in ("--help", "-h"):
        ran = mindex(command, flag)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"Usage: mindex {command}")
        assert len(ran.out.splitlines()[2].strip()) > 10


def test_every_option_has_help() -> None:
    for command, parameter in every_option():
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{command} {parameter.name}"


def test_the_version_is_the_packages(mindex: Mindex) -> None:
    assert package.__version__ in mindex("--version").out
    assert mindex("-V").out == mindex("--version").out


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["nope"], "No such command 'nope'"),
        (["search"], "Missing argument 'QUERY'"),
        (["get"], "Missing argument"),
        (["status", "extra"], "unexpected extra argument"),
        (["--nope", "status"], "No such option '--nope'"),
        (["status", "--db"], "'--db' requires an argument"),
        (["search", "x", "--agent"], "'--agent' requires an argument"),
        (["--json"], "Missing command"),
        (["backfill", "--batch", "x"], "not a valid integer"),
        (["paths", "--verbose"], "No such option '--verbose'"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(mindex: Mindex, wrong: list[str], message: str) -> None:
    if "--json" not in wrong:
        is_one_error(mindex(*wrong), message, "--help", code=2)
    if not wrong[-1].startswith(("--db", "--agent")):
        ran = mindex(*wrong, *([] if "--json" in wrong else ["--json"]))
        assert (ran.code, ran.err) == (2, "")
        assert set(ran.json) == {"error"}
        assert set(ran.json["error"]) == {"kind", "message", "hint"}
        assert ran.json["error"]["kind"] == "usage"
        assert message in ran.json["error"]["message"]


def test_a_misspelt_command_gets_a_suggestion(mindex: Mindex) -> None:
    is_one_error(mindex("serach", "x"), "No such command 'serach'; did you mean `mindex search`?", code=2)
    assert mindex("serach", "--json").json["error"]["hint"] == "did you mean `mindex search`?"


@pytest.mark.parametrize("command", [["search", "x"], ["status"], ["list"], ["get", "x"], ["index", "."], ["doctor"],
                                     ["backfill"], ["optimize"], ["watch"]])  # fmt: skip
def test_a_failure_is_the_same_object_for_every_command(mindex: Mindex, tmp_path: Path, command: list[str]) -> None:
    ran = mindex("--db", tmp_path, *command, "--json")
    assert (ran.code, ran.err) == (1, "")
    assert ran.json["error"]["kind"] == "store"
    assert "is a folder" in ran.json["error"]["message"]
    assert ran.json["error"]["hint"]


def test_a_bug_is_one_line_too(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "status", lambda _: 1 / 0)
    is_one_error(mindex("status"), "unexpected ZeroDivisionError", "test_main.py", "please report")
    assert mindex("status", "--json").json["error"]["kind"] == "error"


# ── global options ────────────────────────────────────────────────────────────────────────────────────────────


def test_global_options_may_follow_the_command(mindex: Mindex, indexed: Path, databases: Databases) -> None:
    other = databases.new(indexed.parent / "other.db")
    Memory(other).close()
    ways = [
        ["--json", "--db", other, "--agent", "bob", "status"],
        ["status", "--json", "--db", other, "--agent", "bob"],
        ["--db", other, "status", "--agent=bob", "--json"],
        [f"--db={other}", "--json", "status", "--agent", "bob"],
    ]
    answers = [mindex(*way).json for way in ways]
    assert {answer["db"] for answer in answers} == {other}
    assert answers[0]["records"] == {}


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def on_a_terminal(*arguments: object, env: dict[str, str]) -> str:
    """What a command prints when stdout is a terminal."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", *map(str, arguments)]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env={**os.environ, **env}) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the way a terminal ends
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        assert process.wait() == 0
    return shown.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.slow
def test_colour_is_for_terminals_that_want_it(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for view in ("full", "compact"):
        coloured = on_a_terminal("search", "redis", "--view", view, env={})
        plain = on_a_terminal("search", "redis", "--view", view, env={"NO_COLOR": "1"})
        assert "\x1b[" in coloured
        assert "\x1b[" not in plain
    assert on_a_terminal("search", "redis", "--json", env={}).count("\x1b") == 0


def test_progress_is_drawn_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        with ProgressBar() as bar:
            bar(Progress("chunk", 1, 2, "an odd\nname\x1b[2J.md"))
        captured = capsys.readouterr()
        assert captured.out == ""
        assert ("1/2" in captured.err) is terminal
    assert "an odd?name?[2J.md" in captured.err


def test_progress_without_a_terminal_is_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    monkeypatch.setattr(output, "monotonic", lambda: 100.0)
    with ProgressBar(lines=True) as bar, ProgressBar() as silent:
        for second in range(13):
            monkeypatch.setattr(output, "monotonic", lambda second=second: 100.0 + second)
            bar(Progress("embed", 10 * second, 2000))
            silent(Progress("embed", 10 * second, 2000))
    assert capsys.readouterr() == ("", "embed 50/2,000 · 10/s · 3 min left\nembed 100/2,000 · 10/s · 3 min left\n")


def drawn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *steps: tuple[float, Progress]) -> str:
    """The last line of a progress bar whose steps came at these seconds."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ProgressBar() as bar:
        for second, progress in steps:
            monkeypatch.setattr(output, "monotonic", lambda second=second: second)
            bar(progress)
    return capsys.readouterr().err.rpartition("\r\x1b[K")[0].rpartition("\x1b[K")[2]


@pytest.mark.parametrize(
    ("seconds", "done", "shown"),
    [
        (10, 400, "400/2,000 · 40/s · 40 s left a.md"),
        (10, 20, "20/2,000 · 2.0/s · 16 min left a.md"),
        (60, 6, "6/2,000 · 6.0/min · 5.5 h left a.md"),
        (0.5, 400, "400/2,000 a.md"),  # too early to tell
        (5, 0, "0/2,000 a.md"),
        (10, 2000, "2,000/2,000 · 200/s · 0 s left a.md"),
    ],
)
def test_progress_shows_the_rate_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float, done: int, shown: str
) -> None:
    steps = (100, Progress("chunk", 0, 2000, "a.md")), (100 + seconds, Progress("chunk", done, 2000, "a.md"))
    assert drawn(monkeypatch, capsys, *steps).endswith(f" {shown}")


def test_the_rate_is_that_of_the_stage_and_of_what_this_run_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (0, Progress("chunk", 0, 9)), (50, Progress("chunk", 9, 9))
    resumed = (60, Progress("pull", 300, 500, "a.onnx", "MB")), (70, Progress("pull", 400, 500, "a.onnx", "MB"))
    assert drawn(monkeypatch, capsys, *before, *resumed).endswith(" 400/500 MB · 10 MB/s · 10 s left a.onnx")
    next_folder = (60, Progress("chunk", 0, 90)), (62, Progress("chunk", 60, 90))
    assert " 60/90 · 30/s · 1 s left" in drawn(monkeypatch, capsys, *before, *next_folder)


@pytest.fixture
def searched(tmp_path: Path, database: str) -> str:
    """A database whose answers are longer than a pipe holds."""
    root = write(tmp_path / "docs", {f"{n}.md": "harbour " * 230 for n in range(50)})
    with Memory(database) as memory:
        memory.index(root)
    return database


def test_a_closed_pipe_is_not_an_error(searched: str) -> None:
    process = start("search", "harbour", "--limit", 50, "--db", searched)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("50 of 50")
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_pipe_that_is_never_read_is_not_an_error(searched: str) -> None:
    process = start("list", "--limit", 50, "--json", "--db", searched)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_behind_stdout_is_one_line(searched: str, more: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-c", "from mindex.cli.main import main; main()", "status", "--db", searched, *more],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert "No space left" in done.stderr


@pytest.mark.slow
def test_any_language_under_the_plainest_locale(tmp_path: Path, database: str) -> None:
    root = write(tmp_path / "ordner", {"größe.md": "Die Größe der Tür.", "東京.md": "東京の天気 🦀"})
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "", "PYTHONIOENCODING": "", "PYTHONCOERCECLOCALE": "0"}
    assert run("index", root, "--db", database, env=plain).code == 0
    ran = run("search", "größe", "--db", database, env=plain)
    assert (ran.code, ran.err) == (0, "")
    assert "Die Größe der Tür." in ran.out
    assert run("search", "東京", "--db", database, "--json", env=plain).json["results"][0]["text"] == "東京の天気 🦀"
    assert "Tür" in run("search", "Tür nirgends", "--db", database, env=plain).out
    is_one_error(run("search", "x", "--db", database, "--collection", "Öl", env=plain), "'Öl'", code=2)


@pytest.mark.slow
def test_arguments_that_are_not_utf_8(tmp_path: Path, database: str) -> None:
    with Memory(database) as memory:
        memory.index(write(tmp_path / "docs", {"a.md": "words"}))
    broken = os.fsdecode(b"\xff\xfe")
    assert run("search", broken, "--db", database).code == 0
    for command in (["get", broken], ["index", broken], ["search", "x", "--tag", broken]):
        ran = run(*command, "--db", database)
        assert ran.code in (1, 2)
        assert len(ran.err.splitlines()) == 1
        assert "unexpected" not in ran.err


@pytest.mark.slow
def test_the_help_needs_no_database_and_no_model(tmp_path: Path) -> None:
    ran = finish(start("--help", env={"MINDEX_DB": str(tmp_path)}))
    assert ran.code == 0


def test_a_keyword_search_imports_nothing_heavy(database: str) -> None:
    probe = (
        "import sys; from mindex.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'numpy', 'onnxruntime', 'mcp'} & set(sys.modules)), file=sys.stderr)"
    )
    assert run("search", "x", program=probe, env={"MINDEX_DB": database}).err.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["index", "watch", "sync", "import", "export", "backup", "restore-backup"])
def test_an_empty_path_is_not_the_current_folder(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    mindex("add", "The office is in Berlin")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    is_one_error(mindex(command, ""), "the path is empty; name a file or a folder", code=2)
    assert not list((tmp_path / "elsewhere").iterdir())
