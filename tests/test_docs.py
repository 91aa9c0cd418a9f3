"""What the documents show is run, and what they name exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mindex.cli.main import cli
from mindex.config import SETTINGS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def transcripts() -> list[tuple[str, str]]:
    """Every `$ command` of the README with the output shown below it."""
    return [
        (command, shown.strip())
        for block in fences("console")
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.slow
def test_every_command_of_the_readme_answers_as_shown(handbook: Path) -> None:
    for command, shown in transcripts():
        program, *arguments = shlex.split(command)
        assert program == "mindex"
        done = run([sys.executable, "-m", "mindex", *arguments], handbook.parent)
        assert done.returncode == 0, done.stderr
        for line in shown.splitlines():
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            assert re.search(f"^{pattern}$", done.stdout, re.MULTILINE), f"{command}\n{line}\n{done.stdout}"


@pytest.mark.slow
def test_the_python_of_the_readme_runs(handbook: Path) -> None:
    for block in fences("python"):
        done = run([sys.executable, "-c", block], handbook.parent)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("domains/deployment/releases.md")


def test_the_readme_shows_commands() -> None:
    assert len(transcripts()) >= 6
    assert len(fences("python")) == 1


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_every_command_and_option_is_in_the_readme(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    assert name in README
    for option in command.params:  # a group's options are those of its records' fields: `--help` tells of them
        if isinstance(option, click.Option):
            assert any(flag in README for flag in option.opts), option.opts


def test_the_settings_the_readme_names_exist_with_their_defaults() -> None:
    known = {setting.key: setting for setting in SETTINGS}
    rows = re.findall(r"^\| `([a-z_.]+)` \| `(MINDEX_[A-Z_]+)` \| ([^|]+) \|", README, re.MULTILINE)
    assert len(rows) >= 6
    for key, variable, default in rows:
        assert known[key].variable == variable
        if default.startswith("`") and "," not in default:
            assert default.strip("` ") == str(known[key].default)


def test_the_architecture_names_every_module_and_table() -> None:
    modules = {path.stem for path in (ROOT / "src" / "mindex").rglob("*.py") if not path.stem.startswith("__")}
    assert sorted(name for name in modules if name not in ARCHITECTURE) == []
    folder = ROOT / "src" / "mindex" / "store" / "sqlite"
    schema = "".join(path.read_text(encoding="utf-8") for path in folder.glob("schema*.sql"))
    tables = re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", schema)
    assert [table for table in tables if f"`{table}`" not in ARCHITECTURE] == []


def test_the_architecture_is_short_and_its_glossary_too() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 250
    glossary = ARCHITECTURE.partition("## Glossary")[2].partition("\n## ")[0]
    assert 0 < len(re.findall(r"^\| [a-z]", glossary, re.MULTILINE)) - 1 <= 25
