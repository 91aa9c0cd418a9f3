"""Shell completion: what is offered, in the shells themselves, and that it leaves no trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mindex.cli.completion import complete_in_shell
from mindex.cli.main import cli
from mindex.datatypes import TYPES
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from tests.cli.conftest import Mindex
from tests.conftest import write
from tests.running import run

pytestmark = pytest.mark.slow  # shells are started


@pytest.fixture
def filled(tmp_path: Path, database: str) -> str:
    """A database with two collections, memories of two agents, and a conversation."""
    with Memory(database) as memory:
        for name in ("handbook", "my notes"):
            memory.index(write(tmp_path / name, {"guide/setup.md": "# Setup\n\nThe harbour."}))
        memory.add("Anna drinks tea", tags=["tea", "breakfast"])
        memory.conversations.add("Is the freeze over?", "Yes.", session_id="planning")
        memory.contacts.add(name="Anna Lindqvist")
    with Memory(database, agent="scout") as memory:
        memory.add("The scout drinks rum", tags=["rum"])
    return database


def offered(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash"
) -> list[str]:
    """What is offered for the last word of a command line, which may be empty."""
    words = re.findall(r"'[^']*|\S+", line) + ([""] if line.endswith(" ") else [])
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
    assert complete_in_shell(cli, f"{shell}_complete") == 0
    return capsysbinary.readouterr().out.decode().splitlines()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("mindex sea", ["search"]),
        ("mindex conversation s", ["search", "show"]),
        ("mindex search x --collection ", ["handbook", r"my\\ notes"]),
        ("mindex search x --collection 'my n", ["my notes"]),
        ("mindex index --remove h", ["handbook"]),
        ("mindex install c", ["claude-code", "claude-desktop", "codex", "cursor", "cline"]),
        ("mindex search x --tag t", ["tea"]),
        ("mindex list --all-tags b", ["breakfast"]),
        ("mindex add x --type pre", ["preference"]),
        ("mindex search x --kind tu", ["turn"]),
        ("mindex --agent s", ["scout"]),
        ("mindex search x --agent s", ["scout"]),
        ("mindex --agent scout search x --tag ", ["rum"]),
        ("mindex search x --agent scout --tag ", ["rum"]),
        ("mindex conversation show p", ["planning"]),
        ("mindex get guide", ["guide/setup.md"]),
        ("mindex get my", [r"my\\ notes/guide/setup.md"]),
        ("mindex get confl", ["conflicts"]),
        ("mindex help sta", ["stats", "status"]),
        ("mindex help conversation s", ["search", "show"]),
        ("mindex completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_names_are_completed(
    filled: str,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    names: list[str],
) -> None:
    found = [item.partition(",")[2] for item in offered(capsysbinary, monkeypatch, line)]
    assert found == names


def test_ids_are_completed_with_their_first_words(
    filled: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(filled) as memory:
        (told,) = memory.list(memory.filters(kinds=["memory"])).records
        (contact,) = memory.contacts.list().records
    assert f"plain,{told.id}\tAnna drinks tea" in offered(capsysbinary, monkeypatch, "mindex forget ", "fish")
    assert offered(capsysbinary, monkeypatch, f"mindex forget {told.id[:6]}", "zsh") == [
        "plain",
        told.id,
        "Anna drinks tea",
    ]
    assert [item.split("\t")[0] for item in offered(capsysbinary, monkeypatch, "mindex contact get ", "fish")] == [
        f"plain,{contact.id}"
    ]


def test_an_id_that_is_not_among_the_newest_is_completed_too(
    filled: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(filled) as memory:
        first = memory.list(memory.filters(kinds=["memory"])).records[0].id
        memory.add_many([NewMemory(f"Fact {n}") for n in range(60)], embed=False)
    assert offered(capsysbinary, monkeypatch, f"mindex forget {first[:8]}") == [f"plain,{first}"]


def test_global_options_are_offered_behind_a_command_too(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = offered(capsysbinary, monkeypatch, "mindex search x --")
    assert {"plain,--limit", "plain,--db", "plain,--json", "plain,--agent"} <= set(behind)
    assert len(behind) == len(set(behind))
    assert offered(capsysbinary, monkeypatch, "mindex search x --db m") == ["file,m"]


def test_types_need_no_database(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(capsysbinary, monkeypatch, "mindex add x --type ") == [f"plain,{type_}" for type_ in TYPES]


@pytest.mark.sqlite_only  # a file that does not exist
@pytest.mark.parametrize("line", ["mindex search x --collection ", "mindex --agent ", "mindex forget ", "mindex get "])
def test_a_missing_database_offers_nothing_and_is_not_made(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for db in ("memory.db", "below/memory.db"):
        monkeypatch.setenv("MINDEX_DB", str(folder / db))
        assert offered(capsysbinary, monkeypatch, line) in ([], [""])
    assert list(folder.iterdir()) == []


@pytest.mark.sqlite_only  # a file that is not a database
def test_what_is_wrong_is_not_written_into_the_command_line(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.db").write_text("not a database", encoding="utf-8")
    assert offered(capsysbinary, monkeypatch, "mindex search x --collection ") in ([], [""])
    (tmp_path / ".mindex.toml").write_text("search.floor = [", encoding="utf-8")
    assert offered(capsysbinary, monkeypatch, "mindex search x --collection ") in ([], [""])
    assert complete_in_shell(cli, "tcsh_complete") == 1
    monkeypatch.delenv("COMP_WORDS")
    assert complete_in_shell(cli, "bash_complete") == 1
    assert capsysbinary.readouterr() == (b"", b"")


def test_the_script_is_printed_as_text_and_as_json(mindex: Mindex) -> None:
    script = mindex("completion", "zsh").out
    assert script.startswith("#compdef mindex\n")
    assert mindex("completion", "zsh", "--json").json == {"shell": "zsh", "script": script}
    assert mindex("completion", "tcsh").code == 2


def test_completion_runs_in_a_separate_process_that_imports_no_model(filled: str) -> None:
    probe = (
        "import sys; from mindex.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'numpy', 'onnxruntime', 'mcp'} & set(sys.modules)), file=sys.stderr)"
    )
    environment = {"_MINDEX_COMPLETE": "bash_complete", "COMP_WORDS": "mindex search x --tag ", "COMP_CWORD": "4"}
    ran = run(program=probe, env=environment | {"MINDEX_DB": filled})
    assert (ran.code, ran.err) == (0, "[]\n")
    assert "plain,tea\n" in ran.out


# ── in the shells themselves ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def environment(filled: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that finds a `mindex`."""
    program = write(tmp_path / "bin", {"mindex": f"#!{sys.executable}\nfrom mindex.cli.main import main\nmain()\n"})
    (program / "mindex").chmod(0o755)
    path = f"{program}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "MINDEX_DB": filled, "HOME": str(tmp_path), "TERM": "dumb"}


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"needs {shell}")


