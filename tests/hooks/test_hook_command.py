"""`mindex hook`, `pause` and `resume` as an agent and its user run them: real processes that never fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mindex.hook_pause import WITHOUT_END, paused_until
from mindex.hooks.run import FILE, log_error
from mindex.hooks.session_state import session_state
from tests.hooks.conftest import Project

_RUN = "from mindex.cli.main import main; main()"
# Prints what was imported.
_WATCHED = """
import sys
from mindex.cli.main import main
try:
    main()
finally:
    print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""
_HEAVY = {"numpy", "onnxruntime", "tokenizers", "mcp", "markdown_it", "yaml", "httpx2", "pydantic", "starlette"}
FACT = "The door code of the harbour office is written on the blue card."


def mindex(project: Project, *arguments: str, stdin: bytes = b"", code: str = _RUN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, "--db", str(project.data / "memory.db"), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=project.cwd, timeout=60)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def message(project: Project, **more: object) -> bytes:
    given = {"session_id": "s1", "cwd": str(project.cwd), "transcript_path": str(project.transcript)}
    return json.dumps(given | more).encode()


def test_an_agent_reads_json_with_the_name_of_its_event(project: Project) -> None:
    with project.memory() as memory:
        memory.add(FACT)
    asked = message(project, hook_event_name="BeforeAgent", prompt="what is the door code of the harbour office?")
    done = mindex(project, "hook", "prompt", "--client", "gemini", stdin=asked)
    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert (said["hookEventName"], done.stderr, done.returncode) == ("BeforeAgent", "", 0)
    assert FACT in said["additionalContext"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "logged"),
    [
        (("prompt",), b"garbage", "no JSON on stdin"),
        (("stop",), b"", "no JSON on stdin"),
        (("prompt",), b"\xff\x00\xfe", "no JSON on stdin"),
        (("prompt",), b"[1]", "not an object"),
        (("prompt",), b"[" * 200_000, "no JSON on stdin"),
        (("stop",), b'{"session_id": 7, "prompt": []}', "no session_id"),
        (("stop",), b'{"session_id": "s", "transcript_path": "/nowhere/t.jsonl"}', "/nowhere/t.jsonl"),
        (("stop",), b'{"session_id": "s", "transcript_path": "a\\u0000b"}', ""),
        (("prompt",), b" " * 5_000_000, "more than"),
    ],
)
def test_bad_input_is_logged_and_the_agent_goes_on(
    project: Project, arguments: tuple[str, ...], stdin: bytes, logged: str
) -> None:
    done = mindex(project, "hook", *arguments, stdin=stdin)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    log = project.data / FILE
    assert logged in (log.read_text() if log.exists() else "")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("bogus",), "there is no hook 'bogus'"),
        (("prompt", "--client", "bogus"), "there is no client 'bogus'"),
        (("prompt", "--newer", "option"), "No such option '--newer'"),
        (("prompt", "and", "more"), "unexpected extra arguments"),
        ((), "Missing argument"),
    ],
)
def test_wrong_arguments_are_one_line_and_never_block_a_prompt(
    project: Project, arguments: tuple[str, ...], reason: str
) -> None:
    done = mindex(project, "hook", *arguments, stdin=b"{}")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert reason in (project.data / FILE).read_text()


def test_the_log_of_hooks_holds_no_secret(tmp_path: Path) -> None:
    log_error(tmp_path, "prompt", ValueError("no such event: password=Xk29vLq8Zt"))
    assert (tmp_path / FILE).read_text().endswith("ValueError: no such event: password=[redacted:password]\n")


def test_a_database_that_is_none_is_logged(project: Project) -> None:
    (project.data / "memory.db").write_bytes(b"no database at all" * 100)
    done = mindex(project, "hook", "prompt", stdin=message(project, prompt="what is the door code?"))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert "prompt: " in (project.data / FILE).read_text()


