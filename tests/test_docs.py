"""What the documents show is run, what they name exists, and what the code has is in the reference."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mindex.cli.main import cli
from mindex.cli.options import global_options_first
from mindex.config import SETTINGS
from tests.conftest import HANDBOOK
from tests.running import run_here
from tests.test_scripts import script

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
}


def fences(page: str, *languages: str) -> list[str]:
    """The fenced blocks of a page that are marked with one of these languages."""
    blocks = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block for language, block in blocks if language in languages]


def transcript(page: str) -> list[tuple[str, str]]:
    """Every `$ command` of a page's console blocks, with the output shown below it."""
    return [
        (command, shown.strip())
        for block in fences(page, "console")
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


@pytest.fixture(scope="session")
def indexed_handbook(tmp_path_factory: pytest.TempPathFactory, shared_model_cache: None) -> Path:
    """A folder with the handbook and a database of it, with vectors. Made once: a test takes a copy."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(HANDBOOK, folder / "handbook")
    assert run_here("--db", str(folder / "memory.db"), "index", str(folder / "handbook")).code == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if transcript(page)])
def test_every_command_of_a_page_answers_as_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A page that indexes the handbook itself starts with nothing, another one with the indexed handbook."""
    commands = transcript(PAGES[name])
    if commands[0][0] == "mindex index handbook":
        shutil.copytree(HANDBOOK, tmp_path / "handbook")
    else:
        shutil.copytree(request.getfixturevalue("indexed_handbook"), tmp_path, dirs_exist_ok=True)
        monkeypatch.setenv("MINDEX_DB", str(tmp_path / "memory.db"))
    monkeypatch.chdir(tmp_path)
    ids: dict[str, str] = {}  # of memories: those that the page shows → those of this run
    for command, shown in commands:
        program, *arguments = shlex.split(_replaced(command, ids))
        if program == "mkdir":
            (tmp_path / arguments[0]).mkdir()
            continue
        assert program == "mindex"
        done = run_here(*arguments)
        assert done.code == 0, f"{command}\n{done.err}"
        written = done.out + done.err
        if (told := re.match(r"([a-z2-7]{12}) remembered", shown)) and (new := re.search(r"^(\w{12}) rem", written)):
            ids[told[1]] = new[1]
        for line in _replaced(shown, ids).splitlines():
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            assert re.search(f"^{pattern}$", written, re.MULTILINE), f"{command}\n{line}\n{written}"


def test_every_console_block_starts_with_a_command() -> None:
    for name, page in PAGES.items():
        for block in fences(page, "console"):
            assert block.startswith("$ "), f"{name}: no test runs this block\n{block}"


def _replaced(text: str, ids: dict[str, str]) -> str:
    for shown, actual in ids.items():
        text = text.replace(shown, actual)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if fences(page, "python")])
def test_the_python_of_a_page_runs(name: str, tmp_path: Path, indexed_handbook: Path) -> None:
    shutil.copytree(indexed_handbook, tmp_path, dirs_exist_ok=True)
    for block in fences(PAGES[name], "python"):
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            env={**os.environ, "PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("domains/deployment/releases.md")


def shell_commands() -> list[tuple[str, str]]:
    """Every line of a page's blocks for a shell that calls mindex. They name servers and files that no test has."""
    return [
        (name, line)
        for name, page in PAGES.items()
        for block in fences(page, "sh", "")
        for line in re.findall(r"^mindex .*", block, re.MULTILINE)
    ]


@pytest.mark.parametrize(("name", "line"), shell_commands())
def test_a_command_for_a_shell_has_options_that_exist(name: str, line: str) -> None:
    arguments = list(_until_redirection(shlex.split(line, comments=True)[1:]))
    command: click.Command = cli
    context = cli.make_context("mindex", global_options_first(arguments))
    while isinstance(command, click.Group) and (rest := [*context._protected_args, *context.args]):
        found = command.get_command(context, rest[0])
        assert found is not None, f"{name}: {line}"
        command = found
        try:
            context = command.make_context(rest[0], rest[1:], parent=context)
        except (click.NoSuchOption, click.MissingParameter):
            raise
        except click.BadParameter:
            return  # a placeholder, such as a folder that does not exist


def _until_redirection(words: list[str]) -> Iterator[str]:
    return itertools.takewhile(lambda word: word not in {">", "<", "|", "&&", ";"}, words)


def test_the_readme_is_short_shows_a_session_and_both_scripts() -> None:
    assert len(README.splitlines()) < 120
    assert "(docs/session.svg)" in README and "(docs/page.png)" in README
    assert len(fences(README, "python")) == 1
    assert "`./scripts/demo`" in README and "`./scripts/test`" in README
    for page in DOCS.glob("*.md"):
        assert f"(docs/{page.name}" in README, f"the README has no link to {page.name}"


def test_there_are_at_most_24_pages() -> None:
    assert len(list(DOCS.rglob("*.md"))) <= 24


def test_the_links_of_the_readme_lead_somewhere() -> None:
    """The links of all other pages are checked by `mkdocs build --strict`."""
    for target, _, anchor in re.findall(r"\]\(([^)#:]+)(#([^)]+))?\)", README):
        assert (ROOT / target).exists(), target
        headings = re.findall(r"^#+ (.+)$", (ROOT / target).read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"\W+", "-", each.lower()) for each in headings}, f"{target}#{anchor}"