@needs("bash")
@pytest.mark.parametrize(
    ("words", "reply"),
    [(["search", "x", "--collection", ""], ["handbook", r"my\ notes"]), (["conver"], ["conversation"])],
)
def test_bash_calls_the_function_of_the_script(environment: dict[str, str], words: list[str], reply: list[str]) -> None:
    script = (
        'eval "$(mindex completion bash)"; COMP_WORDS=(mindex "$@"); COMP_CWORD=$#;'
        ' _mindex_completion mindex; printf "%s\\n" "${COMPREPLY[@]}"; complete -p mindex'
    )
    command = ["bash", "--norc", "-c", script, "bash", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:-1] == reply
    assert done.stdout.splitlines()[-1].endswith("-F _mindex_completion mindex")
    assert done.stderr == ""


@needs("fish")
@pytest.mark.parametrize(
    ("line", "reply"),
    [("mindex search x --collection my", "my notes"), ("mindex conver", "conversation"), ("mindex --agent s", "scout")],
)
def test_fish_completes_a_line(environment: dict[str, str], line: str, reply: str) -> None:
    script = "mindex completion fish | source; complete -C $argv[1]"
    command = ["fish", "--no-config", "-c", script, line]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert [shown.split("\t")[0] for shown in done.stdout.splitlines()] == [reply]


@needs("fish")
def test_fish_shows_descriptions_with_commas(environment: dict[str, str]) -> None:
    command = ["fish", "--no-config", "-c", "mindex completion fish | source; complete -C 'mindex statu'"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "status\tWhat is in the memory, and what is still pending.\n"


def typed(command: list[str], environment: dict[str, str], *, set_up: str, keys: str, shown: str) -> str:
    """What an interactive shell shows after these keys, as soon as it shows what is expected, or after a minute."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        screen = ""
        for text, awaited in ((f"{set_up}; echo rea''dy\n", "ready\r\n"), (keys, shown)):
            os.write(ours, text.encode())
            deadline = time.monotonic() + 60
            screen = ""
            while awaited not in screen and time.monotonic() < deadline:
                screen += os.read(ours, 65536).decode(errors="replace")
        process.kill()
    os.close(ours)
    return screen


@needs("bash")
def test_bash_completes_what_is_typed(environment: dict[str, str]) -> None:
    screen = typed(
        ["bash", "--norc", "--noprofile", "-i"],
        environment,
        set_up='eval "$(mindex completion bash)"',
        keys="mindex search x --collection my\t",
        shown="notes",
    )
    assert r"my\ notes" in screen


@needs("zsh")
def test_zsh_completes_what_is_typed(environment: dict[str, str]) -> None:
    screen = typed(
        ["zsh", "-f", "-i"],
        environment,
        set_up='autoload -U compinit; compinit -u; eval "$(mindex completion zsh)"',
        keys="mindex search x --collection my\t",
        shown="notes",
    )
    assert r"my\ notes" in screen
