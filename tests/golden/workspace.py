"""A folder with a fixed database in which commands run in this process, their output recorded as text."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pytest

from tests.databases import Databases
from tests.golden import freeze
from tests.golden.chat import Chat
from tests.golden.record import VARIABLE, masked, readable
from tests.golden.scripts import Command

DATA = Path(__file__).parent / "data"
HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"

# The files are older than the first index run, which is older than the first recorded command.
FILES_AT = datetime(2026, 2, 14, 12, 0, tzinfo=UTC)
BUILT_AT = datetime(2026, 3, 16, 9, 0, tzinfo=UTC)
FIRST_STEP_AT = datetime(2026, 3, 16, 10, 0, tzinfo=UTC)
STEP_MS = 60_000

_DATABASE = "memory.db"
# Anchors show absolute paths, and tokens are counted by their letters: the length must be the same on every machine.
_ROOT_LENGTH = 160

# What mindex reads beside its own variables.
_OTHER_VARIABLES = ("NO_COLOR", "MEMORY_EXPORT_PATH", "OPENAI_API_KEY", "OLLAMA_HOST")


@dataclass
class Workspace:
    """The folder of a test process. `reset` brings it back to how `build` left it."""

    base: Path
    environment: dict[str, str]
    indexed: tuple[str, ...]
    databases: Databases
    chat: Chat | None = None
    database: str = ""
    _kept_database: str = ""
    _step: int = field(default=0, init=False)

    @property
    def root(self) -> Path:
        return self.base / "root".ljust(_ROOT_LENGTH - len(str(self.base)) - 1, "_")

    @property
    def clock(self) -> Path:
        return self.base / "clock"

    @property
    def _kept(self) -> Path:
        return self.base / "kept"

    @cached_property
    def _before(self) -> dict[str, FileState]:
        return _files(self._kept)

    # ── the fixed state ───────────────────────────────────────────────────────────────────────────────────────

    def build(self) -> None:
        """Copy the files, index folders and import the committed export, all through the command line."""
        assert len(str(self.root)) == _ROOT_LENGTH, "the temporary folder is nested too deeply; use --basetemp"
        self.root.mkdir(parents=True)
        shutil.copytree(DATA, self.root, dirs_exist_ok=True)
        shutil.copytree(HANDBOOK, self.root / "handbook")
        for script in (self.root / "incoming").glob("*.sql"):
            _make_database(script.with_suffix(".db"), script.read_text(encoding="utf-8"))
        self.database = self.databases.new(self.root / _DATABASE)
        if self._on_server:
            (self.root / _DATABASE).touch()  # some commands are given a file that is no text
        for path in self.root.rglob("*"):
            _set_time(path, FILES_AT.timestamp())
        with self.entered():
            freeze.move(self.clock, _milliseconds(BUILT_AT))
            for command in (["index", *self.indexed], ["import", "export.jsonl", "--strict"]):
                code, _, err = self._run(command)
                assert code == 0, err
        shutil.copytree(self.root, self._kept)
        if self._on_server:
            self._kept_database = self.databases.copy(self.database, self._kept)

    @property
    def _on_server(self) -> bool:
        """Whether the database is none of the workspace's files."""
        return "://" in self.database

    def reset(self) -> None:
        """Bring back what was changed or removed. That is little in most scripts; copying all files takes longer."""
        now, before = _files(self.root), self._before
        changed = [name for name, state in now.items() if before.get(name) != state]
        for name in sorted(changed, reverse=True):  # what is in a folder comes before the folder
            path = self.root / name
            path.rmdir() if now[name] == _FOLDER else path.unlink()
        for name in sorted(before.keys() - (now.keys() - set(changed))):
            path = self.root / name
            path.mkdir() if before[name] == _FOLDER else shutil.copy2(self._kept / name, path)
        if self._on_server:
            self.databases.restore(self.database, self._kept_database)
        self._step = 0
        self.next_step()

    def next_step(self) -> None:
        """Move the clock on by one minute. It stands still while a command runs."""
        freeze.move(self.clock, _milliseconds(FIRST_STEP_AT) + self._step * STEP_MS)
        self._step += 1

    @contextmanager
    def entered(self) -> Iterator[Workspace]:
        """Work in this folder, with its settings, in UTC, and with a frozen clock."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("MINDEX_") or name in _OTHER_VARIABLES]:
                patch.delenv(name)
            for name, value in {**self._variables(), **self.environment}.items():
                patch.setenv(name, value)
            for place, attribute, replacement in freeze.Frozen(self.clock).patches():
                patch.setattr(place, attribute, replacement)
            patch.chdir(self.root)
            time.tzset()
            yield self
        time.tzset()

    def _variables(self) -> dict[str, str]:
        homes = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
        return {
            **dict.fromkeys(homes, str(self.root / "home")),
            "TZ": "UTC",
            "COLUMNS": "120",
            "MINDEX_DB": self.database,
            "MINDEX_CACHE_DIR": str(self.root / "cache"),
        }

    # ── commands ──────────────────────────────────────────────────────────────────────────────────────────────

    def transcript(self, lines: Sequence[str], *options: str) -> str:
        """Run commands over the fixed state and return all they printed. The options come first in each command."""
        self.reset()
        return "\n".join(self._recorded(line, options) for line in lines)

    def _recorded(self, line: str, options: tuple[str, ...]) -> str:
        self.next_step()
        if line.startswith(":"):
            action, *arguments = shlex.split(line[1:])
            actions = {"write": self.write, "remove": self.remove, "show": self.show, "says": self.says}
            return f"$ {line}\n{actions[action](*arguments)}"
        command = Command.parse(line.replace("{root}", str(self.root)))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in command.environment.items():
                patch.setenv(name, value)
            time.tzset()
            code, out, err = self._run([*options, *command.arguments], command.stdin, command.on_terminal)
        time.tzset()
        if command.output:
            (self.root / command.output).write_text(out, encoding="utf-8")
            out = ""
        shown = "".join(f"── {name}\n{readable(text)}" for name, text in (("stdout", out), ("stderr", err)) if text)
        asked = self.chat.taken() if self.chat else ""
        return self.normalised(f"$ {command.shown(options)}\nexit {code}\n{shown}{asked}")

    def _run(self, arguments: list[str], stdin: str = "", on_terminal: bool = False) -> tuple[int, str, str]:
        stream = _Terminal if on_terminal else io.TextIOWrapper
        out, err = (stream(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            with pytest.raises(SystemExit) as left:
                freeze.command_line(arguments)
        code = left.value.code
        return code if isinstance(code, int) else 0, _written(out), _written(err)

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, name: str, text: str) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("\\n", "\n"), encoding="utf-8")
        _set_time(path, FILES_AT.timestamp() + 3600)
        return ""

    def remove(self, name: str) -> str:
        path = self.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return ""

    def says(self, text: str) -> str:
        """What the language model answers from now on."""
        assert self.chat is not None
        self.chat.says = text
        return ""

    def show(self, name: str) -> str:
        """The content of a file, or of every file below a folder."""
        path = self.root / name
        files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        shown = (f"── {one.relative_to(self.root).as_posix()}\n{one.read_bytes().decode()}" for one in files)
        return self.normalised("".join(shown))

    def normalised(self, text: str) -> str:
        text = masked(text, VARIABLE).replace(self.database, f"<root>/{_DATABASE}").replace(str(self.root), "<root>")
        return text.replace(self.chat.url, "<server>") if self.chat else text


class _Terminal(io.TextIOWrapper):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


FileState = tuple[int, int]
_FOLDER: FileState = (-1, -1)


def _files(folder: Path) -> dict[str, FileState]:
    """Size and time of change of everything below a folder, by relative path."""
    found: dict[str, FileState] = {}
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if entry.is_dir():
                    found[name] = _FOLDER
                    waiting.append(f"{name}/")
                else:
                    found[name] = (entry.stat().st_size, entry.stat().st_mtime_ns)
    return found


def _make_database(path: Path, script: str) -> None:
    """A database as another program leaves it."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def _set_time(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
