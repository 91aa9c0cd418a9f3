"""Stored text cannot steer a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.present.terminal import for_terminal

OSC_52 = "\x1b]52;c;aGVsbG8=\x07"
HOSTILE = f"tea {OSC_52}\x1b[2J\x9b31m\x7f \u202eevil\u202c\r end"


def test_control_and_direction_characters_are_shown() -> None:
    shown = for_terminal(HOSTILE + "\n\ttab")
    assert shown == ("tea \\u001b]52;c;aGVsbG8=\\u0007\\u001b[2J\\u009b31m\\u007f \\u202eevil\\u202c\\u000d end\n\ttab")


def test_our_own_colours_stay() -> None:
    assert for_terminal("\x1b[1m\x1b[1;31mword\x1b[0m") == "\x1b[1m\x1b[1;31mword\x1b[0m"


def test_json_for_a_terminal_means_the_same() -> None:
    line = json.dumps({"text": HOSTILE}, ensure_ascii=False)
    assert json.loads(for_terminal(line)) == {"text": HOSTILE}


def on_a_terminal(*arguments: str) -> bytes:
    """What a command writes to stdout and stderr where both are a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
        process.wait(timeout=60)
    os.close(ours)
    return written


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["search", "tea"], ["list"], ["--json", "list"], ["timeline"], ["tags"], ["get", "no\x1b[2Jthing"]]
)
def test_no_command_lets_stored_text_steer_a_terminal(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    db = tmp_path / "memory.db"
    with Memory(db) as memory:
        memory.add(HOSTILE, tags=[f"t{OSC_52}"])
    written = on_a_terminal("--db", str(db), *command).decode()
    for steering in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e"):
        assert steering not in written


def test_a_pipe_gets_the_text_as_it_is(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    with Memory(db, options={"embedding.provider": "none"}) as memory:
        memory.add("tea \x9b31m evil")
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", "--db", str(db), "list"]
    assert "\x9b31m evil" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
