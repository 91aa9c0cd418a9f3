"""Reads the scripts of the golden tests: plain text, one command or call a line; `#` begins a comment.

- `scripts/cli`, `scripts/model` and `scripts/chat`: cases under `[name]`. A line is a command without `mindex`; it may
  begin with `NAME=VALUE`, or with `TERMINAL` to print as for a person, and end with `<<< 'standard input'` or with
  `> FILE`. `{root}` is the folder of the test. `:write FILE TEXT`, `:remove PATH`, `:show PATH` and `:says TEXT` (what
  a language model answers) are done by the test. In a text or standard input `\\n` is a line break.
- `scripts/mcp/NAME.txt`: one session with a server. The first line is the command that starts it; the others are a
  tool and its arguments as JSON, or `:read URI`, `:prompt NAME JSON`, `:complete_prompt NAME ARGUMENT VALUE`,
  `:complete_resource URI ARGUMENT VALUE`, `:show PATH` and `:restart COMMAND`.

Ids such as `factinvoice1` come from `data/export.jsonl`. The clock moves on by one minute with each line.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


def cases(kind: str) -> dict[str, list[str]]:
    """The lines of every case, by GROUP/NAME."""
    found: dict[str, list[str]] = {}
    for file in sorted((SCRIPTS / kind).glob("*.txt")):
        current: list[str] = []
        for line in _lines(file):
            if header := re.fullmatch(r"\[([\w-]+)\]", line):
                name = f"{file.stem}/{header[1]}"
                assert name not in found, f"two cases are called {name}"
                found[name] = current = []
            else:
                current.append(line)
    return {name: lines or [""] for name, lines in found.items()}


def sessions() -> dict[str, list[str]]:
    return {file.stem: list(_lines(file)) for file in sorted((SCRIPTS / "mcp").glob("*.txt"))}


def _lines(file: Path) -> list[str]:
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


@dataclass(frozen=True)
class Command:
    """One line of a case."""

    environment: dict[str, str]
    arguments: list[str]
    stdin: str = ""
    output: str = ""  # the file that stdout goes to
    on_terminal: bool = False

    @classmethod
    def parse(cls, line: str) -> Command:
        words = shlex.split(line)
        given = {"<<<": "", ">": ""}
        if len(words) > 1 and words[-2] in given:
            given[words[-2]] = words[-1].replace("\\n", "\n")
            words = words[:-2]
        on_terminal = words[:1] == ["TERMINAL"]
        words = words[on_terminal:]
        environment = {}
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        return cls(environment, words, given["<<<"], given[">"], on_terminal)

    def shown(self, options: tuple[str, ...]) -> str:
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        terminal = ["TERMINAL"] * self.on_terminal
        given = [f"<<< {shlex.quote(self.stdin)}"] if self.stdin else []
        given += [f"> {self.output}"] if self.output else []
        return " ".join([*terminal, *variables, "mindex", *options, *map(shlex.quote, self.arguments), *given])