@pytest.mark.parametrize("event", ["session-start", "prompt", "stop"])
def test_a_hook_loads_no_model_and_no_server(project: Project, event: str) -> None:
    project.write(("We decided to paint the pier green.", "Noted."))
    with project.memory() as memory:
        memory.add(FACT)
    asked = message(project, prompt="what is the door code of the harbour office?")
    done = mindex(project, "hook", event, stdin=asked, code=_WATCHED)
    assert done.returncode == 0
    assert not _HEAVY.intersection(done.stderr.split())
    assert not (project.data / FILE).exists()


def test_paused_hooks_do_nothing_until_they_are_resumed(project: Project) -> None:
    project.write(("hello there", "Hello."))
    assert "until `mindex resume`" in mindex(project, "pause").stdout
    mindex(project, "hook", "stop", stdin=message(project))
    assert project.turns() == []
    assert "hooks are paused until `mindex resume`" in mindex(project, "status").stdout
    assert json.loads(mindex(project, "--json", "status").stdout)["hooks_paused"] is True
    assert "at work again" in mindex(project, "resume").stdout
    assert "hooks are paused" not in mindex(project, "status").stdout
    assert "were not paused" in mindex(project, "resume").stdout
    mindex(project, "hook", "stop", stdin=message(project))
    assert project.turns() == [("hello there", "Hello.")]


def test_a_pause_with_an_end_ends_automatically(project: Project) -> None:
    paused = json.loads(mindex(project, "--json", "pause", "--for", "2h").stdout)
    assert paused["until"] > "2026"
    with project.memory() as memory:
        memory.add(FACT)
    assert json.loads(mindex(project, "--json", "status").stdout)["hooks_resume_at"] == paused["until"]
    (project.data / "hooks-paused").write_text("1")
    project.write(("hello there", "Hello."))
    mindex(project, "hook", "stop", stdin=message(project))
    assert len(project.turns()) == 1


def test_the_timeline_shows_what_hooks_did(project: Project) -> None:
    with project.memory() as memory:
        memory.add(FACT)
    project.write(("I prefer short answers.", "Noted."))
    mindex(project, "hook", "stop", stdin=message(project))
    shown = mindex(project, "timeline", "--source", "hook").stdout
    assert "add turn" in shown
    assert "add memory" in shown
    assert FACT not in shown


def test_files_of_hooks_are_their_owners_alone(project: Project) -> None:
    project.write(("hello there", "Hello."))
    mindex(project, "hook", "stop", stdin=message(project))
    log_error(project.data, "stop", OSError("x"))
    files = [project.data / FILE, *(project.data / "hooks").iterdir()]
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"] * 2


def test_the_log_stays_small(tmp_path: Path) -> None:
    for _ in range(1_200):
        log_error(tmp_path, "stop", OSError("x" * 600))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 250_000


def test_a_state_that_was_cut_short_is_an_empty_one(tmp_path: Path) -> None:
    with session_state(tmp_path, "../s 1") as state:
        state.recalled.append("a")
    (file,) = tmp_path.iterdir()
    with session_state(tmp_path, "../s 1") as state:
        assert state.recalled == ["a"]
    file.write_bytes(file.read_bytes()[:20])
    with session_state(tmp_path, "../s 1") as state:
        assert state.recalled == []


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs Linux's /proc")
def test_a_hook_leaves_no_process_behind(project: Project) -> None:
    project.write(("hello there", "Hello."))
    for event in ("session-start", "prompt", "stop", "session-end"):
        mindex(project, "hook", event, stdin=message(project, prompt="what is the door code?"))
    lines = [_command_line(path) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    assert not [line for line in lines if str(project.data) in line]


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:  # it has ended
        return ""


@pytest.mark.parametrize("text", ["99999999999999999", "9" * 5_000, "soon"])
def test_a_pause_that_says_no_moment_has_no_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "hooks-paused").write_text(text)
    assert paused_until(tmp_path) == WITHOUT_END