def test_the_reference_is_what_the_code_says() -> None:
    # In a separate process: a command keeps the help option that it was first asked for.
    code = "import json, runpy; print(json.dumps(runpy.run_path('scripts/reference')['pages']()))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True).stdout
    for name, text in json.loads(printed).items():
        written = (DOCS / name).read_text(encoding="utf-8")
        assert written == text, f"docs/{name} is out of date: run scripts/reference"


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_every_command_and_option_is_in_the_reference(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    section = PAGES["docs/commands.md"].partition(f"\n### mindex {name}\n")[2].partition("\n### ")[0]
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert any(flag in section for flag in option.opts), option.opts
    overview = re.findall(r"^\| (`mindex .+?[^\\]) \|", PAGES["docs/commands.md"], re.MULTILINE)
    assert any(re.search(rf"\b{name}\b", cell) for cell in overview), f"the table of docs/commands.md lacks {name}"


def test_every_setting_is_in_the_reference() -> None:
    reference = PAGES["docs/settings.md"].partition("\n## All settings\n")[2]
    sources = {one.key: f"`{one.variable}`" if one.variable else "user file only" for one in SETTINGS}
    assert [key for key, source in sources.items() if f"| `{key}` | {source} |" not in reference] == []


def test_the_settings_that_the_guide_names_exist_with_their_defaults() -> None:
    known = {setting.key: setting for setting in SETTINGS}
    guide = PAGES["docs/settings.md"].partition("\n## All settings\n")[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \| `(MINDEX_[A-Z_]+)` \| ([^|]+) \|", guide, re.MULTILINE)
    assert len(rows) >= 6
    for key, variable, default in rows:
        assert known[key].variable == variable
        if default.startswith("`") and "," not in default:
            assert default.strip("` ") == str(known[key].default)


def test_the_recording_is_small_and_loads_nothing() -> None:
    recording = script("recording")
    picture = recording.PICTURE.read_text(encoding="utf-8")
    assert len(picture.encode()) < 60_000
    assert "href" not in picture and "url(" not in picture and "<script" not in picture
    for command in recording.COMMANDS:
        assert command in picture, f"run scripts/recording: the picture lacks {command}"


def test_a_line_of_the_recording_is_cut_escaped_and_coloured() -> None:
    recording = script("recording")
    shown = recording.lines([("mindex add x", "note: <b> & " + "word " * 40)])
    assert [kind for kind, _ in shown] == ["c", "n", "n"]
    assert all(len(line) <= recording.COLUMNS for _, line in shown)
    assert "&lt;b&gt; &amp; word" in recording.svg(shown)


def test_the_architecture_names_every_package_and_table() -> None:
    source = ROOT / "src"
    packages = {path.parent.name for path in [*source.glob("*/__init__.py"), *source.glob("mindex/*/__init__.py")]}
    assert sorted(name for name in packages - {"mindex"} if f"**`{name}`**" not in ARCHITECTURE) == []
    schema = "".join(path.read_text(encoding="utf-8") for path in source.glob("mindex/store/sqlite/schema*.sql"))
    tables = re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", schema)
    assert [table for table in tables if f"`{table}`" not in ARCHITECTURE] == []


def test_every_path_and_class_that_the_architecture_names_exists() -> None:
    source = ROOT / "src"
    names = re.findall(r"`([^`\n]+)`", ARCHITECTURE)
    paths = [name for name in names if re.fullmatch(r"[a-z_/]+/[a-z_]*(\.py)?|[a-z_]+\.py", name)]
    assert len(paths) > 10
    assert [one for one in paths if not any((top / one).exists() for top in (ROOT, source, source / "mindex"))] == []
    code = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    classes = {name.partition(".")[0] for name in names if re.fullmatch(r"[A-Z][a-z]\w+(\.\w+)?", name)}
    assert len(classes) > 5
    assert [name for name in sorted(classes) if not re.search(rf"^class {name}\b", code, re.MULTILINE)] == []


def test_the_architecture_is_short_and_its_glossary_too() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 250
    glossary = ARCHITECTURE.partition("## Glossary")[2].partition("\n## ")[0]
    assert 0 < len(re.findall(r"^\| [a-z]", glossary, re.MULTILINE)) - 1 <= 25
